//! Splits text into pieces that fit one request.

/// Joins paragraphs into pieces of at most `limit` bytes; a longer paragraph is divided.
pub(crate) fn pieces(paragraphs: Vec<String>, limit: usize) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for paragraph in paragraphs {
        let mut rest = paragraph.as_str();
        while rest.len() > limit {
            let (head, tail) = rest.split_at(boundary(rest, limit));
            pieces.push(head.to_owned());
            rest = tail;
        }
        if rest.is_empty() {
            continue;
        }
        match pieces.last_mut().filter(|last| last.len() + 2 + rest.len() <= limit) {
            Some(last) => {
                last.push_str("\n\n");
                last.push_str(rest);
            }
            None => pieces.push(rest.to_owned()),
        }
    }
    pieces
}

/// The last character boundary at or before `limit`, but at least one character in.
fn boundary(text: &str, limit: usize) -> usize {
    match text.floor_char_boundary(limit) {
        0 => text.ceil_char_boundary(1),
        at => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_joined_while_they_fit() {
        let check = |paragraphs: &[&str], limit, expected: &[&str]| {
            let paragraphs = paragraphs.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(pieces(paragraphs, limit), expected);
        };
        check(&[], 10, &[]);
        check(&["aa", "bb", "cc"], 6, &["aa\n\nbb", "cc"]);
        check(&["abcdefgh"], 3, &["abc", "def", "gh"]);
        check(&["ééé"], 3, &["é", "é", "é"]);
        check(&["😀"], 1, &["😀"]);
    }
}
