//! Which words of code are comments, strings, numbers, keywords and names, for whoever gives them colours.
//!
//! One small scanner with a table of languages. Grammars for each of them take megabytes, more than the rest of an idle
//! pith; what a reader gains from them in an answer of a model is small.

mod languages;
mod lines;
mod scanner;

pub use languages::{Language, by_name, by_path};
pub use lines::Lines;
pub use scanner::{Token, tokens};
