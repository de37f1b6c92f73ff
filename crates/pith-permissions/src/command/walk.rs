//! Walks the tree of a command line for whoever looks for mentions: which output becomes whose input.

use brush_parser::ast::{
    AndOr, AssignmentName, AssignmentValue, BinaryPredicate, Command, CommandPrefixOrSuffixItem as Item,
    CompoundCommand, CompoundList, ExtendedTestExpr, IoFileRedirectKind as Kind, IoFileRedirectTarget as Target,
    IoRedirect, Pipeline, RedirectList, SimpleCommand, UnaryPredicate,
};

use super::known;
use super::scan::{Found, Scanner, base};
use super::tokens::{COMPUTED, TextKind, is_computed};
use super::word_text::Decoded;

impl Scanner {
    pub fn list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            self.pipeline(&item.0.first);
            for next in &item.0.additional {
                let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = next;
                self.pipeline(pipeline);
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        let (output_runs, is_fed) = (self.output_runs, self.is_fed);
        // From the end: whether what a command prints reaches one that may run it.
        let mut runs = vec![output_runs; pipeline.seq.len()];
        for at in (1..pipeline.seq.len()).rev() {
            runs[at - 1] = runs[at] || !is_filter(&pipeline.seq[at]);
        }
        for (at, command) in pipeline.seq.iter().enumerate() {
            self.output_runs = runs[at];
            self.is_fed = is_fed || at > 0;
            self.command(command);
        }
        (self.output_runs, self.is_fed) = (output_runs, is_fed);
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(command) => self.simple_command(command),
            Command::Compound(command, redirections) => {
                self.around(redirections.as_ref(), |scanner| scanner.compound(command));
            }
            Command::Function(function) => {
                let name = self.loose_word(&function.fname.value);
                if is_computed(&name) {
                    self.hide("a function whose name is not literal");
                }
                self.is_renamed |= known::only_prints(&[name]);
                self.around(function.body.1.as_ref(), |scanner| scanner.compound(&function.body.0));
            }
            Command::ExtendedTest(test, redirections) => {
                self.around(redirections.as_ref(), |scanner| scanner.test(&test.expr));
            }
        }
    }

    /// Reads something with the redirections that hold for all of it.
    fn around(&mut self, redirections: Option<&RedirectList>, read: impl FnOnce(&mut Scanner)) {
        let is_fed = self.is_fed;
        let mut found = Found::default();
        for redirection in redirections.iter().flat_map(|redirections| &redirections.0) {
            self.redirection(redirection, &mut found);
        }
        self.is_fed |= !found.documents.is_empty() || !found.reads.is_empty();
        found.reads.iter().for_each(|file| self.name(file));
        self.is_suspect |= !found.documents.is_empty();
        found.documents.drain(..).for_each(|document| self.text(TextKind::Loose, vec![document]));
        self.inner(&found, true);
        self.unread.extend(found.writes.iter().map(|file| base(file).to_owned()));
        self.written.append(&mut found.writes);
        read(self);
        self.is_fed = is_fed;
    }

    fn compound(&mut self, command: &CompoundCommand) {
        match command {
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(subshell) => self.list(&subshell.list),
            CompoundCommand::ForClause(clause) => {
                let only_prints = is_printing_list(&clause.body.list);
                let values: Vec<String> =
                    clause.values.iter().flatten().map(|word| self.loose_word(&word.value)).collect();
                self.set(&clause.variable_name, false);
                let kind = if only_prints { TextKind::Loose } else { TextKind::Value };
                for value in &values {
                    self.text(kind, vec![value.clone()]);
                }
                if !only_prints {
                    self.text(TextKind::Loose, values);
                } else {
                    let n_values = values.len();
                    let at = self.texts.len() - n_values;
                    self.printed.extend(self.texts.drain(at..));
                }
                self.list(&clause.body.list);
            }
            CompoundCommand::CaseClause(clause) => {
                self.loose_word(&clause.value.value);
                for case in &clause.cases {
                    case.patterns.iter().for_each(|pattern| drop(self.loose_word(&pattern.value)));
                    case.cmd.iter().for_each(|list| self.list(list));
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition);
                self.list(&clause.then);
                for part in clause.elses.iter().flatten() {
                    part.condition.iter().for_each(|list| self.list(list));
                    self.list(&part.body);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0);
                self.list(&clause.1.list);
            }
            CompoundCommand::Arithmetic(command) => self.arithmetic(&command.expr.value),
            CompoundCommand::ArithmeticForClause(clause) => {
                let expressions = [&clause.initializer, &clause.condition, &clause.updater];
                expressions.into_iter().flatten().for_each(|expression| self.arithmetic(&expression.value));
                self.list(&clause.body.list);
            }
            CompoundCommand::Coprocess(command) => {
                let outer = (self.output_runs, self.is_fed);
                (self.output_runs, self.is_fed) = (true, true);
                self.command(&command.body);
                (self.output_runs, self.is_fed) = outer;
            }
        }
    }

    fn test(&mut self, test: &ExtendedTestExpr) {
        match test {
            ExtendedTestExpr::And(one, other) | ExtendedTestExpr::Or(one, other) => {
                self.test(one);
                self.test(other);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => self.test(inner),
            ExtendedTestExpr::UnaryTest(predicate, word) => {
                use UnaryPredicate as U;
                if matches!(predicate, U::ShellVariableIsSetAndAssigned | U::ShellVariableIsSetAndNameRef) {
                    self.evaluate("a test of a variable");
                    let word = self.loose_word(&word.value);
                    return self.evaluated(&[word]);
                }
                self.loose_word(&word.value);
            }
            ExtendedTestExpr::BinaryTest(predicate, one, other) => {
                use BinaryPredicate as B;
                if matches!(
                    predicate,
                    B::ArithmeticEqualTo
                        | B::ArithmeticNotEqualTo
                        | B::ArithmeticLessThan
                        | B::ArithmeticLessThanOrEqualTo
                        | B::ArithmeticGreaterThan
                        | B::ArithmeticGreaterThanOrEqualTo
                ) {
                    self.evaluate("a comparison of numbers");
                }
                self.loose_word(&one.value);
                self.loose_word(&other.value);
            }
        }
    }

    fn simple_command(&mut self, command: &SimpleCommand) {
        let mut found = Found::default();
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.item(item, &mut found);
        }
        if let Some(name) = &command.word_or_name {
            let word = self.word(&name.value, &mut found);
            found.words.push(word);
        }
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, &mut found);
        }
        let is_fed = self.is_fed;
        self.is_fed |= !found.documents.is_empty() || !found.reads.is_empty();
        let is_printed = !found.words.is_empty() && self.invocation(&found.words.clone(), &found);
        self.is_fed = is_fed;
        self.file_names(&found, is_printed);
        self.inner(&found, !is_printed);
    }

    fn item<'a>(&mut self, item: &'a Item, found: &mut Found<'a>) {
        match item {
            Item::IoRedirect(redirection) => self.redirection(redirection, found),
            Item::Word(word) => {
                let word = self.word(&word.value, found);
                found.words.push(word);
            }
            Item::AssignmentWord(assignment, written) => {
                let name = match &assignment.name {
                    AssignmentName::VariableName(name) => name.clone(),
                    AssignmentName::ArrayElementName(name, index) => {
                        self.arithmetic(index);
                        name.clone()
                    }
                };
                let values = match &assignment.value {
                    AssignmentValue::Scalar(value) => vec![self.word(&value.value, found)],
                    AssignmentValue::Array(values) => {
                        let words = values.iter().flat_map(|(key, value)| key.iter().chain([value]));
                        words.map(|word| self.word(&word.value, found)).collect()
                    }
                };
                self.assigned(&name, &values);
                found.values.extend(values.into_iter().map(|value| (name.clone(), value)));
                if !found.words.is_empty() {
                    let word = self.word(&written.value, &mut Found::default());
                    found.words.push(word);
                }
            }
            Item::ProcessSubstitution(_, subshell) => {
                // The command may also write to it.
                found.lists.push(&subshell.list);
                if !found.words.is_empty() {
                    found.words.push(COMPUTED.to_string());
                }
            }
        }
    }

    fn redirection<'a>(&mut self, redirection: &'a IoRedirect, found: &mut Found<'a>) {
        match redirection {
            IoRedirect::File(_, kind, Target::Filename(word) | Target::Duplicate(word)) => {
                let path = self.word(&word.value, found);
                let is_free = path.starts_with("/dev/") || path.chars().all(|c| c.is_ascii_digit() || c == '-');
                match kind {
                    _ if is_free && !path.starts_with("/dev/tcp") && !path.starts_with("/dev/udp") => {}
                    Kind::Read | Kind::DuplicateInput => found.reads.push(path),
                    _ => found.writes.push(path),
                }
            }
            IoRedirect::File(_, _, Target::Fd(_)) => {}
            IoRedirect::File(_, _, Target::ProcessSubstitution(_, subshell)) => {
                let outer = (self.output_runs, self.is_fed);
                (self.output_runs, self.is_fed) = (true, true);
                self.list(&subshell.list);
                (self.output_runs, self.is_fed) = outer;
                // What reads it is not known to be a filter.
                self.is_renamed |= !is_printing_list(&subshell.list);
            }
            IoRedirect::HereDocument(_, document) => {
                let body = &document.doc.value;
                if document.requires_expansion {
                    let decoded = Decoded::of_document(body);
                    self.note(&decoded);
                    found.scripts.extend(decoded.scripts);
                }
                found.documents.push(body.clone());
            }
            IoRedirect::HereString(_, word) => {
                let text = self.word(&word.value, found);
                found.documents.push(text);
            }
            IoRedirect::OutputAndError(word, _) => {
                let path = self.word(&word.value, found);
                found.writes.push(path);
            }
        }
    }
}

/// Whether a command in a pipeline only passes on, or shows, what it reads.
fn is_filter(command: &Command) -> bool {
    match command {
        Command::Simple(command) => is_printing(command),
        Command::Compound(command, _) => match command {
            CompoundCommand::BraceGroup(group) => is_printing_list(&group.list),
            CompoundCommand::Subshell(subshell) => is_printing_list(&subshell.list),
            CompoundCommand::ForClause(clause) => is_printing_list(&clause.body.list),
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                is_printing_list(&clause.0) && is_printing_list(&clause.1.list)
            }
            _ => false,
        },
        Command::Function(_) | Command::ExtendedTest(..) => false,
    }
}

fn is_printing_list(list: &CompoundList) -> bool {
    list.0.iter().all(|item| {
        let rest = item.0.additional.iter().map(|(AndOr::And(pipeline) | AndOr::Or(pipeline))| pipeline);
        std::iter::once(&item.0.first).chain(rest).all(|pipeline| pipeline.seq.iter().all(is_filter))
    })
}

fn is_printing(command: &SimpleCommand) -> bool {
    let Some(name) = &command.word_or_name else { return false };
    let mut words = vec![Decoded::of_word(&name.value).text];
    for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
        match item {
            Item::Word(word) => words.push(Decoded::of_word(&word.value).text),
            Item::IoRedirect(IoRedirect::File(_, _, Target::ProcessSubstitution(..))) => return false,
            Item::IoRedirect(_) => {}
            Item::AssignmentWord(_, word) => words.push(Decoded::of_word(&word.value).text),
            Item::ProcessSubstitution(..) => return false,
        }
    }
    // What `read` takes can only run through a word that is computed.
    let inner = super::invocation::behind_wrappers(&words);
    words[0] == "read" || known::only_prints(&words) || inner.is_some_and(known::only_prints)
}
