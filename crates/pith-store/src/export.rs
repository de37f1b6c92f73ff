//! Writing a branch to a file of its own, for other programs.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::error::{FORMAT_VERSION, StoreError};
use crate::files::Replacement;
use crate::line::{Line, Members};
use crate::load::in_file_io;
use crate::store::SessionStore;
use crate::time;

impl SessionStore {
    /// Writes a header and the active branch as one chain. The file appears complete or not at all.
    pub fn export_jsonl(&self, path: &Path) -> Result<(), StoreError> {
        self.write_branch(path).map_err(in_file_io(path))
    }

    fn write_branch(&self, path: &Path) -> io::Result<()> {
        let mut out = BufWriter::new(Replacement::start(path)?);
        let header = Line::start("session")
            .member("version", &FORMAT_VERSION)
            .member("id", self.id())
            .member("timestamp", &time::to_iso(time::now()))
            .member("cwd", &self.cwd.to_string_lossy());
        out.write_all(&header.finish())?;
        let mut lines = self.tree.lines();
        let mut previous = None;
        for index in self.tree.path(self.leaf) {
            let node = self.tree.node(index);
            let line = lines.get(index)?;
            let mut scratch = Vec::new();
            match Members::read(line, &mut scratch).filter(|_| node.mended) {
                Some(mut members) => {
                    members.set("parentId", &previous);
                    members.set("timestamp", &time::to_iso(node.timestamp));
                    out.write_all(&members.to_line())?;
                }
                None => {
                    out.write_all(line)?;
                    out.write_all(b"\n")?;
                }
            }
            previous = Some(&*node.id);
        }
        out.into_inner().map_err(|error| error.into_error())?.finish()?;
        Ok(())
    }
}
