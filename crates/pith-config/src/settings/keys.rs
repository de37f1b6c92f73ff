//! Which settings exist and what each may hold.
//!
//! A value of the wrong kind is taken out of its file before anything else
//! looks at it, so one mistake costs one key.

mod kind;

use std::path::Path;

use pith_protocol::permissions::{ApprovalMode, PermissionMode, Unattended};
use pith_protocol::{InterruptMode, QueueMode, SandboxNamespaces, SandboxNetwork, SandboxProfile, SandboxRequirement};
use serde_json::{Map, Value};

use super::{CheckpointMode, DefaultTrust, Fsync, HandoffThinking, Redact};
use crate::diagnostic::Diagnostic;
use crate::near::near;
use kind::Kind;

/// Which file a document came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    User,
    Project,
}

struct Key {
    path: &'static str,
    kind: Kind,
    scope: Option<Scope>,
    /// Whether it says which tool calls run. Who reads it needs mistakes too, to hold back what they meant, and reports
    /// them.
    is_rule: bool,
}

const fn key(path: &'static str, kind: Kind) -> Key {
    Key { path, kind, scope: None, is_rule: false }
}

/// Makes a key that `pith-permissions` reads as it is written.
const fn rule_key(path: &'static str, kind: Kind) -> Key {
    Key { path, kind, scope: None, is_rule: true }
}

/// Makes a key that a project must not set.
const fn user_key(path: &'static str, kind: Kind) -> Key {
    Key { path, kind, scope: Some(Scope::User), is_rule: false }
}

const QUEUE_MODES: [&str; QueueMode::WORDS.len()] = words(QueueMode::WORDS);
const INTERRUPT_MODES: [&str; InterruptMode::WORDS.len()] = words(InterruptMode::WORDS);
const SANDBOX_PROFILES: [&str; SandboxProfile::WORDS.len()] = words(SandboxProfile::WORDS);
const SANDBOX_REQUIREMENTS: [&str; SandboxRequirement::WORDS.len()] = words(SandboxRequirement::WORDS);
const SANDBOX_NAMESPACES: [&str; SandboxNamespaces::WORDS.len()] = words(SandboxNamespaces::WORDS);
const SANDBOX_NETWORKS: [&str; SandboxNetwork::WORDS.len()] = words(SandboxNetwork::WORDS);

const PERMISSION_MODES: [&str; PermissionMode::WORDS.len()] = words(PermissionMode::WORDS);
const APPROVAL_MODES: [&str; ApprovalMode::WORDS.len()] = words(ApprovalMode::WORDS);
const UNATTENDED: [&str; Unattended::WORDS.len()] = words(Unattended::WORDS);

/// Returns the words of a choice that the protocol has too.
const fn words<T, const N: usize>(table: &[(&'static str, T)]) -> [&'static str; N] {
    let mut words = [""; N];
    let mut at = 0;
    while at < N {
        words[at] = table[at].0;
        at += 1;
    }
    words
}

const KEYS: &[Key] = &[
    key("defaultProvider", Kind::Text),
    key("defaultModel", Kind::Text),
    key("defaultThinkingLevel", Kind::Level),
    key("modelThinkingLevels", Kind::Each(&Kind::Level)),
    key("thinkingBudgets.minimal", Kind::Count),
    key("thinkingBudgets.low", Kind::Count),
    key("thinkingBudgets.medium", Kind::Count),
    key("thinkingBudgets.high", Kind::Count),
    key("enabledModels", Kind::Texts),
    key("steeringMode", Kind::Word(&QUEUE_MODES)),
    key("followUpMode", Kind::Word(&QUEUE_MODES)),
    key("interruptMode", Kind::Word(&INTERRUPT_MODES)),
    key("defaultTools", Kind::Texts),
    key("sessionDir", Kind::Text),
    key("session.fsync", Kind::Word(Fsync::WORDS)),
    key("compaction.enabled", Kind::Flag),
    key("compaction.reserveTokens", Kind::Count),
    key("compaction.keepRecentTokens", Kind::Count),
    key(
        "compaction.modelOverrides",
        Kind::EachOf(&[("reserveTokens", Kind::Count), ("keepRecentTokens", Kind::Count)]),
    ),
    key("branchSummary.reserveTokens", Kind::Count),
    key("retry.enabled", Kind::Flag),
    key("retry.maxRetries", Kind::Count),
    key("retry.baseDelayMs", Kind::Count),
    key("retry.maxAgentDelayMs", Kind::Count),
    key("retry.provider.timeoutMs", Kind::Count),
    key("retry.provider.maxRetries", Kind::Count),
    key("retry.provider.maxRetryDelayMs", Kind::Count),
    user_key("httpProxy", Kind::Text),
    key("httpIdleTimeoutMs", Kind::Timeout),
    key("images.autoResize", Kind::Flag),
    key("images.blockImages", Kind::Flag),
    key("shellPath", Kind::Text),
    key("shellCommandPrefix", Kind::Text),
    key("bash.inheritSecrets", Kind::Flag),
    key("bash.keepBackground", Kind::Flag),
    key("acp.clientFs", Kind::Flag),
    user_key("acp.clientTerminal", Kind::Flag),
    key("mcp.startupWait", Kind::Seconds),
    key("mcp.share", Kind::Flag),
    key("tools.root", Kind::Texts),
    key("sandbox.enabled", Kind::Flag),
    key("sandbox.profile", Kind::Word(&SANDBOX_PROFILES)),
    key("sandbox.require", Kind::Word(&SANDBOX_REQUIREMENTS)),
    key("sandbox.namespaces", Kind::Word(&SANDBOX_NAMESPACES)),
    key("sandbox.caches", Kind::Flag),
    key("sandbox.filesystem.allowWrite", Kind::Texts),
    key("sandbox.filesystem.denyWrite", Kind::Texts),
    key("sandbox.filesystem.denyRead", Kind::Texts),
    key("sandbox.filesystem.allowRead", Kind::Texts),
    key("sandbox.filesystem.allowGitConfig", Kind::Flag),
    key("sandbox.network.mode", Kind::Word(&SANDBOX_NETWORKS)),
    key("sandbox.network.allowedDomains", Kind::Texts),
    key("sandbox.network.deniedDomains", Kind::Texts),
    key("sandbox.network.allowUnixSockets", Kind::Texts),
    key("sandbox.network.allowAllUnixSockets", Kind::Flag),
    key("sandbox.network.allowLocalBinding", Kind::Flag),
    key("sandbox.env.pass", Kind::Texts),
    key("sandbox.env.drop", Kind::Texts),
    key("sandbox.hostCommands", Kind::Flag),
    key("sandbox.allowUnsandboxedCommands", Kind::Flag),
    rule_key("permissions.defaultMode", Kind::Word(&PERMISSION_MODES)),
    rule_key("approvalMode", Kind::Word(&APPROVAL_MODES)),
    rule_key("permissions.allow", Kind::Texts),
    rule_key("permissions.ask", Kind::Texts),
    rule_key("permissions.deny", Kind::Texts),
    rule_key("permissions.unattended", Kind::Word(&UNATTENDED)),
    rule_key("permissions.timeoutSeconds", Kind::Count),
    rule_key("permissions.sandboxedBash", Kind::Word(&["ask", "allow"])),
    rule_key("tools.approvalMode", Kind::Word(&["always-ask", "write", "yolo"])),
    rule_key("tools.approval", Kind::Each(&Kind::Word(&["allow", "prompt", "deny"]))),
    rule_key("tools.approvalRules", Kind::List),
    rule_key("bash.patterns", Kind::List),
    user_key("checkpoints.mode", Kind::Word(CheckpointMode::WORDS)),
    user_key("checkpoints.maxFiles", Kind::Count),
    user_key("checkpoints.maxFileMb", Kind::Count),
    user_key("checkpoints.maxTotalMb", Kind::Count),
    user_key("checkpoints.maxAgeDays", Kind::Count),
    user_key("telemetry.enabled", Kind::Flag),
    user_key("secrets.redact", Kind::Word(Redact::WORDS)),
    user_key("secrets.enabled", Kind::Flag),
    key("maxTurns", Kind::Count),
    // These are read by `limits`, where a mistake refuses prompts.
    key("limits.turns", Kind::Count),
    key("limits.tokens", Kind::Count),
    key("limits.outputTokens", Kind::Count),
    key("limits.costUsd", Kind::Amount),
    key("limits.wallSeconds", Kind::Seconds),
    key("limits.toolSeconds", Kind::Seconds),
    key("limits.toolCallSeconds", Kind::Seconds),
    key("limits.processes", Kind::Count),
    key("limits.memoryMb", Kind::Count),
    key("limits.fileMb", Kind::Count),
    key("limits.diskMb", Kind::Count),
    key("limits.outputMb", Kind::Count),
    key("limits.repeats", Kind::Count),
    key("limits.softPercent", Kind::Count),
    key("limits.strict", Kind::Flag),
    key("tasks.todoClearDelay", Kind::Seconds),
    user_key("defaultProjectTrust", Kind::Word(DefaultTrust::WORDS)),
    user_key("extensionLimits.executionMs", Kind::Count),
    user_key("extensionLimits.handlerMs", Kind::Count),
    user_key("extensionLimits.observerMs", Kind::Count),
    user_key("extensionLimits.factoryMs", Kind::Count),
    user_key("extensionLimits.shutdownMs", Kind::Count),
    user_key("extensionLimits.abortMs", Kind::Count),
    user_key("extensionLimits.hangMs", Kind::Count),
    user_key("extensionLimits.memoryMb", Kind::Count),
    key("skills", Kind::Texts),
    key("prompts", Kind::Texts),
    key("extensions", Kind::Texts),
    key("packages", Kind::List),
    user_key("npmCommand", Kind::Texts),
    key("enableInstallTelemetry", Kind::Flag),
    key("handoff.thinking", Kind::Word(HandoffThinking::WORDS)),
    user_key("apiKeys", Kind::Each(&Kind::Text)),
];

/// Keys of other agents that share the file. They are valid, and pith has no use for them.
const UNUSED: &[&str] = &[
    "autocompleteMaxVisible",
    "branchSummary.skipPrompt",
    "cacheWarming",
    "collapseChangelog",
    "doubleEscapeAction",
    "editorPaddingX",
    "enableSkillCommands",
    "hideThinkingBlock",
    "lastChangelogVersion",
    "markdown",
    "quietStartup",
    "showHardwareCursor",
    "terminal",
    "theme",
    "themes",
    "transport",
    "treeFilterMode",
    "warnings",
    "websockets",
];

/// Removes and reports the values that cannot be used, and turns numbers into one form.
pub(super) fn check(document: &mut Map<String, Value>, file: &Path, scope: Scope, found: &mut Vec<Diagnostic>) {
    for key in KEYS.iter().filter(|key| !key.is_rule) {
        let misplaced = key.scope.is_some_and(|owner| owner != scope);
        let mut report = |path: &str, value: &Value, expected: &str| {
            found.push(Diagnostic::warning("settings_key", file, complaint(path, value, expected, file)));
        };
        let Some((parent, name)) = parent_of(document, key.path, &mut report) else { continue };
        let Some(value) = parent.get_mut(name) else { continue };
        if misplaced {
            let message = format!("Ignored {} in {}: only the user's settings may set it", key.path, file.display());
            found.push(Diagnostic::warning("settings_scope", file, message));
            parent.shift_remove(name);
            continue;
        }
        if !key.kind.accept(key.path, value, &mut report) {
            parent.shift_remove(name);
        }
    }
}

/// A key that is no setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKey {
    /// With the keys of the objects around it, separated by dots.
    pub path: String,
    /// The key that was probably meant.
    pub near: Option<&'static str>,
}

/// Returns the keys of a document that are no settings.
pub(super) fn unknown(document: &Map<String, Value>) -> Vec<UnknownKey> {
    let mut found = Vec::new();
    collect_unknown("", document, &mut found);
    found
}

fn collect_unknown(prefix: &str, object: &Map<String, Value>, found: &mut Vec<UnknownKey>) {
    for (name, value) in object {
        let path = format!("{prefix}{name}");
        let inside = format!("{path}.");
        if KEYS.iter().any(|key| key.path == path) || UNUSED.contains(&&*path) {
            continue;
        }
        if !KEYS.iter().any(|key| key.path.starts_with(&inside)) {
            let near = near(&path, KEYS.iter().map(|key| key.path)).or_else(|| misplaced(name));
            found.push(UnknownKey { path, near });
        } else if let Value::Object(members) = value {
            collect_unknown(&inside, members, found);
        }
    }
}

/// Returns the only setting that has this name inside another object.
fn misplaced(name: &str) -> Option<&'static str> {
    let mut paths = KEYS.iter().map(|key| key.path).filter(|path| path.rsplit('.').next() == Some(name));
    paths.next().filter(|_| paths.next().is_none())
}

fn complaint(path: &str, value: &Value, expected: &str, file: &Path) -> String {
    let mut shown = value.to_string();
    if shown.chars().count() > 60 {
        shown = shown.chars().take(60).chain(['…']).collect();
    }
    format!("Invalid {path} setting: {shown}. Expected {expected}. Using the default. File: {}", file.display())
}

/// Walks to the object holding the last part of `path`. A parent that is no object is removed.
fn parent_of<'a>(
    document: &'a mut Map<String, Value>,
    path: &'static str,
    report: &mut impl FnMut(&str, &Value, &str),
) -> Option<(&'a mut Map<String, Value>, &'static str)> {
    let Some((head, name)) = path.rsplit_once('.') else { return Some((document, path)) };
    let mut object = document;
    let mut walked = 0;
    for part in head.split('.') {
        walked += part.len() + usize::from(walked > 0);
        match object.get(part) {
            None => return None,
            Some(Value::Object(_)) => {}
            Some(other) => {
                if !other.is_null() {
                    report(&path[..walked], other, "an object");
                }
                object.shift_remove(part);
                return None;
            }
        }
        object = object.get_mut(part)?.as_object_mut()?;
    }
    Some((object, name))
}

#[cfg(test)]
mod tests;
