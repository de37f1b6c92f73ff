//! Which servers of a trusted project the user has accepted: a pulled commit must not start a new program.

use std::path::PathBuf;

use pith_config::{ProjectTrust, locked_file};
use serde_json::{Value, json};
use tracing::warn;

use super::entry::{ServerConfig, Transport};
use super::places::Places;
use super::sources::{Given, read_all};
use crate::digest;

/// The accepted servers of one project, as digests of what they start.
pub struct KnownServers {
    file: PathBuf,
    project: String,
    /// `None` if nothing was accepted yet.
    digests: Option<Vec<String>>,
}

impl KnownServers {
    /// Reads what was accepted in a directory.
    pub fn of(places: &Places) -> Self {
        let file = places.agent_dir.path().join("pith-mcp/projects.json");
        let cwd = places.cwd.canonicalize().unwrap_or_else(|_| places.cwd.clone());
        let project = cwd.to_string_lossy().into_owned();
        let digests = match locked_file::read(&file) {
            Ok(read) => read
                .as_ref()
                .and_then(|read| read.get(&project)?.as_array())
                .map(|digests| digests.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
            Err(error) => {
                warn!(target: "pith::mcp", ?file, %error, "the accepted servers cannot be read; none counts as accepted");
                Some(Vec::new())
            }
        };
        KnownServers { file, project, digests }
    }

    /// Whether the project's servers were accepted at some time.
    pub fn has_project(&self) -> bool {
        self.digests.is_some()
    }

    /// Whether this very server was accepted.
    pub fn knows(&self, server: &ServerConfig) -> bool {
        self.digests.iter().flatten().any(|digest| *digest == digest_of(server))
    }

    /// Accepts exactly these servers.
    pub fn remember(&self, servers: &[ServerConfig]) {
        let digests: Vec<String> = servers.iter().map(digest_of).collect();
        if self.digests.as_ref() == Some(&digests) {
            return;
        }
        let directory = self.file.parent().map_or(Ok(()), pith_config::create_private_directory);
        let written = directory.and_then(|()| {
            locked_file::update(&self.file, |projects| {
                projects.insert(self.project.clone(), json!(digests));
            })
        });
        if let Err(error) = written {
            warn!(target: "pith::mcp", file = ?self.file, %error, "the accepted servers were not saved");
        }
    }

    /// Accepts exactly the servers that the files of a project name now.
    pub fn accept(places: &Places) {
        let given = Given { is_approved: true, ..Given::default() };
        KnownServers::of(places).remember(read_all(places, &given, ProjectTrust::Given).accepted());
    }
}

/// Variables and the directory count, too: they decide which program a name means and what it loads. So do headers,
/// which may send a secret of the user's environment somewhere.
fn digest_of(server: &ServerConfig) -> String {
    let what = match &server.transport {
        Transport::Stdio(stdio) => json!([stdio.command, stdio.args, stdio.env, stdio.cwd]),
        Transport::Remote(remote) => json!([remote.url, remote.headers, remote.bearer]),
    };
    digest::hex(&[&server.name, &what.to_string()])
}
