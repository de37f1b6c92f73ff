//! Commands that run other commands: what they run is read from their arguments, if those are literal.

use super::reader::{Reader, is_harmless};
use super::word::Word;
use super::{Part, Role};

/// Builtins that change what later words mean, or evaluate their arguments.
const OPAQUE: &[&str] = &[
    ".",
    "alias",
    "bind",
    "builtin",
    "compgen",
    "complete",
    "coproc",
    "declare",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "getopts",
    "hash",
    "jobs",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "select",
    "shopt",
    "source",
    "trap",
    "typeset",
    "unalias",
    "unset",
    "wait",
];

const SHELLS: [&str; 4] = ["sh", "bash", "zsh", "dash"];

/// How many commands may run one another.
pub(super) const MAX_INSIDE: usize = 32;

/// A program that runs its last arguments.
pub(super) struct Wrapper {
    pub name: &'static str,
    /// Options without a value.
    flags: &'static [&'static str],
    /// Options whose value is the next word, or follows at once.
    valued: &'static [&'static str],
    /// Words before the command.
    n_operands: usize,
}

pub(super) const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        name: "timeout",
        flags: &["--preserve-status", "--foreground", "-v", "--verbose"],
        valued: &["-k", "--kill-after", "-s", "--signal"],
        n_operands: 1,
    },
    Wrapper { name: "nice", flags: &[], valued: &["-n", "--adjustment"], n_operands: 0 },
    Wrapper { name: "nohup", flags: &[], valued: &[], n_operands: 0 },
    Wrapper {
        name: "stdbuf",
        flags: &[],
        valued: &["-i", "-o", "-e", "--input", "--output", "--error"],
        n_operands: 0,
    },
    Wrapper { name: "time", flags: &["-p"], valued: &[], n_operands: 0 },
    Wrapper { name: "setsid", flags: &["-c", "--ctty", "-f", "--fork", "-w", "--wait"], valued: &[], n_operands: 0 },
    Wrapper { name: "command", flags: &[], valued: &[], n_operands: 0 },
    Wrapper {
        name: "sudo",
        flags: &["-n", "-E", "-H", "-b", "-k", "-S", "-A", "--non-interactive", "--preserve-env"],
        valued: &["-u", "--user", "-g", "--group"],
        n_operands: 0,
    },
    Wrapper {
        name: "xargs",
        flags: &["-0", "--null", "-r", "--no-run-if-empty", "-t", "--verbose", "-x"],
        valued: &["-n", "--max-args", "-P", "--max-procs", "-L", "--max-lines", "-d", "--delimiter", "-s"],
        n_operands: 0,
    },
];

impl Reader {
    /// Makes a part of words, and looks through the command if it runs others.
    pub fn part(&mut self, words: Vec<Word>, is_altered: bool) -> Part {
        let mut part = Part { words, is_altered, role: Role::Command, inner: Vec::new() };
        let Some(name) = part.words[0].literal().map(str::to_owned) else {
            self.opaque(format!("a command that is not literal: {}", part.words[0].shown()));
            return part;
        };
        if self.n_inside == MAX_INSIDE {
            self.opaque("too many commands inside one another".to_owned());
            return part;
        }
        self.n_inside += 1;
        let arguments = part.words[1..].to_vec();
        // A program found by its path does what its name says, as far as anybody can know.
        match name.rsplit('/').next().unwrap_or(&name) {
            name if OPAQUE.contains(&name) => self.opaque(format!("{name} changes or runs what it is given")),
            "cd" | "pushd" | "popd" => self.has_moved = true,
            "set" if !is_plain_set(&arguments) => self.opaque("set changes the shell".to_owned()),
            "printf" if !is_plain(&arguments, "-v") => self.opaque("printf -v sets a variable".to_owned()),
            name @ ("test" | "[") if !is_plain_test(&arguments) => self.opaque(format!("{name} may evaluate a name")),
            "find" => self.find(&mut part, &arguments),
            "env" => self.env(&mut part, &arguments),
            "xargs" if has_option(&arguments, "-I") => self.opaque("xargs -I".to_owned()),
            "command" if is_query(&arguments) => {}
            name if SHELLS.contains(&name) => self.shell(&mut part, &arguments),
            name => {
                if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
                    self.wrapped(&mut part, wrapper, &arguments);
                }
            }
        }
        self.n_inside -= 1;
        part
    }

    fn wrapped(&mut self, part: &mut Part, wrapper: &Wrapper, arguments: &[Word]) {
        let Some(start) = command_start(wrapper, arguments) else {
            return self.opaque(format!("options of {} that are not understood", wrapper.name));
        };
        let mut command = arguments.get(start..).unwrap_or_default().to_vec();
        if command.is_empty() {
            return;
        }
        if wrapper.name == "xargs" {
            command.push(Word::Unknown("…".to_owned()));
        }
        // What is allowed to the user is not allowed to another one.
        self.run_inside(part, command, wrapper.name == "sudo");
    }

    fn run_inside(&mut self, part: &mut Part, command: Vec<Word>, is_altered: bool) {
        part.role = Role::Wrapper;
        let inner = self.part(command, part.is_altered || is_altered);
        part.inner.push(inner);
    }

    /// `env`: assignments, then a command.
    fn env(&mut self, part: &mut Part, arguments: &[Word]) {
        let mut is_altered = false;
        for (position, word) in arguments.iter().enumerate() {
            let Some(word) = word.literal() else {
                return self.opaque("env with words that are not literal".to_owned());
            };
            match word.split_once('=') {
                Some((name, _)) if !word.starts_with('-') => is_altered |= !is_harmless(name),
                _ if word == "-i" || word == "-" => is_altered = true,
                _ if word.starts_with('-') => return self.opaque("options of env that are not understood".to_owned()),
                _ => return self.run_inside(part, arguments[position..].to_vec(), is_altered),
            }
        }
    }

    /// A shell with a script in its arguments. One that reads its commands from elsewhere runs nobody knows what.
    fn shell(&mut self, part: &mut Part, arguments: &[Word]) {
        let options = arguments.iter().take_while(|word| word.shown().starts_with('-')).count();
        let (options, rest) = arguments.split_at(options);
        let is_understood = |word: &Word| {
            word.literal().is_some_and(|word| word.len() > 1 && word[1..].chars().all(|c| "celux".contains(c)))
        };
        let has_script = options.iter().any(|word| word.shown().contains('c'));
        match rest.first() {
            _ if !options.iter().all(is_understood) => self.opaque("options of a shell that are not understood".into()),
            Some(Word::Literal(script)) if has_script => {
                let outer = std::mem::take(&mut self.parts);
                self.script(script);
                part.inner = std::mem::replace(&mut self.parts, outer);
                if !part.inner.is_empty() {
                    part.role = Role::Wrapper;
                }
            }
            // A file, which is a program as any other.
            Some(Word::Literal(_)) => {}
            _ => self.opaque("a shell whose commands are not in the text".to_owned()),
        }
    }

    /// `find` does something of its own, and runs what follows `-exec`.
    fn find(&mut self, part: &mut Part, arguments: &[Word]) {
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let Some(word) = word.literal() else {
                return self.opaque("find with words that are not literal".to_owned());
            };
            if !matches!(word, "-exec" | "-execdir" | "-ok" | "-okdir") {
                continue;
            }
            let found = |word: &Word| match word {
                Word::Literal(text) if text.contains("{}") => Word::Unknown(text.clone()),
                other => other.clone(),
            };
            let is_end = |word: &&Word| matches!(word.literal(), Some(";" | "+"));
            let command: Vec<Word> = words.by_ref().take_while(|word| !is_end(word)).map(found).collect();
            if command.is_empty() {
                return self.opaque("find -exec without a command".to_owned());
            }
            let inner = self.part(command, part.is_altered);
            part.inner.push(inner);
        }
    }
}

/// Returns where the command begins; `None` if an option is not known or not literal.
pub(super) fn command_start(wrapper: &Wrapper, arguments: &[Word]) -> Option<usize> {
    let mut n_operands = wrapper.n_operands;
    let mut position = 0;
    while let Some(word) = arguments.get(position) {
        let word = word.literal()?;
        let is_option = word.len() > 1 && word.starts_with('-');
        if word == "--" {
            position += 1;
            break;
        } else if !is_option && n_operands == 0 {
            break;
        } else if !is_option {
            n_operands -= 1;
        } else if wrapper.valued.contains(&word) {
            position += 1;
            arguments.get(position)?.literal()?;
        } else if !wrapper.flags.contains(&word) && !has_value_attached(wrapper, word) {
            return None;
        }
        position += 1;
    }
    Some(position)
}

fn has_value_attached(wrapper: &Wrapper, word: &str) -> bool {
    let is_nice = wrapper.name == "nice" && word[1..].bytes().all(|byte| byte.is_ascii_digit());
    let of_long =
        word.split_once('=').is_some_and(|(name, _)| name.starts_with("--") && wrapper.valued.contains(&name));
    let of_short = !word.starts_with("--") && word.get(..2).is_some_and(|short| wrapper.valued.contains(&short));
    is_nice || of_long || of_short
}

fn has_option(arguments: &[Word], option: &str) -> bool {
    arguments.iter().any(|word| word.shown().starts_with(option) || word.shown().starts_with("--replace"))
}

/// `command -v name` says where a program is.
fn is_query(arguments: &[Word]) -> bool {
    arguments.first().is_some_and(|word| matches!(word.literal(), Some("-v" | "-V")))
}

/// Whether the first word is literal and no such option.
fn is_plain(arguments: &[Word], option: &str) -> bool {
    arguments.first().is_none_or(|word| word.literal().is_some_and(|word| !word.starts_with(option)))
}

fn is_plain_test(arguments: &[Word]) -> bool {
    arguments.iter().all(|word| word.literal().is_some_and(|word| word != "-v" && word != "-R"))
}

/// `set -e` and the like change when a script stops and what it prints, not what it runs.
fn is_plain_set(arguments: &[Word]) -> bool {
    arguments.iter().all(|word| {
        word.literal().is_some_and(|word| {
            let letters = word.strip_prefix(['-', '+']);
            letters.is_some_and(|letters| letters.chars().all(|c| "euxo".contains(c))) || word == "pipefail"
        })
    })
}
