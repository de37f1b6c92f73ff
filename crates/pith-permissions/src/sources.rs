//! Where rules come from: settings of the user and the project, the command line, grants.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pith_config::settings::written;
use pith_config::{AgentDir, Diagnostic};
use pith_protocol::permissions::ApprovalMode;
use serde_json::{Map, Value};

use crate::grants::GrantFile;
use crate::policy::{Mode, Policy, Unattended};
use crate::rule::{Bases, Origin, Rule};

/// What the command line says.
#[derive(Clone, Debug, Default)]
pub struct RuleFlags {
    /// `--permission-mode`, `--approval-mode`, `--yolo`.
    pub mode: Option<Mode>,
    /// Whether a mode that the session remembers comes before that one.
    pub mode_is_default: bool,
    /// `--allowed-tools`.
    pub allowed: Vec<String>,
    /// `--disallowed-tools`.
    pub disallowed: Vec<String>,
}

/// Where to look. Nothing is read before [`Sources::load`].
#[derive(Clone, Debug)]
pub struct Sources {
    pub agent_dir: AgentDir,
    pub cwd: PathBuf,
    pub home: PathBuf,
    /// Whether the project may allow something.
    pub is_trusted: bool,
    pub flags: RuleFlags,
}

/// A policy, and what was wrong with the rules.
#[derive(Clone, Debug, Default)]
pub struct LoadedPolicy {
    pub policy: Policy,
    pub diagnostics: Vec<Diagnostic>,
}

/// Which list a rule is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Deny,
    Ask,
    Allow,
    /// Answers of the user, kept for the project.
    Granted,
}

impl List {
    /// Whether a rule in it holds something back.
    fn holds_back(self) -> bool {
        matches!(self, List::Deny | List::Ask)
    }
}

/// A settings file that is being read.
struct File<'a> {
    path: &'a Path,
    bases: Bases,
    /// Whether it may loosen something.
    may_allow: bool,
}

/// Reads the word for a mode.
type Parse = fn(&str) -> Option<Mode>;

fn of_editor(word: &str) -> Option<Mode> {
    ApprovalMode::parse(word).map(Mode::from)
}

fn of_omp(word: &str) -> Option<Mode> {
    match word {
        "always-ask" => Some(Mode::Ask),
        "write" => Some(Mode::Write),
        "yolo" => Some(Mode::Allow),
        _ => None,
    }
}

impl Sources {
    /// Reads everything.
    pub fn load(&self) -> LoadedPolicy {
        let mut loaded = LoadedPolicy::default();
        let (user, project) = (self.agent_dir.settings_file(), self.agent_dir.project_settings_file(&self.cwd));
        loaded.read(&File { path: &user, bases: self.bases(self.agent_dir.path()), may_allow: true });
        // The home directory's own project settings may be the user's file.
        if project != user {
            loaded.read(&File { path: &project, bases: self.bases(&self.cwd), may_allow: self.is_trusted });
        }
        let grants = GrantFile::in_agent_dir(self.agent_dir.path());
        let bases = self.bases(&self.cwd);
        match grants.of(&self.cwd) {
            Ok(rules) => loaded.add(List::Granted, &rules, &Origin::File(grants.path().to_owned()), &bases),
            Err(why) => loaded.report(grants.path(), format!("Ignored {}: {why}", grants.path().display())),
        }
        loaded.add(List::Allow, &self.flags.allowed, &Origin::Flag("--allowed-tools"), &bases);
        loaded.add(List::Deny, &self.flags.disallowed, &Origin::Flag("--disallowed-tools"), &bases);
        if let Some(mode) = self.flags.mode {
            loaded.policy.mode = mode;
        }
        loaded
    }

    /// Where the paths of rules start that stand in no settings file.
    pub fn bases(&self, settings: &Path) -> Bases {
        Bases { cwd: self.cwd.clone(), home: self.home.clone(), settings: settings.to_owned() }
    }
}

impl LoadedPolicy {
    fn read(&mut self, file: &File) {
        let permissions = self.member(file, "permissions").unwrap_or_default();
        let tools = self.member(file, "tools").unwrap_or_default();
        self.read_mode(file, &permissions, &tools);
        self.read_own(file, &permissions);
        self.read_of_omp(file, &tools);
    }

    /// Reads the mode, which has three names. Where a file contradicts itself, the strictest holds.
    fn read_mode(&mut self, file: &File, permissions: &Map<String, Value>, tools: &Map<String, Value>) {
        let plain = written(file.path, "approvalMode").unwrap_or_else(|why| {
            self.report(file.path, format!("{why}; the mode is ask or stricter"));
            self.policy.mode = self.policy.mode.max(Mode::Ask);
            None
        });
        let named: [(&str, Option<&Value>, Parse, &str); 3] = [
            (
                "permissions.defaultMode",
                permissions.get("defaultMode"),
                Mode::parse,
                "allow, write, ask, read-only or deny",
            ),
            ("approvalMode", plain.as_ref(), of_editor, "full, write, ask or read-only"),
            ("tools.approvalMode", tools.get("approvalMode"), of_omp, "always-ask, write or yolo"),
        ];
        let mut modes: Vec<(&str, Mode)> = Vec::new();
        for (key, value, parse, expected) in named {
            let Some(value) = value else { continue };
            // One that cannot be read was meant to hold something back.
            let mode = value.as_str().and_then(parse).unwrap_or_else(|| {
                self.invalid(file, key, value, expected);
                Mode::Ask
            });
            modes.push((key, mode));
        }
        let Some(strictest) = modes.iter().map(|(_, mode)| *mode).max() else { return };
        if modes.iter().any(|(_, mode)| *mode != strictest) {
            let keys: Vec<&str> = modes.iter().map(|(key, _)| *key).collect();
            let (keys, mode) = (keys.join(" and "), strictest.as_str());
            let message = format!("{keys} contradict each other; the mode is {mode}. File: {}", file.path.display());
            self.report(file.path, message);
        }
        if file.may_allow || strictest > self.policy.mode {
            self.policy.mode = strictest;
        }
    }

    /// Reads a member of a settings file. If it cannot be read, nothing is known of what it forbids, so all is asked.
    fn member(&mut self, file: &File, key: &str) -> Option<Map<String, Value>> {
        let found = written(file.path, key).and_then(|value| match value {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(_) => Err(format!("{}: {key}: expected an object", file.path.display())),
        });
        found.unwrap_or_else(|why| {
            if key == "permissions" {
                self.report(file.path, format!("{why}; all tools ask"));
                self.policy.ask.push(Rule::instead(key, None, Origin::File(file.path.to_owned())));
            }
            None
        })
    }

    fn read_own(&mut self, file: &File, permissions: &Map<String, Value>) {
        let origin = Origin::File(file.path.to_owned());
        for (name, list) in [("deny", List::Deny), ("ask", List::Ask), ("allow", List::Allow)] {
            let Some(value) = permissions.get(name).filter(|value| !value.is_null()) else { continue };
            if list == List::Allow && !file.may_allow {
                self.report(
                    file.path,
                    format!("Ignored permissions.allow in {}: the project is not trusted", file.path.display()),
                );
                continue;
            }
            let key = format!("permissions.{name}");
            let rules = self.texts(file, &key, value, list);
            self.add(list, &rules, &origin, &file.bases);
        }
        if !file.may_allow {
            return;
        }
        if let Some(value) = permissions.get("unattended") {
            match value.as_str().and_then(Unattended::parse) {
                Some(unattended) => self.policy.unattended = unattended,
                None => self.invalid(file, "permissions.unattended", value, "deny or allow"),
            }
        }
        if let Some(value) = permissions.get("timeoutSeconds") {
            match value.as_u64().filter(|seconds| *seconds > 0) {
                Some(seconds) => self.policy.timeout = Some(Duration::from_secs(seconds)),
                None => self.invalid(file, "permissions.timeoutSeconds", value, "a whole number above 0"),
            }
        }
        if let Some(value) = permissions.get("sandboxedBash") {
            match value.as_str() {
                Some("allow") => self.policy.trusts_sandbox = true,
                Some("ask") => self.policy.trusts_sandbox = false,
                _ => self.invalid(file, "permissions.sandboxedBash", value, "allow or ask"),
            }
        }
    }

    /// Reads the keys of omp. Its entries for single tools are rules without parentheses.
    fn read_of_omp(&mut self, file: &File, tools: &Map<String, Value>) {
        let origin = Origin::File(file.path.to_owned());
        match tools.get("approval") {
            None | Some(Value::Null) => {}
            Some(Value::Object(approval)) => {
                for (tool, word) in approval {
                    self.add_of_omp(file, &origin, "tools.approval", tool, word, tool);
                }
            }
            Some(other) => {
                self.invalid(file, "tools.approval", other, "an object of tools");
                self.policy.ask.push(Rule::instead("tools.approval", None, origin.clone()));
            }
        }
        if let Some(rules) = tools.get("approvalRules") {
            self.read_patterns(file, &origin, "tools.approvalRules", rules, None);
        }
        let bash = self.member(file, "bash").unwrap_or_default();
        if let Some(patterns) = bash.get("patterns") {
            self.read_patterns(file, &origin, "bash.patterns", patterns, Some("bash"));
        }
    }

    /// Reads patterns with a word each: `{"git push *": "prompt"}`, or a list of objects with `pattern` (or `match`),
    /// `approval` (or `action`) and, where it is not known, `tool`.
    fn read_patterns(&mut self, file: &File, origin: &Origin, key: &str, value: &Value, tool: Option<&str>) {
        match value {
            Value::Object(patterns) => {
                for (pattern, word) in patterns {
                    let rule = tool.map_or_else(|| pattern.clone(), |tool| format!("{tool}({pattern})"));
                    self.add_of_omp(file, origin, key, &rule, word, tool.unwrap_or("*"));
                }
            }
            Value::Array(entries) => {
                for entry in entries {
                    let text = |names: [&str; 2]| names.iter().find_map(|name| entry.get(name)?.as_str());
                    let tool = tool.or_else(|| text(["tool", "toolName"]));
                    let rule = match (tool, text(["pattern", "match"])) {
                        (Some(tool), Some(pattern)) => format!("{tool}({pattern})"),
                        (Some(tool), None) => tool.to_owned(),
                        (None, _) => String::new(),
                    };
                    let word = ["approval", "action"].iter().find_map(|name| entry.get(name)).unwrap_or(&Value::Null);
                    self.add_of_omp(file, origin, key, &rule, word, tool.unwrap_or("*"));
                }
            }
            other => {
                self.invalid(file, key, other, "a list of rules");
                self.policy.ask.push(Rule::instead(key, tool, origin.clone()));
            }
        }
    }

    fn add_of_omp(&mut self, file: &File, origin: &Origin, key: &str, rule: &str, word: &Value, tool: &str) {
        let list = match word.as_str() {
            Some("allow") if !file.may_allow => return,
            Some("allow") => List::Allow,
            Some("prompt" | "ask") => List::Ask,
            Some("deny") => List::Deny,
            _ => {
                self.invalid(file, &format!("{key}[{rule:?}]"), word, "allow, prompt or deny");
                self.policy.ask.push(Rule::instead(rule, Some(tool).filter(|tool| *tool != "*"), origin.clone()));
                return;
            }
        };
        self.add(list, &[rule.to_owned()], origin, &file.bases);
    }

    fn texts(&mut self, file: &File, key: &str, value: &Value, list: List) -> Vec<String> {
        let Some(items) = value.as_array() else {
            self.invalid(file, key, value, "a list of rules");
            if list.holds_back() {
                self.policy.ask.push(Rule::instead(key, None, Origin::File(file.path.to_owned())));
            }
            return Vec::new();
        };
        // What is no text names no tool.
        items.iter().map(|item| item.as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Adds rules. One that is not understood is dropped; if it was to hold something back, its tool asks.
    fn add(&mut self, list: List, rules: &[String], origin: &Origin, bases: &Bases) {
        for text in rules {
            let rule = Rule::parse(text, origin.clone(), bases);
            let target = match list {
                List::Deny => &mut self.policy.deny,
                List::Ask => &mut self.policy.ask,
                List::Allow => &mut self.policy.allow,
                List::Granted => &mut self.policy.granted,
            };
            match rule {
                Ok(rule) => target.push(rule),
                Err(error) => {
                    let mut message = format!("Ignored the rule {text:?} of {origin}: it {}", error.reason);
                    if list.holds_back() {
                        let tool = error.tool.as_deref();
                        message.push_str(&format!("; {} asks", tool.unwrap_or("every tool")));
                        self.policy.ask.push(Rule::instead(text, tool, origin.clone()));
                    }
                    self.diagnostics.push(about(origin, "permission_rule", message));
                }
            }
        }
    }

    /// Returns what is to be told of rules against domains where no proxy stands between commands and the network: there
    /// they hold nothing back.
    pub fn unenforced(&self) -> Vec<Diagnostic> {
        let rules = self.policy.deny.iter().chain(&self.policy.ask).filter(|rule| rule.is_of_network());
        let finding = |rule: &Rule| {
            let Rule { text, origin, .. } = rule;
            let why = "pith sees domains only where sandbox.network.mode is \"domains\"";
            about(origin, "permission_unenforced", format!("The rule {text:?} of {origin} is not enforced: {why}"))
        };
        rules.map(finding).collect()
    }

    fn invalid(&mut self, file: &File, key: &str, value: &Value, expected: &str) {
        let message = format!("Invalid {key} setting: {value}. Expected {expected}. File: {}", file.path.display());
        self.report(file.path, message);
    }

    fn report(&mut self, path: &Path, message: String) {
        self.diagnostics.push(Diagnostic::warning("permission_settings", path, message));
    }
}

fn about(origin: &Origin, code: &'static str, message: String) -> Diagnostic {
    match origin {
        Origin::File(path) => Diagnostic::warning(code, path, message),
        Origin::Flag(_) | Origin::Session | Origin::Host => {
            Diagnostic { path: None, ..Diagnostic::warning(code, "", message) }
        }
    }
}
