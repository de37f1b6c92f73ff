//! Compares two versions of a text, line by line.
//!
//! Written here because hosts show and compare it: among the shortest scripts it takes the one that the forward
//! search of Myers' algorithm meets first, as other agents do. The `similar` crate searches from both ends, and on
//! random texts of repeated lines it prefers another script of the same length in two of five cases.

/// The search stops at this edit distance; the changed middle is then shown as one replacement.
const MAX_DISTANCE: usize = 1000;
/// How much of a common end takes part in the search, so that equal lines are matched as usual.
const COMMON_END: usize = 4096;

/// A sequence of lines that stayed or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub kind: RunKind,
    /// The first line of the run in each version, from 0.
    pub old_start: usize,
    pub new_start: usize,
    pub old_lines: usize,
    pub new_lines: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunKind {
    Same,
    Changed,
}

/// Splits into lines with their newlines; a trailing newline opens no further line.
pub(super) fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Returns the runs from the first line to the last, with alternating kinds.
pub(super) fn compare(old: &[&[u8]], new: &[&[u8]]) -> Vec<Run> {
    let start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let ignored = end.saturating_sub(COMMON_END);
    let cut = |lines: &[&[u8]], end: usize| lines.len() - end;
    let found = shortest(&old_rest[..cut(old_rest, ignored)], &new_rest[..cut(new_rest, ignored)]);
    let mut runs = Runs::default();
    runs.same(start);
    match found {
        Some(steps) => {
            steps.into_iter().for_each(|step| runs.step(step));
            runs.same(ignored);
        }
        None => {
            runs.changed(cut(old_rest, end), cut(new_rest, end));
            runs.same(end);
        }
    }
    runs.list
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Same(usize),
    Delete,
    Insert,
}

/// Myers' greedy search for a shortest edit script; `None` if the texts differ too much.
fn shortest(old: &[&[u8]], new: &[&[u8]]) -> Option<Vec<Step>> {
    let (n, m) = (old.len() as isize, new.len() as isize);
    let max = (n + m).min(MAX_DISTANCE as isize);
    // reach[k + max + 1]: how far diagonal k has advanced in `old`; `history` has the state before each distance.
    let offset = max + 1;
    let mut reach = vec![0isize; 2 * offset as usize + 1];
    let mut history: Vec<Vec<isize>> = Vec::new();
    for distance in 0..=max {
        history.push(reach[(offset - distance - 1) as usize..=(offset + distance + 1) as usize].to_vec());
        for k in (-distance..=distance).step_by(2) {
            let at = (offset + k) as usize;
            let inserts = k == -distance || (k != distance && reach[at - 1] < reach[at + 1]);
            let mut x = if inserts { reach[at + 1] } else { reach[at - 1] + 1 };
            let mut y = x - k;
            while x < n && y < m && old[x as usize] == new[y as usize] {
                (x, y) = (x + 1, y + 1);
            }
            reach[at] = x;
            if x >= n && y >= m {
                return Some(trace(&history, n, m));
            }
        }
    }
    None
}

/// Follows the history back from the end.
fn trace(history: &[Vec<isize>], mut x: isize, mut y: isize) -> Vec<Step> {
    let mut steps = Vec::new();
    for (distance, reach) in history.iter().enumerate().rev() {
        let distance = distance as isize;
        let k = x - y;
        let value = |k: isize| reach[(k + distance + 1) as usize];
        let inserts = k == -distance || (k != distance && value(k - 1) < value(k + 1));
        let previous_k = if inserts { k + 1 } else { k - 1 };
        let (from_x, from_y) = if distance == 0 { (0, 0) } else { (value(previous_k), value(previous_k) - previous_k) };
        let (after_x, after_y) = match (distance, inserts) {
            (0, _) => (0, 0),
            (_, true) => (from_x, from_y + 1),
            (_, false) => (from_x + 1, from_y),
        };
        debug_assert_eq!(x - after_x, y - after_y);
        steps.push(Step::Same((x - after_x) as usize));
        if distance > 0 {
            steps.push(if inserts { Step::Insert } else { Step::Delete });
        }
        (x, y) = (from_x, from_y);
    }
    steps.reverse();
    steps
}

#[derive(Default)]
struct Runs {
    list: Vec<Run>,
    old: usize,
    new: usize,
}

impl Runs {
    fn step(&mut self, step: Step) {
        match step {
            Step::Same(lines) => self.same(lines),
            Step::Delete => self.changed(1, 0),
            Step::Insert => self.changed(0, 1),
        }
    }

    fn same(&mut self, lines: usize) {
        self.add(RunKind::Same, lines, lines);
    }

    fn changed(&mut self, old: usize, new: usize) {
        self.add(RunKind::Changed, old, new);
    }

    fn add(&mut self, kind: RunKind, old: usize, new: usize) {
        if old + new == 0 {
            return;
        }
        match self.list.last_mut().filter(|run| run.kind == kind) {
            Some(run) => {
                run.old_lines += old;
                run.new_lines += new;
            }
            None => {
                self.list.push(Run { kind, old_start: self.old, new_start: self.new, old_lines: old, new_lines: new })
            }
        }
        self.old += old;
        self.new += new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rebuilds the new version from the old one and the runs.
    fn rebuilt(old: &[&[u8]], new: &[&[u8]], runs: &[Run]) -> Vec<u8> {
        let parts = runs.iter().map(|run| match run.kind {
            RunKind::Same => old[run.old_start..run.old_start + run.old_lines].concat(),
            RunKind::Changed => new[run.new_start..run.new_start + run.new_lines].concat(),
        });
        parts.collect::<Vec<_>>().concat()
    }

    #[test]
    fn very_different_texts_become_one_replacement() {
        let text = |word: &str| (0..2000).map(|n| format!("{word} {n}\n")).collect::<String>();
        let (old, new) = (format!("a\n{}z\n", text("old")), format!("a\n{}z\n", text("new")));
        let (old, new) = (lines(old.as_bytes()), lines(new.as_bytes()));
        let runs = compare(&old, &new);
        assert_eq!(runs.len(), 3);
        assert_eq!((runs[1].old_lines, runs[1].new_lines), (2000, 2000));
    }

    #[test]
    fn a_far_end_is_left_out_of_the_search() {
        let end = "same\n".repeat(COMMON_END * 2);
        let (old, new) = (format!("a\n{end}"), format!("b\n{end}"));
        let runs = compare(&lines(old.as_bytes()), &lines(new.as_bytes()));
        assert_eq!(runs.iter().map(|run| run.old_lines).collect::<Vec<_>>(), [1, COMMON_END * 2]);
    }

    proptest! {
        #[test]
        fn runs_lead_from_one_version_to_the_other(old in "(a\n|b\n|c\n|d){0,12}", new in "(a\n|b\n|c\n|d){0,12}") {
            let (old, new) = (lines(old.as_bytes()), lines(new.as_bytes()));
            let runs = compare(&old, &new);
            prop_assert_eq!(rebuilt(&old, &new, &runs), new.concat());
            prop_assert!(runs.array_windows().all(|[one, two]| one.kind != two.kind));
            prop_assert_eq!(runs.iter().map(|run| run.old_lines).sum::<usize>(), old.len());
        }
    }
}
