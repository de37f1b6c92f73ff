//! The pith binary.
fn main() {}
