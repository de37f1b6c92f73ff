//! Says quickly that no form begins in a part of a text.
//!
//! An automaton looks at every byte; with a thousand values that is slower than most programs write. Here only every so
//! many bytes a place is looked at: if the four bytes there are in the beginning of no form, no form begins at it or
//! shortly before.
//!
//! Measured on 100 MB of a build's output, processor time, the least of seven tries (`benches/stream.rs`):
//!
//! | values | with | aho-corasick alone: contiguous NFA | its DFA |
//! |---|---|---|---|
//! | 1 | 12 ms | 930 ms (its prefilter finds a rare byte that is not rare here), 330 ms without one | 220 ms |
//! | 10 | 12 ms | 28 ms (its packed prefilter, which takes few forms) | 32 ms |
//! | 100 | 12 ms | 296 ms | 210 ms and 10 MB |
//! | 1000 | 12 ms | 290 ms | 210 ms and 98 MB |
//!
//! A thread that only reads these 100 MB from a pipe and checks them as text takes 53 ms, so masking adds about a fifth
//! to it. Beginnings of 16 bytes instead of 24 take 16 ms; 64 bits for each gram instead of 32 make a set of a thousand
//! values too large for the cache of a busy processor.

use std::ops::Range;

/// Bytes that are looked at together.
const GRAM: usize = 4;
/// How long beginnings are at least; shorter forms cannot be found this way.
const MIN_BEGINNING: usize = 8;
/// How long they are at most: longer ones have more grams, which takes memory.
const MAX_BEGINNING: usize = 24;
/// Bits for each gram, so that others rarely meet both of its own.
const BITS_PER_GRAM: usize = 32;
/// The multipliers of the two hashes; the first is that of Fibonacci hashing. Their upper bits are well mixed.
const MULTIPLIERS: [u32; 2] = [0x9e37_79b1, 0x85eb_ca6b];

/// The grams of the beginnings of all forms, as a set of hashes.
pub(crate) struct Grams {
    bits: Vec<u64>,
    shift: u32,
    /// How far apart two places may be: each beginning has so many grams.
    stride: usize,
}

impl Grams {
    /// Collects the grams. `None` if there are no forms, or one is too short.
    pub fn of(forms: &[String]) -> Option<Self> {
        let n_bytes = forms.iter().map(String::len).min()?.min(MAX_BEGINNING);
        if n_bytes < MIN_BEGINNING {
            return None;
        }
        let beginnings = forms.iter().map(|form| &form.as_bytes()[..n_bytes]);
        let mut grams: Vec<u32> = beginnings.flat_map(|beginning| beginning.windows(GRAM).filter_map(gram)).collect();
        grams.sort_unstable();
        grams.dedup();
        let n_bits = (grams.len() * BITS_PER_GRAM).next_power_of_two();
        let shift = u32::BITS - n_bits.trailing_zeros();
        let mut set = Grams { bits: vec![0; n_bits.div_ceil(64)], shift, stride: n_bytes - GRAM + 1 };
        for gram in grams {
            for hash in MULTIPLIERS.map(|multiplier| set.hash(gram, multiplier)) {
                set.bits[hash / 64] |= 1 << (hash % 64);
            }
        }
        Some(set)
    }

    /// Returns the next places from `from` on where a form may begin.
    pub fn next(&self, text: &[u8], from: usize) -> Option<Range<usize>> {
        let looked_at = text.get(from + self.stride - 1..)?;
        let mut chunks = looked_at.chunks(self.stride);
        let index = chunks.position(|chunk| gram(chunk).is_some_and(|gram| self.contains(gram)))?;
        let from = from + index * self.stride;
        Some(from..from + self.stride)
    }

    fn contains(&self, gram: u32) -> bool {
        MULTIPLIERS.iter().all(|multiplier| {
            let hash = self.hash(gram, *multiplier);
            self.bits[hash / 64] >> (hash % 64) & 1 == 1
        })
    }

    fn hash(&self, gram: u32, multiplier: u32) -> usize {
        (gram.wrapping_mul(multiplier) >> self.shift) as usize
    }
}

fn gram(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}
