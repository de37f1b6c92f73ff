//! A session as one self-contained HTML page.
//!
//! Everything in a session is hostile input: model text, file contents, command
//! output, even ids. The page is therefore written through one type (`Html`), which
//! takes markup only from the program text and escapes everything else.

mod page;

mod export;
mod masked;

mod outline;

mod entry;
mod header;
mod navigator;
mod raw;

mod blocks;
mod call;
mod card;

mod ansi;
mod diff;
mod highlight;
mod image;
mod link;
mod markdown;
mod words;

mod html;

pub use export::{ExportError, default_name, export, remove_unfinished};
pub use masked::masked_copy;
pub use page::{Page, render};
