//! Makes the recorder of checkpoints, as the settings configure it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pith_checkpoints::{Bounds, Mode, Recorder, StorePlace};
use pith_config::settings::{CheckpointMode, Checkpoints};
use pith_config::{AgentDir, Environment};
use pith_sandbox::policy::Places;
use pith_tools::sandbox::Sandbox;

/// Where checkpoints are, below the agent directory.
const DIRECTORY: &str = "pith-checkpoints";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the recorder of a directory: the one there was, if it does what is wanted. Nothing is read for it.
pub(super) fn recorder(
    cwd: &Path,
    settings: &Checkpoints,
    agent_dir: &AgentDir,
    environment: &Environment,
    sandbox: Option<&Sandbox>,
    before: Option<&Arc<Recorder>>,
) -> Arc<Recorder> {
    let mode = match settings.mode {
        CheckpointMode::Off => Mode::Off,
        CheckpointMode::Files => Mode::Files,
        CheckpointMode::Workspace => Mode::Workspace,
    };
    let megabytes = |n: u64| n.saturating_mul(1 << 20);
    let bounds = Bounds {
        max_files: usize::try_from(settings.max_files).unwrap_or(usize::MAX),
        max_file: megabytes(settings.max_file_mb),
        max_total: megabytes(settings.max_total_mb),
        max_age: DAY.saturating_mul(u32::try_from(settings.max_age_days).unwrap_or(u32::MAX)),
    };
    let mut unwalked = Vec::new();
    if mode == Mode::Workspace {
        unwalked.push(agent_dir.path().to_owned());
        match sandbox.and_then(Sandbox::policy) {
            Some(policy) => unwalked.extend(policy.protected.iter().cloned()),
            None => {
                let root = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
                let home = Some(environment.home().to_owned());
                let agent_dir = agent_dir.path().to_owned();
                let places = Places { cwd: root.clone(), home, agent_dir, temp: root.clone() };
                unwalked.extend(pith_sandbox::protected_below(&[root], &places, false));
            }
        }
    }
    let place = StorePlace { root: agent_dir.path().join(DIRECTORY), cwd: cwd.to_owned(), bounds, unwalked };
    match before.filter(|before| before.is_for(&place, mode)) {
        Some(before) => before.clone(),
        None => Arc::new(Recorder::new(place, mode)),
    }
}
