//! What is known of programs: which only print or search, which run what they are given.

/// A program that runs none of its words and no line of its input.
struct Printer {
    name: &'static str,
    /// Its subcommands that only print, search or keep text; all, if empty.
    subcommands: &'static [&'static str],
    /// Beginnings of options with which it does run something, or writes a file of its own choice.
    except: &'static [&'static str],
}

const fn all(name: &'static str) -> Printer {
    Printer { name, subcommands: &[], except: &[] }
}

const fn but(name: &'static str, except: &'static [&'static str]) -> Printer {
    Printer { name, subcommands: &[], except }
}

const fn of(name: &'static str, subcommands: &'static [&'static str], except: &'static [&'static str]) -> Printer {
    Printer { name, subcommands, except }
}

const INSTALLS: &[&str] = &[
    "install",
    "add",
    "i",
    "ci",
    "remove",
    "uninstall",
    "update",
    "upgrade",
    "search",
    "show",
    "info",
    "view",
    "list",
    "ls",
];

/// The short list of what is clearly something else when it names a program.
const PRINTERS: &[Printer] = &[
    all("echo"),
    but("printf", &["-v"]),
    all("cat"),
    all("head"),
    all("tail"),
    all("wc"),
    all("cut"),
    all("tr"),
    all("tac"),
    all("fold"),
    all("column"),
    all("comm"),
    all("cmp"),
    all("diff"),
    all("strings"),
    all("od"),
    all("hexdump"),
    all("tee"),
    but("sort", &["--co", "-o", "--o"]),
    but("jq", &["-f", "--from"]),
    all("grep"),
    all("egrep"),
    all("fgrep"),
    but("rg", &["--pre", "--hostname"]),
    but("ag", &["--pager"]),
    but("fd", &["-x", "-X", "--exec"]),
    but("man", &["-P", "--pa", "-H", "--ht", "-C", "--co"]),
    all("apropos"),
    all("whatis"),
    all("which"),
    all("whereis"),
    all("type"),
    all("help"),
    all("ls"),
    all("stat"),
    all("file"),
    all("du"),
    all("df"),
    but("tree", &["-o"]),
    all("pwd"),
    all("basename"),
    all("dirname"),
    all("realpath"),
    all("readlink"),
    all("date"),
    all("seq"),
    all("md5sum"),
    all("sha256sum"),
    all("cksum"),
    all("true"),
    all("false"),
    all(":"),
    all("test"),
    all("["),
    all("cd"),
    all("pushd"),
    all("popd"),
    all("mkdir"),
    all("rmdir"),
    all("touch"),
    all("rm"),
    all("chmod"),
    all("chown"),
    all("sleep"),
    all("kill"),
    all("pkill"),
    all("pgrep"),
    all("ps"),
    all("id"),
    all("uname"),
    all("nproc"),
    all("mktemp"),
    of(
        "git",
        &[
            "add",
            "commit",
            "log",
            "show",
            "diff",
            "status",
            "grep",
            "blame",
            "branch",
            "tag",
            "checkout",
            "switch",
            "restore",
            "stash",
            "merge",
            "rev-parse",
            "rev-list",
            "ls-files",
            "describe",
            "shortlog",
            "reflog",
            "cat-file",
            "rm",
        ],
        &["-O", "--op", "--ou"],
    ),
    of("gh", &["pr", "issue", "release", "run", "search"], &[]),
    of("apt", INSTALLS, &["-o", "-c"]),
    of("apt-get", INSTALLS, &["-o", "-c"]),
    of("apt-cache", &[], &["-o", "-c"]),
    of("apk", &["add", "del", "search", "info"], &[]),
    of("dnf", INSTALLS, &[]),
    of("yum", INSTALLS, &[]),
    of("brew", INSTALLS, &[]),
    all("dpkg-query"),
    of("pip", INSTALLS, &[]),
    of("pip3", INSTALLS, &[]),
    of("npm", INSTALLS, &["--script-shell", "--git", "--node-options"]),
    of("pnpm", INSTALLS, &["--script-shell"]),
    of("yarn", INSTALLS, &[]),
    of(
        "cargo",
        &["add", "remove", "install", "search", "info", "tree", "update", "doc", "fetch", "metadata"],
        &["--config"],
    ),
];

/// Programs that run their words, as far as the list goes. What they are given must be readable.
pub(super) const RUNNERS: &[&str] = &[
    "at",
    "batch",
    "busybox",
    "capsh",
    "catchsegv",
    "cgexec",
    "choom",
    "chpst",
    "chroot",
    "chrt",
    "daemonize",
    "dbus-run-session",
    "doas",
    "entr",
    "env",
    "expect",
    "fakeroot",
    "firejail",
    "flock",
    "gdb",
    "ionice",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "parallel",
    "pkexec",
    "prlimit",
    "proot",
    "rlwrap",
    "runuser",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "setuidgid",
    "sg",
    "softlimit",
    "ssh-agent",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "xargs",
    "xvfb-run",
];

/// Shells: what they read they run.
pub(super) const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "rbash", "rksh", "yash", "fish", "csh", "tcsh", "pwsh",
];

/// Programs that run what they read, if they are given nothing else.
pub(super) const INTERPRETERS: &[&str] = &[
    "python", "python2", "python3", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "tclsh", "Rscript",
    "irb",
];

/// Programs that can turn text into other text, so that a name in it is not seen.
pub(super) const ENCODERS: &[&str] = &[
    "echo", "printf", "base64", "base32", "basenc", "xxd", "openssl", "uudecode", "rev", "python", "python3", "perl",
    "ruby", "node", "php", "curl", "wget",
];

/// Programs that give a file another name or place.
pub(super) const COPIERS: &[&str] =
    &["cp", "ln", "link", "mv", "install", "dd", "rsync", "scp", "tar", "cpio", "zip", "hash"];

/// Variables whose value the shell runs.
pub(super) const EVALUATED: &[&str] = &["PS0", "PS1", "PS2", "PS4", "PROMPT_COMMAND", "BASH_ENV", "ENV"];

/// Files that programs run without being told, and those programs.
pub(super) const FOUND: &[(&str, &[&str])] = &[
    ("Makefile", &["make", "gmake"]),
    ("makefile", &["make", "gmake"]),
    ("GNUmakefile", &["make", "gmake"]),
    ("package.json", &["npm", "pnpm", "yarn", "bun"]),
    ("build.rs", &["cargo"]),
    ("config.toml", &["cargo"]),
    ("config", &["git", "ssh"]),
    (".gitconfig", &["git"]),
    (".bashrc", SHELLS),
    (".bash_profile", SHELLS),
    (".profile", SHELLS),
    (".zshrc", SHELLS),
    (".zshenv", SHELLS),
    (".envrc", &["direnv"]),
    ("conftest.py", &["pytest", "python", "python3"]),
    ("setup.py", &["pip", "pip3", "python", "python3"]),
    ("justfile", &["just"]),
    ("Dockerfile", &["docker", "podman"]),
];

/// Whether a command clearly does something else with the names in it: it prints, searches or keeps them.
pub(super) fn only_prints(words: &[String]) -> bool {
    let Some(name) = words.first().map(|name| plain_name(name)) else { return false };
    match name {
        "sed" => return is_plain_sed(&words[1..]),
        "awk" | "gawk" => return words[1..].iter().all(|word| is_plain_awk(word)),
        "command" => return words.get(1).is_some_and(|word| word == "-v" || word == "-V"),
        "find" => {
            return !words.iter().any(|word| ["-exec", "-ok", "-fprint", "-fls"].iter().any(|o| word.starts_with(o)));
        }
        // Its second file is the one it writes.
        "uniq" => return words[1..].iter().filter(|word| !word.starts_with('-')).count() < 2,
        _ => {}
    }
    let is_printer = |printer: &Printer| {
        let rest = if printer.subcommands.is_empty() {
            &words[1..]
        } else {
            match subcommand(name, words).and_then(|at| words.get(at..)) {
                Some([found, rest @ ..]) if printer.subcommands.contains(&found.as_str()) => rest,
                _ => return false,
            }
        };
        let is_excepted = |word: &String| {
            printer.except.iter().any(|option| match option.strip_prefix('-') {
                // A short option may stand among others.
                Some(letter) if letter.len() == 1 => {
                    word.starts_with('-') && !word.starts_with("--") && word.contains(letter)
                }
                _ => word.starts_with(option),
            })
        };
        !rest.iter().any(is_excepted)
    };
    PRINTERS.iter().find(|printer| printer.name == name).is_some_and(is_printer)
}

/// Returns the name of a program that is called by its name or by its place in the system; otherwise nothing.
fn plain_name(word: &str) -> &str {
    ["/usr/bin/", "/bin/", "/usr/local/bin/"].iter().find_map(|place| word.strip_prefix(place)).unwrap_or(word)
}

/// Returns where the subcommand stands, if only options without consequences stand before it.
fn subcommand(name: &str, words: &[String]) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        match (name, word.as_str()) {
            ("git", "-C") => at += 2,
            ("git", "--no-pager" | "-P") | (_, "-y" | "-q" | "--silent" | "--quiet" | "-qq" | "--yes") => at += 1,
            (_, word) if word.starts_with('-') => return None,
            _ => return Some(at),
        }
    }
    None
}

/// Whether `sed` gets scripts that only print, delete and replace.
fn is_plain_sed(arguments: &[String]) -> bool {
    let mut has_script = false;
    for word in arguments {
        match word.as_str() {
            "-n" | "-E" | "-r" | "-i" | "-e" | "-s" | "-i.bak" | "-ne" | "-nE" | "-nr" | "-i''" => {}
            word if word.starts_with('-') => return false,
            _ if has_script && !arguments.iter().any(|word| word == "-e" || word == "-ne") => {}
            script => {
                has_script = true;
                if !is_plain_sed_script(script) {
                    return false;
                }
            }
        }
    }
    has_script
}

/// Knows `/x/p`, `3,9p`, `$d` and `s/x/y/g`.
fn is_plain_sed_script(script: &str) -> bool {
    if script.contains(['\n', ';', '\\', '{']) && !script.starts_with('s') {
        return false;
    }
    let mut rest = script;
    if let Some(after) = rest.strip_prefix('s') {
        let Some(delimiter) = after.chars().next().filter(|c| !c.is_alphanumeric()) else { return false };
        let parts: Vec<&str> = after[delimiter.len_utf8()..].split(delimiter).collect();
        return !after.contains('\n')
            && matches!(parts.as_slice(), [_, _, flags] if flags.chars().all(|c| "gpiI".contains(c) || c.is_ascii_digit()));
    }
    if let Some(after) = rest.strip_prefix('/') {
        let Some((_, after)) = after.split_once('/') else { return false };
        rest = after;
    }
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',' || c == '$');
    matches!(rest, "p" | "d" | "q" | "=" | "!d" | "")
}

/// Whether an `awk` program, or an operand, calls no program and writes no file.
fn is_plain_awk(word: &str) -> bool {
    !["system", "|", "getline", ">", "@", "-f", "--", "-i", "-l", "\0"].iter().any(|bad| word.contains(bad))
}
