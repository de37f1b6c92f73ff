//! Strings that a program may run: as scripts of a shell, or with such scripts in them.

use super::known::{RUNNERS, SHELLS};
use super::look_through::MAX_INSIDE;
use super::scan::{NO_COMMAND, Scanner, base};
use super::tokens::{TextKind, is_computed};

impl Scanner {
    /// A program of which only its words are known: what it may run of them must be readable.
    pub fn given_command(&mut self, name: &str, arguments: &[String], documents: &[String]) {
        if RUNNERS.contains(&name) && arguments.iter().any(|word| is_computed(word)) {
            self.hide("a program that is not literal");
        }
        // `s/x/y/e` runs what it makes.
        if matches!(name, "sed" | "perl" | "ed" | "ex" | "vi" | "vim") {
            self.text(TextKind::Loose, arguments.iter().map(|word| word.replace('/', " ")).collect());
        }
        let is_shell = |word: &String| SHELLS.contains(&base(word)) || word == "eval";
        if let Some(at) = arguments.iter().position(is_shell) {
            let command = &arguments[at..];
            let is_script = command.iter().any(|word| word.starts_with('-') && word.contains('c'));
            if command[0] == "eval" && command.iter().any(|word| is_computed(word)) {
                self.hide("eval of words that are not literal");
            } else if command[0] != "eval" && (is_script || self.is_fed) {
                self.probe(|scanner| scanner.shell(command, documents));
            }
        }
        let may_be_script = |text: &&String| text.contains(char::is_whitespace);
        arguments.iter().chain(documents).filter(may_be_script).for_each(|text| self.perhaps_script(text));
    }

    /// Reads a string that something may run as a script. Most strings are none, so what cannot be read in it counts only
    /// if it names a shell. Of another language, the strings in it may be scripts.
    pub fn perhaps_script(&mut self, text: &str) {
        let is_shell = |word: &str| SHELLS.contains(&word) || word == "eval" || word == "source";
        let names_shell = text.split(|c: char| !c.is_alphanumeric()).any(is_shell);
        self.run_text(text, names_shell);
    }

    /// Reads a text that runs if it is a script.
    pub fn run_text(&mut self, text: &str, may_hide: bool) {
        if self.n_inside == MAX_INSIDE {
            return self.hide("too many commands inside one another");
        }
        self.n_inside += 1;
        let mut is_script = true;
        self.probe(|scanner| {
            scanner.script(text);
            is_script = scanner.hidden.as_deref() != Some(NO_COMMAND);
            if !may_hide || !is_script {
                scanner.hidden = None;
            }
        });
        if !is_script {
            let strings = strings_in(text);
            strings.iter().filter(|text| text.contains(char::is_whitespace)).for_each(|text| self.perhaps_script(text));
        }
        self.n_inside -= 1;
    }
}

/// Returns the strings in a program of any language.
fn strings_in(text: &str) -> Vec<String> {
    let mut strings = Vec::new();
    let mut rest = text.chars();
    while let Some(quote) = rest.by_ref().find(|c| matches!(c, '"' | '\'')) {
        let mut string = String::new();
        while let Some(c) = rest.next().filter(|c| *c != quote) {
            match c {
                '\\' => match rest.next() {
                    Some('n') => string.push('\n'),
                    Some('t') => string.push('\t'),
                    Some(c) => string.push(c),
                    None => {}
                },
                c => string.push(c),
            }
        }
        strings.push(string);
    }
    strings
}
