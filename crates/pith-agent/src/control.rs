//! How the session reaches the calls of a run from outside: holds them, lets limits of time stand still, and says which
//! limit has ended them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pith_protocol::{Amount, Block, LimitName, LimitUse};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::ToolOutput;

/// A tool that does not end within this time of its limit is left behind.
const GRACE: Duration = Duration::from_secs(5);

/// What stands still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// No call may start.
    pub is_paused: bool,
    /// Limits of time stand still.
    pub is_time_held: bool,
}

/// The session's hand on the calls of a run. The default holds nothing.
#[derive(Clone, Debug, Default)]
pub struct CallControl {
    /// From the session; a closed channel holds nothing. `None` if nobody holds anything.
    pub hold: Option<watch::Receiver<Hold>>,
    /// The limit that has ended the run; set before the run is cancelled.
    pub ended_by: Arc<OnceLock<LimitName>>,
}

impl CallControl {
    /// Returns when calls and requests may start.
    pub async fn until_resumed(&self) {
        if let Some(mut hold) = self.hold.clone() {
            // A session that has ended holds nothing.
            let _ = hold.wait_for(|hold| !hold.is_paused).await;
        }
    }

    /// Returns when so much time has passed in which limits did not stand still.
    async fn passed(&self, mut left: Duration) {
        let Some(mut hold) = self.hold.clone() else { return sleep(left).await };
        loop {
            if hold.wait_for(|hold| !hold.is_time_held).await.is_err() {
                return sleep(left).await;
            }
            let start = Instant::now();
            tokio::select! {
                biased;
                () = sleep(left) => return,
                _ = hold.wait_for(|hold| hold.is_time_held) => left = left.saturating_sub(start.elapsed()),
            }
        }
    }

    /// Waits for a call as long as it may take; then cancels it and says so in its output.
    pub(crate) async fn limit(
        &self,
        name: &str,
        call: impl Future<Output = ToolOutput>,
        time: Duration,
        cancel: &CancellationToken,
    ) -> ToolOutput {
        tokio::pin!(call);
        tokio::select! {
            biased;
            output = &mut call => return output,
            () = self.passed(time) => cancel.cancel(),
        }
        let ended = tokio::time::timeout(GRACE, call).await;
        let output = ended.unwrap_or_else(|_| ToolOutput::error("The tool did not stop"));
        let seconds = Amount(time.as_secs_f64());
        let reached = LimitUse { name: LimitName::ToolCallSeconds, used: seconds, max: seconds };
        with_limit(ended_by(name, output, reached.name), &reached)
    }

    /// Lets the output of a call that was stopped say which limit has ended the run.
    pub(crate) fn explain(&self, name: &str, output: ToolOutput) -> ToolOutput {
        match self.ended_by.get() {
            Some(limit) if output.is_error => ended_by(name, output, *limit),
            _ => output,
        }
    }
}

/// Adds to an output which limit has ended the call.
fn ended_by(name: &str, mut output: ToolOutput, limit: LimitName) -> ToolOutput {
    let text = format!("{name} ended: limits.{limit}");
    match output.content.last_mut() {
        Some(Block::Text(last)) => last.text = format!("{}\n\n{text}", last.text),
        _ => output.content.push(Block::text(text)),
    }
    output.is_error = true;
    output
}

/// Adds to the details of an output which limit was reached, for the session.
pub fn with_limit(mut output: ToolOutput, reached: &LimitUse) -> ToolOutput {
    let details = output.details.get_or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(details) = details {
        details.insert("limit".to_owned(), json!(reached));
    }
    output
}

/// Returns the limit that has ended a call, as its details say.
pub fn limit_of(output: &ToolOutput) -> Option<LimitUse> {
    let limit = output.details.as_ref()?.get("limit")?;
    serde_json::from_value(limit.clone()).ok()
}
