//! Tools that the model finds by searching: which are deferred, `tool_search`, and how found ones are declared.

use std::sync::Arc;

use pith_agent::{ABORTED, BoxFuture, Exposure, Reach, Tool, ToolContext, ToolLayer, ToolOutput};
use pith_protocol::ToolSpec;
use serde_json::{Map, Value, json};

use super::host::DISCONNECTED;
use super::ranking::rank;
use super::{FromTool, ToolLink};
use crate::mcp::McpUnlisted;
use crate::session::Session;

pub(crate) const TOOL_SEARCH: &str = "tool_search";
/// The `customType` of entries that name the tools found so far, so that a resumed session declares the same ones.
const LOADED_TOOLS: &str = "loaded_tools";
/// Above so many tools, or this share of the context window, those with exposure `auto` are deferred.
const MAX_DECLARED: usize = 60;
const MAX_SHARE_OF_WINDOW: u64 = 10;
/// What a token is worth in bytes of JSON, roughly.
const BYTES_PER_TOKEN: u64 = 4;
const DEFAULT_LIMIT: usize = 8;
const MAX_LIMIT: usize = 20;

/// Returns which of the tools the model has to search for.
pub(super) fn deferred(tools: &[Arc<dyn Tool>], context_window: u64) -> Vec<Arc<str>> {
    let is_auto_deferred = are_too_many(tools, context_window);
    let is_deferred = |tool: &&Arc<dyn Tool>| match tool.exposure() {
        Exposure::Direct => false,
        Exposure::Auto => is_auto_deferred,
        Exposure::Deferred => true,
    };
    tools.iter().filter(is_deferred).map(|tool| tool.spec().name.clone()).collect()
}

/// Whether the tools are too many to declare those whose exposure is `auto`.
pub(super) fn are_too_many(tools: &[Arc<dyn Tool>], context_window: u64) -> bool {
    let declared = || tools.iter().filter(|tool| tool.exposure() != Exposure::Deferred);
    let n_bytes: u64 = declared().map(|tool| size(tool.spec())).sum();
    let is_large = n_bytes / BYTES_PER_TOKEN * MAX_SHARE_OF_WINDOW >= context_window;
    declared().count() > MAX_DECLARED || is_large
}

fn size(spec: &ToolSpec) -> u64 {
    (spec.name.len() + spec.description.len() + spec.parameters.to_string().len()) as u64
}

/// The tool with which the model finds others.
pub(super) struct ToolSearch {
    spec: ToolSpec,
    /// One line for each server whose tools are found this way.
    servers: Vec<String>,
    link: ToolLink,
}

impl ToolSearch {
    pub fn new(deferred: &[Arc<dyn Tool>], unlisted: &[McpUnlisted], link: ToolLink) -> Self {
        let of_tools = deferred.iter().filter_map(|tool| tool.origin()).map(|origin| (origin.server, origin.about));
        let of_servers = unlisted.iter().map(|server| (server.name.as_str(), server.about.as_deref()));
        let line = |(server, about): (&str, Option<&str>)| {
            let about = about.map(|about| format!(": {about}")).unwrap_or_default();
            format!("Tools of the server {server} are found with {TOOL_SEARCH}{about}")
        };
        let mut servers: Vec<String> = of_tools.chain(of_servers).map(line).collect();
        // In an order that stays when a server becomes known, because providers keep what they have seen of a prompt.
        servers.sort();
        servers.dedup();
        let description = "Finds tools of servers by words of their names, descriptions and parameters. \
                           Tools that were found can be called from then on.";
        let parameters = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What the tool should do, in a few words"},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "description": "How many tools at most; default 8"},
            },
            "required": ["query"],
        });
        let spec = ToolSpec {
            name: TOOL_SEARCH.into(),
            description: description.into(),
            parameters: Arc::new(parameters),
            prefer_strict: false,
        };
        ToolSearch { spec, servers, link }
    }
}

impl Tool for ToolSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn label(&self) -> &str {
        "Tool Search"
    }

    fn rules(&self) -> Vec<&str> {
        self.servers.iter().map(String::as_str).collect()
    }

    fn reach(&self) -> Reach {
        Reach::Nothing
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => ToolOutput::error(ABORTED),
                found = self.link.ask(|answer| FromTool::FindTools { arguments, answer }) => {
                    found.unwrap_or_else(|| ToolOutput::error(DISCONNECTED))
                }
            }
        })
    }
}

/// A tool that is not declared. A model that calls it all the same gets its result, and from then on the declaration.
pub(super) struct DeferredTool {
    tool: Arc<dyn Tool>,
    link: ToolLink,
}

impl DeferredTool {
    pub fn new(tool: Arc<dyn Tool>, link: ToolLink) -> Self {
        DeferredTool { tool, link }
    }
}

impl ToolLayer for DeferredTool {
    fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        Box::pin(async move {
            let name = self.tool.spec().name.clone();
            self.link.ask(|noted| FromTool::ToolUsed { name, noted }).await;
            self.tool.clone().run(arguments, context).await
        })
    }
}

impl Session {
    /// Declares the tools that were found on this branch.
    pub(crate) fn declare_found_tools(&mut self) {
        if self.tools.has_deferred() {
            self.tools.declare(self.found_tools());
        }
    }

    /// Returns the names of the tools that were found on this branch.
    pub(crate) fn found_tools(&self) -> Vec<String> {
        let names = |data: Value| match data.get("names") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        self.store.custom_data(LOADED_TOOLS).into_iter().flat_map(names).collect()
    }

    /// Answers a search of the model. What it found is declared from the next request on.
    pub(crate) fn find_tools(&mut self, arguments: &Map<String, Value>) -> ToolOutput {
        let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
        let limit = arguments.get("limit").and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
        let tools = self.tools.deferred();
        let found = rank(query, &tools, limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT));
        let names: Vec<&str> = found.iter().map(|tool| &*tool.spec().name).collect();
        let described = |tool: &Arc<dyn Tool>| {
            let spec = tool.spec();
            json!({"name": &*spec.name, "description": &*spec.description, "parameters": &*spec.parameters}).to_string()
        };
        let mut lines: Vec<String> = found.iter().map(described).collect();
        if found.is_empty() {
            lines.push(format!("No tool fits \"{query}\". There are {}; try other words.", tools.len()));
        }
        let missing = |McpUnlisted { name, why, .. }| format!("The tools of the server {name} are not known: {why}");
        lines.extend(self.mcp.unlisted().into_iter().map(missing));
        self.note_found(&names);
        ToolOutput::text(lines.join("\n")).with_details(json!({"tools": names}))
    }

    /// Remembers tools in the session file, those that are new.
    pub(crate) fn note_found(&mut self, names: &[&str]) {
        let new: Vec<&&str> = names.iter().filter(|name| !self.tools.is_declared(name)).collect();
        if !new.is_empty() {
            self.store.append_custom(LOADED_TOOLS, Some(&json!({"names": new})));
            self.declare_found_tools();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(ToolSpec, Exposure);

    impl Tool for Named {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn exposure(&self) -> Exposure {
            self.1
        }

        fn run(self: Arc<Self>, _: Map<String, Value>, _: ToolContext) -> BoxFuture<'static, ToolOutput> {
            Box::pin(async { ToolOutput::text("") })
        }
    }

    fn tool(name: &str, description: &str, exposure: Exposure) -> Arc<dyn Tool> {
        let parameters = Arc::new(json!({"type": "object", "properties": {"repoPath": {"type": "string"}}}));
        let (name, description) = (name.into(), description.into());
        Arc::new(Named(ToolSpec { name, description, parameters, prefer_strict: false }, exposure))
    }

    #[test]
    fn many_or_large_tools_are_deferred() {
        let many = |n_tools: usize, exposure| -> Vec<Arc<dyn Tool>> {
            (0..n_tools).map(|number| tool(&format!("t{number}"), "", exposure)).collect()
        };
        assert_eq!(deferred(&many(60, Exposure::Auto), 1_000_000).len(), 0);
        assert_eq!(deferred(&many(61, Exposure::Auto), 1_000_000).len(), 61);
        assert_eq!(deferred(&many(61, Exposure::Direct), 1_000_000).len(), 0);
        assert_eq!(deferred(&many(1, Exposure::Deferred), 1_000_000).len(), 1);
        let large = [tool("t", &"x".repeat(4000), Exposure::Auto)];
        assert_eq!((deferred(&large, 9000).len(), deferred(&large, 20_000).len()), (1, 0));
    }
}
