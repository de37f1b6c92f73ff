//! Shell commands of the host that extensions handle (`user_bash`): they may run them elsewhere, or return the result
//! themselves.
#![expect(clippy::disallowed_types, reason = "two streams of one command share its output")]

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pith_ext::{ExtensionHandle, UserBash as Verdict};
use pith_tools::Workbench;
use pith_tools::shell::{UserBash, UserOutput, run_user_command};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// How often output is flushed that arrived too soon after the previous piece.
const FLUSH_INTERVAL: Duration = Duration::from_millis(50);

/// A shell command of the host.
pub(crate) struct HostCommand<'a> {
    pub workbench: &'a Workbench,
    pub command: &'a str,
    pub is_excluded: bool,
    pub cancel: &'a CancellationToken,
    /// The extensions that listen for `user_bash`.
    pub extensions: Option<ExtensionHandle>,
}

impl HostCommand<'_> {
    /// Runs the command where extensions decide. `take` gets the output piece by piece and returns whether it accepted
    /// one.
    pub async fn run(self, take: impl FnMut(&str) -> bool + Send) -> Result<UserBash, String> {
        let HostCommand { workbench, command, cancel, .. } = self;
        let Some(handle) = &self.extensions else { return run_user_command(workbench, command, cancel, take).await };
        let cwd = workbench.base.cwd.to_string_lossy();
        let verdict = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(UserBash { cancelled: true, ..UserBash::default() }),
            verdict = handle.user_bash(command, self.is_excluded, &cwd) => verdict,
        };
        match verdict {
            Verdict::Local => run_user_command(workbench, command, cancel, take).await,
            Verdict::Operations(operations) => self.run_through(handle, operations, take).await,
            Verdict::Result(result) => read_result(result),
            Verdict::Failed(why) => Err(why),
        }
    }

    /// Lets an extension run the command; its output is treated like that of any other.
    async fn run_through(
        &self,
        handle: &ExtensionHandle,
        operations: u64,
        take: impl FnMut(&str) -> bool + Send,
    ) -> Result<UserBash, String> {
        let output = Mutex::new(UserOutput::new(self.workbench, take));
        let cwd = self.workbench.base.cwd.to_string_lossy();
        let ended = {
            let push = |data: &str| lock(&output).push(data.as_bytes());
            let running = handle.run_operations(operations, self.command, &cwd, self.cancel, push);
            tokio::pin!(running);
            let mut pace = tokio::time::interval(FLUSH_INTERVAL);
            loop {
                tokio::select! {
                    biased;
                    ended = &mut running => break ended,
                    _ = pace.tick() => lock(&output).flush_if_due(),
                }
            }
        };
        let output = output.into_inner().unwrap_or_else(PoisonError::into_inner);
        match ended {
            _ if self.cancel.is_cancelled() => Ok(output.cancel()),
            Ok(exit_code) => Ok(output.finish(exit_code)),
            Err(why) => Err(why),
        }
    }
}

fn lock<T>(output: &Mutex<T>) -> MutexGuard<'_, T> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_result(result: Value) -> Result<UserBash, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Given {
        output: String,
        exit_code: Option<i32>,
        #[serde(default)]
        cancelled: bool,
        #[serde(default)]
        truncated: bool,
        full_output_path: Option<PathBuf>,
    }
    let given: Given = serde_json::from_value(result).map_err(|error| format!("The result of user_bash: {error}"))?;
    let n_lines = if given.output.is_empty() { 0 } else { given.output.matches('\n').count() + 1 };
    let n_bytes = given.output.len();
    Ok(UserBash {
        output: given.output,
        exit_code: given.exit_code,
        cancelled: given.cancelled,
        truncated: given.truncated,
        full_output_path: given.full_output_path,
        total_lines: n_lines,
        total_bytes: n_bytes,
        output_lines: n_lines,
        output_bytes: n_bytes,
        unsent: String::new(),
    })
}
