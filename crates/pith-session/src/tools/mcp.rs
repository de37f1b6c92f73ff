//! Tools of MCP servers: those that are declared to the model, and those that it searches for.

use std::collections::HashSet;
use std::sync::Arc;

use pith_agent::{Tool, Toolset};

use super::search::{self, DeferredTool, TOOL_SEARCH, ToolSearch};
use super::{FittingTool, ToolLink, Tools, unique};
use crate::mcp::McpUnlisted;

/// Tools of MCP servers that the model searches for.
pub(super) struct Deferred {
    names: Vec<Arc<str>>,
    /// Those that were found, in that order. They are declared after all others, so that requests stay alike.
    found: Vec<String>,
    /// With which tools tell the session of a search or of their use.
    link: ToolLink,
}

impl Tools {
    /// Replaces the tools of MCP servers. New ones become active; if they are too many for the window of the model,
    /// it searches for them, as it does for those of servers that have not listed them.
    pub fn set_mcp(
        &mut self,
        mut tools: Vec<Arc<dyn Tool>>,
        unlisted: &[McpUnlisted],
        context_window: u64,
        link: &ToolLink,
    ) {
        tools.retain(|tool| self.choice.is_usable(&tool.spec().name));
        let can_search = self.choice.is_named(TOOL_SEARCH);
        // Tools that are named without the search are declared: nothing else would lead to them.
        let names = if can_search { search::deferred(&tools, context_window) } else { Vec::new() };
        let unlisted = if can_search { unlisted } else { &[] };
        let found = self.deferred.take().map_or_else(Vec::new, |deferred| deferred.found);
        if !(names.is_empty() && unlisted.is_empty()) {
            let is_deferred = |tool: &&Arc<dyn Tool>| names.contains(&tool.spec().name);
            let deferred: Vec<Arc<dyn Tool>> = tools.iter().filter(is_deferred).cloned().collect();
            if !self.choice.is_excluded(TOOL_SEARCH) {
                tools.push(Arc::new(ToolSearch::new(&deferred, unlisted, link.clone())));
            }
            self.deferred = Some(Deferred { names, found, link: link.clone() });
        }
        self.mcp = tools;
        self.rebuild();
    }

    /// Whether the model would have to search for those of these tools of MCP servers whose exposure is `auto`.
    pub fn defers_auto(&self, mut tools: Vec<Arc<dyn Tool>>, context_window: u64) -> bool {
        tools.retain(|tool| self.choice.is_usable(&tool.spec().name));
        self.choice.is_named(TOOL_SEARCH) && search::are_too_many(&tools, context_window)
    }

    /// The entries of `--tools` that name tools of servers, if the model cannot search for them. Their servers are
    /// needed from the beginning.
    pub fn named_of_servers(&self) -> Vec<String> {
        let only = self.choice.only.iter().flatten().filter(|_| !self.choice.is_named(TOOL_SEARCH));
        only.filter(|entry| entry.starts_with("mcp__")).cloned().collect()
    }

    /// The tools of MCP servers that are not used because others have their names.
    pub fn shadowed(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        let is_of_host = |name: &str| self.host.iter().any(|(tool, _)| &*tool.spec().name == name);
        self.mcp.iter().filter(move |tool| self.is_taken(&tool.spec().name) || is_of_host(&tool.spec().name))
    }

    pub fn has_deferred(&self) -> bool {
        self.deferred.is_some()
    }

    /// The tools that the model searches for.
    pub fn deferred(&self) -> Vec<Arc<dyn Tool>> {
        let names = self.deferred.as_ref().map_or(&[][..], |deferred| &deferred.names);
        let selected: HashSet<&str> = self.selected.iter().map(String::as_str).collect();
        let is_deferred = |name: &Arc<str>| names.contains(name) && selected.contains(&**name);
        self.mcp.iter().filter(|tool| is_deferred(&tool.spec().name)).cloned().collect()
    }

    /// Whether the model is told of a tool with every request.
    pub fn is_declared(&self, name: &str) -> bool {
        self.active.iter().any(|tool| &*tool.spec().name == name)
    }

    /// Declares the tools that were found, and no others of those that the model searches for.
    pub fn declare(&mut self, found: Vec<String>) {
        if let Some(deferred) = self.deferred.as_mut().filter(|deferred| deferred.found != found) {
            deferred.found = found;
            self.rebuild();
        }
    }

    /// Takes out what the model has to search for, and puts what it found to the end.
    pub(super) fn declared(&self, active: Vec<Arc<dyn Tool>>) -> Toolset {
        let Some(deferred) = &self.deferred else { return Toolset::new(active) };
        let is_deferred = |tool: &Arc<dyn Tool>| deferred.names.contains(&tool.spec().name);
        let (hidden, mut declared): (Vec<_>, Vec<_>) = active.into_iter().partition(is_deferred);
        let find = |name: &String| hidden.iter().find(|tool| **name == *tool.spec().name).cloned();
        declared.extend(unique(deferred.found.iter().filter_map(find)));
        let is_found = |tool: &Arc<dyn Tool>| deferred.found.iter().any(|name| **name == *tool.spec().name);
        let undeclared = hidden.into_iter().filter(|tool| !is_found(tool));
        let waiting = undeclared.map(|tool| Arc::new(DeferredTool::new(tool, deferred.link.clone())) as Arc<dyn Tool>);
        Toolset::with_undeclared(declared, waiting.collect())
    }

    /// The tools of MCP servers that may be active; their images are made to fit the model.
    pub(super) fn mcp_tools(&self) -> Vec<Arc<dyn Tool>> {
        self.mcp
            .iter()
            .map(|tool| Arc::new(FittingTool::new(tool.clone(), self.workbench.clone())) as Arc<dyn Tool>)
            .collect()
    }
}
