//! The way in for fuzzers.

use crate::context::Context;
use crate::error::FORMAT_VERSION;
use crate::intake::{Intake, LineReader};
use crate::load::load_bytes;
use crate::migrate::migrate;
use crate::tree::EntryTree;

/// Loads arbitrary bytes as a session, walks and projects it. For fuzzing: must never panic or hang.
pub fn fuzz_load(bytes: &[u8]) {
    let Ok(header) = Intake::default().header(&mut LineReader::new(bytes, 0)) else { return };
    let version = header.map_or(FORMAT_VERSION, |header| header.version);
    let mut content = Vec::new();
    if version < FORMAT_VERSION {
        if migrate(LineReader::new(bytes, 0), version, &mut content).is_err() {
            return;
        }
    } else {
        content.extend_from_slice(bytes);
    }
    let Ok(loaded) = load_bytes(content.into()) else { return };
    exercise(&loaded.tree);
}

fn exercise(tree: &EntryTree) {
    let leaf = tree.end;
    let context = Context::build(tree, leaf, &Context::default());
    let n_planned = context.sources().len();
    assert!(context.messages(tree).len() <= n_planned);
    assert_eq!(context.messages(tree).len(), context.sources().len());
    assert!(tree.path(leaf).len() <= tree.len());
    let mut lines = tree.lines();
    for index in tree.indexes() {
        // Walking from every entry of a long chain would take quadratic time.
        if index < 256 {
            assert!(tree.path(Some(index)).len() <= tree.len());
        }
        assert!(lines.get(index).is_ok(), "every line the tree knows can be read back");
    }
}
