//! An answer allows what its rule says to somebody who reads it, and nothing else.
//!
//! Calls are generated, some of them granted, and all judged again. What may run is said by a reader of the rules that
//! knows nothing of the real one: it compares words and paths that the generator has put together.

use std::path::Path;

use pith_permissions::{Action, Bases, Mode, Origin, Policy, Rule, Suggestions, ToolUse, Verdict, suggest};

const CWD: &str = "/work/app";

const N_HISTORIES: usize = 1_500;

/// A call as the generator makes it.
#[derive(Clone, Debug)]
enum Made {
    /// Simple commands, each with its redirections, and the text of all of them.
    Script {
        commands: Vec<Vec<String>>,
        files: Vec<(bool, String)>,
        text: String,
    },
    Change(String),
    Other(String),
}

impl Made {
    fn judge(&self, policy: &Policy) -> Verdict {
        policy.judge(&self.tool_use()).verdict
    }

    fn tool_use(&self) -> ToolUse<'_> {
        let (tool, action) = match self {
            Made::Script { text, .. } => ("bash", Action::Command(text)),
            Made::Change(path) => ("write", Action::Change(Path::new(path))),
            Made::Other(tool) => (tool.as_str(), Action::Other),
        };
        ToolUse { tool, action, workspace: Path::new(CWD), home: Path::new("/home/u"), is_confined: false }
    }

    /// Whether people who have read the rules expect the call to run.
    fn is_covered(&self, shown: &[String]) -> bool {
        let covers_change = |path: &str| shown.iter().any(|rule| covers_path(rule, path));
        match self {
            Made::Script { commands, files, .. } => {
                let is_allowed = |command: &Vec<String>| shown.iter().any(|rule| covers_words(rule, command));
                let is_written = |path: &str| {
                    let path = if path.starts_with('/') { path.to_owned() } else { format!("{CWD}/{path}") };
                    path == "/dev/null" || covers_change(&path)
                };
                commands.iter().all(is_allowed) && files.iter().all(|(is_write, path)| !is_write || is_written(path))
            }
            Made::Change(path) => covers_change(path),
            Made::Other(tool) => shown.contains(tool),
        }
    }
}

fn covers_words(rule: &str, command: &[String]) -> bool {
    let Some(said) = rule.strip_prefix("bash(").and_then(|rule| rule.strip_suffix(')')) else { return false };
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    match said.strip_suffix(":*") {
        Some(prefix) => words.starts_with(&prefix.split(' ').collect::<Vec<_>>()),
        None => said.split(' ').collect::<Vec<_>>() == words,
    }
}

/// The path without `.` and `..`.
fn normal(path: &str) -> String {
    let mut real: Vec<&str> = Vec::new();
    for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
        match name {
            ".." => real.truncate(real.len().saturating_sub(1)),
            name => real.push(name),
        }
    }
    format!("/{}", real.join("/"))
}

fn covers_path(rule: &str, path: &str) -> bool {
    let Some(said) = rule.strip_prefix("edit(").and_then(|rule| rule.strip_suffix(')')) else { return false };
    let path = normal(path);
    let whole = match (said.strip_prefix("//"), said.strip_prefix("./")) {
        (Some(absolute), _) => format!("/{absolute}"),
        (None, Some(relative)) => format!("{CWD}/{relative}"),
        (None, None) => format!("{CWD}/{said}"),
    };
    match whole.strip_suffix("/**") {
        Some(directory) => path.starts_with(&format!("{directory}/")),
        None => path == whole,
    }
}

/// Programs that do harm if anything may follow their first words.
const HARMFUL: [&[&str]; 40] = [
    &["rm"],
    &["rm", "-rf"],
    &["rmdir"],
    &["mv"],
    &["cp"],
    &["dd"],
    &["ln"],
    &["truncate"],
    &["install"],
    &["chmod"],
    &["chown"],
    &["git", "push"],
    &["git", "clean"],
    &["git", "reset"],
    &["git", "checkout"],
    &["git", "diff"],
    &["git", "log"],
    &["git", "branch"],
    &["git", "tag"],
    &["git", "config"],
    &["git", "remote"],
    &["npm", "publish"],
    &["npm", "run"],
    &["npx", "cowsay"],
    &["cargo", "publish"],
    &["cargo", "test"],
    &["cargo", "fmt"],
    &["gh", "pr"],
    &["curl"],
    &["wget"],
    &["scp"],
    &["make"],
    &["sh"],
    &["bash"],
    &["python3"],
    &["sed", "-i"],
    &["find"],
    &["tar"],
    &["cat"],
    &["ls"],
];

const LOOKING: [&[&str]; 4] = [&["git", "status"], &["echo"], &["pwd"], &["git", "ls-files"]];

const ARGUMENTS: [&str; 14] = [
    "a.txt",
    "-f",
    "--force",
    "/elsewhere",
    "..",
    "src/a.rs",
    "origin",
    "main",
    "--output=x",
    "-",
    "x:y",
    "HEAD~1",
    "~/x",
    "status",
];

const PATHS: [&str; 14] = [
    "/work/app/a.txt",
    "/work/app/b.txt",
    "/work/app/src/a.rs",
    "/work/app/src/b.rs",
    "/work/app/src/deep/c.rs",
    "/work/app/srcs/d.rs",
    "/work/app/other/src/e.rs",
    "/work/app/src/../a.txt",
    "/work/app/src/../../out/f.txt",
    "/work/app/.git/hooks/pre-commit",
    "/work/app/.gitignore",
    "/work/other/a.txt",
    "/etc/passwd",
    "/work/app/~/g",
];

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn command(&mut self) -> Vec<String> {
        let head = if self.below(3) == 0 { self.one(&LOOKING) } else { self.one(&HARMFUL) };
        let mut words: Vec<String> = head.iter().map(|word| (*word).to_owned()).collect();
        for _ in 0..self.below(3) {
            words.push(self.one(&ARGUMENTS).to_owned());
        }
        words
    }

    fn made(&mut self) -> Made {
        match self.below(8) {
            0 => Made::Other(self.one(&["mcp__git__log", "mcp__git__push", "deploy"]).to_owned()),
            1..=3 => Made::Change(self.one(&PATHS).to_owned()),
            _ => self.script(),
        }
    }

    fn script(&mut self) -> Made {
        let (mut commands, mut files, mut text) = (Vec::new(), Vec::new(), String::new());
        let n_commands = if self.below(2) == 0 { 1 } else { 1 + self.below(3) };
        for at in 0..n_commands {
            if at > 0 {
                text += self.one(&[" && ", " | ", "; ", " || ", " & ", "\n"]);
            }
            let command = self.command();
            text += &command.join(" ");
            commands.push(command);
            if self.below(6) == 0 {
                let is_write = self.below(3) > 0;
                let file = self.one(&["a.txt", "src/a.rs", "/etc/passwd", "/dev/null"]);
                text += &format!(" {} {file}", if is_write { ">" } else { "<" });
                files.push((is_write, file.to_owned()));
            }
        }
        Made::Script { commands, files, text }
    }
}

fn bases() -> Bases {
    Bases { cwd: CWD.into(), home: "/home/u".into(), settings: CWD.into() }
}

#[test]
fn what_no_shown_rule_covers_is_asked_about_again() {
    let mut dice = Dice(0x5eed);
    let (mut n_granted, mut n_allowed) = (0, 0);
    for history in 0..N_HISTORIES {
        let mut policy = Policy { mode: Mode::Ask, ..Policy::default() };
        let mut shown: Vec<String> = Vec::new();
        for _ in 0..12 {
            let call = dice.made();
            let verdict = call.judge(&policy);
            if verdict == Verdict::Allow {
                n_allowed += 1;
                assert!(call.is_covered(&shown), "history {history}: {call:?} runs after {shown:?}");
                continue;
            }
            let Suggestions { narrow, wide } = suggest(&call.tool_use());
            let chosen = match dice.below(3) {
                0 => narrow,
                1 => wide,
                _ => None,
            };
            for rule in chosen.into_iter().flatten() {
                n_granted += 1;
                policy.granted.push(Rule::parse(&rule, Origin::Session, &bases()).expect("a rule"));
                shown.push(rule);
            }
        }
    }
    println!("{n_granted} rules granted, {n_allowed} calls allowed by them");
    assert!(n_granted > N_HISTORIES && n_allowed > N_HISTORIES / 4, "{n_granted} {n_allowed}");
}

#[test]
fn no_beginning_of_a_harmful_command_is_offered() {
    let mut dice = Dice(0xbad);
    for round in 0..HARMFUL.len() * 50 {
        let mut words = HARMFUL[round % HARMFUL.len()].to_vec();
        for _ in 0..dice.below(4) {
            words.push(dice.one(&ARGUMENTS));
        }
        let text = words.join(" ");
        let call = Made::Script { commands: Vec::new(), files: Vec::new(), text: text.clone() };
        let Suggestions { narrow, wide } = suggest(&call.tool_use());
        assert_eq!(wide, None, "{text}");
        let exact = vec![format!("bash({text})")];
        assert!(narrow.is_none() || narrow == Some(exact), "{text}");
    }
}

#[test]
fn no_rule_is_wider_than_what_was_asked_about() {
    let mut dice = Dice(0xd1d);
    for _ in 0..N_HISTORIES * 4 {
        let call = dice.made();
        let Some(rules) = suggest(&call.tool_use()).narrow else { continue };
        match &call {
            Made::Change(asked) => {
                let asked = normal(asked);
                let (directory, _) = asked.rsplit_once('/').expect("absolute");
                let is_inside = directory.starts_with(&format!("{CWD}/"));
                for other in PATHS.iter().filter(|other| rules.iter().any(|rule| covers_path(rule, other))) {
                    let other = normal(other);
                    let is_near = is_inside && other.starts_with(&format!("{directory}/"));
                    assert!(other == asked || is_near, "{rules:?} for {asked} covers {other}");
                }
            }
            Made::Script { commands, files, text } => {
                let is_plain = files.iter().all(|(_, file)| file == "/dev/null");
                assert!(is_plain && commands.len() == 1, "{rules:?} for {text}");
                let [rule] = rules.as_slice() else { panic!("{rules:?} for {text}") };
                assert_eq!(*rule, format!("bash({})", commands[0].join(" ")), "{text}");
            }
            Made::Other(tool) => panic!("{rules:?} for {tool}"),
        }
    }
}
