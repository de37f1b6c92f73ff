//! How a connection is opened: to a program of its own, to one that other sessions use, or to an address.

use std::sync::Arc;

use pith_tools::process::Jobs;

use super::{Connection, Counterpart};
use crate::callers::Callers;
use crate::changes::{Changes, listen};
use crate::config::{ServerConfig, Transport};
use crate::handler::Handler;
use crate::handshake::{Era, Service};
use crate::http;
use crate::inputs::Inputs;
use crate::launch::{Launch, Prepared};
use crate::pool::Kind;
use crate::program::Program;
use crate::remarks::Remarks;
use crate::state::Failure;

/// Lines of a server's log that are kept.
const MAX_LOG: usize = 200;

impl Connection {
    /// Connects to a server: starts its program if it has one that does not run for another session, and shakes hands.
    /// What it spoke last is tried first.
    pub async fn open(
        config: &ServerConfig,
        launch: &Launch,
        inputs: Arc<Inputs>,
        last: Option<Era>,
    ) -> Result<Arc<Connection>, Failure> {
        let stdio = match &config.transport {
            Transport::Stdio(stdio) => stdio,
            Transport::Remote(remote) => {
                let target = http::Target::resolve(config, remote, launch).await?;
                let (remarks, side) = (target.remarks.clone(), ClientSide::new(inputs));
                let connecting = http::connect(target, config, remote.is_sse, last, || side.handler.clone());
                let (service, session) = connecting.await?;
                return Ok(side.connection(service, Counterpart::Address(session), remarks, config));
            }
        };
        let prepared = launch.prepare(config, stdio).await?;
        // A program in a sandbox is held to what its session may do.
        let shared = launch.pool.as_ref().filter(|_| launch.sandbox.get().is_none());
        let Some((pool, jobs)) = shared else {
            return Connection::start(prepared, config, launch, &launch.jobs, inputs, last).await;
        };
        let kind = Kind::of(config, &prepared.command, launch, &inputs);
        let start = Connection::start(prepared, config, launch, jobs, inputs.clone(), last);
        pool.open(kind, &inputs, start).await
    }

    async fn start(
        prepared: Prepared,
        config: &ServerConfig,
        launch: &Launch,
        jobs: &Arc<Jobs>,
        inputs: Arc<Inputs>,
        last: Option<Era>,
    ) -> Result<Arc<Connection>, Failure> {
        let program = Program::start(&config.name, prepared, launch, jobs)?;
        let side = ClientSide::new(inputs);
        let service = program.shake_hands(config, last, || side.handler.clone()).await?;
        let remarks = program.remarks.clone();
        Ok(side.connection(service, Counterpart::Program(program), remarks, config))
    }
}

/// What a connection and its handler have in common.
struct ClientSide {
    handler: Handler,
}

impl ClientSide {
    fn new(inputs: Arc<Inputs>) -> Self {
        let callers = Arc::<Callers>::default();
        callers.join(&inputs);
        let (progress, changes, log) = (Arc::default(), Changes::new(0), Remarks::ring(MAX_LOG));
        ClientSide { handler: Handler { inputs, callers, progress, changes, log } }
    }

    fn connection(
        self,
        service: Service,
        counterpart: Counterpart,
        remarks: Remarks,
        config: &ServerConfig,
    ) -> Arc<Connection> {
        let (peer, Handler { callers, progress, changes, log, .. }) = (service.peer().clone(), self.handler);
        Arc::new(Connection {
            listening: tokio::spawn(listen(peer.clone(), changes.clone())).abort_handle(),
            peer,
            service: tokio::sync::Mutex::new(Some(service)),
            progress,
            changes,
            callers,
            counterpart,
            remarks,
            log,
            timeout: config.timeout,
        })
    }
}
