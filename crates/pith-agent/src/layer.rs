//! A tool around another one.

use std::sync::Arc;

use pith_protocol::ToolSpec;
use serde_json::{Map, Value};

use crate::{BoxFuture, Effect, Exposure, Origin, Reach, Tool, ToolContext, ToolOutput};

/// A tool that differs from the one it is put around only in how it runs. Everything else, what is added to [`Tool`]
/// later too, is passed on here, so that no layer can forget it.
pub trait ToolLayer: Send + Sync {
    fn tool(&self) -> &Arc<dyn Tool>;

    /// Runs the call; see [`Tool::run`].
    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput>;
}

impl<L: ToolLayer> Tool for L {
    fn spec(&self) -> &ToolSpec {
        self.tool().spec()
    }

    fn label(&self) -> &str {
        self.tool().label()
    }

    fn snippet(&self) -> Option<&str> {
        self.tool().snippet()
    }

    fn rules(&self) -> Vec<&str> {
        self.tool().rules()
    }

    fn exposure(&self) -> Exposure {
        self.tool().exposure()
    }

    fn origin(&self) -> Option<Origin<'_>> {
        self.tool().origin()
    }

    fn is_sequential(&self) -> bool {
        self.tool().is_sequential()
    }

    fn runs_programs(&self) -> bool {
        self.tool().runs_programs()
    }

    fn argument_schema(&self) -> &Arc<Value> {
        self.tool().argument_schema()
    }

    fn reach(&self) -> Reach {
        self.tool().reach()
    }

    fn effect(&self, arguments: &Map<String, Value>) -> Effect {
        self.tool().effect(arguments)
    }

    fn adapt(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        self.tool().adapt(arguments)
    }

    fn prepare(&self, arguments: &Map<String, Value>) -> Option<BoxFuture<'_, Result<Map<String, Value>, String>>> {
        self.tool().prepare(arguments)
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        ToolLayer::run(self, arguments, context)
    }
}
