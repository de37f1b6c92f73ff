//! MD5, which extensions use for file names and caches; the crypto library has none, for good reasons.

const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The digest of `data`.
pub fn digest(data: &[u8]) -> [u8; 16] {
    let mut padded = data.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&(data.len() as u64).wrapping_mul(8).to_le_bytes());
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in padded.chunks_exact(64) {
        round(&mut state, block);
    }
    let mut result = [0; 16];
    for (part, word) in result.chunks_exact_mut(4).zip(state) {
        part.copy_from_slice(&word.to_le_bytes());
    }
    result
}

fn round(state: &mut [u32; 4], block: &[u8]) {
    let word = |index: usize| {
        let bytes = &block[index * 4..index * 4 + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    };
    let [mut a, mut b, mut c, mut d] = *state;
    for step in 0..64 {
        let (mix, index) = match step / 16 {
            0 => ((b & c) | (!b & d), step),
            1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
            2 => (b ^ c ^ d, (3 * step + 5) % 16),
            _ => (c ^ (b | !d), (7 * step) % 16),
        };
        // The constants are defined as sines.
        let constant = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
        let turned = a.wrapping_add(mix).wrapping_add(constant).wrapping_add(word(index));
        a = d;
        d = c;
        c = b;
        b = b.wrapping_add(turned.rotate_left(SHIFTS[step / 16][step % 4]));
    }
    for (sum, part) in state.iter_mut().zip([a, b, c, d]) {
        *sum = sum.wrapping_add(part);
    }
}

/// HMAC with MD5.
pub fn keyed(key: &[u8], data: &[u8]) -> [u8; 16] {
    let mut block = [0; 64];
    if key.len() > 64 {
        block[..16].copy_from_slice(&digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner: Vec<u8> = block.iter().map(|byte| byte ^ 0x36).chain(data.iter().copied()).collect();
    let outer: Vec<u8> = block.iter().map(|byte| byte ^ 0x5c).chain(digest(&inner)).collect();
    digest(&outer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: [u8; 16], expected: &str) {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected);
    }

    #[test]
    fn known_digests() {
        check(digest(b""), "d41d8cd98f00b204e9800998ecf8427e");
        check(digest(b"The quick brown fox jumps over the lazy dog"), "9e107d9d372bb6826bd81d3542a419d6");
        check(digest(&[b'a'; 120]), "5f61c0ccad4cac44c75ff505e1f1e537");
        check(keyed(b"key", b"The quick brown fox jumps over the lazy dog"), "80070713463e7749b90c2dc24911e275");
    }
}
