//! Compiles stream rules: all patterns of all rules in one automaton.
//!
//! Patterns come from files, so they are limited to what an automaton can do in one pass: no pattern can make matching
//! slower than linear in the text, and none can grow beyond a fixed size. `\b` considers ASCII letters only, because an
//! automaton cannot look ahead over a whole character.

use pith_resources::StreamRule;
use regex_automata::MatchKind;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_syntax::hir::{Capture, Hir, HirKind, Look, Repetition};

/// How many bytes all compiled patterns may take together.
const MAX_COMPILED: usize = 4 << 20;
/// How many bytes of automaton states one watched block may cache; beyond that the cache is cleared and refilled.
const CACHE: usize = 512 << 10;

/// The valid rules and the automaton that matches them.
#[derive(Default)]
pub struct StreamRules {
    rules: Vec<Rule>,
    /// The rule of each pattern of the automaton.
    owners: Vec<usize>,
    dfa: Option<DFA>,
}

struct Rule {
    source: StreamRule,
    scopes: Vec<Scope>,
}

/// Which part of an answer a rule watches.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    Text,
    Thinking,
    AnyTool,
    Tool(String),
}

/// The kind of block that is matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    Text,
    Thinking,
    /// The arguments of a call of that tool, as the model streams them.
    Tool(String),
}

impl StreamRules {
    /// Compiles the valid rules; the texts say which ones are not, and why.
    pub fn compile(sources: Vec<StreamRule>) -> (Self, Vec<String>) {
        let (mut rules, mut problems) = (StreamRules::default(), Vec::new());
        let (mut patterns, mut size) = (Vec::new(), 0);
        for source in sources {
            match prepare(&source, MAX_COMPILED.saturating_sub(size)) {
                Ok((scopes, hirs, n_bytes)) => {
                    size += n_bytes;
                    rules.owners.extend(hirs.iter().map(|_| rules.rules.len()));
                    patterns.extend(hirs);
                    rules.rules.push(Rule { source, scopes });
                }
                Err(why) => problems.push(format!("rule {} is not used: {why}", source.path.display())),
            }
        }
        if !patterns.is_empty() {
            match automaton(&patterns) {
                Ok(dfa) => rules.dfa = Some(dfa),
                Err(why) => problems.push(format!("no rule is used: {why}")),
            }
        }
        (rules, problems)
    }

    pub(crate) fn automaton(&self) -> Option<&DFA> {
        self.dfa.as_ref()
    }

    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    pub(crate) fn get(&self, rule: usize) -> &StreamRule {
        &self.rules[rule].source
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.rules.iter().position(|rule| rule.source.name == name)
    }

    /// The rule of a pattern, if it watches that kind of block.
    pub(crate) fn owner(&self, pattern: usize, block: &Watched) -> Option<usize> {
        let owner = *self.owners.get(pattern)?;
        self.rules[owner].scopes.iter().any(|scope| scope.covers(block)).then_some(owner)
    }

    /// Creates the cache for one watched block.
    pub(crate) fn cache(dfa: &DFA) -> Cache {
        dfa.create_cache()
    }
}

impl Scope {
    fn parse(text: &str) -> Result<Scope, String> {
        match text.split_once(':') {
            None => match text {
                "text" => Ok(Scope::Text),
                "thinking" => Ok(Scope::Thinking),
                "tool" => Ok(Scope::AnyTool),
                _ => Err(unknown_scope(text)),
            },
            Some(("tool", name)) if !name.is_empty() => Ok(Scope::Tool(name.to_owned())),
            Some(_) => Err(unknown_scope(text)),
        }
    }

    fn covers(&self, block: &Watched) -> bool {
        match (self, block) {
            (Scope::Text, Watched::Text)
            | (Scope::Thinking, Watched::Thinking)
            | (Scope::AnyTool, Watched::Tool(_)) => true,
            (Scope::Tool(wanted), Watched::Tool(name)) => wanted == name,
            (Scope::Text | Scope::Thinking | Scope::AnyTool | Scope::Tool(_), _) => false,
        }
    }
}

fn unknown_scope(text: &str) -> String {
    format!("scope {text:?} is none of text, thinking, tool, tool:<name>")
}

/// Parses one rule: its scopes, its patterns and their compiled size.
fn prepare(rule: &StreamRule, room: usize) -> Result<(Vec<Scope>, Vec<Hir>, usize), String> {
    let scopes = rule.scope.iter().map(|scope| Scope::parse(scope)).collect::<Result<_, _>>()?;
    let patterns = rule.condition.iter().map(|pattern| parse(pattern)).collect::<Result<Vec<_>, _>>()?;
    let size = nfa(&patterns, room)?.memory_usage();
    Ok((scopes, patterns, size))
}

fn parse(pattern: &str) -> Result<Hir, String> {
    let hir = regex_syntax::parse(pattern)
        .map_err(|error| format!("condition {pattern:?}: {}", last_line(&error.to_string())))?;
    if hir.properties().minimum_len().is_none_or(|len| len == 0) {
        return Err(format!("condition {pattern:?} matches the empty text, so it would stop every answer"));
    }
    Ok(with_ascii_boundaries(hir))
}

/// The message of a regex error, whose earlier lines draw the pattern.
fn last_line(report: &str) -> &str {
    report.lines().last().unwrap_or(report).trim_start_matches("error: ")
}

/// Makes word boundaries ASCII only. The parser limits the depth of the recursion.
fn with_ascii_boundaries(hir: Hir) -> Hir {
    match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(class),
        HirKind::Look(look) => Hir::look(ascii(look)),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(with_ascii_boundaries(*repetition.sub));
            Hir::repetition(Repetition { sub, ..repetition })
        }
        HirKind::Capture(capture) => {
            let sub = Box::new(with_ascii_boundaries(*capture.sub));
            Hir::capture(Capture { sub, ..capture })
        }
        HirKind::Concat(parts) => Hir::concat(parts.into_iter().map(with_ascii_boundaries).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.into_iter().map(with_ascii_boundaries).collect()),
    }
}

fn ascii(look: Look) -> Look {
    match look {
        Look::WordUnicode => Look::WordAscii,
        Look::WordUnicodeNegate => Look::WordAsciiNegate,
        Look::WordStartUnicode => Look::WordStartAscii,
        Look::WordEndUnicode => Look::WordEndAscii,
        Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
        Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
        other => other,
    }
}

fn nfa(patterns: &[Hir], limit: usize) -> Result<thompson::NFA, String> {
    let config = thompson::Config::new().nfa_size_limit(Some(limit)).which_captures(WhichCaptures::None).shrink(false);
    let compiled = thompson::Compiler::new().configure(config).build_many_from_hir(patterns);
    compiled.map_err(|error| format!("its patterns are too large: {error}"))
}

fn automaton(patterns: &[Hir]) -> Result<DFA, String> {
    // Each rule was within the limit; joining them adds little.
    let nfa = nfa(patterns, 2 * MAX_COMPILED)?;
    let config = DFA::config().match_kind(MatchKind::All).cache_capacity(CACHE).skip_cache_capacity_check(true);
    DFA::builder().configure(config).build_from_nfa(nfa).map_err(|error| error.to_string())
}
