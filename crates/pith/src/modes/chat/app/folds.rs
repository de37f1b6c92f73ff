//! Output that is shown in a few lines and can be shown in full later. What is in the scrollback cannot be changed, so
//! the whole text is printed below.

use std::collections::VecDeque;

use crate::modes::chat::frames::tail;

/// How many outputs are kept, and how much of each: memory is bounded whatever tools print.
const MAX_FOLDS: usize = 50;
const MAX_BYTES: usize = 256 << 10;

/// The text of a tool call or of thinking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fold {
    pub number: usize,
    pub title: String,
    pub text: String,
    pub is_difference: bool,
}

/// The last outputs.
#[derive(Debug, Default)]
pub struct Folds {
    kept: VecDeque<Fold>,
    n_added: usize,
    /// The one that Ctrl-O has shown last.
    shown: Option<usize>,
}

impl Folds {
    /// Keeps a text and returns its number.
    pub fn add(&mut self, title: &str, text: &str, is_difference: bool) -> usize {
        self.n_added += 1;
        self.shown = None;
        if self.kept.len() == MAX_FOLDS {
            self.kept.pop_front();
        }
        let text = tail(text, MAX_BYTES).to_owned();
        self.kept.push_back(Fold { number: self.n_added, title: title.to_owned(), text, is_difference });
        self.n_added
    }

    /// Returns the text with a number.
    pub fn get(&self, number: usize) -> Option<&Fold> {
        self.kept.iter().find(|fold| fold.number == number)
    }

    /// Returns the last text, then the one before it, and so on.
    pub fn next_to_show(&mut self) -> Option<&Fold> {
        let number = self.shown.unwrap_or(self.n_added + 1).checked_sub(1)?;
        let fold = self.kept.iter().find(|fold| fold.number == number)?;
        self.shown = Some(number);
        Some(fold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept() {
        let mut folds = Folds::default();
        for number in 1..=60 {
            assert_eq!(folds.add(&format!("call {number}"), "x", false), number);
        }
        assert_eq!(folds.get(10), None);
        assert_eq!(folds.get(11).map(|fold| fold.title.as_str()), Some("call 11"));
        assert_eq!(folds.next_to_show().map(|fold| fold.number), Some(60));
        assert_eq!(folds.next_to_show().map(|fold| fold.number), Some(59));
        folds.add("new", &"é".repeat(MAX_BYTES), false);
        assert_eq!(folds.next_to_show().map(|fold| (fold.number, fold.text.len())), Some((61, MAX_BYTES)));
    }
}
