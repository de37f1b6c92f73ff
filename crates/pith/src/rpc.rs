//! `--mode rpc`: assembles everything, serves the host, and exits.

use pith_config::Environment;
use pith_session::{Session, SessionExit, SessionParts};
use pith_tools::process::SHUTDOWN_GRACE;

use crate::cli::{self, Cli};
use crate::dialect::{Dialect, UiOptions};
use crate::lifecycle::Ending;
use crate::open::{self, OpenRequest, Shared};
use crate::outbox::WireOutbox;
use crate::program::Program;
use crate::transport::writer::FrameQueue;
use crate::transport::{finish, reader, take_stdout};
use crate::warn;

/// The longest accepted line unless the command line sets another limit.
pub const MAX_LINE: usize = 128 << 20;

/// Serves the host until it disconnects, and returns the exit code.
pub fn serve(cli: Cli, program: &Program) -> anyhow::Result<u8> {
    let dialect = dialect(&cli, program)?;
    let ui_options = ui_options(&cli, &Environment::of_process());
    let max_line = cli.max_line_bytes.unwrap_or(MAX_LINE);
    // From here on only frames reach the host.
    let stdout = take_stdout()?;
    let ending = Ending::default();
    let on_broken = {
        let ending = ending.clone();
        move || {
            warn("pith: the host has closed stdout");
            ending.host_gone();
        }
    };
    // The threads start while this one prepares the session.
    let (queue, writer) = FrameQueue::start(stdout, on_broken)?;
    let inbox = reader::start(max_line, queue.backpressure())?;
    let outbox = Box::new(WireOutbox::new(queue.clone(), dialect, ui_options));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shared = Shared::default();
    runtime.block_on(async {
        let start = open::open(&shared, OpenRequest::of_process(cli, dialect, pith_ext::Mode::Rpc)?).await?;
        ending.watch_signals();
        start.discover();
        let session = Session::new(SessionParts { on_rest: Box::new(release_memory), ..start.into_parts(outbox) });
        tokio::spawn(ending.clone().limit_when_stopped());
        let SessionExit { workbench, exit_status } = session.serve(inbox, ending.stop.clone()).await;
        ending.end_with(exit_status);
        ending.limit();
        workbench.jobs.shutdown_all(SHUTDOWN_GRACE).await;
        anyhow::Ok(())
    })?;
    queue.close();
    finish(writer);
    // The host has everything; a collector may still be slow.
    shared.end();
    // Blocked threads (stdin) end with the process.
    std::process::exit(ending.code());
}

/// Releases memory that only work needs, while pith waits for its host.
pub fn release_memory() {
    #[cfg(target_os = "linux")]
    crate::memory::release();
}

/// What the host wants to see of dialogs. Hosts of xcsh get titles only if the environment says so.
pub fn ui_options(cli: &Cli, environment: &Environment) -> UiOptions {
    UiOptions { titles: emits_titles(environment), cancels: cli.ui_cancel }
}

fn emits_titles(environment: &Environment) -> bool {
    let value = environment.get("PI_RPC_EMIT_TITLE").unwrap_or_default();
    ["1", "true", "yes", "on"].contains(&value.trim().to_ascii_lowercase().as_str())
}

/// The dialect of the flag, the variable or the program name.
pub fn dialect(cli: &Cli, program: &Program) -> anyhow::Result<&'static Dialect> {
    dialect_in(cli, &Environment::of_process(), program.dialect())
}

/// Like [`dialect`], for any environment; `default` is used if neither flag nor variable is set.
pub fn dialect_in(cli: &Cli, environment: &Environment, default: &'static Dialect) -> anyhow::Result<&'static Dialect> {
    if let Some(dialect) = cli.dialect {
        return Ok(dialect);
    }
    match environment.get("PITH_DIALECT") {
        Some(name) => cli::dialect_named(&name).map_err(anyhow::Error::msg),
        None => Ok(default),
    }
}
