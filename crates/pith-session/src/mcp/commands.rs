//! Commands of the host about MCP servers.

use std::time::Duration;

use pith_agent::BoxFuture;
use pith_protocol::answers::{McpServer, McpServerStates, McpServers as ServerList, McpSignIn};
use pith_protocol::commands::{GetMcpServers, McpLogin, McpReconnect, SetMcpEnabled, SetMcpServers};
use pith_protocol::{Call, CommandError, ErrorCode};
use tokio_util::sync::CancellationToken;

use super::McpPage;
use crate::jobs::{Job, JobEnd};
use crate::reply::Reply;
use crate::session::Session;

/// A command about servers that is answered when they have done something.
pub(crate) enum McpReply {
    Set(Reply<SetMcpServers>),
    List(Reply<GetMcpServers>),
    Reconnect(Reply<McpReconnect>),
    Enable(Reply<SetMcpEnabled>),
}

/// How the end of the session limits commands that wait for servers.
#[derive(Clone, Default)]
pub(super) struct Ending {
    /// Fired when the session is closing: a host that has sent its last line still gets its answers, for a while.
    pub begun: CancellationToken,
    /// Fired when the session is to end at once.
    pub stop: CancellationToken,
}

impl Ending {
    /// How long servers may take once nothing else can come from the host.
    const LAST_ANSWERS: Duration = Duration::from_secs(10);

    /// Waits until nothing may be waited for any more.
    async fn time_is_up(self) {
        let limit = async {
            self.begun.cancelled().await;
            tokio::time::sleep(Self::LAST_ANSWERS).await;
        };
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = limit => {}
        }
    }
}

impl Session {
    pub(crate) fn set_mcp_servers(&mut self, call: &SetMcpServers, reply: Reply<SetMcpServers>) {
        self.mcp.is_host_interested = true;
        match self.mcp.servers.set_host(&call.servers) {
            Err(why) => self.answer(reply, Err(refused(why))),
            Ok(()) if call.wait == Some(true) => {
                let connect = self.mcp.servers.connect_host();
                self.answer_mcp_after(connect, McpReply::Set(reply));
            }
            Ok(()) => {
                self.start_added_servers();
                self.answer_mcp(McpReply::Set(reply));
            }
        }
    }

    pub(crate) fn get_mcp_servers(&mut self, call: &GetMcpServers, reply: Reply<GetMcpServers>) {
        self.mcp.is_host_interested = true;
        self.mcp.servers.load();
        if call.connect == Some(true) {
            let connect = self.mcp.servers.connect();
            self.answer_mcp_after(connect, McpReply::List(reply));
        } else {
            self.answer_mcp(McpReply::List(reply));
        }
    }

    pub(crate) fn mcp_reconnect(&mut self, call: &McpReconnect, reply: Reply<McpReconnect>) {
        self.mcp.is_host_interested = true;
        match self.mcp.servers.reconnect(&call.name) {
            Some(reconnect) => self.answer_mcp_after(reconnect, McpReply::Reconnect(reply)),
            None => self.answer(reply, Err(unknown(&call.name))),
        }
    }

    pub(crate) fn set_mcp_enabled(&mut self, call: &SetMcpEnabled, reply: Reply<SetMcpEnabled>) {
        self.mcp.is_host_interested = true;
        match self.mcp.servers.set_enabled(&call.name, call.enabled) {
            Some(change) => self.answer_mcp_after(change, McpReply::Enable(reply)),
            None => self.answer(reply, Err(unknown(&call.name))),
        }
    }

    pub(crate) fn mcp_login(&mut self, call: &McpLogin, reply: Reply<McpLogin>) {
        self.mcp.is_host_interested = true;
        match self.mcp.servers.begin_login(&call.name) {
            Some(begin) => {
                self.jobs.spawn(Job::Background, async move { JobEnd::SignInBegun { reply, begun: begin.await } });
            }
            None => self.answer(reply, Err(unknown(&call.name))),
        }
    }

    pub(crate) fn on_sign_in_begun(&mut self, reply: Reply<McpLogin>, begun: Result<McpPage, String>) {
        match begun {
            Ok(McpPage { url, done }) => {
                self.answer(reply, Ok(McpSignIn { url }));
                self.jobs.spawn(Job::Background, async move {
                    done.await;
                    JobEnd::Done
                });
            }
            Err(why) => self.answer(reply, Err(refused(why))),
        }
    }

    fn answer_mcp_after(&mut self, work: BoxFuture<'static, ()>, reply: McpReply) {
        self.mcp.n_waiting += 1;
        let ending = self.mcp.ending.clone();
        self.jobs.spawn(Job::Servers, async move {
            tokio::select! {
                () = work => {}
                () = ending.time_is_up() => {}
            }
            JobEnd::ServersAsked(reply)
        });
    }

    /// Called when servers have done what a command asked for, or nobody may wait for them any longer.
    pub(crate) fn on_servers_asked(&mut self, reply: McpReply) {
        self.answer_mcp(reply);
        self.on_servers_waited();
    }

    /// Called when a command no longer waits for servers, also if what they did for it has panicked.
    pub(crate) fn on_servers_waited(&mut self) {
        self.mcp.n_waiting -= 1;
        if self.is_closing {
            self.close_mcp();
        }
    }

    fn answer_mcp(&mut self, reply: McpReply) {
        let states = || McpServerStates { servers: self.mcp.servers.states() };
        match reply {
            McpReply::Set(reply) => answer(self, reply, states()),
            McpReply::Reconnect(reply) => answer(self, reply, states()),
            McpReply::Enable(reply) => answer(self, reply, states()),
            McpReply::List(reply) => answer(self, reply, ServerList { servers: self.shown_servers() }),
        }
    }

    /// Everything that is known of the servers, with what `auto` means for tools that are known.
    fn shown_servers(&self) -> Vec<McpServer> {
        let mut servers = self.mcp.servers.shown();
        let is_deferred = self.tools.defers_auto(self.mcp.servers.tools(), self.window_for_tools());
        for server in servers.iter_mut().filter(|server| server.exposure == "auto" && !server.tools.is_empty()) {
            server.exposure = if is_deferred { "deferred" } else { "direct" }.to_owned();
        }
        servers
    }
}

fn answer<C: Call>(session: &mut Session, reply: Reply<C>, answer: C::Answer) {
    session.answer(reply, Ok(answer));
}

pub(crate) fn refused(why: String) -> CommandError {
    CommandError::new(ErrorCode::Mcp, why)
}

fn unknown(name: &str) -> CommandError {
    refused(format!("There is no MCP server \"{name}\""))
}
