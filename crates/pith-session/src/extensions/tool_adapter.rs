//! Tools of extensions among the session's tools.

use std::sync::Arc;

use pith_agent::{BoxFuture, Tool, ToolContext, ToolOutput};
use pith_ext::ExtensionTool;
use pith_protocol::ToolSpec;
use pith_tools::image::Rules;
use serde_json::{Map, Value};

use crate::session::Session;
use crate::tools::{Registered, images};

impl Session {
    /// Called when the extensions of a session are loaded. Activates all their tools.
    pub(crate) fn begin_extension_tools(&mut self) {
        self.take_extension_tools(Registered::AtStart);
        self.take_extension_servers();
    }

    /// Called when extensions have registered or removed tools, commands, flags or MCP servers.
    pub(crate) fn on_registry_changed(&mut self) {
        self.take_extension_tools(Registered::Later);
        self.take_extension_servers();
    }

    /// Sets the active tools, from the next model request on.
    pub(crate) fn set_active_tools(&mut self, names: &[String]) {
        self.tools.choose(names);
        self.assemble_prompt();
    }

    fn take_extension_tools(&mut self, registered: Registered) {
        let rules = self.workbench().image_rules();
        let tools = self.extension_handle().map(|handle| handle.tools()).unwrap_or_default();
        let tools = tools.into_iter().map(|inner| Arc::new(ImageFittingTool { inner, rules }) as Arc<dyn Tool>);
        self.tools.set_extensions(tools.collect(), registered);
        self.assemble_prompt();
    }
}

/// A tool of an extension; images in its results are converted to what the model accepts.
struct ImageFittingTool {
    inner: Arc<ExtensionTool>,
    rules: Rules,
}

impl Tool for ImageFittingTool {
    fn spec(&self) -> &ToolSpec {
        self.inner.spec()
    }

    fn label(&self) -> &str {
        self.inner.label()
    }

    fn snippet(&self) -> Option<&str> {
        self.inner.snippet()
    }

    fn rules(&self) -> Vec<&str> {
        self.inner.rules()
    }

    fn is_sequential(&self) -> bool {
        self.inner.is_sequential()
    }

    fn prepare(&self, arguments: &Map<String, Value>) -> Option<BoxFuture<'_, Result<Map<String, Value>, String>>> {
        self.inner.prepare(arguments)
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        Box::pin(async move { images::fit_output(self.inner.clone().run(arguments, context).await, self.rules).await })
    }
}
