//! Extensions given as text: written to files, loaded into a real engine, and kept in step with the test's clock.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pith_ext::{
    ExtensionConfig, ExtensionHandle, ExtensionHost, ExtensionSource, FromExtension, Limits, Loading, Mode, Output,
    Requests, Surroundings,
};

use super::clock;
use super::frames::Activity;

/// What extensions have printed with `console.log`, line by line. Clones share it.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<String>>);

impl Log {
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).lines().map(str::to_owned).collect()
    }
}

/// The extensions of a test.
pub struct Extensions {
    config: ExtensionConfig,
    /// Loaded before the session starts.
    early: Vec<ExtensionSource>,
    /// Loaded when the test says so.
    late: Vec<ExtensionSource>,
    pub log: Log,
}

/// Extensions loaded into a running engine.
pub struct Loaded {
    pub handle: ExtensionHandle,
    pub requests: Requests,
    /// Requests they made while they were loaded.
    pub early: Vec<FromExtension>,
}

impl Extensions {
    /// Writes names and texts to files of a directory.
    pub fn write(directory: &Path, early: &[(String, String)], late: &[(String, String)], activity: &Activity) -> Self {
        let place = directory.join("extensions");
        std::fs::create_dir_all(&place).expect("a directory for extensions");
        let source = |(name, text): &(String, String)| {
            let path = place.join(name);
            std::fs::write(&path, text).expect("an extension's file");
            ExtensionSource::new(path.display().to_string(), "cli", "temporary")
        };
        let log = Log::default();
        let output = {
            let (log, activity) = (log.clone(), activity.clone());
            Output::new(move |text| {
                log.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
                activity.note();
            })
        };
        let config = ExtensionConfig {
            surroundings: surroundings(directory.to_owned()),
            builtin_tools: Vec::new(),
            limits: Limits::default(),
            output,
            launcher: None,
            environment: None,
            arguments: Vec::new(),
        };
        Extensions { config, early: early.iter().map(source).collect(), late: late.iter().map(source).collect(), log }
    }

    pub fn config(&self) -> ExtensionConfig {
        self.config.clone()
    }

    /// All of them, in the order in which their handlers are called.
    pub fn sources(&self) -> Vec<ExtensionSource> {
        [self.early.clone(), self.late.clone()].concat()
    }

    /// Starts an engine and loads the extensions the session starts with. They are bound unless more are loaded later.
    pub async fn load(&self) -> Loaded {
        let (handle, mut requests) = ExtensionHost::start(self.config.clone());
        let mut early = Vec::new();
        let _held = clock::hold();
        {
            let loading = self.load_into(&handle);
            tokio::pin!(loading);
            loop {
                tokio::select! {
                    biased;
                    Some(request) = requests.recv() => early.push(request),
                    () = &mut loading => break,
                }
            }
        }
        Loaded { handle, requests, early }
    }

    async fn load_into(&self, handle: &ExtensionHandle) {
        let report = handle.load(&self.early, Loading::Add, &self.config.surroundings).await;
        assert_eq!(report.errors, [], "the test's extensions load");
        if self.late.is_empty() {
            handle.bind(&self.config.surroundings, &Default::default()).await;
        }
    }
}

fn surroundings(cwd: PathBuf) -> Surroundings {
    Surroundings {
        agent_dir: cwd.join("agent"),
        cwd,
        mode: Mode::Rpc,
        has_ui: true,
        trust_has_ui: false,
        config_dir_name: ".pi".to_owned(),
        version: "0.87.1".to_owned(),
        color: false,
    }
}

/// The engine's thread, for the clock.
#[derive(Clone)]
pub struct Engine(pub ExtensionHandle);

impl Engine {
    /// Returns when the engine has handled everything it was sent before. No time passes meanwhile.
    pub async fn catch_up(&self) {
        if self.0.is_alive() {
            let _held = clock::hold();
            // Asks about an unknown command; the answer comes after everything sent before.
            self.0.complete_arguments("nobody's command", "").await;
        }
    }
}
