//! The session as extensions query it, answered from its state alone.

use std::path::Path;
use std::sync::Arc;

use pith_agent::Tool;
use pith_ext::Query;
use pith_ext::outgoing::{ContextUsage, PromptView, SessionView, StateView, ToolsView};
use pith_resources::{CommandEntry, Origin, Scope, SourceInfo};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::registry_questions::answer_from_registry;
use crate::session::Session;

impl Session {
    /// Answers at once: the extension's thread is blocked until then.
    pub(crate) fn answer_query(&mut self, query: Query) {
        match query {
            Query::State(reply) => reply.send(self.state_view()),
            Query::Session { session_id, from, reply } => reply.send(self.session_view(session_id.as_deref(), from)),
            Query::SystemPrompt(reply) => {
                let (text, options) = (self.system_prompt().to_string(), self.system_prompt_options());
                reply.send(PromptView { text, options });
            }
            Query::BuildPrompt { options, reply } => reply.send(self.build_prompt(&options)),
            Query::Boundary { event, entries, reply } => reply.send(self.boundary_preview(&event, &entries)),
            Query::Tools(reply) => reply.send(self.tools_view()),
            Query::Commands(reply) => reply.send(self.commands().iter().map(|command| json!(command)).collect()),
            Query::Model { .. } | Query::Models { .. } | Query::Provider { .. } => {
                answer_from_registry(self.models.registry(), query);
            }
        }
    }

    fn state_view(&self) -> StateView {
        let window = self.models.current().map_or(0, |model| self.models.window(model));
        let usage = self.context().usage(window).map(|usage| ContextUsage {
            tokens: usage.tokens,
            context_window: usage.context_window,
            percent: usage.percent,
        });
        let scoped = self.models.scope().iter();
        StateView {
            model: self.models.current().cloned(),
            thinking_level: self.models.level().as_str().to_owned(),
            is_idle: self.activity.is_idle(),
            has_pending_messages: self.queues.len() > 0,
            is_project_trusted: self.project.is_trusted,
            context_usage: usage,
            scoped_models: scoped
                .map(|scoped| match scoped.level {
                    Some(level) => json!({ "model": scoped.model, "thinkingLevel": level }),
                    None => json!({ "model": scoped.model }),
                })
                .collect(),
            session_name: self.store.name().map(str::to_owned),
        }
    }

    /// The entries from `from` on, if the extension knows those before; all of them otherwise.
    fn session_view(&self, known: Option<&str>, from: usize) -> SessionView {
        let tree = self.store.tree();
        let is_known = known == Some(self.store.id()) && from <= tree.len();
        let from = if is_known { from } else { 0 };
        let before = from.checked_sub(1).and_then(|last| tree.outline().nth(last)).map(|entry| entry.id);
        // The entry is from the tree, so it is found.
        let entries = tree.entries_json(before.map(|id| &**id)).unwrap_or_else(|_| "[]".to_owned());
        let directory = self.store.path().and_then(Path::parent).unwrap_or(&self.places.dir);
        SessionView {
            session_id: self.store.id().to_owned(),
            session_file: self.session_file(),
            session_dir: directory.to_string_lossy().into_owned(),
            cwd: self.store.cwd().to_string_lossy().into_owned(),
            name: self.store.name().map(str::to_owned),
            leaf_id: self.store.leaf().map(str::to_owned),
            header: serde_json::from_slice(&tree.header().line).unwrap_or_default(),
            from,
            entries: RawValue::from_string(entries).unwrap_or_default(),
        }
    }

    fn tools_view(&self) -> ToolsView {
        let registered = self.extension_handle().map(|handle| handle.registry()).unwrap_or_default();
        let of_extension = |name: &str| {
            registered.tool(name).map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "promptGuidelines": tool.prompt_guidelines,
                    "sourceInfo": tool.source_info,
                })
            })
        };
        let view = |tool: &Arc<dyn Tool>| {
            let name = &tool.spec().name;
            let origin = match tool.origin() {
                Some(_) => "mcp",
                None if self.tools.is_taken(name) => "builtin",
                None => "host",
            };
            of_extension(name).unwrap_or_else(|| described(&**tool, origin))
        };
        let active = self.tools.active().specs().iter().map(|tool| tool.name.to_string()).collect();
        ToolsView { active, all: self.tools.all().iter().map(view).collect() }
    }

    /// Slash commands of extensions, by the names that call them.
    pub(crate) fn extension_commands(&self) -> Vec<CommandEntry> {
        let Some(handle) = self.extension_handle() else { return Vec::new() };
        let entry = |command: &pith_ext::registry::CommandInfo| {
            CommandEntry::extension(
                command.name.clone(),
                command.description.clone(),
                source_info(&command.source_info),
            )
        };
        handle.registry().commands.iter().map(entry).collect()
    }
}

/// Describes a tool that is not an extension's; `origin` is `builtin`, `host` or `mcp`.
fn described(tool: &dyn Tool, origin: &str) -> Value {
    let spec = tool.spec();
    let mut described = json!({
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        "promptGuidelines": tool.rules(),
        "sourceInfo": {
            "path": format!("<{origin}:{}>", spec.name),
            "source": origin,
            "scope": "temporary",
            "origin": "top-level",
        },
    });
    if let Some(annotations) = tool.origin().and_then(|origin| origin.annotations) {
        described["annotations"] = json!(annotations);
    }
    described
}

fn source_info(info: &pith_ext::SourceInfo) -> SourceInfo {
    SourceInfo {
        path: info.path.clone().into(),
        source: info.source.clone().into(),
        scope: match info.scope.as_str() {
            "user" => Scope::User,
            "project" => Scope::Project,
            _ => Scope::Temporary,
        },
        origin: if info.origin == "package" { Origin::Package } else { Origin::TopLevel },
        base_dir: info.base_dir.as_ref().map(Into::into),
    }
}
