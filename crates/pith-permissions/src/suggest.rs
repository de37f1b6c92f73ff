//! Which rule would allow a call from now on, without allowing much more.

use std::path::Path;

use pith_sandbox::domains::Domain;

use crate::command::Word;
use crate::policy::{Action, Judgement, Reason, ToolUse, Verdict};

/// Programs that run whatever they are given: a rule for them would allow everything.
const RUNS_ANYTHING: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "dash",
    "fish",
    "ksh",
    "python",
    "python2",
    "python3",
    "node",
    "deno",
    "bun",
    "ruby",
    "perl",
    "php",
    "lua",
    "osascript",
    "awk",
    "gawk",
    "sed",
    "env",
    "sudo",
    "su",
    "doas",
    "xargs",
    "find",
    "timeout",
    "nice",
    "nohup",
    "stdbuf",
    "setsid",
    "time",
    "command",
    "ssh",
    "docker",
    "podman",
    "kubectl",
    "npx",
    "bunx",
    "uvx",
    "eval",
    "exec",
    "source",
    "watch",
    "parallel",
    "script",
    "make",
];

/// Returns the rules that would allow a call in this project; `None` if there is no safe one.
pub fn rules_for(call: &ToolUse, judgement: &Judgement) -> Option<Vec<String>> {
    match call.action {
        Action::Command(_) => commands(judgement),
        Action::Read(path) => Some(vec![format!("read({})", shown(path, call.workspace)?)]),
        Action::Change(path) => Some(vec![format!("edit({})", shown(path, call.workspace)?)]),
        Action::Connect(host, port) => Some(vec![format!("network(domain:{})", Domain::written_for(host, port))]),
        Action::Harmless | Action::Other => Some(vec![call.tool.to_owned()]),
    }
}

/// Returns the rules that would allow such calls in this session: all edits, or what is allowed in a project.
pub fn rules_for_session(call: &ToolUse, judgement: &Judgement) -> Option<Vec<String>> {
    match call.action {
        Action::Change(_) => Some(vec!["edit".to_owned()]),
        _ => rules_for(call, judgement),
    }
}

fn commands(judgement: &Judgement) -> Option<Vec<String>> {
    // What is not understood cannot be allowed.
    if !judgement.opaque.is_empty() || judgement.parts.is_empty() {
        return None;
    }
    let mut rules = Vec::new();
    for part in judgement.parts.iter().filter(|part| part.verdict == Verdict::Ask) {
        if part.is_altered || matches!(part.reason, Reason::Possible { .. }) {
            return None;
        }
        let rule = match &part.reason {
            // What the user was asked about because of a rule is allowed as the rule says it.
            Reason::Rule { rule, .. } if rule.contains('(') => rule.clone(),
            _ => format!("bash({}:*)", prefix(&part.words)?),
        };
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    (!rules.is_empty()).then_some(rules)
}

/// The first words up to one that looks like a path, a number or an option.
fn prefix(words: &[Word]) -> Option<String> {
    let is_name = |word: &str| {
        let mut letters = word.chars();
        letters.next().is_some_and(char::is_alphabetic)
            && letters.all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':'))
    };
    let name = words.first()?.literal().filter(|name| !RUNS_ANYTHING.contains(name) && is_name(name))?;
    let rest = words[1..].iter().map_while(|word| word.literal().filter(|word| is_name(word))).take(2);
    Some(std::iter::once(name).chain(rest).collect::<Vec<_>>().join(" "))
}

/// A path as rules write it; `None` if it has characters that mean something in patterns.
fn shown(path: &Path, workspace: &Path) -> Option<String> {
    let text = match path.strip_prefix(workspace) {
        Ok(below) => format!("./{}", below.to_str()?),
        Err(_) => format!("/{}", path.to_str()?),
    };
    (!text.contains(['*', '?', '[', ']', '{', '}', '\\', '(', ')', '!', '#', '\n']) && !text.ends_with(' '))
        .then_some(text)
}
