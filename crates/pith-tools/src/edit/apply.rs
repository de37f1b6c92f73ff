//! Finds the places of edits and changes them: all or none.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem::Finder;

use super::document::{Changed, Document, with_lf};
use super::fuzzy::{Fuzzy, fuzzy, fuzzy_untrimmed};

/// One replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub old_text: String,
    pub new_text: String,
}

/// The result of applying edits to a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Edited<'a> {
    /// The new contents of the file.
    pub contents: Vec<u8>,
    /// The text before and after, with LF line endings and without a byte order mark, for the diff.
    pub before: Cow<'a, [u8]>,
    pub after: Vec<u8>,
}

/// Applies all edits to `original`, the bytes of a file in any encoding, or returns why none of them is applied.
pub fn apply<'a>(original: &'a [u8], edits: &[Edit], path: &str) -> Result<Edited<'a>, String> {
    let failure = Failure { path, is_single: edits.len() == 1 };
    if edits.is_empty() {
        return Err("Edit tool input is invalid. edits must contain at least one replacement.".to_owned());
    }
    if memchr::memchr(0, original).is_some() {
        return Err(format!("Could not edit file: {path}. It contains NUL bytes, so it is not a text file."));
    }
    let document = Document::parse(original);
    let edits: Vec<Normalised<'_>> = edits.iter().map(Normalised::new).collect();
    if let Some(at) = edits.iter().position(|edit| edit.old.is_empty()) {
        return Err(failure.empty(at));
    }
    let text = std::str::from_utf8(&document.text).ok();
    let places = match text {
        Some(text) => find_in_text(text, &edits, &failure)?,
        None => Places::Exact(find_all(&document.text, &edits, &failure)?),
    };
    let changed = places.change(&document, &edits, &failure)?;
    if changed.text == *document.text {
        return Err(failure.no_change());
    }
    let contents = document.assemble(&changed);
    Ok(Edited { contents, before: document.text, after: changed.text })
}

/// An edit with LF line endings.
struct Normalised<'a> {
    old: Cow<'a, str>,
    new: Cow<'a, str>,
}

impl<'a> Normalised<'a> {
    fn new(edit: &'a Edit) -> Self {
        Normalised { old: with_lf(&edit.old_text), new: with_lf(&edit.new_text) }
    }
}

/// The places the edits apply to, in their order.
enum Places<'a> {
    Exact(Vec<Range<usize>>),
    /// Places in look-alike text, because some edit does not match exactly.
    Fuzzy(Fuzzy<'a>, Vec<Range<usize>>),
}

fn find_in_text<'a>(text: &'a str, edits: &[Normalised<'_>], failure: &Failure<'_>) -> Result<Places<'a>, String> {
    let fuzzy_text = Fuzzy::new(text);
    let exact: Vec<Occurrences> = edits.iter().map(|edit| occurrences(text.as_bytes(), edit.old.as_bytes())).collect();
    let similar: Vec<Occurrences> = edits.iter().map(|edit| look_alikes(&fuzzy_text.text, &edit.old)).collect();
    let is_exact = exact.iter().all(|found| found.first.is_some());
    let mut places = Vec::with_capacity(edits.len());
    for (at, (exact, similar)) in exact.into_iter().zip(similar).enumerate() {
        let first = if is_exact { exact.first } else { similar.first };
        let place = first.ok_or_else(|| failure.not_found(at))?;
        // Look-alikes are counted too: a difference in blanks must not decide which place is meant.
        let count = if is_exact { exact.count.max(similar.count) } else { similar.count };
        if count > 1 {
            return Err(failure.ambiguous(at, count));
        }
        places.push(place);
    }
    Ok(if is_exact { Places::Exact(places) } else { Places::Fuzzy(fuzzy_text, places) })
}

/// Finds `wanted` in look-alike text. Trailing blanks of `wanted` are included if the text has them too, but they do
/// not make a place unique.
fn look_alikes(text: &str, wanted: &str) -> Occurrences {
    let trimmed = occurrences(text.as_bytes(), fuzzy(wanted).as_bytes());
    let whole = occurrences(text.as_bytes(), fuzzy_untrimmed(wanted).as_bytes());
    Occurrences { first: whole.first.or(trimmed.first), count: whole.count.max(trimmed.count) }
}

/// Finds the places in a file that is not UTF-8, byte for byte.
fn find_all(text: &[u8], edits: &[Normalised<'_>], failure: &Failure<'_>) -> Result<Vec<Range<usize>>, String> {
    let find = |(at, edit): (usize, &Normalised<'_>)| {
        let found = occurrences(text, edit.old.as_bytes());
        let place = found.first.ok_or_else(|| failure.not_found(at))?;
        if found.count > 1 { Err(failure.ambiguous(at, found.count)) } else { Ok(place) }
    };
    edits.iter().enumerate().map(find).collect()
}

/// The first occurrence, and the number of occurrences that do not overlap.
struct Occurrences {
    first: Option<Range<usize>>,
    count: usize,
}

fn occurrences(text: &[u8], wanted: &[u8]) -> Occurrences {
    let finder = Finder::new(wanted);
    let first = if wanted.is_empty() { None } else { finder.find(text) };
    let Some(start) = first else { return Occurrences { first: None, count: 0 } };
    Occurrences { first: Some(start..start + wanted.len()), count: finder.find_iter(&text[start..]).count() }
}

impl Places<'_> {
    fn change(
        &self,
        document: &Document<'_>,
        edits: &[Normalised<'_>],
        failure: &Failure<'_>,
    ) -> Result<Changed, String> {
        let (text, places) = match self {
            Places::Exact(places) => (&*document.text, places),
            Places::Fuzzy(fuzzy, places) => (fuzzy.text.as_bytes(), places),
        };
        let mut order: Vec<usize> = (0..edits.len()).collect();
        order.sort_by_key(|at| places[*at].start);
        if let Some([one, two]) = order.array_windows().find(|[one, two]| places[*one].end > places[*two].start) {
            return Err(failure.overlap(*one, *two));
        }
        let newlines = |range: Range<usize>| memchr::memchr_iter(b'\n', &text[range]).count();
        let mut changed = Changed::default();
        let (mut done, mut newline) = (0, 0);
        for at in order {
            let place = places[at].clone();
            changed.keep(document, &self.untouched(text, done..place.start), newline);
            newline += newlines(done..place.start);
            let replaced = newlines(place.clone());
            changed.insert(document, edits[at].new.as_bytes(), newline..newline + replaced);
            newline += replaced;
            done = place.end;
        }
        changed.keep(document, &self.untouched(text, done..text.len()), newline);
        Ok(changed)
    }

    fn untouched<'b>(&'b self, text: &'b [u8], range: Range<usize>) -> Cow<'b, [u8]> {
        match self {
            Places::Exact(_) => Cow::Borrowed(&text[range]),
            Places::Fuzzy(fuzzy, _) => match fuzzy.original_of(range) {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            },
        }
    }
}

/// Makes the error messages; a single edit is not numbered.
struct Failure<'a> {
    path: &'a str,
    is_single: bool,
}

impl Failure<'_> {
    fn empty(&self, at: usize) -> String {
        let path = self.path;
        if self.is_single {
            return format!("oldText must not be empty in {path}.");
        }
        format!("edits[{at}].oldText must not be empty in {path}.")
    }

    fn not_found(&self, at: usize) -> String {
        let path = self.path;
        if self.is_single {
            return format!(
                "Could not find the exact text in {path}. The old text must match exactly including all whitespace \
                 and newlines."
            );
        }
        format!(
            "Could not find edits[{at}] in {path}. The oldText must match exactly including all whitespace and \
             newlines."
        )
    }

    fn ambiguous(&self, at: usize, count: usize) -> String {
        let path = self.path;
        let advice = "Please provide more context to make it unique.";
        if self.is_single {
            return format!("Found {count} occurrences of the text in {path}. The text must be unique. {advice}");
        }
        format!("Found {count} occurrences of edits[{at}] in {path}. Each oldText must be unique. {advice}")
    }

    fn overlap(&self, one: usize, two: usize) -> String {
        let path = self.path;
        format!("edits[{one}] and edits[{two}] overlap in {path}. Merge them into one edit or target disjoint regions.")
    }

    fn no_change(&self) -> String {
        let path = self.path;
        if self.is_single {
            return format!(
                "No changes made to {path}. The replacement produced identical content. This might indicate an issue \
                 with special characters or the text not existing as expected."
            );
        }
        format!("No changes made to {path}. The replacements produced identical content.")
    }
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
