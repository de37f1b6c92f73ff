//! Images for the model: recognising them, and making them small enough.
//!
//! Types are recognised by content, never by name or label. An ordinary image is passed on byte for byte without being
//! decoded. All functions block: call them on a blocking thread.

mod normalise;
mod sniff;

pub(crate) use normalise::MAX_INPUT;
pub use normalise::{Limits, Normalised, Rules, is_ordinary, normalise, normalise_block};
pub use sniff::{ImageKind, Sniffed, sniff};
