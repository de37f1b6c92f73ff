//! `export_html`: writes the session as a page, from its file, in a background task.

use std::path::{Path, PathBuf};

use pith_export::{ExportError, Page};
use pith_protocol::answers::Exported;
use pith_protocol::commands::ExportHtml;
use pith_protocol::{CommandError, ErrorCode};
use pith_store::EntryTree;

use crate::jobs::{Job, JobEnd};
use crate::reply::Reply;
use crate::session::Session;

impl Session {
    pub(crate) fn export_html(&mut self, call: ExportHtml, reply: Reply<ExportHtml>) {
        let file = match (self.store.path(), self.store.is_saved()) {
            (None, _) => return self.answer(reply, Err(failure(&ExportError::InMemory))),
            (Some(_), false) => return self.answer(reply, Err(failure(&ExportError::Nothing))),
            (Some(file), true) => file.to_owned(),
        };
        let target = self.export_target(call.output_path, &file);
        let leaf = self.store.leaf().map(str::to_owned);
        let secrets = self.models.registry().secrets();
        let (prompt, tools) = (self.project.prompt().clone(), self.tools.active().specs().clone());
        self.jobs.spawn_blocking(Job::Background, move || {
            let answer = pith_export::masked_copy(&file, &secrets).map_err(|error| failure(&error));
            let answer = answer.and_then(|copy| {
                let (tree, _) = EntryTree::open(copy.path()).map_err(CommandError::from)?;
                let page = Page {
                    tree: &tree,
                    leaf: leaf.as_deref(),
                    system_prompt: Some(&secrets.redact(&prompt)),
                    tools: &tools,
                    app_version: env!("CARGO_PKG_VERSION"),
                };
                pith_export::export(&page, &target).map_err(|error| failure(&error))
            });
            JobEnd::Exported {
                reply,
                answer: answer.map(|()| Exported { path: target.to_string_lossy().into_owned() }),
            }
        });
    }

    /// Resolves the path: relative ones start at the session's directory, `~` is the user's home.
    fn export_target(&self, path: Option<String>, file: &Path) -> PathBuf {
        let cwd = self.store.cwd();
        match path.filter(|path| !path.is_empty()) {
            Some(path) => self.workbench().base.resolve(&path),
            None => {
                let stem = file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
                cwd.join(pith_export::default_name(self.options.export_app, &stem))
            }
        }
    }
}

fn failure(error: &ExportError) -> CommandError {
    let code = match error {
        ExportError::InMemory | ExportError::Nothing => ErrorCode::NothingThere,
        _ => ErrorCode::Io,
    };
    CommandError::new(code, error.to_string())
}
