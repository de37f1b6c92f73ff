//! Every flag: its names, what it takes, what it is for. Parser and help both read this table.

/// Whether a flag has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    /// The name of the value, as help shows it.
    Value(&'static str),
    Optional(&'static str),
}

/// What pith does with a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    Full,
    /// Accepted without effect: it concerns terminal interfaces, or features this pith has none of.
    Ignored,
    /// Known from other agents, refused until pith can do it.
    Planned,
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

const fn planned(long: &'static str, short: Option<&'static str>, takes: Takes) -> Flag {
    Flag { long, short, takes, support: Support::Planned, help: "" }
}

use Takes::{Nothing, Optional, Value};

/// The table.
pub const FLAGS: &[Flag] = &[
    flag("--mode", None, Value("rpc"), "how to talk: rpc reads and writes JSON lines"),
    flag("--provider", None, Value("NAME"), "provider of the model"),
    flag("--model", None, Value("PATTERN"), "model id, provider/id, or id:level; scripted/tour needs no key"),
    flag("--models", None, Value("LIST"), "models that cycle_model goes through, comma-separated"),
    flag("--thinking", None, Value("LEVEL"), "off, minimal, low, medium, high, xhigh or max"),
    flag("--api-key", None, Value("KEY"), "key for the model's provider, for this process only"),
    flag("--script", None, Value("FILE"), "answer from a script instead of a model"),
    flag("--continue", Some("-c"), Nothing, "the newest session of this directory"),
    flag("--session", None, Value("PATH|ID"), "a session file, or the beginning of a session's id"),
    flag("--session-id", None, Value("ID"), "the session of that id; begun if there is none"),
    flag("--fork", None, Value("PATH|ID"), "a copy of a session, for this directory"),
    flag("--resume", Some("-r"), Optional("ID"), "as --session; there is no list to choose from"),
    flag("--session-dir", None, Value("DIR"), "where session files are kept"),
    flag("--no-session", None, Nothing, "keep the session in memory"),
    flag("--name", Some("-n"), Value("TEXT"), "display name of the session"),
    flag("--tools", Some("-t"), Value("LIST"), "exactly these tools, comma-separated"),
    flag("--exclude-tools", Some("-xt"), Value("LIST"), "all but these tools"),
    flag("--no-builtin-tools", Some("-nbt"), Nothing, "start without the built-in tools"),
    flag("--no-tools", Some("-nt"), Nothing, "start without any tool"),
    flag("--dialect", None, Value("pi|xcsh"), "which hosts to speak to"),
    flag("--stream-updates", None, Value("full|delta"), "cumulative or linear-size message_update frames"),
    flag("--ui-cancel", None, Nothing, "tell the host when a dialog is withdrawn (always in dialect xcsh)"),
    flag("--host-tool-timeout-ms", None, Value("N"), "how long a host tool may take (default: no limit)"),
    flag("--no-rules", None, Nothing, "do not watch the model with stream rules (dialect xcsh)"),
    flag("--max-line-bytes", None, Value("N"), "longest accepted input line (default 134217728)"),
    flag("--offline", None, Nothing, "no network but model calls"),
    flag("--help", Some("-h"), Nothing, "this text"),
    flag("--version", Some("-v"), Nothing, "the version"),
    ignored("--no-extensions", Some("-ne"), Nothing),
    ignored("--no-skills", Some("-ns"), Nothing),
    ignored("--no-prompt-templates", Some("-np"), Nothing),
    ignored("--no-context-files", Some("-nc"), Nothing),
    ignored("--no-themes", None, Nothing),
    ignored("--theme", None, Value("PATH")),
    ignored("--use-theme", None, Value("NAME")),
    ignored("--tui-mode", None, Value("MODE")),
    ignored("--verbose", None, Nothing),
    ignored("--approve", Some("-a"), Nothing),
    ignored("--no-approve", Some("-na"), Nothing),
    ignored("--no-title", None, Nothing),
    ignored("--no-lsp", None, Nothing),
    ignored("--no-pty", None, Nothing),
    ignored("--no-mcp", None, Nothing),
    ignored("--allow-home", None, Nothing),
    planned("--print", Some("-p"), Nothing),
    planned("--export", None, Value("FILE")),
    planned("--list-models", None, Nothing),
    planned("--system-prompt", None, Value("TEXT|FILE")),
    planned("--append-system-prompt", None, Value("TEXT|FILE")),
    planned("--extension", Some("-e"), Value("PATH")),
    planned("--skill", None, Value("PATH")),
    planned("--prompt-template", None, Value("PATH")),
];

/// The help text.
pub fn help() -> String {
    let mut text = String::from(
        "pith: a headless coding agent driven over JSON lines\n\n\
         Usage:\n  pith --mode rpc [options]   serve a host on stdin and stdout\n  \
         pith tour                   watch a scripted session: no key, no network\n\nOptions:\n",
    );
    for flag in FLAGS.iter().filter(|flag| flag.support == Support::Full) {
        let mut names = flag.short.map_or_else(String::new, |short| format!("{short}, "));
        names.push_str(flag.long);
        match flag.takes {
            Takes::Nothing => {}
            Takes::Value(value) => names.push_str(&format!(" <{value}>")),
            Takes::Optional(value) => names.push_str(&format!(" [{value}]")),
        }
        text.push_str(&format!("  {names:<32} {}\n", flag.help));
    }
    text.push_str("\nTry it:\n  echo '{\"type\":\"get_state\"}' | pith --mode rpc\n");
    text
}
