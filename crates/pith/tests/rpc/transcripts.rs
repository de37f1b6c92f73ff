//! The files in `tests/transcripts`, each one agreed behaviour.

use std::path::Path;

use pith::embed::{Embedded, Shared};
use pith_testkit::{Inside, transcript};

/// Serves a session in this process, as `--mode rpc` would in one of its own.
fn serve(inside: Inside) -> i32 {
    let Inside { program, arguments, environment, directory, stdin, stdout } = inside;
    let embedded = Embedded {
        arguments,
        cwd: directory,
        home: environment["HOME"].clone().into(),
        variables: environment.into_iter().collect(),
        program: Some(program),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    match runtime.block_on(embedded.serve(&Shared::default(), stdin, stdout)) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

#[test]
fn every_transcript_plays() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let start = |builder: pith_testkit::HostBuilder| builder.program(env!("CARGO_BIN_EXE_pith")).spawn_inside(serve);
    transcript::check_directory(&directory, &start);
}

#[test]
fn one_transcript_plays_against_the_program_itself() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/tool-call.jsonl");
    transcript::check(&path, &|builder| builder.program(env!("CARGO_BIN_EXE_pith")).spawn());
}
