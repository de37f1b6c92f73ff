//! Tools implemented by a closure of the test.

use std::future::Future;
use std::sync::Arc;

use pith_agent::{BoxFuture, Tool, ToolContext, ToolOutput};
use pith_protocol::ToolSpec;
use serde_json::{Map, Value, json};

type Work = Box<dyn Fn(Map<String, Value>, ToolContext) -> BoxFuture<'static, ToolOutput> + Send + Sync>;

/// A tool that takes any arguments.
pub struct TestTool {
    spec: ToolSpec,
    work: Work,
}

impl TestTool {
    pub fn new<F>(name: &str, work: impl Fn(Map<String, Value>, ToolContext) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ToolOutput> + Send + 'static,
    {
        let spec = ToolSpec {
            name: name.into(),
            description: format!("The tool {name} of a test.").into(),
            parameters: Arc::new(json!({"type": "object", "properties": {}})),
            prefer_strict: false,
        };
        TestTool { spec, work: Box::new(move |arguments, context| Box::pin(work(arguments, context))) }
    }
}

impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        (self.work)(arguments, context)
    }
}
