//! What a question about a call says, and which answers it offers.

use pith_agent::Effect;
use pith_permissions::{Bases, JudgedPart, Judgement, Reason, Suggestions, Verdict, suggest};
use pith_protocol::host::UiMethod;
use pith_protocol::permissions::{CommandPart, OptionId, PermissionFrame, PermissionMode, PermissionOption};
use serde_json::Value;

use super::held::{HeldCall, Judge, Subject};
use super::hosts::COMMAND;

/// How much of a command or of arguments is shown; the host has the rest with the call.
const MAX_SHOWN: usize = 8_000;

/// The answers that a question offers. What each allows stands in it: no answer makes a wider rule than the one it
/// displays.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    /// What an answer for the session allows; `None` if such calls are always asked about.
    pub session: Option<Grant>,
    /// The rules that an answer for the project makes; `None` if no rule says just this call.
    pub project: Option<Vec<String>>,
    /// The rules for similar calls in the project; `None` if there are none that are safe.
    pub similar: Option<Vec<String>>,
}

/// What an answer for the session allows.
#[derive(Clone, Debug)]
pub(super) enum Grant {
    Rules(Vec<String>),
    /// The same call again: no rule can say what it does.
    Call,
}

impl Offer {
    /// Returns what can be answered. A rule that would not let this very call run is not offered.
    pub fn of(call: &HeldCall, judge: &Judge, bases: &Bases) -> Offer {
        if call.unsandboxed().is_some() {
            return Offer { session: None, project: None, similar: None };
        }
        let Suggestions { narrow, wide } = suggest(&judge.tool_use(&call.tool, &call.subject));
        let helps = |rules: &Vec<String>| judge.would_run(call, rules, bases);
        let narrow = narrow.filter(helps);
        let is_destructive = call.server.as_ref().is_some_and(|tool| tool.is_destructive);
        let similar = wide.filter(|_| !is_destructive).filter(helps);
        Offer { session: Some(narrow.clone().map_or(Grant::Call, Grant::Rules)), project: narrow, similar }
    }

    /// What can be answered, in the order in which it is shown.
    fn ids(&self) -> impl Iterator<Item = OptionId> {
        let session = self.session.as_ref().map(|_| OptionId::Session);
        let project = self.project.as_ref().map(|_| OptionId::Project);
        let similar = self.similar.as_ref().map(|_| OptionId::Similar);
        [Some(OptionId::Once), session, project, similar, Some(OptionId::Deny), Some(OptionId::Stop)]
            .into_iter()
            .flatten()
    }

    /// The rules that an answer makes, as one text.
    fn rule(&self, id: OptionId) -> Option<String> {
        let rules = match id {
            OptionId::Session => match self.session.as_ref()? {
                Grant::Rules(rules) => rules,
                Grant::Call => return None,
            },
            OptionId::Project => self.project.as_ref()?,
            OptionId::Similar => self.similar.as_ref()?,
            OptionId::Once | OptionId::Deny | OptionId::Stop => return None,
        };
        Some(rules.join(", "))
    }

    fn label(&self, id: OptionId) -> String {
        let rule = || self.rule(id).unwrap_or_else(|| "this very call".to_owned());
        match id {
            OptionId::Once => "Allow once".to_owned(),
            OptionId::Session => format!("Allow for this session: {}", rule()),
            OptionId::Project | OptionId::Similar => format!("Allow in this project: {}", rule()),
            OptionId::Deny => "Deny".to_owned(),
            OptionId::Stop => "Deny and stop".to_owned(),
        }
    }

    /// Returns what a label means; `None` if it was not offered.
    pub fn chosen(&self, label: &str) -> Option<OptionId> {
        self.ids().find(|id| self.label(*id) == label)
    }

    /// Whether an answer was offered.
    pub fn has(&self, id: OptionId) -> bool {
        self.ids().any(|offered| offered == id)
    }

    fn options(&self) -> Vec<PermissionOption> {
        self.ids().map(|id| PermissionOption { id, kind: id.kind(), rule: self.rule(id) }).collect()
    }
}

/// The question as any host can show it.
pub(super) fn dialog(call: &HeldCall, offer: &Offer, mode: PermissionMode, timeout: Option<u64>) -> UiMethod {
    let place = if call.unsandboxed().is_some() { " outside the sandbox" } else { "" };
    let title = format!("Allow {}{place}?\n\n{}\n\n{}", call.tool, indented(&subject(call)), reason(call, mode));
    UiMethod::Select { title, options: offer.ids().map(|id| offer.label(id)).collect(), timeout }
}

/// Where a call would run.
pub(super) struct Surroundings {
    pub cwd: String,
    /// The profile of the sandbox.
    pub sandbox: String,
    pub mode: PermissionMode,
}

/// The question as data.
pub(super) fn frame(
    id: String,
    call: &HeldCall,
    offer: &Offer,
    around: Surroundings,
    timeout: Option<u64>,
) -> PermissionFrame {
    let Judgement { parts, opaque, writes, .. } = &call.judgement;
    let mut reason = reason(call, around.mode);
    if call.server.as_ref().is_some_and(|tool| tool.is_destructive) {
        reason.push_str(". It may destroy something.");
    }
    PermissionFrame::PermissionRequest {
        // A connection may be that of a program that no call runs.
        tool_call_id: if call.id.is_empty() { id.clone() } else { call.id.to_string() },
        id,
        tool_name: call.tool.clone(),
        arguments: call.arguments.clone(),
        cwd: around.cwd,
        reason: match &call.subject {
            Subject::Call(_) => reason,
            Subject::Host(host, port) => format!("Connection to {host}:{port}. {reason}"),
        },
        parts: parts.iter().map(part).collect(),
        opaque: opaque.clone(),
        writes: writes.clone(),
        sandbox: around.sandbox,
        options: offer.options(),
        timeout,
    }
}

fn part(part: &JudgedPart) -> CommandPart {
    let rule = match &part.reason {
        Reason::Rule { rule, .. } | Reason::Possible { rule } => Some(rule.clone()),
        Reason::Mode | Reason::Opaque => None,
    };
    CommandPart { words: part.words.iter().map(|word| word.shown().to_owned()).collect(), verdict: part.verdict, rule }
}

/// What the call would do, in full as far as people can read it.
fn subject(call: &HeldCall) -> String {
    let text = match (&call.subject, &call.server) {
        (Subject::Call(Effect::Command { command, .. }), _) => command.clone(),
        (Subject::Call(Effect::Read(path) | Effect::Change(path)), _) => path.display().to_string(),
        (Subject::Host(host, port), _) => match call.arguments.get(COMMAND).and_then(Value::as_str) {
            Some(command) => format!("{host}:{port}\n\nWanted by: {command}"),
            None => format!("{host}:{port}"),
        },
        (_, Some(server)) => {
            let remark = if server.is_destructive { "\nIt may destroy something." } else { "" };
            format!("{} of the server {}\n{}{remark}", server.tool, server.server, arguments(call))
        }
        (Subject::Call(Effect::Nothing | Effect::Unknown), None) => arguments(call),
    };
    let n_characters = text.chars().count();
    if n_characters <= MAX_SHOWN {
        return text;
    }
    let shown: String = text.chars().take(MAX_SHOWN).collect();
    format!("{shown}\n… and {} more characters", n_characters - MAX_SHOWN)
}

fn arguments(call: &HeldCall) -> String {
    Value::Object(call.arguments.clone()).to_string()
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// Why it is asked.
fn reason(call: &HeldCall, mode: PermissionMode) -> String {
    if let Some(why) = call.unsandboxed() {
        return format!("Reason: {why}");
    }
    match &call.judgement.reason {
        Reason::Rule { rule, .. } => format!("Rule: {} {rule}", Verdict::Ask.as_str()),
        Reason::Possible { rule } => format!("Rule: {rule} may be meant"),
        Reason::Mode => format!("Mode: {}", mode.as_str()),
        Reason::Opaque => format!("Not understood: {}", call.judgement.opaque.join(", ")),
    }
}

/// What the model is told of a call that rules or the mode refuse.
pub(super) fn refusal(judgement: &Judgement, mode: PermissionMode) -> String {
    match &judgement.reason {
        Reason::Rule { rule, origin } => format!("Not allowed: {rule} is denied by {origin}."),
        Reason::Possible { .. } | Reason::Mode | Reason::Opaque => {
            format!("Not allowed: the permission mode is \"{}\".", mode.as_str())
        }
    }
}
