//! Extensions in the real binary.

mod cli;
