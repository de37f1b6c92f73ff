//! The pith binary. Everything is in the library beside it, so that tests can serve sessions without a process each.

use std::process::ExitCode;

fn main() -> ExitCode {
    pith::main()
}
