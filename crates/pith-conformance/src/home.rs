//! A temporary home with models, settings and a work directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::server::{Api, ModelServer};

/// The directories of one test; removed with the last clone.
#[derive(Clone)]
pub struct TempHome {
    root: Arc<tempfile::TempDir>,
    layout: &'static str,
}

/// A session file as it is on disk.
#[derive(Clone, Debug)]
pub struct SessionFile {
    pub path: PathBuf,
    /// One value per line; a line that is not JSON is kept as a string.
    pub entries: Vec<Value>,
}

impl TempHome {
    /// Creates an empty home in pi's layout, without models.
    pub fn new() -> Self {
        TempHome::with_layout(".pi")
    }

    /// Creates a home whose models are played by `server`, one provider per wire format.
    pub fn for_server(server: &ModelServer) -> Self {
        let home = TempHome::new();
        home.write_models(&server.url(), |_| {});
        home
    }

    /// Creates an empty home whose agent directory is below `layout`, such as `.xcsh`.
    pub fn with_layout(layout: &'static str) -> Self {
        let root = tempfile::Builder::new().prefix("pith-").tempdir().expect("the temporary directory is writable");
        let home = TempHome { root: Arc::new(root), layout };
        for directory in [home.home(), home.work(), home.tmp(), home.agent()] {
            fs::create_dir_all(directory).expect("a fresh directory is writable");
        }
        home
    }

    /// Writes `models.json`; `change` may alter its providers first.
    pub fn write_models(&self, url: &str, change: impl FnOnce(&mut Value)) {
        let mut models = json!({"providers": models(url)});
        change(&mut models);
        self.write(&self.agent().join("models.json"), models.to_string().as_bytes());
    }

    /// Writes the user's `settings.json`.
    pub fn write_settings(&self, settings: &Value) {
        self.write(&self.agent().join("settings.json"), settings.to_string().as_bytes());
    }

    /// Writes a file; a relative path starts at the work directory.
    pub fn write_file(&self, path: &str, content: impl AsRef<[u8]>) {
        self.write(&self.work().join(path), content.as_ref());
    }

    /// Writes a file below the agent directory.
    pub fn write_agent_file(&self, path: &str, content: impl AsRef<[u8]>) {
        self.write(&self.agent().join(path), content.as_ref());
    }

    /// Reads a file of the work directory.
    pub fn read_file(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.work().join(path)).ok()
    }

    fn write(&self, path: &Path, content: &[u8]) {
        let parent = path.parent().expect("a file is in a directory");
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(path, content))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// `HOME`.
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// The directory the host is started in.
    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// `TMPDIR`.
    pub fn tmp(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    /// The agent directory, `~/.pi/agent`.
    pub fn agent(&self) -> PathBuf {
        self.home().join(self.layout).join("agent")
    }

    /// The environment of a host, with nothing of the developer's.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let path = |path: PathBuf| path.to_str().expect("temporary paths are UTF-8").to_owned();
        BTreeMap::from([
            ("HOME".to_owned(), path(self.home())),
            ("TMPDIR".to_owned(), path(self.tmp())),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("TERM".to_owned(), "dumb".to_owned()),
            ("NO_COLOR".to_owned(), "1".to_owned()),
            ("PI_OFFLINE".to_owned(), "1".to_owned()),
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ])
    }

    /// Returns every session file, oldest name first.
    pub fn sessions(&self) -> Vec<SessionFile> {
        let mut paths = Vec::new();
        collect(&self.agent().join("sessions"), &mut paths);
        paths.sort();
        paths.into_iter().map(|path| SessionFile::read(&path)).collect()
    }
}

impl Default for TempHome {
    fn default() -> Self {
        TempHome::new()
    }
}

impl SessionFile {
    /// Reads a file as it is now.
    pub fn read(path: &Path) -> Self {
        let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let entries = lines.map(|line| {
            serde_json::from_slice(line).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(line).into_owned()))
        });
        SessionFile { path: path.to_owned(), entries: entries.collect() }
    }

    /// The messages of the file, in file order.
    pub fn messages(&self) -> Vec<&Value> {
        self.entries.iter().filter(|entry| entry["type"] == "message").map(|entry| &entry["message"]).collect()
    }
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            paths.push(path);
        }
    }
}

/// One provider per wire format, each with a reasoning model; the first also has a plain one.
fn models(url: &str) -> Value {
    let cost = json!({"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75});
    let mut providers = json!({});
    for api in Api::ALL {
        providers[api.provider()] = json!({
            "baseUrl": format!("{url}{}", api.base_path()), "api": api.name(), "apiKey": "mock-key",
            "models": [{"id": api.model(), "name": format!("Mock {}", api.label()), "reasoning": true,
                "input": ["text", "image"], "contextWindow": 200_000, "maxTokens": 16_384, "cost": cost}]});
    }
    let plain = json!({"id": "plain-mock", "name": "Mock plain", "reasoning": false, "input": ["text"],
        "contextWindow": 32_000, "maxTokens": 4_096, "cost": cost});
    let list = providers[Api::Anthropic.provider()]["models"].as_array_mut().expect("just written as a list");
    list.push(plain);
    providers
}
