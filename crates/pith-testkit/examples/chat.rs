//! Plays one prompt against the scripted model and shows the frames.
//!
//! `cargo build -p pith && cargo run -q -p pith-testkit --example chat [PATH-OF-PITH]`

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;

use pith_testkit::{Api, Host, ModelServer, Script, TempHome, Turn};
use serde_json::json;

fn main() -> io::Result<()> {
    // Examples are built one directory below the binaries.
    let beside = env::current_exe()?.parent().and_then(|examples| examples.parent()).map(|path| path.join("pith"));
    let program = env::args_os().nth(1).map(PathBuf::from).or(beside).filter(|path| path.exists());
    let Some(program) = program else {
        return Err(io::Error::new(io::ErrorKind::NotFound, "build pith first, or give its path"));
    };
    let server = ModelServer::start(Script::of([
        Turn::call("bash", json!({"command": "echo The answer is $((6 * 7))."})),
        Turn::text("It says 42."),
    ]));
    let home = TempHome::for_server(&server);
    let mut host = Host::builder(program).rpc(Api::Anthropic).arg("--no-session").home(&home).spawn();
    host.send(json!({"id": "1", "type": "prompt", "message": "What is the answer?"}));
    host.wait_type("agent_settled");
    let mut out = io::stdout().lock();
    for frame in host.finish().0 {
        writeln!(out, "{frame}")?;
    }
    Ok(())
}
