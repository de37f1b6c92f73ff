//! What was found in a project, as hosts see it.

use std::path::Path;

use pith_config::{Diagnostic as Finding, DiagnosticKind as FindingKind};
use pith_ext::LoadError;
use pith_protocol::answers::{Collision, Diagnostic, DiagnosticKind, OfferedCommand, ResourceChange, Source};
use pith_resources::{Change, CommandEntry, CommandSource, Origin, ResourceChange as Difference, Scope};

/// Names that are not Unicode are shown as well as possible.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

pub(super) fn change(difference: Difference) -> ResourceChange {
    let change = match difference.change {
        Change::Added => "added",
        Change::Removed => "removed",
        Change::Changed => "changed",
    };
    ResourceChange {
        change: change.to_owned(),
        resource: difference.resource.to_owned(),
        name: Some(difference.name).filter(|name| !name.is_empty()),
        path: difference.path.as_deref().map(text),
    }
}

pub(super) fn changed_settings() -> ResourceChange {
    ResourceChange { change: "changed".to_owned(), resource: "settings".to_owned(), name: None, path: None }
}

pub(super) fn command(entry: CommandEntry) -> OfferedCommand {
    let source = match entry.source {
        CommandSource::Extension => "extension",
        CommandSource::Prompt => "prompt",
        CommandSource::Skill => "skill",
        CommandSource::Mcp => "mcp",
    };
    let scope = match entry.source_info.scope {
        Scope::User => "user",
        Scope::Project => "project",
        Scope::Temporary => "temporary",
    };
    let origin = match entry.source_info.origin {
        Origin::TopLevel => "top-level",
        Origin::Package => "package",
    };
    OfferedCommand {
        name: entry.name,
        description: entry.description,
        source: source.to_owned(),
        location: entry.location.map(str::to_owned),
        path: text(&entry.path),
        source_info: Source {
            path: text(&entry.source_info.path),
            source: entry.source_info.source.into_owned(),
            scope: scope.to_owned(),
            origin: origin.to_owned(),
            base_dir: entry.source_info.base_dir.as_deref().map(text),
        },
    }
}

pub(super) fn finding(found: &Finding) -> Diagnostic {
    let kind = match found.kind {
        FindingKind::Warning => DiagnosticKind::Warning,
        FindingKind::Error => DiagnosticKind::Error,
        FindingKind::Collision => DiagnosticKind::Collision,
    };
    let collision = found.collision.as_ref().map(|collision| Collision {
        resource_type: collision.resource_type.to_owned(),
        name: collision.name.clone(),
        winner_path: text(&collision.winner_path),
        loser_path: text(&collision.loser_path),
    });
    let path = found.path.as_deref().map(text);
    Diagnostic { kind, message: found.message.clone(), path, code: found.code.to_owned(), collision }
}

/// Something a host has sent for a trace, which cannot be used.
pub(super) fn untraceable(message: String) -> Diagnostic {
    let (kind, code) = (DiagnosticKind::Warning, "telemetry_traceparent".to_owned());
    Diagnostic { kind, message, path: None, code, collision: None }
}

pub(super) fn unloaded(error: &LoadError) -> Diagnostic {
    Diagnostic {
        kind: DiagnosticKind::Error,
        message: error.error.clone(),
        path: Some(error.path.clone()),
        code: "extension_load".to_owned(),
        collision: None,
    }
}
