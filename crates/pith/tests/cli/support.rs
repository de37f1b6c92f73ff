//! Runs the binary once and returns its output.

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Child, Command, Stdio};

pub use pith_testkit::Output;
use pith_testkit::{Api, ModelServer, Script, TempHome, Turn};

/// The binary under test.
pub const PITH: &str = env!("CARGO_BIN_EXE_pith");

/// A picture of one pixel.
pub const PIXEL: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0, 0, 1, 8,
    6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0,
    0xf0, 0x1f, 0, 5, 0, 1, 0xff, 0x89, 0x99, 0x3d, 0x1d, 0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

/// Starts pith in a home, with nothing of the developer's environment.
pub fn start(home: &TempHome, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Child {
    start_in(home, arguments, &[])
}

/// Starts pith with further variables.
pub fn start_in(
    home: &TempHome,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    variables: &[(&str, &str)],
) -> Child {
    let mut command = Command::new(PITH);
    command.args(arguments).env_clear().envs(home.environment()).current_dir(home.work());
    command.envs(variables.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("pith starts")
}

/// Runs pith with this on stdin, until it ends.
pub fn run_with(home: &TempHome, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>, stdin: &[u8]) -> Output {
    let mut child = start(home, arguments);
    // A pith that does not read its input may have ended already.
    let _ = child.stdin.take().expect("stdin is piped").write_all(stdin);
    finish(child)
}

/// Runs pith with an empty stdin, until it ends.
pub fn run(home: &TempHome, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    run_with(home, arguments, b"")
}

/// Waits for the end.
pub fn finish(child: Child) -> Output {
    Output::of_child(child)
}

/// A home with a model that gives these answers.
pub fn scene(turns: impl IntoIterator<Item = Turn>) -> (TempHome, ModelServer) {
    let server = ModelServer::start(Script::of(turns));
    (TempHome::for_server(&server), server)
}

/// Arguments that select the model of [`scene`].
pub fn model() -> [&'static str; 4] {
    ["--provider", Api::Anthropic.provider(), "--model", Api::Anthropic.model()]
}
