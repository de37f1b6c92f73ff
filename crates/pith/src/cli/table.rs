//! Every flag, one row each: its names, what it takes, what it is for and what it changes. A new flag is a new row.

use super::flags::Takes::{Nothing, Value};
use super::flags::{Flag, checked, foreign, ignored, switch, value};
use pith_protocol::permissions::PermissionMode;
use pith_sandbox::Profile;

use super::{Action, values};

/// A heading of the help and the flags below it.
pub struct Group {
    pub title: &'static str,
    pub flags: &'static [Flag],
}

/// The flags that work, in the order of the help.
pub const GROUPS: &[Group] = &[
    Group {
        title: "What to do",
        flags: &[
            switch("--print", Some("-p"), "answer once and leave; the next argument is the message", |cli| {
                cli.print = true
            }),
            checked(
                "--mode",
                None,
                "text|json|rpc|acp",
                "text prints the answer, json events; rpc serves a host, acp an editor",
                |cli, value| {
                    cli.mode = Some(values::mode(&value)?);
                    Ok(())
                },
            )
            .needing("--mode requires text, json, rpc, or acp"),
            value("--list-models", None, "SEARCH", "models you can use now, and leave", |cli, value| {
                cli.action = Action::ListModels;
                cli.look_for(value);
            })
            .optional(),
            value("--all", None, "SEARCH", "with --list-models: every model, and which key it needs", |cli, value| {
                cli.lists_all = true;
                cli.look_for(value);
            })
            .optional(),
            value(
                "--export",
                None,
                "FILE",
                "a session file as an HTML page; a message names the page",
                |cli, value| cli.action = Action::Export(value.into()),
            ),
            switch("--help", Some("-h"), "this text", |cli| cli.action = Action::Help),
            switch("--version", Some("-v"), "the version", |cli| cli.action = Action::Version),
        ],
    },
    Group {
        title: "Model",
        flags: &[
            value(
                "--model",
                None,
                "PATTERN",
                "model id, provider/id, or id:level; scripted/tour needs no key",
                |cli, value| cli.model = Some(value),
            ),
            value("--provider", None, "NAME", "provider of the model", |cli, value| cli.provider = Some(value)),
            value("--thinking", None, "LEVEL", "off, minimal, low, medium, high, xhigh or max", |cli, value| {
                cli.set_thinking(&value)
            }),
            value(
                "--models",
                None,
                "LIST",
                "models to switch between, comma-separated, globs allowed",
                |cli, value| cli.models = Some(value),
            ),
            value("--api-key", None, "KEY", "key for the model's provider, for this process only", |cli, value| {
                cli.api_key = Some(value)
            }),
            value("--script", None, "FILE", "answer from a script instead of a model", |cli, value| {
                cli.script = Some(value.into())
            }),
        ],
    },
    Group {
        title: "Session",
        flags: &[
            switch("--continue", Some("-c"), "the newest session of this directory", |cli| {
                cli.sessions.is_latest = true
            }),
            value("--resume", Some("-r"), "ID", "as --session; without an id the chat lists them", |cli, value| {
                cli.sessions.resume = Some(value)
            })
            .optional(),
            value("--session", None, "PATH|ID", "a session file, or the beginning of a session's id", |cli, value| {
                cli.sessions.open_or_choose(value)
            })
            .optional(),
            switch("--create", None, "make the directory of a new --session file", |cli| {
                cli.sessions.may_create_directory = true
            }),
            value("--session-id", None, "ID", "the session of that id; begun if there is none", |cli, value| {
                cli.sessions.id = Some(value)
            }),
            value("--fork", None, "PATH|ID", "a copy of a session, for this directory", |cli, value| {
                cli.sessions.fork = Some(value)
            }),
            checked("--name", Some("-n"), "TEXT", "display name of the session", |cli, value| {
                cli.name = Some(values::name(&value)?);
                Ok(())
            })
            .needing("--name requires a value"),
            switch("--no-session", None, "keep the session in memory", |cli| cli.sessions.is_unsaved = true),
            value("--session-dir", None, "DIR", "where session files are kept", |cli, value| {
                cli.session_dir = Some(value.into())
            }),
        ],
    },
    Group {
        title: "Scripts",
        flags: &[
            switch("--json", None, "short for -p --mode json; the last line is the result", |cli| {
                cli.print = true;
                cli.json = true;
            }),
            value("--output", None, "FILE", "write what stdout would get to a file", |cli, value| {
                cli.output.file = Some(value.into())
            })
            .needing("--output requires a file"),
            value(
                "--output-schema",
                None,
                "FILE",
                "the answer must be JSON that fits this JSON Schema",
                |cli, value| cli.output.schema = Some(value.into()),
            )
            .needing("--output-schema requires a file"),
            checked("--output-tries", None, "N", "how often the model may mend it (default 3)", |cli, value| {
                cli.output.n_tries = Some(values::count("--output-tries", &value)?);
                Ok(())
            })
            .needing("--output-tries requires a number"),
            checked("--max-turns", None, "N", "end the work after so many answers of the model", |cli, value| {
                cli.max_turns = Some(values::count("--max-turns", &value)?);
                Ok(())
            })
            .needing("--max-turns requires a number"),
            checked("--max-cost", None, "USD", "end the work when it has cost so much", |cli, value| {
                cli.max_cost = Some(values::dollars(&value)?);
                Ok(())
            })
            .needing("--max-cost requires an amount"),
            checked("--timeout", None, "TIME", "end the work after 90s, 30m, 2h, ...", |cli, value| {
                cli.timeout = Some(values::timeout(&value)?);
                Ok(())
            })
            .needing("--timeout requires a duration"),
            checked(
                "--limit",
                None,
                "NAME=VALUE",
                "limit the session, as in tokens=2000000; repeatable",
                |cli, value| {
                    cli.limits.override_with(&values::limit(&value)?);
                    Ok(())
                },
            )
            .needing("--limit requires a limit, such as tokens=2000000"),
        ],
    },
    Group {
        title: "Tools",
        flags: &[
            checked("--tools", Some("-t"), "LIST", "exactly these tools, or +TOOL,-TOOL", |cli, value| {
                cli.tools = Some(values::tools(&value)?);
                Ok(())
            }),
            value("--exclude-tools", Some("-xt"), "LIST", "all but these tools", |cli, value| {
                cli.exclude_tools = values::names(&value)
            }),
            switch("--no-tools", Some("-nt"), "start without any tool", |cli| cli.no_tools = true),
            switch("--no-builtin-tools", Some("-nbt"), "start without the built-in tools", |cli| {
                cli.no_builtin_tools = true
            }),
            checked(
                "--permission-mode",
                None,
                "allow|write|ask|read-only|deny",
                "which tool calls run without asking",
                |cli, value| cli.set_mode("--permission-mode", values::permission_mode(&value)?),
            )
            .needing("--permission-mode requires allow, write, ask, read-only or deny"),
            checked(
                "--approval-mode",
                None,
                "full|write|ask|read-only",
                "the same by the names that editors have",
                |cli, value| cli.set_mode("--approval-mode", values::approval_mode(&value)?.into()),
            )
            .needing("--approval-mode requires full, write, ask or read-only"),
            switch("--yolo", None, "the same as --permission-mode allow", |cli| {
                cli.permissions.mode = Some(PermissionMode::Allow)
            }),
            value(
                "--allowed-tools",
                None,
                "RULES",
                "calls that run without asking, as in permissions.allow",
                |cli, value| cli.permissions.allowed.extend(values::rules(&value)),
            ),
            value("--disallowed-tools", None, "RULES", "calls that never run, as in permissions.deny", |cli, value| {
                cli.permissions.disallowed.extend(values::rules(&value))
            }),
            checked(
                "--sandbox",
                None,
                "off|read-only|workspace-write|custom",
                "what commands and file tools may touch, held by the kernel",
                |cli, value| {
                    cli.sandbox = Some(value.parse().map_err(|error| format!("--sandbox: {error}"))?);
                    Ok(())
                },
            )
            .needing("--sandbox requires off, read-only, workspace-write or custom"),
            switch("--no-sandbox", None, "the same as --sandbox off", |cli| cli.sandbox = Some(Profile::Off)),
            switch("--sandbox-may-loosen", None, "the host may loosen the sandbox while pith runs", |cli| {
                cli.sandbox_may_loosen = true
            }),
        ],
    },
    Group {
        title: "Instructions",
        flags: &[
            value("--system-prompt", None, "TEXT|FILE", "replaces the built-in system prompt", |cli, value| {
                cli.system_prompt = Some(value.into())
            }),
            value(
                "--append-system-prompt",
                None,
                "TEXT|FILE",
                "adds to the system prompt; may be repeated",
                |cli, value| cli.append_system_prompt.push(value.into()),
            ),
            value("--skill", None, "PATH", "a skill file or directory; may be repeated", |cli, value| {
                cli.skill_paths.push(value)
            }),
            value("--skills", None, "GLOBS", "only skills with these names, comma-separated", |cli, value| {
                cli.skill_names.extend(values::names(&value))
            }),
            switch("--no-skills", Some("-ns"), "only skills named with --skill", |cli| cli.no_skills = true),
            value(
                "--prompt-template",
                None,
                "PATH",
                "a prompt template or a directory of them; may be repeated",
                |cli, value| cli.prompt_paths.push(value),
            ),
            switch("--no-prompt-templates", Some("-np"), "only templates named with --prompt-template", |cli| {
                cli.no_prompt_templates = true
            }),
            switch("--no-context-files", Some("-nc"), "do not read AGENTS.md and CLAUDE.md", |cli| {
                cli.no_context_files = true
            }),
            switch("--approve", Some("-a"), "trust this project's settings and resources", |cli| {
                cli.approve = Some(true)
            }),
            switch("--no-approve", Some("-na"), "do not trust them, whatever was decided before", |cli| {
                cli.approve = Some(false)
            }),
        ],
    },
    Group {
        title: "Extensions",
        flags: &[
            value(
                "--extension",
                Some("-e"),
                "PATH",
                "an extension file, directory or installed package; may be repeated",
                |cli, value| cli.extensions.push(value),
            ),
            switch("--no-extensions", Some("-ne"), "only extensions named with --extension", |cli| {
                cli.no_extensions = true
            }),
            checked(
                "--extension-errors",
                None,
                "warn|fatal",
                "start without extensions that fail, or not at all",
                |cli, value| {
                    cli.extension_errors = Some(values::extension_errors(&value)?);
                    Ok(())
                },
            ),
        ],
    },
    Group {
        title: "MCP servers",
        flags: &[
            value("--mcp-config", None, "FILE|JSON", "servers for this process; may be repeated", |cli, value| {
                cli.mcp_configs.push(value)
            })
            .needing("--mcp-config requires a file or a JSON text"),
            switch("--no-mcp", None, "no servers but those of --mcp-config and of the host", |cli| cli.no_mcp = true),
        ],
    },
    Group {
        title: "Hosts and rare cases",
        flags: &[
            checked("--dialect", None, "pi|xcsh", "which hosts to speak to", |cli, value| {
                cli.dialect = Some(values::dialect_named(&value)?);
                Ok(())
            }),
            checked(
                "--stream-updates",
                None,
                "full|delta",
                "cumulative or linear-size message_update frames",
                |cli, value| {
                    cli.stream_updates = Some(values::stream_updates(&value)?);
                    Ok(())
                },
            ),
            switch("--ui-cancel", None, "tell the host when a dialog is withdrawn (always in dialect xcsh)", |cli| {
                cli.ui_cancel = true
            }),
            checked(
                "--host-tool-timeout-ms",
                None,
                "N",
                "how long a host tool may take (default: no limit)",
                |cli, value| {
                    cli.host_tool_timeout = Some(values::host_tool_timeout(&value)?);
                    Ok(())
                },
            ),
            switch("--no-rules", None, "do not watch the model with stream rules (dialect xcsh)", |cli| {
                cli.no_rules = true
            }),
            checked("--max-line-bytes", None, "N", "longest accepted input line (default 134217728)", |cli, value| {
                cli.max_line_bytes = Some(values::max_line_bytes(&value)?);
                Ok(())
            }),
            switch("--offline", None, "no network but model calls", |cli| cli.offline = true),
            switch("--verbose", None, "log what pith does to stderr, as PITH_LOG=debug", |cli| cli.verbose = true),
            value("--debug", None, "FILE", "write what happens to a file, without texts and keys", |cli, value| {
                cli.debug.file = Some(value.into())
            })
            .needing("--debug requires a file"),
            switch("--debug-content", None, "with --debug: texts too", |cli| cli.debug.shows_content = true),
        ],
    },
];

/// Flags of other agents that pith accepts without effect.
pub const OTHERS: &[Flag] = &[
    ignored("--no-themes", Nothing),
    ignored("--theme", Value("PATH")),
    ignored("--use-theme", Value("NAME")),
    ignored("--tui-mode", Value("MODE")),
    ignored("--no-title", Nothing),
    ignored("--no-lsp", Nothing),
    ignored("--no-pty", Nothing),
    ignored("--allow-home", Nothing),
    ignored("--provider-session-id", Value("ID")),
    foreign("--plugin-dir", Value("PATH")),
    foreign("--hook", Value("PATH")),
    foreign("--smol", Value("MODEL")),
    foreign("--slow", Value("MODEL")),
    foreign("--plan", Value("MODEL")),
];
