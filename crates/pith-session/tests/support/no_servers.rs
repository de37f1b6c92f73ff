//! A session without MCP servers.

use std::path::Path;
use std::sync::Arc;

use pith_agent::{BoxFuture, Tool};
use pith_config::Diagnostic;
use pith_ext::registry::McpServerInfo;
use pith_protocol::answers::{McpServer, McpServerState};
use pith_session::{McpInput, McpPage, McpPrompt, McpServers, McpSetup, McpUnlisted};
use serde_json::{Map, Value};

struct NoServers;

pub fn setup() -> McpSetup {
    let (_, from_servers) = tokio::sync::mpsc::unbounded_channel();
    McpSetup { servers: Arc::new(NoServers), from_servers }
}

impl McpServers for NoServers {
    fn begin_work(&self, _found: &dyn Fn() -> Vec<String>) -> Option<BoxFuture<'static, ()>> {
        None
    }

    fn begin_search(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    fn unlisted(&self) -> Vec<McpUnlisted> {
        Vec::new()
    }

    fn start_eager(&self) {}

    fn version(&self) -> u64 {
        0
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    fn prompts(&self) -> Vec<McpPrompt> {
        Vec::new()
    }

    fn instructions(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn expand(&self, _text: &str) -> Option<BoxFuture<'static, Result<McpInput, String>>> {
        None
    }

    fn load(&self) {}

    fn reload(&self) {}

    fn set_host(&self, _servers: &Map<String, Value>) -> Result<(), String> {
        Err("there are no servers".to_owned())
    }

    fn set_extensions(&self, _servers: &[McpServerInfo], _has_client: bool) -> bool {
        false
    }

    fn connect(&self) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }

    fn connect_host(&self) -> BoxFuture<'static, ()> {
        self.connect()
    }

    fn reconnect(&self, _name: &str) -> Option<BoxFuture<'static, ()>> {
        None
    }

    fn begin_login(&self, _name: &str) -> Option<BoxFuture<'static, Result<McpPage, String>>> {
        None
    }

    fn set_enabled(&self, _name: &str, _is_enabled: bool) -> Option<BoxFuture<'static, ()>> {
        None
    }

    fn states(&self) -> Vec<McpServerState> {
        Vec::new()
    }

    fn shown(&self) -> Vec<McpServer> {
        Vec::new()
    }

    fn diagnostics(&self) -> Vec<Diagnostic> {
        Vec::new()
    }

    fn begin_session(&self, _cwd: &Path) {}

    fn close(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }
}
