//! Names of sessions and entries.

use std::sync::Arc;

use uuid::Uuid;

/// Names an entry within its file; shared between the tree and its users.
pub type EntryId = Arc<str>;

/// Returns a new session id: time-ordered, so that names sort by age.
pub fn new_session_id() -> String {
    Uuid::now_v7().to_string()
}

/// Whether a caller may name a session so: letters and digits, with `.`, `_` and `-` only inside.
pub fn is_session_id(id: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let bytes = id.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() && bytes.iter().all(|&byte| inner(byte))
        }
        _ => false,
    }
}

/// Returns a new entry id: eight hex digits, or a whole UUID when a hundred of those were taken.
pub(crate) fn new_entry_id(mut is_taken: impl FnMut(&str) -> bool) -> EntryId {
    let mut digits = [0; uuid::fmt::Hyphenated::LENGTH];
    for _ in 0..100 {
        let short = &Uuid::new_v4().hyphenated().encode_lower(&mut digits)[..8];
        if !is_taken(short) {
            return short.into();
        }
    }
    Uuid::new_v4().to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_a_caller_may_choose() {
        for good in ["a", "7", "my-session", "a.b_c-d", "01a1ddfa-f8d7-76a9-a3c8-c75ac8adcc1e"] {
            assert!(is_session_id(good), "{good}");
        }
        for bad in ["", "-a", "a-", ".", "a/b", "a b", "é", "a\n"] {
            assert!(!is_session_id(bad), "{bad:?}");
        }
    }

    #[test]
    fn session_ids_of_one_process_ascend() {
        let ids: Vec<_> = (0..1000).map(|_| new_session_id()).collect();
        assert!(ids.is_sorted() && ids.iter().all(|id| is_session_id(id)));
    }

    #[test]
    fn a_crowded_file_gets_long_ids() {
        assert_eq!(new_entry_id(|_| false).len(), 8);
        let mut asked = 0;
        let id = new_entry_id(|_| {
            asked += 1;
            true
        });
        assert_eq!((id.len(), asked), (36, 100));
    }
}
