//! Every flag: its names, what it takes, what it is for. The parser, the help,
//! the completions and the manual page all read this table.

use pith_protocol::ThinkingLevel;

/// Whether a flag has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    /// The name of the value, as help shows it.
    Value(&'static str),
    /// The next argument, if it looks like neither a flag nor a file.
    Optional(&'static str),
}

/// What pith does with a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    Full,
    /// Accepted without effect: it concerns terminal interfaces, or features this pith has none of.
    Ignored,
    /// Accepted with a warning: it asks for something of another agent that pith does not do.
    Foreign,
}

/// One flag.
#[derive(Debug)]
pub struct Flag {
    pub long: &'static str,
    pub short: Option<&'static str>,
    pub takes: Takes,
    pub support: Support,
    pub help: &'static str,
}

const fn flag(long: &'static str, short: Option<&'static str>, takes: Takes, help: &'static str) -> Flag {
    Flag { long, short, takes, support: Support::Full, help }
}

const fn ignored(long: &'static str, short: Option<&'static str>, takes: Takes) -> Flag {
    Flag { long, short, takes, support: Support::Ignored, help: "" }
}

const fn foreign(long: &'static str, takes: Takes) -> Flag {
    Flag { long, short: None, takes, support: Support::Foreign, help: "" }
}

use Takes::{Nothing, Optional, Value};

/// The table.
pub const FLAGS: &[Flag] = &[
    flag("--mode", None, Value("text|json|rpc"), "text prints the answer, json prints events, rpc serves a host"),
    flag("--print", Some("-p"), Nothing, "answer once and leave; the next argument is the message"),
    flag("--provider", None, Value("NAME"), "provider of the model"),
    flag("--model", None, Value("PATTERN"), "model id, provider/id, or id:level; scripted/tour needs no key"),
    flag("--models", None, Value("LIST"), "models to switch between, comma-separated, globs allowed"),
    flag("--thinking", None, Value("LEVEL"), "off, minimal, low, medium, high, xhigh or max"),
    flag("--api-key", None, Value("KEY"), "key for the model's provider, for this process only"),
    flag("--list-models", None, Optional("SEARCH"), "models you can use now, and leave"),
    flag("--script", None, Value("FILE"), "answer from a script instead of a model"),
    flag("--continue", Some("-c"), Nothing, "the newest session of this directory"),
    flag("--session", None, Optional("PATH|ID"), "a session file, or the beginning of a session's id"),
    flag("--create", None, Nothing, "make the directory of a new --session file"),
    flag("--session-id", None, Value("ID"), "the session of that id; begun if there is none"),
    flag("--fork", None, Value("PATH|ID"), "a copy of a session, for this directory"),
    flag("--resume", Some("-r"), Optional("ID"), "as --session; without an id the chat lists them"),
    flag("--system-prompt", None, Value("TEXT|FILE"), "replaces the built-in system prompt"),
    flag("--append-system-prompt", None, Value("TEXT|FILE"), "adds to the system prompt; may be repeated"),
    flag("--session-dir", None, Value("DIR"), "where session files are kept"),
    flag("--no-session", None, Nothing, "keep the session in memory"),
    flag("--name", Some("-n"), Value("TEXT"), "display name of the session"),
    flag("--tools", Some("-t"), Value("LIST"), "exactly these tools, comma-separated"),
    flag("--exclude-tools", Some("-xt"), Value("LIST"), "all but these tools"),
    flag("--no-builtin-tools", Some("-nbt"), Nothing, "start without the built-in tools"),
    flag("--no-tools", Some("-nt"), Nothing, "start without any tool"),
    flag("--skill", None, Value("PATH"), "a skill file or directory; may be repeated"),
    flag("--no-skills", Some("-ns"), Nothing, "only skills named with --skill"),
    flag("--skills", None, Value("GLOBS"), "only skills with these names, comma-separated"),
    flag("--prompt-template", None, Value("PATH"), "a prompt template or a directory of them; may be repeated"),
    flag("--no-prompt-templates", Some("-np"), Nothing, "only templates named with --prompt-template"),
    flag("--no-context-files", Some("-nc"), Nothing, "do not read AGENTS.md and CLAUDE.md"),
    flag(
        "--extension",
        Some("-e"),
        Value("PATH"),
        "an extension file, directory or installed package; may be repeated",
    ),
    flag("--no-extensions", Some("-ne"), Nothing, "only extensions named with --extension"),
    flag("--extension-errors", None, Value("warn|fatal"), "start without extensions that fail, or not at all"),
    flag("--approve", Some("-a"), Nothing, "trust this project's settings and resources"),
    flag("--no-approve", Some("-na"), Nothing, "do not trust them, whatever was decided before"),
    flag("--dialect", None, Value("pi|xcsh"), "which hosts to speak to"),
    flag("--stream-updates", None, Value("full|delta"), "cumulative or linear-size message_update frames"),
    flag("--ui-cancel", None, Nothing, "tell the host when a dialog is withdrawn (always in dialect xcsh)"),
    flag("--host-tool-timeout-ms", None, Value("N"), "how long a host tool may take (default: no limit)"),
    flag("--no-rules", None, Nothing, "do not watch the model with stream rules (dialect xcsh)"),
    flag("--max-line-bytes", None, Value("N"), "longest accepted input line (default 134217728)"),
    flag("--offline", None, Nothing, "no network but model calls"),
    flag("--export", None, Value("FILE"), "a session file as an HTML page; a message names the page"),
    flag("--help", Some("-h"), Nothing, "this text"),
    flag("--version", Some("-v"), Nothing, "the version"),
    ignored("--no-themes", None, Nothing),
    ignored("--theme", None, Value("PATH")),
    ignored("--use-theme", None, Value("NAME")),
    ignored("--tui-mode", None, Value("MODE")),
    ignored("--verbose", None, Nothing),
    ignored("--no-title", None, Nothing),
    ignored("--no-lsp", None, Nothing),
    ignored("--no-pty", None, Nothing),
    ignored("--no-mcp", None, Nothing),
    ignored("--allow-home", None, Nothing),
    ignored("--provider-session-id", None, Value("ID")),
    foreign("--plugin-dir", Value("PATH")),
    foreign("--hook", Value("PATH")),
    foreign("--smol", Value("MODEL")),
    foreign("--slow", Value("MODEL")),
    foreign("--plan", Value("MODEL")),
];

impl Flag {
    /// The flag of a name, long or short.
    pub fn named(name: &str) -> Option<&'static Flag> {
        FLAGS.iter().find(|flag| flag.long == name || flag.short == Some(name))
    }

    /// The values to choose from, for flags that have such a list.
    pub fn choices(&self) -> Vec<&'static str> {
        match self.takes {
            Takes::Value("LEVEL") => ThinkingLevel::ALL.map(ThinkingLevel::as_str).to_vec(),
            Takes::Value(value) if value.starts_with(char::is_lowercase) => value.split('|').collect(),
            Takes::Value(_) | Takes::Optional(_) | Takes::Nothing => Vec::new(),
        }
    }

    /// Whether the value names a file or a directory.
    pub fn takes_path(&self) -> bool {
        matches!(self.takes, Takes::Value(value) if value.split('|').any(|word| ["PATH", "FILE", "DIR"].contains(&word)))
    }

    /// The names and the value, as help and manual show them.
    pub fn usage(&self) -> String {
        let mut usage = self.short.map_or_else(String::new, |short| format!("{short}, "));
        usage.push_str(self.long);
        match self.takes {
            Takes::Nothing => {}
            Takes::Value(value) => usage.push_str(&format!(" <{value}>")),
            Takes::Optional(value) => usage.push_str(&format!(" [{value}]")),
        }
        usage
    }
}

/// A heading of the help and the flags below it.
pub struct Group {
    pub title: &'static str,
    longs: &'static [&'static str],
}

const GROUPS: &[Group] = &[
    Group { title: "What to do", longs: &["--print", "--mode", "--list-models", "--export", "--help", "--version"] },
    Group { title: "Model", longs: &["--model", "--provider", "--thinking", "--models", "--api-key", "--script"] },
    Group {
        title: "Session",
        longs: &[
            "--continue",
            "--resume",
            "--session",
            "--create",
            "--session-id",
            "--fork",
            "--name",
            "--no-session",
            "--session-dir",
        ],
    },
    Group { title: "Tools", longs: &["--tools", "--exclude-tools", "--no-tools", "--no-builtin-tools"] },
    Group {
        title: "Instructions",
        longs: &[
            "--system-prompt",
            "--append-system-prompt",
            "--skill",
            "--skills",
            "--no-skills",
            "--prompt-template",
            "--no-prompt-templates",
            "--no-context-files",
            "--approve",
            "--no-approve",
        ],
    },
    Group { title: "Extensions", longs: &["--extension", "--no-extensions", "--extension-errors"] },
];

/// Flags that work, under their headings; those without one come last.
pub fn grouped() -> Vec<(&'static str, Vec<&'static Flag>)> {
    let works = |flag: &&Flag| flag.support == Support::Full;
    let of = |group: &Group| group.longs.iter().filter_map(|long| Flag::named(long)).filter(works).collect::<Vec<_>>();
    let mut all: Vec<_> =
        GROUPS.iter().map(|group| (group.title, of(group))).filter(|(_, flags)| !flags.is_empty()).collect();
    let is_loose = |flag: &&Flag| !GROUPS.iter().any(|group| group.longs.contains(&flag.long));
    all.push(("Hosts and rare cases", FLAGS.iter().filter(works).filter(is_loose).collect()));
    all
}

/// The known flag that a mistyped one most likely means.
pub fn nearest(name: &str) -> Option<&'static str> {
    let candidates = FLAGS.iter().filter(|flag| flag.support == Support::Full);
    let (n_changes, _, near) =
        candidates.map(|flag| (distance(name, flag.long), name.len().abs_diff(flag.long.len()), flag.long)).min()?;
    (n_changes <= 2 && n_changes * 3 < name.len()).then_some(near)
}

/// How many characters have to be changed, added, removed or swapped.
fn distance(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for row in 1..=one.len() {
        let mut current = vec![row];
        for column in 1..=other.len() {
            let previous = &rows[row - 1];
            let change = previous[column - 1] + usize::from(one[row - 1] != other[column - 1]);
            let mut best = change.min(previous[column] + 1).min(current[column - 1] + 1);
            let is_swap =
                row > 1 && column > 1 && one[row - 1] == other[column - 2] && one[row - 2] == other[column - 1];
            if is_swap {
                best = best.min(rows[row - 2][column - 2] + 1);
            }
            current.push(best);
        }
        rows.push(current);
    }
    rows[one.len()][other.len()]
}
