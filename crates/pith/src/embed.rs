//! Serves sessions inside another program: any number of them, each over a reader and a writer of its own. They share
//! connections and decisions about trust, and nothing else.
//!
//! Everything works as in `--mode rpc`, except that the directory, the environment and the two streams come from the
//! caller instead of the process.

use std::io::{Read, Write};
use std::path::PathBuf;

use pith_ai::select::Defaults;
use pith_config::Environment;
use pith_resources::HOST_ANSWER_LIMIT;
use pith_session::{Session, SessionExit};
use pith_tools::process::{SHUTDOWN_GRACE, Supervisor};
use tokio_util::sync::CancellationToken;

use crate::cli::{Cli, Mode};
use crate::dialect::PI;
use crate::open::{self, OpenRequest};
use crate::outbox::WireOutbox;
use crate::rpc::{self, MAX_LINE};
use crate::transport::writer::FrameQueue;
use crate::transport::{finish, reader};

pub use crate::open::Shared;

/// A session to serve within this process.
#[derive(Clone, Debug)]
pub struct Embedded {
    /// Arguments as on the command line of `--mode rpc`.
    pub arguments: Vec<String>,
    pub cwd: PathBuf,
    pub home: PathBuf,
    pub variables: Vec<(String, String)>,
    /// The pith program, which supervises the commands of the session; without it, ending their processes is best
    /// effort.
    pub program: Option<PathBuf>,
}

impl Embedded {
    /// Serves until `input` ends, on the runtime of the caller. Returns when everything has stopped.
    pub async fn serve(
        self,
        shared: &Shared,
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
    ) -> anyhow::Result<()> {
        let cli = Cli::parse_in(Some(Mode::Rpc), self.arguments).map_err(anyhow::Error::msg)?;
        anyhow::ensure!(cli.debug.file.is_none(), "--debug is for a process of pith, not for a session in another one");
        let environment = Environment::of_variables(self.home, self.variables);
        let dialect = rpc::dialect_in(&cli, &environment, &PI)?;
        let ui_options = rpc::ui_options(&cli, &environment);
        let max_line = cli.max_line_bytes.unwrap_or(MAX_LINE);
        let stop = CancellationToken::new();
        let on_broken = {
            let stop = stop.clone();
            move || stop.cancel()
        };
        let (queue, writer) = FrameQueue::start(output, on_broken)?;
        let inbox = reader::start_on(input, max_line, queue.backpressure(), || false)?;
        let outbox = Box::new(WireOutbox::new(queue.clone(), dialect, ui_options));
        let request = OpenRequest {
            cwd: self.cwd,
            environment,
            arguments: cli,
            defaults: Defaults::default(),
            dialect,
            mode: pith_ext::Mode::Rpc,
            ask: None,
            supervisor: self.program.map(Supervisor::at),
            additional_roots: Vec::new(),
            takes_forms: false,
            is_replaceable: true,
            trust_answer_limit: Some(HOST_ANSWER_LIMIT),
            shares_thread: false,
        };
        let opened = open::open(shared, request).await?;
        opened.discover();
        let session = Session::new(opened.into_parts(outbox));
        let SessionExit { workbench, .. } = session.serve(inbox, stop).await;
        workbench.jobs.shutdown_all(SHUTDOWN_GRACE).await;
        queue.close();
        finish(writer);
        Ok(())
    }
}
