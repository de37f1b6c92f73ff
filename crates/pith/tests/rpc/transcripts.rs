//! Plays the files in `tests/transcripts`, each of which specifies one behaviour.

use std::path::Path;

use pith::embed::{Embedded, Shared};
use pith_testkit::{InProcess, transcript};

/// Serves a session in this process, as `--mode rpc` would in its own.
pub async fn serve(shared: &Shared, inside: InProcess) -> anyhow::Result<()> {
    let InProcess { program, arguments, environment, directory, stdin, stdout } = inside;
    let home = environment["HOME"].clone().into();
    let variables = environment.into_iter().collect();
    let embedded = Embedded { arguments, cwd: directory, home, variables, program: Some(program) };
    embedded.serve(shared, stdin, stdout).await
}

fn serve_alone(inside: InProcess) -> i32 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(serve(&Shared::default(), inside)).map_or(1, |()| 0)
}

#[test]
fn every_transcript_plays() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let start =
        |builder: pith_testkit::HostBuilder| builder.program(env!("CARGO_BIN_EXE_pith")).spawn_in_process(serve_alone);
    transcript::check_directory(&directory, &start);
}

#[test]
fn one_transcript_plays_against_the_program_itself() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/tool-call.jsonl");
    transcript::check(&path, &|builder| builder.program(env!("CARGO_BIN_EXE_pith")).spawn());
}
