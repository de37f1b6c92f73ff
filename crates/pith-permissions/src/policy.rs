//! What becomes of a tool call: deny, ask, allow, by rules first and by the mode otherwise.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

pub use pith_protocol::permissions::{PermissionMode as Mode, Unattended, Verdict};
use pith_sandbox::domains::Host;

use crate::command::{self, AccessKind, FileAccess, Part, Reading, Role, Word};
use crate::mention::{Mentions, Wanted};
use crate::paths::{is_ordinary_change, normalise, real};
use crate::pattern::Fit;
use crate::rule::Rule;

/// What holds for a session.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub mode: Mode,
    pub deny: Vec<Rule>,
    /// What the user has answered: comes before `ask`, or the question that was answered would come again.
    pub granted: Vec<Rule>,
    pub ask: Vec<Rule>,
    pub allow: Vec<Rule>,
    /// What silence means.
    pub unattended: Unattended,
    /// How long a question waits; `None` leaves it to the host's kind.
    pub timeout: Option<Duration>,
    /// Whether commands in an enforced sandbox run where they would be asked about.
    pub trusts_sandbox: bool,
}

/// A call of a tool, as far as rules look at it.
#[derive(Clone, Copy, Debug)]
pub struct ToolUse<'a> {
    pub tool: &'a str,
    pub action: Action<'a>,
    /// The session's directory.
    pub workspace: &'a Path,
    pub home: &'a Path,
    /// Whether a sandbox holds commands.
    pub is_confined: bool,
}

/// What a call does.
#[derive(Clone, Copy, Debug)]
pub enum Action<'a> {
    Command(&'a str),
    /// Reads a file, or what is below a directory.
    Read(&'a Path),
    Change(&'a Path),
    /// Connects a command to a host that no list of the sandbox has.
    Connect(&'a Host, u16),
    /// Changes nothing, by what its own maker or the user says.
    Harmless,
    Other,
}

/// What was decided, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    pub reason: Reason,
    pub parts: Vec<JudgedPart>,
    /// What of a command is not understood.
    pub opaque: Vec<String>,
    /// Files that a command's redirections write.
    pub writes: Vec<String>,
}

/// A simple command of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedPart {
    pub words: Vec<Word>,
    pub verdict: Verdict,
    pub reason: Reason,
    /// Whether something changes what its words mean.
    pub is_altered: bool,
}

/// Why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A rule matched.
    Rule { rule: String, origin: String },
    /// A rule against it may be meant: it mentions what the rule names, or words that only the shell will know decide.
    Possible { rule: String, mentioned: Option<String> },
    /// No rule matched.
    Mode,
    /// It is not understood.
    Opaque,
}

/// Verdict and reason of one thing.
type Decision = (Verdict, Reason);

impl Policy {
    /// Whether everything runs, so that nobody needs to look.
    pub fn is_open(&self) -> bool {
        self.mode == Mode::Allow && self.deny.is_empty() && self.ask.is_empty()
    }

    /// Judges a call.
    pub fn judge(&self, call: &ToolUse) -> Judgement {
        match call.action {
            Action::Command(script) => self.judge_command(call, script),
            Action::Read(path) | Action::Change(path) => plain(self.judge_file(call, path)),
            Action::Connect(host, port) => plain(self.judge_host(call, host, port)),
            Action::Harmless | Action::Other => plain(self.judge_tool(call)),
        }
    }

    /// Returns what the first rule that matches says. A rule against something matches if it may be meant, a rule for
    /// something only if it is.
    fn ruled(
        &self,
        tool: &str,
        may_match: impl Fn(&Rule) -> bool,
        matches: impl Fn(&Rule) -> bool,
    ) -> Option<Decision> {
        let found = |rules: &[Rule], verdict, matches: &dyn Fn(&Rule) -> bool| {
            rules.iter().find(|rule| rule.names(tool) && matches(rule)).map(|rule| (verdict, by(rule)))
        };
        found(&self.deny, Verdict::Deny, &may_match)
            .or_else(|| found(&self.granted, Verdict::Allow, &matches))
            .or_else(|| found(&self.ask, Verdict::Ask, &may_match))
            .or_else(|| found(&self.allow, Verdict::Allow, &matches))
    }

    fn judge_tool(&self, call: &ToolUse) -> Decision {
        self.ruled(call.tool, is_bare, is_bare).unwrap_or_else(|| self.default_for(call, None))
    }

    /// Modes say nothing about hosts: what no rule is about is not reached.
    fn judge_host(&self, call: &ToolUse, host: &Host, port: u16) -> Decision {
        let ruled = self.ruled(call.tool, |rule| rule.includes_host(host, port), |rule| rule.admits_host(host, port));
        ruled.unwrap_or((Verdict::Deny, Reason::Mode))
    }

    fn judge_file(&self, call: &ToolUse, path: &Path) -> Decision {
        self.judge_path(call, call.tool, path, matches!(call.action, Action::Change(_)))
    }

    fn judge_path(&self, call: &ToolUse, tool: &str, path: &Path, is_change: bool) -> Decision {
        let (written, real) = (normalise(path), real(path));
        let may_match = |rule: &Rule| rule.covers(&written) || rule.covers(&real);
        let matches = |rule: &Rule| rule.covers(&written) && rule.covers(&real);
        self.ruled(tool, may_match, matches).unwrap_or_else(|| self.default_for(call, Some((path, is_change))))
    }

    /// What the mode says of something that no rule is about.
    fn default_for(&self, call: &ToolUse, file: Option<(&Path, bool)>) -> Decision {
        let is_read = matches!(file, Some((_, false))) || matches!(call.action, Action::Harmless);
        let is_ordinary = file.is_some_and(|(path, _)| is_ordinary_change(path, call.workspace));
        let verdict = match self.mode {
            Mode::Allow => Verdict::Allow,
            Mode::Deny => Verdict::Deny,
            Mode::Write | Mode::Ask | Mode::ReadOnly if is_read => Verdict::Allow,
            Mode::Write if is_ordinary => Verdict::Allow,
            Mode::Write | Mode::Ask => Verdict::Ask,
            Mode::ReadOnly => Verdict::Deny,
        };
        (verdict, Reason::Mode)
    }

    fn judge_command(&self, call: &ToolUse, script: &str) -> Judgement {
        let of_tool = self.ruled(call.tool, is_bare, is_bare);
        let is_ruled = self.deny.iter().chain(&self.ask).any(|rule| rule.names(call.tool) && !is_bare(rule));
        let allowed = match of_tool {
            Some((Verdict::Allow, _)) if is_ruled => of_tool,
            None if is_ruled || self.mode != Mode::Allow => None,
            Some(decision) => return plain(decision),
            None => return plain((Verdict::Allow, Reason::Mode)),
        };
        let reading = command::read(script);
        let mut parts = Vec::new();
        let mut decisions: Vec<Decision> = Vec::new();
        for part in &reading.parts {
            decisions.push(self.judge_part(call, part, allowed.as_ref(), &mut parts));
        }
        for file in &reading.files {
            decisions.push(self.judge_redirection(call, file, allowed.as_ref()));
        }
        let is_open = allowed.is_some() || self.mode == Mode::Allow;
        let hidden =
            if is_ruled { self.judge_mentions(call, script, &reading, &mut parts, &mut decisions) } else { None };
        // Where everything is allowed but what rules name, only what may hide a name matters.
        let is_read = reading.opaque.is_empty() || is_ruled && is_open;
        if hidden.is_some() || !is_read {
            let verdict = self.default_for(call, None).0.max(Verdict::Ask);
            decisions.push((verdict, Reason::Opaque));
        }
        let mut opaque = reading.opaque;
        opaque.extend(hidden.filter(|why| !opaque.contains(why)));
        // Of equal verdicts the first one gives the reason.
        let strictest = decisions.into_iter().reduce(|one, other| if other.0 > one.0 { other } else { one });
        let (mut verdict, reason) =
            strictest.unwrap_or_else(|| allowed.unwrap_or_else(|| self.default_for(call, None)));
        let is_explicit = matches!(reason, Reason::Rule { .. } | Reason::Possible { .. });
        if verdict == Verdict::Ask && !is_explicit && self.trusts_sandbox && call.is_confined {
            verdict = Verdict::Allow;
        }
        let writes = reading.files.iter().filter(|file| file.kind == AccessKind::Write);
        let writes = writes.map(|file| file.path.shown().to_owned()).collect();
        Judgement { verdict, reason, parts, opaque, writes }
    }

    /// Asks about what mentions a program that a rule is against. Returns why something runs that cannot be read.
    fn judge_mentions(
        &self,
        call: &ToolUse,
        script: &str,
        reading: &Reading,
        parts: &mut Vec<JudgedPart>,
        decisions: &mut Vec<Decision>,
    ) -> Option<String> {
        let scan = command::scan(script);
        let mentions = Mentions::of(&scan);
        let mut judged = HashSet::new();
        reading.parts.iter().for_each(|part| collect_keys(part, &mut judged));
        let against = self.deny.iter().chain(&self.ask).filter(|rule| rule.names(call.tool));
        for rule in against {
            let Some(pattern) = rule.command() else { continue };
            let found = mentions.find(pattern, |words| judged.contains(&key(words)));
            let Some((mentioned, text)) = found else { continue };
            let reason = Reason::Possible { rule: rule.text.clone(), mentioned: Some(mentioned) };
            decisions.push((Verdict::Ask, reason.clone()));
            let shown = text.shown();
            let is_text = |part: &&mut JudgedPart| shown_words(&part.words).ends_with(&shown);
            match parts.iter_mut().find(is_text) {
                Some(part) if part.verdict >= Verdict::Ask => {}
                Some(part) => (part.verdict, part.reason) = (Verdict::Ask, reason),
                None => {
                    let words = vec![Word::Unknown(shown)];
                    parts.push(JudgedPart { words, verdict: Verdict::Ask, reason, is_altered: false });
                }
            }
        }
        scan.hidden
    }

    fn judge_part(
        &self,
        call: &ToolUse,
        part: &Part,
        allowed: Option<&Decision>,
        judged: &mut Vec<JudgedPart>,
    ) -> Decision {
        let own = self.rule_for(call, part).or_else(|| allowed.cloned());
        let mut inner = Vec::new();
        let of_inner = part.inner.iter().map(|part| self.judge_part(call, part, allowed, &mut inner)).reduce(stricter);
        let decision =
            match (own, of_inner, part.role) {
                // A rule for the whole stands for what the mode alone would ask about inside.
                (Some((Verdict::Allow, why)), Some((verdict, reason)), Role::Wrapper) => {
                    if matches!(reason, Reason::Mode) { (Verdict::Allow, why) } else { (verdict, reason) }
                }
                (None, Some(inner), Role::Wrapper) => inner,
                (own, of_inner, _) => {
                    let own = own.unwrap_or_else(|| self.default_for(call, None));
                    of_inner.map_or(own.clone(), |inner| stricter(own, inner))
                }
            };
        judged.push(JudgedPart {
            words: part.words.clone(),
            verdict: decision.0,
            reason: decision.1.clone(),
            is_altered: part.is_altered,
        });
        judged.append(&mut inner);
        decision
    }

    /// Returns what rules say about a simple command.
    fn rule_for(&self, call: &ToolUse, part: &Part) -> Option<Decision> {
        let named = base_named(&part.words);
        let fit = |rule: &Rule| {
            let pattern = rule.command().filter(|_| rule.names(call.tool))?;
            let of_name = named.as_deref().map_or(Fit::No, |words| pattern.fit(words));
            // Options elsewhere, or written otherwise, make no other command of it.
            let words = named.as_ref().filter(|_| part.words[0].literal().is_none()).unwrap_or(&part.words);
            let fits = [of_name, pattern.fit(words), Wanted::of(pattern).fit(words)];
            fits.into_iter().max_by_key(|fit| *fit as u8)
        };
        let against = |rules: &[Rule], wanted: Fit| rules.iter().find(|rule| fit(rule) == Some(wanted)).cloned();
        if let Some(rule) = against(&self.deny, Fit::Yes) {
            return Some((Verdict::Deny, by(&rule)));
        }
        let is_fitting =
            |rule: &&Rule| rule.names(call.tool) && rule.command().is_some_and(|p| p.fit(&part.words) == Fit::Yes);
        let granted = self.granted.iter().find(is_fitting).filter(|_| !part.is_altered);
        if let Some(rule) = granted {
            return Some((Verdict::Allow, by(rule)));
        }
        if let Some(rule) = against(&self.ask, Fit::Yes) {
            return Some((Verdict::Ask, by(&rule)));
        }
        if let Some(rule) = against(&self.deny, Fit::Maybe).or_else(|| against(&self.ask, Fit::Maybe)) {
            return Some((Verdict::Ask, Reason::Possible { rule: rule.text, mentioned: None }));
        }
        if part.is_altered {
            return None;
        }
        self.allow.iter().find(is_fitting).map(|rule| (Verdict::Allow, by(rule)))
    }

    fn judge_redirection(&self, call: &ToolUse, file: &FileAccess, allowed: Option<&Decision>) -> Decision {
        let is_change = file.kind == AccessKind::Write;
        let tool = if is_change { "write" } else { "read" };
        match &file.path {
            Word::Literal(path) => {
                let path = match path.strip_prefix('~') {
                    Some(rest) => call.home.join(rest.trim_start_matches('/')),
                    None => call.workspace.join(path),
                };
                let decision = self.judge_path(call, tool, &path, is_change);
                match (decision, allowed) {
                    ((_, Reason::Mode), Some(allowed)) => allowed.clone(),
                    (decision, _) => decision,
                }
            }
            Word::Unknown(_) => {
                let possible = self.deny.iter().chain(&self.ask).find(|rule| rule.names(tool) && !is_bare(rule));
                let decision = self.ruled(tool, is_bare, is_bare).or_else(|| allowed.cloned());
                match (possible, decision) {
                    (_, Some(decision)) if decision.0 != Verdict::Allow => decision,
                    (Some(rule), _) => (Verdict::Ask, Reason::Possible { rule: rule.text.clone(), mentioned: None }),
                    (None, Some(decision)) => decision,
                    (None, None) => match self.mode {
                        Mode::Allow => (Verdict::Allow, Reason::Mode),
                        Mode::ReadOnly | Mode::Deny => (Verdict::Deny, Reason::Mode),
                        Mode::Write | Mode::Ask => (Verdict::Ask, Reason::Mode),
                    },
                }
            }
        }
    }
}

fn is_bare(rule: &Rule) -> bool {
    rule.specifier.is_none()
}

/// The words with the program's name instead of its path; `None` if it is called by its name. Of `"$HOME/bin/x"` the name
/// is known too.
fn base_named(words: &[Word]) -> Option<Vec<Word>> {
    let first = words.first()?;
    let (_, name) = first.shown().trim_end_matches('"').rsplit_once('/')?;
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    if first.literal().is_none() && !is_plain {
        return None;
    }
    let mut named = words.to_vec();
    named[0] = Word::Literal(name.to_owned());
    Some(named)
}

/// What tells commands apart that two readers have found.
fn key(words: &[Word]) -> Vec<Option<String>> {
    words.iter().map(|word| word.literal().map(str::to_owned)).collect()
}

fn shown_words(words: &[Word]) -> String {
    words.iter().map(Word::shown).collect::<Vec<_>>().join(" ")
}

fn collect_keys(part: &Part, keys: &mut HashSet<Vec<Option<String>>>) {
    keys.insert(key(&part.words));
    part.inner.iter().for_each(|inner| collect_keys(inner, keys));
}

fn stricter(one: Decision, other: Decision) -> Decision {
    if other.0 > one.0 { other } else { one }
}

fn by(rule: &Rule) -> Reason {
    Reason::Rule { rule: rule.text.clone(), origin: rule.origin.to_string() }
}

fn plain((verdict, reason): Decision) -> Judgement {
    Judgement { verdict, reason, parts: Vec::new(), opaque: Vec::new(), writes: Vec::new() }
}

impl Judgement {
    /// Returns the text of the rule that decided, or that may.
    pub fn rule(&self) -> Option<&str> {
        match &self.reason {
            Reason::Rule { rule, .. } | Reason::Possible { rule, .. } => Some(rule),
            Reason::Mode | Reason::Opaque => None,
        }
    }
}
