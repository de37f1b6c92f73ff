//! Writes a session file as a page: `export <session.jsonl> [out.html]`.

use std::error::Error;
use std::path::PathBuf;

use pith_export::{Page, default_name, export};
use pith_store::EntryTree;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let session = arguments.next().ok_or("usage: export <session.jsonl> [out.html]")?;
    let stem = session.file_stem().unwrap_or_default().to_string_lossy();
    let target = arguments.next().unwrap_or_else(|| default_name("pi", &stem).into());
    let (tree, _) = EntryTree::open(&session)?;
    let page = Page::of_file(&tree, env!("CARGO_PKG_VERSION"))?;
    Ok(export(&page, &target)?)
}
