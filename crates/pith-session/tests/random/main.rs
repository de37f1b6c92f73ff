//! Random commands and faults at random moments: whatever happens, a session keeps the rules in `rules.rs`.
//!
//! `PITH_RANDOM_SECONDS=600` searches for violations that long and shows each kind once; `PITH_RANDOM_SEED=7` plays one
//! case, and `PITH_RANDOM_EXTENSION=1` gives it an extension.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests wait and share as the session may not")]
#![allow(clippy::print_stderr, reason = "what a long search has found")]

mod case;
mod play;
mod rules;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use case::Case;
use play::{Outcome, play};

#[test]
fn sessions_keep_the_rules() {
    check(0..60, false);
}

#[test]
fn sessions_with_extensions_keep_the_rules() {
    check(0..20, true);
}

/// Plays the cases of these seeds, or those the environment names.
fn check(seeds: Range<u64>, has_extension: bool) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    play::collect_panics();
    match (number("PITH_RANDOM_SEED"), number("PITH_RANDOM_SECONDS")) {
        (Some(_), _) if has_extension != (number("PITH_RANDOM_EXTENSION") == Some(1)) => {}
        (Some(seed), _) => fail_at_first(seed..seed + 1, has_extension),
        (None, Some(seconds)) => search(Duration::from_secs(seconds), has_extension),
        (None, None) => fail_at_first(seeds, has_extension),
    }
}

fn fail_at_first(mut seeds: Range<u64>, has_extension: bool) {
    let failed = seeds.find_map(|seed| {
        let case = Case::new(seed, has_extension);
        let outcome = play(&case);
        let kind = kind(outcome.violations.first()?);
        Some(Found { case, outcome }.shrunk(&kind).to_string())
    });
    assert!(failed.is_none(), "{}", failed.unwrap_or_default());
}

/// Plays new cases, and shows one of each kind of violation at the end.
fn search(time: Duration, has_extension: bool) {
    let began = Instant::now();
    let first = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64);
    let mut all: BTreeMap<String, (usize, Found)> = BTreeMap::new();
    let mut n_cases = 0;
    while began.elapsed() < time {
        let case = Case::new(first + n_cases, has_extension);
        n_cases += 1;
        let outcome = play(&case);
        for violation in &outcome.violations {
            let found = || Found { case: case.clone(), outcome: outcome.clone() };
            let (count, shortest) = all.entry(kind(violation)).or_insert_with(|| (0, found()));
            *count += 1;
            if case.steps.len() < shortest.case.steps.len() {
                *shortest = found();
            }
        }
    }
    let (n_kinds, is_clean) = (all.len(), all.is_empty());
    eprintln!("{n_cases} cases from seed {first} on, {n_kinds} kinds of violations");
    for (kind, (count, found)) in all {
        eprintln!("\n{count} times: {kind}\n{}", found.shrunk(&kind));
    }
    assert!(is_clean, "promises were broken");
}

/// A case that broke a rule, and its frames.
struct Found {
    case: Case,
    outcome: Outcome,
}

impl Found {
    /// Removes steps that the violation does not need.
    fn shrunk(mut self, wanted: &str) -> Found {
        for at in (0..self.case.steps.len()).rev() {
            let mut case = self.case.clone();
            case.steps.remove(at);
            let outcome = play(&case);
            if outcome.violations.iter().any(|violation| kind(violation) == wanted) {
                self = Found { case, outcome };
            }
        }
        self
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { violations, frames } = &self.outcome;
        write!(f, "{}\n{}\nframes:\n{}", violations.join("\n"), self.case, support::describe(frames))
    }
}

/// Returns a violation without the parts that differ between cases.
fn kind(violation: &str) -> String {
    let is_number = |word: &str| word.contains(|c: char| c.is_ascii_digit());
    let words = violation.split_whitespace().map(|word| if is_number(word) { "#" } else { word });
    words.collect::<Vec<_>>().join(" ")
}
