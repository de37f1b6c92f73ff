//! Collects every text of a command line in which a program may be mentioned, for rules against something.
//!
//! What a command line runs is read strictly elsewhere. This looks at the same tree the other way round: everything
//! counts, unless it clearly only prints or searches and its output goes nowhere that runs it.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use brush_parser::ast::CompoundList;

use super::known::{self, EVALUATED};
use super::prescreen;
use super::reader::parse;
use super::tokens::{Text, TextKind, is_computed};
use super::word_text::Decoded;

/// How many scripts may stand inside one another.
const MAX_SCRIPTS: usize = 16;

/// Why a text is no script at all.
pub(super) const NO_COMMAND: &str = "a text that is no valid command";

/// What rules against something look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Where programs may be mentioned.
    pub texts: Vec<Text>,
    /// Why something runs that cannot be read at all.
    pub hidden: Option<String>,
}

/// Reads a command line for mentions.
pub fn scan(script: &str) -> Scan {
    // The last word of a command that only prints may be a program in the next one.
    let is_longer = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let is_renamed = ["$_", "${_"].iter().any(|name| script.split(name).skip(1).any(|rest| !is_longer(rest)));
    let mut scanner = Scanner { is_renamed, ..Scanner::default() };
    scanner.script(script);
    scanner.finish()
}

/// What was found so far.
#[derive(Default)]
pub(super) struct Scanner {
    pub texts: Vec<Text>,
    pub hidden: Option<String>,
    /// Texts that are only printed, and so mention nothing unless their output runs after all.
    pub printed: Vec<Text>,
    /// Names of files that output goes to, and names that commands are given which may run them.
    pub written: Vec<String>,
    /// Those of them whose content does not stand in the text.
    pub unread: Vec<String>,
    pub named: Vec<String>,
    /// Whether programs may be others than their names say.
    pub is_renamed: bool,
    /// Where the shell evaluates a value as it does a command, and whether a value may hold one.
    evaluates: Option<String>,
    pub is_suspect: bool,
    /// Whether output of what is read now becomes input or words of something that may run it.
    pub output_runs: bool,
    /// Whether what is read now gets the output of something.
    pub is_fed: bool,
    pub n_scripts: usize,
    pub n_inside: usize,
}

/// A simple command with what belongs to it.
#[derive(Default)]
pub(super) struct Found<'a> {
    pub words: Vec<String>,
    /// Here-documents and here-strings.
    pub documents: Vec<String>,
    /// Values of the assignments before it.
    pub values: Vec<(String, String)>,
    pub scripts: Vec<String>,
    pub lists: Vec<&'a CompoundList>,
    pub writes: Vec<String>,
    pub reads: Vec<String>,
}

impl Scanner {
    fn finish(mut self) -> Scan {
        let named: HashSet<String> = self.named.drain(..).collect();
        if self.unread.iter().any(|file| named.contains(file)) {
            self.hide("a file that is written and run");
        }
        let names_any = named.iter().any(|name| is_computed(name));
        // A module is named without its ending.
        let stem = |file: &str| file.rsplit_once('.').map(|(stem, _)| stem.to_owned());
        let is_named = |file: &String| named.contains(file) || stem(file).is_some_and(|stem| named.contains(&stem));
        let runs_written = self.written.iter().any(|file| names_any || is_named(file));
        if runs_written || self.is_renamed {
            let scripts: Vec<String> = self.printed.iter().flat_map(|text| text.words.clone()).collect();
            let may_be_script = |text: &&String| text.contains(char::is_whitespace);
            scripts.iter().filter(may_be_script).for_each(|script| self.run_text(script, runs_written));
            let alone = |text: Text| Text::new(TextKind::Alone, text.words);
            self.texts.extend(self.printed.drain(..).map(alone));
        }
        if self.is_suspect && self.hidden.is_none() {
            self.hidden = self.evaluates;
        }
        Scan { texts: self.texts, hidden: self.hidden }
    }

    pub fn hide(&mut self, why: &str) {
        self.hidden.get_or_insert_with(|| why.to_owned());
    }

    pub fn evaluate(&mut self, why: &str) {
        self.evaluates.get_or_insert_with(|| why.to_owned());
    }

    pub fn suspect(&mut self) {
        self.is_suspect = true;
    }

    pub fn text(&mut self, kind: TextKind, words: Vec<String>) {
        self.texts.push(Text::new(kind, words));
    }

    /// Notes a name that something may run as a file.
    pub fn name(&mut self, word: &str) {
        self.named.push(base(word).to_owned());
    }

    /// Reads a script: the whole text, or one inside it.
    pub fn script(&mut self, script: &str) {
        if let Some(why) = prescreen::refusal(script) {
            return self.hide(why);
        }
        if self.n_scripts == MAX_SCRIPTS {
            return self.hide("too many commands inside one another");
        }
        // The parser is the work of others; a defect of it must end in a question, not in a failed session.
        match catch_unwind(AssertUnwindSafe(|| parse(script))) {
            Ok(Some(program)) => {
                self.n_scripts += 1;
                program.complete_commands.iter().for_each(|list| self.list(list));
                self.n_scripts -= 1;
            }
            Ok(None) => self.hide(NO_COMMAND),
            Err(_) => self.hide("a text that the parser fails on"),
        }
    }

    /// Reads a text that something else may run: what it mentions counts, and what it hides.
    pub fn probe(&mut self, read: impl FnOnce(&mut Scanner)) {
        let mut scanner =
            Scanner { n_scripts: self.n_scripts, n_inside: self.n_inside, is_fed: self.is_fed, ..Scanner::default() };
        read(&mut scanner);
        let Scan { texts, hidden } = scanner.finish();
        self.texts.extend(texts);
        if let Some(why) = hidden {
            self.hide(&why);
        }
    }

    /// Words that the shell evaluates as it does an index: commands in them run.
    pub fn evaluated(&mut self, words: &[String]) {
        for word in words.iter().filter(|word| word.contains(['$', '`'])) {
            self.is_suspect |= is_computed(word);
            let decoded = Decoded::of_document(word);
            self.note(&decoded);
            decoded.scripts.iter().for_each(|script| self.probe(|scanner| scanner.script(script)));
        }
    }

    /// Notes which files a command writes, and which it may run.
    pub fn file_names(&mut self, found: &Found, is_printed: bool) {
        // git runs its hooks by itself.
        let hooks: Vec<&String> = found.writes.iter().filter(|file| file.contains("hooks/")).collect();
        hooks.into_iter().for_each(|file| self.name(file));
        let files = found.writes.iter().map(|file| base(file).to_owned());
        let is_text = match found.words.first().map(String::as_str) {
            Some("echo" | "printf") => !found.words.iter().any(|word| is_computed(word)),
            Some("cat") => !found.documents.is_empty(),
            _ => false,
        };
        if is_text {
            self.written.extend(files)
        } else {
            self.unread.extend(files)
        }
        if is_printed {
            let name = found.words[0].as_str();
            if name == "tee" || name == "sed" {
                // A `tee` writes what it reads, and `sed -i` what it was told.
                let files = found.words[1..].iter().map(|word| base(word).to_owned());
                if name == "tee" { self.unread.extend(files) } else { self.written.extend(files) }
            }
            // `cat /usr/bin/x > y` is a copy.
            let copied = found.words[1..].iter().chain(&found.reads).filter(|word| word.contains("bin/"));
            let copied: Vec<String> = copied.cloned().collect();
            if !found.writes.is_empty() && !copied.is_empty() {
                self.text(TextKind::Alone, copied);
            }
            return;
        }
        for word in found.words.iter().chain(&found.reads) {
            self.name(word);
            word.split(['=', ' ', ':', ';', '(', ')', '"', '\'', ',', '\n']).skip(1).for_each(|piece| self.name(piece));
        }
        if let Some(name) = found.words.first().map(|word| base(word)) {
            let runs = known::FOUND.iter().filter(|(_, programs)| programs.contains(&name));
            runs.for_each(|(file, _)| self.name(file));
        }
        let paths: Vec<String> = found.reads.iter().filter(|path| path.contains("bin/")).cloned().collect();
        if !paths.is_empty() {
            self.text(TextKind::Alone, paths);
        }
    }

    /// Reads what stands inside the words of a command: its output becomes words or input of the command.
    pub fn inner(&mut self, found: &Found, runs: bool) {
        let outer = self.output_runs;
        self.output_runs |= runs;
        found.scripts.iter().for_each(|script| self.script(script));
        found.lists.iter().for_each(|list| self.list(list));
        self.output_runs = outer;
    }

    /// Reads an assignment.
    pub fn assigned(&mut self, name: &str, values: &[String]) {
        let holds_command = |value: &String| value.contains('`') || value.contains("$(");
        self.is_suspect |= values.iter().any(holds_command);
        self.set(name, values.iter().any(|value| is_computed(value)));
        for value in values {
            self.text(TextKind::Value, vec![value.clone()]);
            self.name(value);
            if value.contains(char::is_whitespace) {
                self.perhaps_script(value);
            }
            if EVALUATED.contains(&name) && !is_computed(value) {
                let decoded = Decoded::of_document(value);
                decoded.scripts.iter().for_each(|script| self.probe(|scanner| scanner.script(script)));
                if name == "PROMPT_COMMAND" {
                    self.probe(|scanner| scanner.script(value));
                }
            }
        }
        if values.len() > 1 {
            self.text(TextKind::Loose, values.to_vec());
        }
    }

    /// Notes that a variable is set, perhaps to something that cannot be read.
    pub fn set(&mut self, name: &str, is_unknown: bool) {
        self.is_renamed |= name == "PATH";
        if EVALUATED.contains(&name) && is_unknown {
            self.hide(&format!("a value of {name} that is not literal"));
        }
    }

    /// Reads a word of a command.
    pub fn word(&mut self, written: &str, found: &mut Found) -> String {
        let decoded = Decoded::of_word(written);
        self.note(&decoded);
        found.scripts.extend(decoded.scripts);
        decoded.text
    }

    /// Reads a word of which nothing is known but that the shell expands it.
    pub fn loose_word(&mut self, written: &str) -> String {
        let mut found = Found::default();
        let word = self.word(written, &mut found);
        self.inner(&found, true);
        word
    }

    pub fn arithmetic(&mut self, expression: &str) {
        let decoded = Decoded::of_arithmetic(expression);
        self.note(&decoded);
        decoded.scripts.iter().for_each(|script| self.script(script));
    }

    pub fn note(&mut self, decoded: &Decoded) {
        if let Some(why) = &decoded.hidden {
            self.hide(why);
        }
        if let Some(why) = &decoded.evaluates {
            self.evaluate(why);
        }
    }

    /// Keeps a command that only prints, or one that may run what it says.
    pub fn keep(&mut self, words: &[String], documents: &[String], only_prints: bool) -> bool {
        let is_printed = only_prints && !self.output_runs;
        let kind = if is_printed { TextKind::Printed } else { TextKind::Command };
        self.text(kind, words.to_vec());
        let of_words = Text::new(TextKind::Loose, words[1..].to_vec());
        let documents = documents.iter().map(|document| Text::new(TextKind::Loose, vec![document.clone()]));
        if is_printed {
            self.printed.push(of_words);
            self.printed.extend(documents);
        } else if only_prints {
            // Whatever gets it may be a shell.
            let may_be_script = |word: &&String| word.contains(char::is_whitespace);
            words[1..].iter().filter(may_be_script).for_each(|word| self.perhaps_script(word));
            self.texts.push(Text::new(TextKind::Alone, of_words.words));
            self.texts.extend(documents);
        } else {
            self.texts.extend(documents);
        }
        is_printed
    }
}

/// Returns the last part of a path.
pub(super) fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}
