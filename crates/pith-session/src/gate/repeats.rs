//! The step before calls that may repeat earlier ones: the session says whether they are made.

use std::sync::Arc;

use pith_agent::ToolOutput;
use pith_agent::link::Call;

use crate::tools::{FromTool, ToolLink};

/// Returns when the call may start. `Err` is its output.
pub(super) async fn before(link: &ToolLink, call: &Call) -> Result<(), ToolOutput> {
    let Call { id, name, arguments } = call;
    let call = Arc::new(Call { id: id.clone(), name: name.clone(), arguments: arguments.clone() });
    // A session that has ended stops the call.
    link.ask(|answer| FromTool::MayRepeat { call, answer }).await.unwrap_or(Ok(()))
}
