//! Text of any length that never repeats: watchers for loops stay calm, and the
//! same length gives the same text everywhere.

/// Returns exactly `chars` characters of invented words.
pub(super) fn prose(chars: usize) -> String {
    const CONSONANTS: &[u8] = b"bdfgklmnprstvz";
    const VOWELS: &[u8] = b"aeiou";
    let mut text = String::with_capacity(chars + 8);
    let mut state: u64 = 1;
    while text.len() < chars {
        if !text.is_empty() {
            text.push(' ');
        }
        state = (state * 1_103_515_245 + 12_345) % (1 << 31);
        let n_syllables = 1 + (state >> 5) % 3;
        for shift in [8, 14, 20].into_iter().take(n_syllables as usize) {
            text.push(char::from(CONSONANTS[((state >> shift) % 14) as usize]));
            text.push(char::from(VOWELS[((state >> (shift + 4)) % 5) as usize]));
        }
    }
    text.truncate(chars);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_exact_and_longer_texts_begin_alike() {
        assert_eq!(prose(40), "va suku siro lumo ruzipe bu kemi fuvu mo");
        for chars in [0, 1, 7, 100, 10_000] {
            let text = prose(chars);
            assert_eq!(text.len(), chars);
            assert!(prose(20_000).starts_with(&text));
        }
    }
}
