//! Sorts names as people expect: punctuation, digits, letters; case and accents decide only between names that are
//! otherwise the same.

use std::cmp::Ordering;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Punctuation and symbols in Unicode collation order; characters that are not listed come after.
const PUNCTUATION: &str = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// Letters of European alphabets that sort like others. A spelling that ends in the last of all characters makes a
/// letter of its own, right after the other.
const SPELLINGS: [(char, &str); 11] = [
    ('ß', "ss"),
    ('æ', "ae"),
    ('ð', "d"),
    ('ø', "o"),
    ('đ', "d"),
    ('ħ', "h"),
    ('ı', "i\u{10ffff}"),
    ('ł', "l"),
    ('ŋ', "n\u{10ffff}"),
    ('œ', "oe"),
    ('ŧ', "t\u{10ffff}"),
];

/// Compares two names, ignoring case first.
pub(super) fn compare(one: &str, two: &str) -> Ordering {
    let by_letters = keys(one).cmp(keys(two));
    by_letters.then_with(|| one.to_lowercase().cmp(&two.to_lowercase())).then_with(|| one.cmp(two))
}

fn keys(name: &str) -> impl Iterator<Item = (usize, char)> {
    let letters = name.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase);
    letters.flat_map(spelled).map(|c| match PUNCTUATION.find(c) {
        Some(place) => (place, '\0'),
        None => (PUNCTUATION.len(), c),
    })
}

fn spelled(letter: char) -> impl Iterator<Item = char> {
    let spelling = SPELLINGS.iter().find(|(own, _)| *own == letter).map(|(_, spelling)| *spelling);
    let itself = spelling.is_none().then_some(letter);
    itself.into_iter().chain(spelling.unwrap_or_default().chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_usual_order() {
        let expected = [
            "_z",
            ".hid",
            "2000.txt",
            "a_b.txt",
            "a-b.txt",
            "a.b",
            "a1",
            "B.txt",
            "big.txt",
            "d",
            "é.txt",
            "empty.txt",
            "Zed",
        ];
        let mut names = expected;
        names.sort();
        names.sort_by(|one, two| compare(one, two));
        assert_eq!(names, expected);
        assert_eq!(compare("readme", "README"), Ordering::Greater);
        let expected = ["ad", "æ", "af", "d", "đ", "e", "ħ", "i", "iz", "ı", "j", "łz", "m", "n", "ŋ", "od", "œ", "of"];
        let more = ["oz", "øz", "p", "sr", "ss", "ß", "st", "t", "ŧ", "u", "z", "þ"];
        let expected = [expected.as_slice(), &more].concat();
        let mut names = expected.clone();
        names.sort();
        names.sort_by(|one, two| compare(one, two));
        assert_eq!(names, expected);
        assert_eq!(compare("x", "x"), Ordering::Equal);
    }
}
