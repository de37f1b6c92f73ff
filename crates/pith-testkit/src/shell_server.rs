//! An MCP server that is a shell script, for tests of everything around a server. Odd servers are those of `pith-mcp`.

use std::fs;
use std::path::{Path, PathBuf};

/// Writes the server into a directory and returns its path; `sh` runs it. What it offers, and what it notes in files
/// beside it, stands at its beginning.
pub fn shell_server(directory: &Path) -> PathBuf {
    let path = directory.join("server.sh");
    fs::write(&path, include_str!("shell_server.sh")).expect("the directory is writable");
    path
}
