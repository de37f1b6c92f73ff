//! The subcommands: first arguments that are not messages.

/// A subcommand, as help, completions and the manual list it.
pub struct SubcommandRow {
    pub name: &'static str,
    pub usage: &'static str,
    pub help: &'static str,
    /// Words that may follow.
    pub words: &'static [&'static str],
}

/// The table of subcommands.
pub const SUBCOMMANDS: &[SubcommandRow] = &[
    SubcommandRow {
        name: "tour",
        usage: "tour [--raw]",
        help: "watch a scripted session; --raw: every line of both sides",
        words: &["--raw"],
    },
    SubcommandRow { name: "rpc", usage: "rpc [options]", help: "the same as --mode rpc", words: &[] },
    SubcommandRow {
        name: "acp",
        usage: "acp [options]",
        help: "the same as --mode acp: serves editors (Agent Client Protocol)",
        words: &[],
    },
    SubcommandRow {
        name: "config",
        usage: "config check",
        help: "check settings, models, keys and resources",
        words: &["check"],
    },
    SubcommandRow { name: "doctor", usage: "doctor", help: "the same as config check", words: &[] },
    SubcommandRow {
        name: "auth",
        usage: "auth <setup|set|remove|check|...>",
        help: "store, remove and look at the keys of providers (pith auth --help)",
        words: &["setup", "set", "remove", "check", "print-api-key", "print-bearer-token"],
    },
    SubcommandRow {
        name: "mcp",
        usage: "mcp <list|add|remove|test> ...",
        help: "MCP servers: look at them, configure and try them (pith mcp --help)",
        words: &["list", "add", "remove", "test"],
    },
    SubcommandRow {
        name: "sandbox",
        usage: "sandbox <check|run> ...",
        help: "what is enforced here, and a command held to it (pith sandbox --help)",
        words: &["check", "run"],
    },
    SubcommandRow {
        name: "permissions",
        usage: "permissions check COMMAND",
        help: "whether a shell command would run, be asked about or be refused",
        words: &["check"],
    },
    SubcommandRow {
        name: "debug",
        usage: "debug check FILE",
        help: "whether a file of --debug has something in it that looks like a key",
        words: &["check"],
    },
    SubcommandRow {
        name: "trust",
        usage: "trust [--no|--forget|--show] [DIR]",
        help: "whether a project's settings, extensions and skills are used",
        words: &["--no", "--forget", "--show"],
    },
    SubcommandRow {
        name: "install",
        usage: "install <source> [-l]",
        help: "install a package from npm, git or a path",
        words: &["-l", "--yes", "--scripts"],
    },
    SubcommandRow { name: "remove", usage: "remove <source> [-l]", help: "remove a package", words: &["-l"] },
    SubcommandRow {
        name: "update",
        usage: "update [source]",
        help: "bring installed packages up to date",
        words: &["--scripts"],
    },
    SubcommandRow { name: "list", usage: "list", help: "the installed packages", words: &[] },
    SubcommandRow {
        name: "schema",
        usage: "schema [--dialect pi|xcsh] [--format json-schema|typescript]",
        help: "the protocol as a JSON Schema or as TypeScript, on stdout",
        words: &["--dialect", "--format"],
    },
    SubcommandRow {
        name: "conformance",
        usage: "conformance [--dialect pi|xcsh] [--filter NAME] -- COMMAND...",
        help: "hold a program that speaks the protocol against its specification",
        words: &["--dialect", "--filter", "--timeout"],
    },
    SubcommandRow {
        name: "completions",
        usage: "completions <bash|zsh|fish>",
        help: "completions for a shell, on stdout",
        words: &["bash", "zsh", "fish"],
    },
    SubcommandRow { name: "man", usage: "man", help: "the manual page, on stdout: pith man | man -l -", words: &[] },
];

/// Returns what `-h` prints after a subcommand; `None` after another word, and where `-h` has its own text.
pub fn usage(name: &str) -> Option<String> {
    let described = SUBCOMMANDS.iter().find(|described| described.name == name)?;
    let has_own = ["rpc", "auth", "mcp", "sandbox", "permissions", "debug", "install", "remove", "update", "list"]
        .contains(&name);
    (!has_own).then(|| format!("Usage: pith {}\n\n{}\n", described.usage, described.help))
}

/// What the first argument selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subcommand {
    Tour,
    Rpc,
    Acp,
    ConfigCheck,
    /// Another name for `config check`.
    Doctor,
    Auth,
    Mcp,
    Sandbox,
    Permissions,
    Debug,
    Trust,
    Schema,
    Packages(PackageVerb),
    Conformance,
    Completions(Shell),
    Man,
    /// A subcommand of other agents that pith does not have; the text says so.
    Refused(String),
}

/// What is done with packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageVerb {
    Install,
    Remove,
    Update,
    List,
}

/// Shells with completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Subcommand {
    /// Parses the first words; `None` if they are no subcommand.
    pub fn of(first: &str, second: Option<&str>) -> Option<Subcommand> {
        Some(match (first, second) {
            ("tour", _) => Subcommand::Tour,
            ("rpc", _) => Subcommand::Rpc,
            ("acp", _) => Subcommand::Acp,
            ("man", _) => Subcommand::Man,
            ("doctor", _) => Subcommand::Doctor,
            ("auth", _) => Subcommand::Auth,
            ("mcp", _) => Subcommand::Mcp,
            ("sandbox", _) => Subcommand::Sandbox,
            ("permissions", _) => Subcommand::Permissions,
            ("debug", Some("check" | "-h" | "--help") | None) => Subcommand::Debug,
            ("trust", _) => Subcommand::Trust,
            ("schema", _) => Subcommand::Schema,
            ("conformance", _) => Subcommand::Conformance,
            ("config", Some("check")) => Subcommand::ConfigCheck,
            ("config", _) => Subcommand::Refused("usage: pith config check".to_owned()),
            ("completions", Some("bash")) => Subcommand::Completions(Shell::Bash),
            ("completions", Some("zsh")) => Subcommand::Completions(Shell::Zsh),
            ("completions", Some("fish")) => Subcommand::Completions(Shell::Fish),
            ("completions", _) => Subcommand::Refused("usage: pith completions <bash|zsh|fish>".to_owned()),
            ("install", _) => Subcommand::Packages(PackageVerb::Install),
            ("remove" | "uninstall", _) => Subcommand::Packages(PackageVerb::Remove),
            ("update", _) => Subcommand::Packages(PackageVerb::Update),
            ("list", _) => Subcommand::Packages(PackageVerb::List),
            _ => return None,
        })
    }
}
