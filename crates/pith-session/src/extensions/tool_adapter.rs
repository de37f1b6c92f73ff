//! Tools of extensions among the session's tools.

use std::sync::Arc;

use pith_agent::Tool;

use crate::session::Session;
use crate::tools::{FittingTool, Registered};

impl Session {
    /// Called when the extensions of a session are loaded, for the first time or again.
    pub(crate) fn begin_extension_tools(&mut self, registered: Registered) {
        self.take_extension_tools(registered);
        if registered == Registered::Again && self.store.is_saved() {
            self.record_tools();
        }
        self.take_extension_servers();
    }

    /// Called when extensions have registered or removed tools, commands, flags or MCP servers.
    pub(crate) fn on_registry_changed(&mut self) {
        self.take_extension_tools(Registered::Later);
        self.take_extension_servers();
    }

    fn take_extension_tools(&mut self, registered: Registered) {
        let workbench = self.workbench().clone();
        let tools = self.extension_handle().map(|handle| handle.tools()).unwrap_or_default();
        let fitting = |tool| Arc::new(FittingTool::new(tool, workbench.clone())) as Arc<dyn Tool>;
        let tools = tools.into_iter().map(|tool| fitting(tool as Arc<dyn Tool>));
        self.tools.set_extensions(tools.collect(), registered);
        self.assemble_prompt();
    }
}
