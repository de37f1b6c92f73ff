//! Walks the tree of a command and collects the simple commands in it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brush_parser::ast::{
    AndOr, AndOrList, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem as Item, CompoundCommand,
    CompoundList, DoGroupCommand, ExtendedTestExpr, Pipeline, Program, SimpleCommand, UnaryPredicate,
};
use brush_parser::ast::{Assignment, BinaryPredicate, RedirectList};
use brush_parser::{Parser, ParserImpl, ParserOptions};

use super::prescreen;
use super::word::Word;
use super::{FileAccess, Part, Reading};

/// bash without options: no extended patterns.
pub(super) const OPTIONS: ParserOptions = ParserOptions {
    enable_extended_globbing: false,
    posix_mode: false,
    sh_mode: false,
    tilde_expansion_at_word_start: true,
    tilde_expansion_after_colon: false,
    parser_impl: ParserImpl::Peg,
};

/// How many scripts may stand inside one another.
const MAX_SCRIPTS: usize = 16;

/// Variables that change no program but how much it says, and where and in which language.
const HARMLESS: [&str; 8] = ["RUST_LOG", "RUST_BACKTRACE", "NO_COLOR", "CI", "TZ", "LANG", "NODE_ENV", "DEBUG"];

/// What was found so far.
#[derive(Default)]
pub(super) struct Reader {
    pub parts: Vec<Part>,
    pub files: Vec<FileAccess>,
    opaque: Vec<String>,
    n_scripts: usize,
    /// How many commands run the one that is read.
    pub n_inside: usize,
    /// Whether a variable that programs look at is set for all that follows.
    is_altered: bool,
    /// Whether the directory changes, so that relative paths are not known.
    pub has_moved: bool,
}

impl Reader {
    /// Returns what was found.
    pub fn finish(mut self) -> Reading {
        if self.is_altered {
            self.parts.iter_mut().for_each(alter);
        }
        if self.has_moved {
            for file in &mut self.files {
                let moved = file.path.literal().filter(|path| !path.starts_with(['/', '~'])).map(str::to_owned);
                if let Some(path) = moved {
                    file.path = Word::Unknown(path);
                }
            }
        }
        self.opaque.dedup();
        Reading { parts: self.parts, files: self.files, opaque: self.opaque }
    }

    /// Notes that something is not understood.
    pub fn opaque(&mut self, why: String) {
        self.opaque.push(why);
    }

    /// Reads a script: the whole text, or one inside it.
    pub fn script(&mut self, script: &str) {
        if let Some(why) = prescreen::refusal(script) {
            return self.opaque(why.to_owned());
        }
        if self.n_scripts == MAX_SCRIPTS {
            return self.opaque("too many commands inside one another".to_owned());
        }
        // The parser is the work of others; a defect of it must end in a question, not in a failed session.
        match catch_unwind(AssertUnwindSafe(|| parse(script))) {
            Ok(Some(program)) => {
                self.n_scripts += 1;
                program.complete_commands.iter().for_each(|list| self.list(list));
                self.n_scripts -= 1;
            }
            Ok(None) => self.opaque("a text that is no valid command".to_owned()),
            Err(_) => self.opaque("a text that the parser fails on".to_owned()),
        }
    }

    /// Notes an assignment that lasts. Names such as `file` or `i` are those of loops and of no program.
    pub fn assigned(&mut self, name: &str) {
        let is_own = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if !is_harmless(name) && (!is_own || name.ends_with("path")) {
            self.is_altered = true;
        }
    }

    fn list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            self.and_or(&item.0);
        }
    }

    fn and_or(&mut self, list: &AndOrList) {
        self.pipeline(&list.first);
        for next in &list.additional {
            let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = next;
            self.pipeline(pipeline);
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        pipeline.seq.iter().for_each(|command| self.command(command));
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(command) => self.simple_command(command),
            Command::Compound(command, redirections) => {
                self.compound(command);
                self.redirections(redirections.as_ref());
            }
            Command::Function(function) => {
                // bash calls this one by itself.
                if function.fname.value == "command_not_found_handle" {
                    self.opaque("a function that the shell calls by itself".to_owned());
                }
                if self.word(&function.fname).literal().is_none() {
                    self.opaque("a function whose name is not literal".to_owned());
                }
                self.compound(&function.body.0);
                self.redirections(function.body.1.as_ref());
            }
            Command::ExtendedTest(test, redirections) => {
                self.test(&test.expr);
                self.redirections(redirections.as_ref());
            }
        }
    }

    fn redirections(&mut self, redirections: Option<&RedirectList>) {
        let redirections = redirections.map_or(&[][..], |redirections| &redirections.0[..]);
        redirections.iter().for_each(|redirection| self.redirection(redirection));
    }

    fn compound(&mut self, command: &CompoundCommand) {
        match command {
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(subshell) => self.list(&subshell.list),
            CompoundCommand::ForClause(clause) => {
                self.assigned(&clause.variable_name);
                clause.values.iter().flatten().for_each(|word| drop(self.word(word)));
                self.group(&clause.body);
            }
            CompoundCommand::CaseClause(clause) => {
                self.word(&clause.value);
                for case in &clause.cases {
                    case.patterns.iter().for_each(|pattern| drop(self.word(pattern)));
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
                self.group(&clause.1);
            }
            CompoundCommand::Arithmetic(command) => self.arithmetic(&command.expr.value),
            CompoundCommand::ArithmeticForClause(clause) => {
                self.opaque("an arithmetic loop".to_owned());
                self.group(&clause.body);
            }
            CompoundCommand::Coprocess(command) => {
                self.opaque("a coprocess".to_owned());
                self.command(&command.body);
            }
        }
    }

    fn group(&mut self, group: &DoGroupCommand) {
        self.list(&group.list);
    }

    fn test(&mut self, test: &ExtendedTestExpr) {
        match test {
            ExtendedTestExpr::And(one, other) | ExtendedTestExpr::Or(one, other) => {
                self.test(one);
                self.test(other);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => self.test(inner),
            ExtendedTestExpr::UnaryTest(predicate, word) => {
                // The subscript in a name of a variable is evaluated.
                if matches!(
                    predicate,
                    UnaryPredicate::ShellVariableIsSetAndAssigned | UnaryPredicate::ShellVariableIsSetAndNameRef
                ) {
                    self.opaque("a test of a variable".to_owned());
                }
                self.word(word);
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
                    self.opaque("a comparison of numbers".to_owned());
                }
                self.word(one);
                self.word(other);
            }
        }
    }

    fn simple_command(&mut self, command: &SimpleCommand) {
        let mut assigned = Vec::new();
        let before = command.prefix.iter().flat_map(|prefix| &prefix.0);
        for item in before {
            match item {
                Item::AssignmentWord(assignment, _) => assigned.extend(self.assignment(assignment)),
                Item::IoRedirect(redirection) => self.redirection(redirection),
                Item::Word(word) => drop(self.word(word)),
                Item::ProcessSubstitution(_, subshell) => self.list(&subshell.list),
            }
        }
        let Some(name) = &command.word_or_name else {
            return assigned.iter().for_each(|name| self.assigned(name));
        };
        let mut words = vec![self.word(name)];
        let after = command.suffix.iter().flat_map(|suffix| &suffix.0);
        for item in after {
            match item {
                Item::IoRedirect(redirection) => self.redirection(redirection),
                Item::Word(word) => words.push(self.word(word)),
                Item::AssignmentWord(assignment, word) => {
                    if matches!(assignment.value, AssignmentValue::Array(_)) {
                        self.opaque("a list that is assigned".to_owned());
                    }
                    words.push(self.word(word));
                }
                Item::ProcessSubstitution(_, subshell) => {
                    self.list(&subshell.list);
                    words.push(Word::Unknown("<(…)".to_owned()));
                }
            }
        }
        let part = self.part(words, !assigned.iter().all(|name| is_harmless(name)));
        self.parts.push(part);
    }

    /// Reads an assignment and returns the name that is set.
    fn assignment(&mut self, assignment: &Assignment) -> Option<String> {
        match (&assignment.name, &assignment.value) {
            (AssignmentName::VariableName(name), AssignmentValue::Scalar(value)) => {
                self.word(value);
                Some(name.clone())
            }
            _ => {
                self.opaque("a list that is assigned".to_owned());
                None
            }
        }
    }
}

/// Whether a variable changes nothing that a program does.
pub(super) fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name) || name.starts_with("LC_")
}

fn alter(part: &mut Part) {
    part.is_altered = true;
    part.inner.iter_mut().for_each(alter);
}

pub(super) fn parse(script: &str) -> Option<Program> {
    Parser::new(script.as_bytes(), &OPTIONS).parse_program().ok()
}
