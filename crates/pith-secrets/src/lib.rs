//! Values of credentials that pith knows, and texts without them.
//!
//! Whoever resolves a credential tells [`Secrets`]; whoever writes a text that others may read takes it through
//! [`Secrets::redact`], or through a [`Stream`] if it comes in pieces. Nothing is built before the first text. What is
//! made to be shown to others loses what merely looks like a credential too: [`mask_shapes`].

mod secrets;

mod automaton;
mod forms;
mod grams;
mod rule;
mod searcher;
mod shapes;
mod stream;

pub use rule::Rule;
pub use searcher::MASK;
pub use secrets::{Secrets, is_secret_name};
pub use shapes::{mask_shapes, shape_in};
pub use stream::Stream;
