//! The pith binary. Everything is in the library beside it, so that tests can serve sessions without starting
//! processes.

use std::process::ExitCode;

fn main() -> ExitCode {
    pith::main()
}
