//! Choosing a model and how hard it thinks: by name, by scope, at start-up, and by cycling.
//!
//! Everything here looks at a [`Registry`](crate::registry::Registry) and returns
//! a decision; only [`start`] hands a key given on the command line to it.

mod level;
mod named;
mod pattern;
mod scope;
mod start;

pub use level::{after_switch, invalid_level, next_level, parse_level};
pub use named::{Choice, by_name};
pub use scope::{Cycled, Scope, Scoped, next_model, resolve_scope};
pub use start::{Defaults, Recorded, Start, Wanted, start};

#[cfg(test)]
mod tests;
