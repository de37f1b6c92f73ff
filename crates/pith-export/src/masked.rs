//! The session file that a page is made of: without secrets.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use pith_secrets::{Secrets, Stream};
use tempfile::NamedTempFile;

use crate::export::ExportError;

const PIECE: usize = 64 << 10;

/// Copies a session file without known secrets. A page shows the file and has all of it inside, so both come from the
/// copy, which only this user can read and which is gone when it is dropped.
pub fn masked_copy(file: &Path, secrets: &Arc<Secrets>) -> Result<NamedTempFile, ExportError> {
    copy(file, secrets).map_err(|error| ExportError::Read { path: file.to_owned(), error })
}

fn copy(file: &Path, secrets: &Arc<Secrets>) -> io::Result<NamedTempFile> {
    let mut session = File::open(file)?;
    let mut copy = NamedTempFile::new()?;
    let mut stream = Stream::new(Some(secrets.clone()));
    let mut piece = vec![0; PIECE];
    let mut written = Ok(());
    loop {
        let n_bytes = session.read(&mut piece)?;
        let mut write = |bytes: &[u8]| {
            if written.is_ok() {
                written = copy.write_all(bytes);
            }
        };
        if n_bytes == 0 {
            stream.finish(&mut write);
            break;
        }
        stream.push(&piece[..n_bytes], &mut write);
    }
    written.map(|()| copy)
}
