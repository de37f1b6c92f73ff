//! Builds a session for a test that needs more than the default one.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pith_agent::{Tool, ToolContext, ToolOutput};
use pith_config::Settings;
use serde_json::{Map, Value};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::extensions::{Engine, Extensions, Loaded, Log};
use super::frames::Frames;
use super::harness::{Harness, Surroundings};
use super::model::{Script, ScriptedModel};
use super::session::{self, Plan, SessionOptions};
use super::tools::TestTool;

/// A change that a test makes to a default.
type Change<T> = Box<dyn FnOnce(&mut T)>;

/// Collects the parts of a session.
pub struct Builder {
    script: Script,
    frames: Frames,
    is_saved: bool,
    window: u64,
    settings: Settings,
    options: Vec<Change<SessionOptions>>,
    tools: Vec<Arc<dyn Tool>>,
    extensions: Vec<(String, String)>,
    late: Vec<(String, String)>,
}

impl Builder {
    pub fn new(script: impl Into<Script>) -> Self {
        Builder {
            script: script.into(),
            frames: Frames::default(),
            is_saved: false,
            window: 200_000,
            settings: Settings::default(),
            options: Vec::new(),
            tools: Vec::new(),
            extensions: Vec::new(),
            late: Vec::new(),
        }
    }

    /// Records frames in a list that the test holds as well.
    pub fn recording(mut self, frames: Frames) -> Self {
        self.frames = frames;
        self
    }

    /// Keeps the session in a file of a temporary directory instead of in memory.
    pub fn saved(mut self) -> Self {
        self.is_saved = true;
        self
    }

    /// Gives the models a context window of so many tokens.
    pub fn window(mut self, tokens: u64) -> Self {
        self.window = tokens;
        self
    }

    /// Changes the settings the session is started with.
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Changes the options that follow from the settings, the retry policy among them.
    pub fn options(mut self, change: impl FnOnce(&mut SessionOptions) + 'static) -> Self {
        self.options.push(Box::new(change));
        self
    }

    /// Adds a tool. It is active from the start.
    pub fn tool<F>(
        mut self,
        name: &str,
        work: impl Fn(Map<String, Value>, ToolContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ToolOutput> + Send + 'static,
    {
        self.tools.push(Arc::new(TestTool::new(name, work)));
        self
    }

    /// Adds a tool that the test implements itself.
    pub fn own_tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds an extension: a file name and its TypeScript or JavaScript text.
    pub fn extension(mut self, name: &str, text: &str) -> Self {
        self.extensions.push((name.to_owned(), text.to_owned()));
        self
    }

    /// Adds an extension that is loaded only by [`Harness::finish_loading`]. The session starts without it.
    pub fn late_extension(mut self, name: &str, text: &str) -> Self {
        self.late.push((name.to_owned(), text.to_owned()));
        self
    }

    /// Opens a session without extensions.
    pub fn open(self) -> Harness {
        assert!(self.extensions.is_empty() && self.late.is_empty(), "extensions have to be loaded: use start().await");
        self.assemble(tempfile::tempdir().expect("a temporary directory"), None)
    }

    /// Loads the extensions and opens the session.
    pub async fn start(self) -> Harness {
        if self.extensions.is_empty() && self.late.is_empty() {
            return self.open();
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().canonicalize().expect("the directory exists");
        let extensions = Extensions::write(&path, &self.extensions, &self.late, &self.frames.activity);
        let loaded = extensions.load().await;
        self.assemble(directory, Some((extensions, loaded)))
    }

    fn assemble(self, directory: TempDir, extensions: Option<(Extensions, Loaded)>) -> Harness {
        let frames = self.frames;
        let mut options = session::options(&self.settings);
        self.options.into_iter().for_each(|change| change(&mut options));
        // Longer than any retry delay and any grace period after an abort.
        let timeout = options.retry.max_delay + Duration::from_secs(6);
        let model = ScriptedModel::new(self.script, frames.activity.clone());
        let (finish_loading, late) = oneshot::channel();
        let (finish_loading, late) =
            if self.late.is_empty() { (None, None) } else { (Some(finish_loading), Some(late)) };
        let log = extensions.as_ref().map_or_else(Log::default, |(extensions, _)| extensions.log.clone());
        let engine = extensions.as_ref().map(|(_, loaded)| Engine(loaded.handle.clone()));
        let plan = Plan {
            directory: directory.path().canonicalize().expect("the directory exists"),
            is_saved: self.is_saved,
            settings: self.settings,
            options,
            window: self.window,
            tools: self.tools,
            model: model.clone(),
            extensions,
            late,
        };
        let session = session::open(plan, frames.clone());
        Harness::over(session, Surroundings { model, frames, log, engine, late: finish_loading, timeout, directory })
    }
}
