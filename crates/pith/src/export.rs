//! `--export`: writes a session file as a page, without a session.

use std::path::{Path, PathBuf};

use pith_config::Environment;
use pith_export::Page;
use pith_secrets::Secrets;
use pith_store::EntryTree;

use crate::dialect::Dialect;
use crate::{secrets_file, show};

/// Writes the page and prints its path.
pub fn page(file: &Path, target: Option<&String>, dialect: &Dialect) -> anyhow::Result<u8> {
    if !file.exists() {
        anyhow::bail!("File not found: {}", file.display());
    }
    let _registry = secrets_file::learn_without_session(dialect, &Environment::of_process())?;
    let copy = pith_export::masked_copy(file, Secrets::of_process())?;
    let (tree, report) = EntryTree::open(copy.path())?;
    if let Some(report) = report {
        crate::warn(&format!("Warning: {}", report.message));
    }
    let stem = file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let target = target.map_or_else(|| pith_export::default_name(dialect.name, &stem).into(), PathBuf::from);
    // The page is first written next to its final path, so the directory has to be explicit.
    let target = std::path::absolute(target)?;
    pith_export::export(&Page::of_file(&tree, env!("CARGO_PKG_VERSION"))?, &target)?;
    show(&format!("Exported to: {}\n", target.display()))
}
