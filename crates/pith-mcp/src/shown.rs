//! What hosts see of servers: states, what they offer, what is wrong with them.

use std::sync::Arc;

use pith_config::Diagnostic;
use pith_protocol::answers::{McpServer, McpServerInfo, McpServerState, McpTool as ShownTool};

use crate::config::{Exposure, ServerConfig, Transport};
use crate::names::name_all;
use crate::prompts::command_name;
use crate::server::Server;
use crate::servers::Servers;
use crate::state::State;

impl Servers {
    /// Names and states. Reads nothing.
    pub fn states(&self) -> Vec<McpServerState> {
        self.all().iter().map(|server| shown_state(server)).collect()
    }

    /// Everything that is known of the servers.
    pub fn shown(&self) -> Vec<McpServer> {
        let offered = self.offered();
        let pairs: Vec<(&str, &str)> =
            offered.iter().map(|(server, tool)| (server.config.name.as_str(), tool.name.as_str())).collect();
        let names = name_all(&pairs);
        let show = |server: Arc<Server>| {
            let own = offered.iter().zip(&names).filter(|((owner, _), _)| Arc::ptr_eq(owner, &server));
            let tools = own.map(|((_, tool), name)| ShownTool {
                name: name.clone(),
                tool: tool.name.clone(),
                annotations: tool.annotations.clone(),
            });
            shown_server(&server, tools.collect())
        };
        self.all().into_iter().map(show).collect()
    }

    /// What is wrong with configuration and servers.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut found = self.findings();
        for server in self.all() {
            let snapshot = server.snapshot();
            let name = &server.config.name;
            let mut add = |code, message: String| {
                let path = server.config.path.clone();
                found.push(Diagnostic {
                    path,
                    ..Diagnostic::warning(code, "", format!("server \"{name}\": {message}"))
                });
            };
            if let Some(error) = snapshot.error {
                add(if snapshot.state == State::NeedsAuth { "mcp_auth" } else { "mcp_start" }, error);
            }
            snapshot.problems.into_iter().for_each(|problem| add("mcp_schema", problem));
            let remarks = server.remarks();
            if !remarks.is_empty() {
                add("mcp_stderr", remarks.join("\n"));
            }
        }
        found
    }
}

fn shown_state(server: &Server) -> McpServerState {
    let snapshot = server.snapshot();
    state_of(&server.config, snapshot.state, snapshot.error)
}

/// Where a server stands, for hosts.
pub(crate) fn state_of(config: &ServerConfig, state: State, error: Option<String>) -> McpServerState {
    McpServerState {
        name: config.name.clone(),
        source: config.source.as_str().to_owned(),
        state: state.as_str().to_owned(),
        error,
        hint: (state == State::NeedsAuth).then(|| config.login_command()).flatten(),
    }
}

fn shown_server(server: &Server, tools: Vec<ShownTool>) -> McpServer {
    let (snapshot, config) = (server.snapshot(), &server.config);
    let transport = match &config.transport {
        Transport::Stdio(_) => "stdio",
        Transport::Remote(remote) if remote.is_sse => "sse",
        Transport::Remote(_) => "http",
    };
    let exposure = match config.exposure {
        Exposure::Auto => "auto",
        Exposure::Direct => "direct",
        Exposure::Deferred => "deferred",
        Exposure::Hidden => "hidden",
    };
    let offer = snapshot.offer.as_deref();
    let prompts = offer.iter().flat_map(|offer| &offer.prompts);
    let info = offer.and_then(|offer| offer.server_info.as_ref());
    McpServer {
        state: shown_state(server),
        transport: transport.to_owned(),
        path: config.path.as_ref().map(|path| path.to_string_lossy().into_owned()),
        protocol_version: offer.map(|offer| offer.protocol_version.clone()),
        server_info: info.map(|info| McpServerInfo { name: info.name.clone(), version: info.version.clone() }),
        exposure: exposure.to_owned(),
        tools,
        prompts: prompts.map(|prompt| command_name(&config.name, &prompt.name)).collect(),
        has_resources: offer.is_some_and(|offer| offer.has_resources),
        calls: snapshot.n_calls,
        restarts: snapshot.n_restarts,
    }
}
