//! Looking around: `grep`, `find` and `ls`.
//!
//! ripgrep's engine and ignore rules are linked in; no program is run. Results
//! come in the order of paths, then lines, so that the same question always
//! gets the same answer, also under a limit.

mod collate;
mod find;
mod grep;
mod listing;
mod ls;
mod matches;
mod walk;

pub use find::Find;
pub use grep::Grep;
pub use ls::Ls;
