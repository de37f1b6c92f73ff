//! Data for the script: the session file itself and the shape of its tree.

use std::io::{self, Write as _};

use flate2::{Compression, write::GzEncoder};
use pith_store::EntryTree;

use crate::html::Html;
use crate::outline::Outline;

/// Writes every line of the session, byte for byte, packed and in base64: a browser reads past it before the page is
/// complete.
pub(crate) fn session_file(html: &mut Html<'_>, tree: &EntryTree) -> io::Result<()> {
    html.markup("<script type=\"application/octet-stream\" id=raw>")?;
    html.base64(|out| {
        let mut packed = GzEncoder::new(out, Compression::fast());
        packed.write_all(&tree.header().line)?;
        packed.write_all(b"\n")?;
        let mut reader = tree.reader();
        for position in 0..tree.len() {
            // The entry's section says that it cannot be read.
            let Ok(entry) = reader.read(position) else { continue };
            packed.write_all(entry.line)?;
            packed.write_all(b"\n")?;
        }
        packed.finish().map(|_| ())
    })?;
    html.markup("</script>\n")
}

/// Writes the parent of each entry and the active branch, numbers only.
pub(crate) fn shape(html: &mut Html<'_>, outline: &Outline<'_>) -> io::Result<()> {
    html.markup("<script type=\"application/json\" id=tree>{\"parents\":[")?;
    for (position, row) in outline.rows.iter().enumerate() {
        html.markup(if position == 0 { "" } else { "," })?;
        match row.entry.parent {
            Some(parent) => html.number(parent)?,
            None => html.markup("-1")?,
        }
    }
    html.markup("],\"branch\":[")?;
    for (at, &position) in outline.branch.iter().enumerate() {
        html.markup(if at == 0 { "" } else { "," })?;
        html.number(position)?;
    }
    html.markup("]}</script>\n")
}
