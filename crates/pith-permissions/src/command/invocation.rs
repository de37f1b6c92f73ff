//! What a simple command does with its words, for whoever looks for mentions: which builtins and shells run them, and
//! whether what they run can be read.

use super::known::{self, COPIERS, ENCODERS, EVALUATED, INTERPRETERS, SHELLS};
use super::look_through::{MAX_INSIDE, WRAPPERS, command_start};
use super::scan::{Found, Scanner, base};
use super::tokens::{COMPUTED, TextKind, is_computed};
use super::word::Word;

impl Scanner {
    /// Reads a simple command; returns whether it clearly only prints, to nobody who runs it.
    pub fn invocation(&mut self, words: &[String], found: &Found) -> bool {
        if self.n_inside == MAX_INSIDE {
            self.hide("too many commands inside one another");
            return false;
        }
        self.n_inside += 1;
        let is_printed = self.command_itself(words, found);
        self.n_inside -= 1;
        is_printed
    }

    fn command_itself(&mut self, words: &[String], found: &Found) -> bool {
        let documents = &found.documents;
        let name = base(&words[0]);
        if is_computed(&words[0]) && !is_computed(name) && !words[0].contains(char::is_whitespace) {
            // Whatever directory it is in, it has this name, unless the value is made to be more than a directory.
            self.evaluate("a directory of a program that is not literal");
        } else if words[0].is_empty() || is_computed(&words[0]) {
            self.hide("a command that is not literal");
            self.text(TextKind::Loose, words.to_vec());
            documents.iter().for_each(|document| self.text(TextKind::Loose, vec![document.clone()]));
            return false;
        }
        if self.output_runs && ENCODERS.contains(&name) || name == "cat" && !documents.is_empty() && self.output_runs {
            self.suspect();
        }
        if name == "xargs"
            && let Some(command) = behind_xargs(words)
        {
            return self.invocation(&command, found);
        }
        if let Some(command) = behind_wrappers(words) {
            self.wrapped(&words[..words.len() - command.len()]);
            return if command.is_empty() { true } else { self.invocation(command, found) };
        }
        if self.builtin(name, words, documents) {
            return false;
        }
        if SHELLS.contains(&name) {
            self.shell(words, documents);
            return false;
        }
        match name {
            "find" => self.find(words, found),
            "git" => self.git(words, found),
            "test" | "[" if words.iter().any(|word| is_computed(word) || word == "-v" || word == "-R") => {
                self.evaluate("a test of a computed word");
                self.evaluated(&words[1..]);
            }
            "pushd" | "popd" | "cd" => {}
            _ if INTERPRETERS.contains(&name) => self.interpreter(words, documents),
            _ if COPIERS.contains(&name) => self.text(TextKind::Alone, words[1..].to_vec()),
            _ => {}
        }
        let only_prints = known::only_prints(words);
        if !only_prints {
            self.given_command(name, &words[1..], documents);
        }
        self.keep(words, documents, only_prints)
    }

    /// The words of a wrapper before its command.
    fn wrapped(&mut self, words: &[String]) {
        for word in words {
            if let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_name(name)) {
                self.assigned(name, &[value.to_owned()]);
            }
        }
    }

    /// What builtins of the shell do with their words. Returns whether nothing else is to be said of it.
    fn builtin(&mut self, name: &str, words: &[String], documents: &[String]) -> bool {
        let arguments = &words[1..];
        match name {
            "eval" => {
                if arguments.iter().any(|word| is_computed(word)) {
                    self.hide("eval of words that are not literal");
                } else {
                    self.script(&arguments.join(" "));
                    return true;
                }
            }
            "trap" => match arguments.iter().find(|word| !word.starts_with('-')) {
                Some(script) if is_computed(script) => self.hide("a trap that is not literal"),
                Some(script) => {
                    self.script(script);
                    return true;
                }
                None => return true,
            },
            "source" | "." => match arguments.first() {
                Some(file) if is_computed(file) || is_input(file) => self.read_in(documents),
                _ => {}
            },
            "declare" | "typeset" | "local" | "export" | "readonly" => {
                let sets_number = |word: &String| word.starts_with('-') && word.contains(['i', 'n']);
                if arguments.iter().any(sets_number) {
                    self.evaluate("a variable that evaluates what it is given");
                }
                self.evaluated(arguments);
                for word in arguments {
                    match word.split_once('=').map(|(name, value)| (name, value.to_owned())) {
                        Some((name, value)) => self.assigned(name, &[value]),
                        None if is_computed(word) => self.suspect(),
                        None => {}
                    }
                }
            }
            "read" | "mapfile" | "readarray" | "getopts" => {
                if !documents.is_empty() || self.is_fed && self.output_runs {
                    self.suspect();
                }
                if arguments.iter().any(|word| word.starts_with("-C")) {
                    self.hide("a callback of mapfile");
                }
                self.sets_evaluated(arguments);
                self.evaluated(arguments);
                documents.iter().for_each(|document| self.text(TextKind::Value, vec![document.clone()]));
            }
            "printf" if arguments.first().is_some_and(|word| word.starts_with("-v")) => {
                self.suspect();
                self.evaluate("printf -v");
                self.evaluated(arguments);
                self.sets_evaluated(arguments);
                self.text(TextKind::Alone, arguments.to_vec());
            }
            "set" if arguments.iter().any(|word| !word.starts_with(['-', '+'])) => {
                self.text(TextKind::Alone, arguments.to_vec());
            }
            "let" => {
                self.evaluate("let");
                self.evaluated(arguments);
            }
            "unset" | "wait" if arguments.iter().any(|word| is_computed(word) || word.contains('[')) => {
                self.evaluate("an index that is evaluated");
                self.evaluated(arguments);
            }
            "shopt" if arguments.iter().any(|word| word == "extglob" || word == "expand_aliases") => {
                self.hide("shopt changes how the rest is read");
            }
            "hash" if arguments.iter().any(|word| word.starts_with("-p")) => self.hide("hash names a program"),
            "alias" | "bind" | "complete" | "compgen" | "enable" | "fc" if !arguments.is_empty() => {
                self.hide(&format!("{name} changes or runs what it is given"));
            }
            _ => {}
        }
        false
    }

    fn sets_evaluated(&mut self, names: &[String]) {
        if let Some(name) = names.iter().find(|name| EVALUATED.contains(&name.as_str())) {
            self.hide(&format!("a value of {name} that is not literal"));
        }
    }

    /// A shell: its script is read; one that reads its commands from elsewhere runs nobody knows what.
    pub fn shell(&mut self, words: &[String], documents: &[String]) {
        let mut has_script = false;
        let mut reads_input = false;
        let mut at = 1;
        while let Some(word) = words.get(at).filter(|word| word.starts_with(['-', '+'])) {
            at += 1;
            match word.as_str() {
                "-" | "--" => break,
                "--rcfile" | "--init-file" => {
                    words.get(at).into_iter().for_each(|file| self.name(file));
                    at += 1;
                }
                word if word.starts_with("--") => {}
                word => {
                    has_script |= word.starts_with('-') && word.contains('c');
                    reads_input |= word.starts_with('-') && word.contains('s');
                    at += usize::from(word.contains(['o', 'O']));
                }
            }
        }
        match words.get(at) {
            _ if words[..at.min(words.len())].iter().any(|word| is_computed(word)) => {
                self.hide("options of a shell that are not literal");
            }
            Some(script) if has_script => {
                if is_computed(script) {
                    self.hide("a script that is not literal");
                    self.text(TextKind::Loose, vec![script.clone()]);
                } else {
                    self.script(script);
                }
                self.text(TextKind::Alone, words[at + 1..].to_vec());
                documents.iter().for_each(|document| self.text(TextKind::Loose, vec![document.clone()]));
            }
            Some(file) if !reads_input && !is_computed(file) && !is_input(file) => {
                self.text(TextKind::Loose, words[at..].to_vec());
                documents.iter().for_each(|document| self.text(TextKind::Loose, vec![document.clone()]));
            }
            _ => {
                self.text(TextKind::Alone, words.get(at..).unwrap_or_default().to_vec());
                self.read_in(documents);
            }
        }
    }

    /// Commands that a shell reads from its input.
    fn read_in(&mut self, documents: &[String]) {
        if documents.is_empty() {
            self.hide("a shell whose commands are not in the text");
        }
        for document in documents {
            if is_computed(document) {
                self.hide("a shell whose commands are not literal");
            }
            self.text(TextKind::Loose, vec![document.clone()]);
            self.script(document);
        }
    }

    /// An interpreter that gets its program from another one.
    fn interpreter(&mut self, words: &[String], documents: &[String]) {
        let has_program = words[1..].iter().any(|word| {
            ["-c", "-m", "-e", "-p"].iter().any(|option| word.starts_with(option))
                || !word.starts_with('-') && !is_input(word)
                || word.starts_with("--version")
                || word == "-V"
                || word == "-v"
        });
        if self.is_fed && !has_program && documents.is_empty() {
            self.hide("a program that another one writes");
        }
    }

    /// `find` runs what follows `-exec`.
    fn find(&mut self, words: &[String], found: &Found) {
        let mut rest = words.iter();
        while rest.by_ref().any(|word| matches!(word.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir")) {
            let command: Vec<String> = rest
                .by_ref()
                .take_while(|word| !matches!(word.as_str(), ";" | "+"))
                .map(|word| word.replace("{}", &COMPUTED.to_string()))
                .collect();
            if !command.is_empty() {
                self.invocation(&command, found);
            }
        }
    }

    /// git runs what its configuration says, which may stand in words and in variables.
    fn git(&mut self, words: &[String], found: &Found) {
        let of_variables = found.values.iter().filter(|(name, _)| name.starts_with("GIT_CONFIG"));
        let mut configured: Vec<&String> = of_variables.map(|(_, value)| value).collect();
        let has_alias = words.iter().chain(configured.iter().copied()).any(|word| word.contains("alias."));
        if configured.is_empty() && !has_alias {
            return;
        }
        configured.extend(words);
        configured.extend(found.values.iter().map(|(_, value)| value));
        for value in &configured {
            let script = value.split_once('=').map_or(value.as_str(), |(_, script)| script);
            if let Some(script) = script.strip_prefix('!') {
                self.script(script);
            }
        }
        if configured.iter().any(|word| is_computed(word)) {
            self.hide("an alias of git that is not literal");
        }
        let configured = std::iter::once("git".to_owned()).chain(configured.into_iter().cloned()).collect();
        self.text(TextKind::Loose, configured);
    }
}

/// Returns the command that a wrapper runs, if its options are understood; empty if it runs none.
pub(super) fn behind_wrappers(words: &[String]) -> Option<&[String]> {
    let name = base(words.first()?);
    let arguments = &words[1..];
    let start = match name {
        "exec" | "builtin" => arguments.iter().take_while(|word| matches!(word.as_str(), "-c" | "-l" | "--")).count(),
        "command" if arguments.first().is_some_and(|word| word == "-v" || word == "-V") => return None,
        "env" => arguments
            .iter()
            .take_while(|word| matches!(word.as_str(), "-i" | "-" | "-0") || is_assignment(word))
            .count(),
        name => {
            let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name)?;
            let literal: Vec<Word> = arguments.iter().map(as_word).collect();
            let start = command_start(wrapper, &literal)?;
            start + arguments[start..].iter().take_while(|word| name == "sudo" && is_assignment(word)).count()
        }
    };
    // An option that is not known may take the next word.
    arguments.get(start..).filter(|command| command.first().is_none_or(|word| !word.starts_with('-')))
}

/// Returns the command that `xargs` runs, with a computed word for what it reads.
fn behind_xargs(words: &[String]) -> Option<Vec<String>> {
    let mut options = words[1..].to_vec();
    let mut placeholder = None;
    if let Some(at) =
        options.iter().position(|word| word.starts_with("-I") || word == "-i" || word.starts_with("--replace"))
    {
        let option = options.remove(at);
        placeholder = Some(match option.as_str() {
            "-I" if at < options.len() => options.remove(at),
            "-i" | "--replace" | "-I" => "{}".to_owned(),
            option => option.trim_start_matches("-I").trim_start_matches("--replace=").to_owned(),
        });
    }
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == "xargs")?;
    let literal: Vec<Word> = options.iter().map(as_word).collect();
    let mut command = options.split_off(command_start(wrapper, &literal)?);
    if command.is_empty() {
        return Some(vec!["echo".to_owned()]);
    }
    match placeholder {
        Some(mark) => command.iter_mut().for_each(|word| *word = word.replace(&mark, &COMPUTED.to_string())),
        None => command.push(COMPUTED.to_string()),
    }
    Some(command)
}

fn as_word(text: impl AsRef<str>) -> Word {
    let text = text.as_ref().to_owned();
    if is_computed(&text) { Word::Unknown(text) } else { Word::Literal(text) }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Whether a path leads to what the command reads.
fn is_input(path: &str) -> bool {
    path == "-" || path.starts_with("/dev/") || path.starts_with("/proc/")
}
