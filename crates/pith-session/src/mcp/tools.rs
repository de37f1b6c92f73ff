//! The tools of MCP servers on their way to the model: with its requests, or because it searches for them.

use pith_agent::{ToolOutput, Turn};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::jobs::{Job, JobEnd};
use crate::session::Session;

impl Session {
    /// Answers a run that asks for its next request. The first one of a run waits for servers whose tools are not
    /// known; an abort ends the wait.
    pub(crate) fn answer_turn(&mut self, answer: oneshot::Sender<Turn>) {
        let is_first = self.activity.run_mut().is_some_and(|run| !std::mem::replace(&mut run.has_begun_servers, true));
        let wait = if is_first { self.mcp.servers.begin_work(&|| self.needed_tools()) } else { None };
        match (wait, self.activity.run()) {
            (Some(wait), Some(run)) => {
                let cancel = run.cancel.clone();
                self.jobs.spawn(Job::Background, async move {
                    tokio::select! {
                        () = cancel.cancelled() => {}
                        () = wait => {}
                    }
                    JobEnd::ServersReady(answer)
                });
            }
            _ => self.on_servers_ready(answer),
        }
    }

    pub(crate) fn on_servers_ready(&mut self, answer: oneshot::Sender<Turn>) {
        let Some(answer) = self.hold_turn(answer) else { return };
        let Some(answer) = self.measure_before(answer) else { return };
        self.take_mcp_tools();
        self.declare_found_tools();
        // If the answer has no receiver, the run is ending.
        let _ = answer.send(self.next_turn());
    }

    /// Starts servers that were added while a run is under way; their tools count from its next request on.
    pub(super) fn start_added_servers(&mut self) {
        if self.activity.run().is_some_and(|run| run.has_begun_servers) {
            drop(self.mcp.servers.begin_work(&|| self.needed_tools()));
        }
    }

    /// The tools that are declared although servers leave them to the search.
    fn needed_tools(&self) -> Vec<String> {
        let mut needed = self.found_tools();
        needed.extend(self.tools.named_of_servers());
        needed
    }

    /// Gives the model the tools that servers offer now.
    fn take_mcp_tools(&mut self) {
        let version = self.mcp.servers.version();
        if version != self.mcp.version {
            self.mcp.version = version;
            let window = self.window_for_tools();
            self.mcp.instructions = self.mcp.servers.instructions();
            let (tools, unlisted) = (self.mcp.servers.tools(), self.mcp.servers.unlisted());
            self.tools.set_mcp(tools, &unlisted, window, &self.host_tools.link);
            self.assemble_prompt();
        }
    }

    /// The context window that definitions of tools share with everything else.
    pub(super) fn window_for_tools(&self) -> u64 {
        self.models.current().map_or(u64::MAX, |model| self.models.window(model))
    }

    /// Answers a search of the model, after servers that it may be about have said what they offer.
    pub(crate) fn search_tools(&mut self, arguments: Map<String, Value>, mut answer: oneshot::Sender<ToolOutput>) {
        match self.mcp.servers.begin_search() {
            None => self.on_servers_listed(&arguments, answer),
            Some(wait) => {
                self.jobs.spawn(Job::Background, async move {
                    tokio::select! {
                        () = answer.closed() => {}
                        () = wait => {}
                    }
                    JobEnd::ServersListed { arguments, answer }
                });
            }
        }
    }

    /// Called when servers have said what they offer, or have taken too long.
    pub(crate) fn on_servers_listed(&mut self, arguments: &Map<String, Value>, answer: oneshot::Sender<ToolOutput>) {
        if !answer.is_closed() {
            self.take_mcp_tools();
            let _ = answer.send(self.find_tools(arguments));
        }
    }
}
