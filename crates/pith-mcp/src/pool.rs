//! Programs that sessions of one process share (`mcp.share`). Each runs until the last session that uses it has left.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use pith_tools::process::{CommandLine, Jobs, Supervisor};
use tokio::runtime;

use crate::config::ServerConfig;
use crate::connection::Connection;
use crate::inputs::Inputs;
use crate::launch::Launch;
use crate::state::Failure;

/// The programs of a process. Clones are the same ones.
#[derive(Clone, Default)]
pub struct Pool(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// What the programs run in: none of them belongs to a session.
    jobs: OnceLock<Arc<Jobs>>,
    places: Mutex<Vec<Arc<Place>>>,
}

/// A program that runs, is being started or has ended.
struct Place {
    kind: Kind,
    /// Held while the program is started, so that those who want it, too, wait for it.
    running: tokio::sync::Mutex<Weak<Connection>>,
}

/// Everything that a program can notice. Sessions for which it is equal can share one.
#[derive(PartialEq)]
pub struct Kind {
    config: ServerConfig,
    program: PathBuf,
    arguments: Vec<OsString>,
    cwd: PathBuf,
    environment: Vec<(OsString, OsString)>,
    roots: Vec<PathBuf>,
    has_user: bool,
    has_model: bool,
    /// A connection lives as long as the runtime that opened it.
    runtime: runtime::Id,
}

impl Kind {
    pub fn of(config: &ServerConfig, command: &CommandLine, launch: &Launch, inputs: &Inputs) -> Self {
        let mut environment = command.environment.clone();
        environment.sort();
        Kind {
            config: config.clone(),
            program: command.program.clone(),
            arguments: command.arguments.clone(),
            cwd: command.cwd.clone(),
            environment,
            roots: [&launch.cwd].into_iter().chain(&launch.additional_roots).cloned().collect(),
            has_user: inputs.questions.has_user(),
            has_model: inputs.sampling.is_some(),
            runtime: runtime::Handle::current().id(),
        }
    }
}

impl Pool {
    /// What the programs run in; the first session says who guards them.
    pub fn jobs(&self, supervisor: Option<&Supervisor>) -> Arc<Jobs> {
        self.0.jobs.get_or_init(|| Arc::new(Jobs::new(supervisor.cloned(), false))).clone()
    }

    /// Returns the connection to a program of this kind, starting it if none runs.
    pub async fn open(
        &self,
        kind: Kind,
        inputs: &Arc<Inputs>,
        start: impl Future<Output = Result<Arc<Connection>, Failure>>,
    ) -> Result<Arc<Connection>, Failure> {
        let place = self.place(kind);
        let mut running = place.running.lock().await;
        let found = running.upgrade().filter(|connection| !connection.is_closed() && connection.join(inputs));
        if let Some(connection) = found {
            return Ok(connection);
        }
        let connection = start.await?;
        *running = Arc::downgrade(&connection);
        Ok(connection)
    }

    fn place(&self, kind: Kind) -> Arc<Place> {
        let mut places = self.0.places.lock().unwrap_or_else(PoisonError::into_inner);
        // One that cannot be locked is being started.
        places.retain(|place| place.running.try_lock().map_or(true, |running| running.strong_count() > 0));
        if let Some(place) = places.iter().find(|place| place.kind == kind) {
            return place.clone();
        }
        let place = Arc::new(Place { kind, running: tokio::sync::Mutex::default() });
        places.push(place.clone());
        place
    }
}
