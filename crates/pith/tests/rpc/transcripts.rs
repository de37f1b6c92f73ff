//! The files in `tests/transcripts`, each one agreed behaviour.

use std::path::Path;

use pith_testkit::transcript;

#[test]
fn every_transcript_plays() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    transcript::check_directory(&directory, Path::new(env!("CARGO_BIN_EXE_pith")));
}
