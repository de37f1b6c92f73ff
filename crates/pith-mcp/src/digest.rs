//! SHA-256 of texts, for names that must not collide and files that must be told apart.

use ring::digest::{Context, SHA256};

/// The digest of texts, kept apart by a byte that none of them contains, as hexadecimal digits.
pub fn hex(texts: &[&str]) -> String {
    let mut context = Context::new(&SHA256);
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            context.update(&[0]);
        }
        context.update(text.as_bytes());
    }
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
