//! The tools active in a turn.

use std::sync::Arc;

use pith_protocol::ToolSpec;

use crate::{ArgumentSchema, Tool};

/// Active tools in activation order, with their compiled schemas.
pub struct Toolset {
    /// The declared ones, then those the model may call without having been told of them.
    tools: Vec<(Arc<dyn Tool>, ArgumentSchema)>,
    specs: Arc<[ToolSpec]>,
}

impl Toolset {
    /// Creates a set of tools; schemas are compiled when first needed.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Toolset::with_undeclared(tools, Vec::new())
    }

    /// Creates a set with tools that can be called but are not declared.
    pub fn with_undeclared(tools: Vec<Arc<dyn Tool>>, undeclared: Vec<Arc<dyn Tool>>) -> Self {
        let specs = tools.iter().map(|tool| tool.spec().clone()).collect();
        let tools = tools
            .into_iter()
            .chain(undeclared)
            .map(|tool| {
                let schema = ArgumentSchema::of(&*tool);
                (tool, schema)
            })
            .collect();
        Toolset { tools, specs }
    }

    /// What the model is told of the tools.
    pub fn specs(&self) -> &Arc<[ToolSpec]> {
        &self.specs
    }

    /// Returns the tool of that name.
    pub fn get(&self, name: &str) -> Option<(&Arc<dyn Tool>, &ArgumentSchema)> {
        self.tools.iter().find(|(tool, _)| &*tool.spec().name == name).map(|(tool, schema)| (tool, schema))
    }

    /// Returns every tool that can be called, declared or not.
    pub fn callable(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter().map(|(tool, _)| tool)
    }

    /// Returns the declared tools, in activation order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter().take(self.specs.len()).map(|(tool, _)| tool)
    }
}
