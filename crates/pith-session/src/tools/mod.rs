//! Which tools the model has, and where they work.

mod choice;
mod fitting;
pub(crate) mod host;
pub(crate) mod images;
mod link;
mod mcp;
mod ranking;
mod record;
mod search;
pub(crate) mod shell;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use pith_agent::{Tool, Toolset};
use pith_config::Settings;
use pith_tools::Workbench;

use crate::session::Session;
use choice::{Candidate, Chosen, Source};
pub use choice::{ToolChoice, ToolFlags, name_in_entry};
pub(crate) use fitting::FittingTool;
pub(crate) use link::{FromTool, ToolLink};
use mcp::Deferred;
pub(crate) use search::TOOL_SEARCH;

/// Makes the tools for a working directory and settings. Given the workbench of the same directory, it takes over that
/// one's state and running processes.
pub type MakeTools = Box<dyn Fn(&Path, &Settings, Option<&Workbench>) -> MadeTools + Send>;

/// Built-in tools, and what they work with.
pub type MadeTools = (Arc<Workbench>, Vec<Arc<dyn Tool>>);

/// All known tools and the active ones among them.
pub(crate) struct Tools {
    /// Where the built-in ones work.
    workbench: Arc<Workbench>,
    make: MakeTools,
    /// Built-in tools, and those added at the start. Hosts cannot use their names.
    known: Vec<Arc<dyn Tool>>,
    choice: ToolChoice,
    /// Names of known tools that were activated later.
    added: Vec<String>,
    /// Tools of extensions, and whether the model sees them by default. One with the name of a known
    /// tool replaces it.
    extensions: Vec<(Arc<dyn Tool>, bool)>,
    /// The host's tools, and whether the model sees them.
    host: Vec<(Arc<dyn Tool>, bool)>,
    /// Tools of MCP servers, which give way to every other tool of the same name.
    mcp: Vec<Arc<dyn Tool>>,
    deferred: Option<Deferred>,
    /// What an extension has chosen, in this process or when the session was used before.
    chosen: Option<Chosen>,
    /// What the branch says about that.
    recorded: Option<Chosen>,
    /// The names of the active tools, those included that the model has to search for.
    selected: Vec<String>,
    active: Arc<Toolset>,
}

/// When extensions registered their tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registered {
    /// While they were loaded: all of the tools are active, unless the session was left with another choice.
    AtStart,
    /// While they were loaded again in the same session: all of the tools become active.
    Again,
    /// Later in the session: tools with new names become active.
    Later,
}

impl Tools {
    pub fn new(workbench: Arc<Workbench>, make: MakeTools, known: Vec<Arc<dyn Tool>>, choice: ToolChoice) -> Self {
        let mut tools = Tools {
            workbench,
            make,
            known,
            choice,
            added: Vec::new(),
            extensions: Vec::new(),
            host: Vec::new(),
            mcp: Vec::new(),
            deferred: None,
            chosen: None,
            recorded: None,
            selected: Vec::new(),
            active: Arc::new(Toolset::new(Vec::new())),
        };
        tools.rebuild();
        tools
    }

    pub fn active(&self) -> &Arc<Toolset> {
        &self.active
    }

    /// Whether a tool that is not the host's has that name, active or not.
    pub fn is_taken(&self, name: &str) -> bool {
        self.known.iter().chain(self.extensions.iter().map(|(tool, _)| tool)).any(|tool| &*tool.spec().name == name)
    }

    /// Every tool that could be active, ordered by origin.
    pub fn all(&self) -> Vec<Arc<dyn Tool>> {
        let usable = |(tool, candidate): (Arc<dyn Tool>, Candidate)| self.choice.allows(&candidate).then_some(tool);
        self.candidates().into_iter().filter_map(usable).collect()
    }

    /// Activates exactly the named tools; unknown names are dropped.
    pub fn choose(&mut self, names: &[String]) {
        let known = self.all();
        let known: Vec<&str> = known.iter().map(|tool| &*tool.spec().name).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        // What the model searches for is on no list of active tools, and stays as long as the search does.
        let deferred = if names.contains(&TOOL_SEARCH) { self.deferred() } else { Vec::new() };
        names.extend(deferred.iter().map(|tool| &*tool.spec().name));
        self.chosen = Some(Chosen::new(&names, &known, &self.selected, self.chosen.as_ref()));
        self.rebuild();
    }

    /// Replaces the tools of extensions. After the start, a tool that is known already stays as visible as it was.
    pub fn set_extensions(&mut self, tools: Vec<Arc<dyn Tool>>, registered: Registered) {
        let before = std::mem::take(&mut self.extensions);
        for tool in tools {
            let name = &tool.spec().name;
            let was = before.iter().find(|(tool, _)| tool.spec().name == *name).map(|(_, is_shown)| *is_shown);
            let is_shown = match (registered, was) {
                (Registered::AtStart | Registered::Again, _) => true,
                (Registered::Later, Some(was)) => was,
                (Registered::Later, None) => !self.known.iter().any(|known| known.spec().name == *name),
            };
            if let Some(chosen) = self.chosen.as_mut().filter(|_| registered == Registered::Again) {
                chosen.readmit(name);
            }
            self.extensions.push((tool, is_shown));
        }
        self.rebuild();
    }

    /// Activates a known tool, unless the user chose the tools by name.
    pub fn activate(&mut self, name: &str) {
        let is_active = self.active.get(name).is_some();
        let is_chosen = self.choice.is_made_by_flags() || self.choice.is_excluded(name);
        if !is_active && !is_chosen {
            self.added.push(name.to_owned());
            self.chosen.iter_mut().for_each(|chosen| chosen.readmit(name));
            self.rebuild();
        }
    }

    /// Replaces the host's tools. A tool that is known already stays as visible as it was.
    pub fn set_host(&mut self, tools: Vec<(Arc<dyn Tool>, bool)>) {
        let before = std::mem::take(&mut self.host);
        let was =
            |name: &str| before.iter().find(|(tool, _)| &*tool.spec().name == name).map(|(_, is_shown)| *is_shown);
        let keep = |(tool, is_shown): (Arc<dyn Tool>, bool)| {
            let is_shown = was(&tool.spec().name).unwrap_or(is_shown);
            (tool, is_shown)
        };
        self.host = tools.into_iter().map(keep).collect();
        self.rebuild();
    }

    /// Makes the built-in tools again, for changed settings.
    pub fn remake(&mut self, cwd: &Path, settings: &Settings) {
        let (workbench, tools) = (self.make)(cwd, settings, Some(&self.workbench));
        self.workbench = workbench;
        self.choice.defaults = settings.default_tools.clone();
        self.replace_known(tools);
    }

    /// Moves the built-in tools to another directory. The caller ends what still runs in the workbench that is
    /// returned.
    pub fn move_to(&mut self, cwd: &Path, settings: &Settings) -> Arc<Workbench> {
        let (workbench, tools) = (self.make)(cwd, settings, None);
        self.replace_known(tools);
        std::mem::replace(&mut self.workbench, workbench)
    }

    /// Replaces the known tools that have the same names; all others stay.
    fn replace_known(&mut self, newer: Vec<Arc<dyn Tool>>) {
        let is_replaced = |tool: &Arc<dyn Tool>| newer.iter().any(|other| other.spec().name == tool.spec().name);
        let kept: Vec<_> = self.known.iter().filter(|tool| !is_replaced(tool)).cloned().collect();
        self.known = newer.into_iter().chain(kept).collect();
        self.rebuild();
    }

    /// Whether the active tools are those that are active without a choice.
    fn is_default(&self) -> bool {
        let (_, candidates): (Vec<_>, Vec<_>) = self.candidates().into_iter().unzip();
        let names = self.choice.select(&candidates, None).into_iter().map(|place| &*candidates[place].name);
        let mut missing: HashSet<&str> = names.collect();
        self.selected.iter().all(|name| missing.remove(name.as_str())) && missing.is_empty()
    }

    fn rebuild(&mut self) {
        let (tools, candidates): (Vec<_>, Vec<_>) = self.candidates().into_iter().unzip();
        let selected = self.choice.select(&candidates, self.chosen.as_ref());
        let active: Vec<Arc<dyn Tool>> = selected.into_iter().map(|place| Arc::clone(&tools[place])).collect();
        self.selected = active.iter().map(|tool| tool.spec().name.to_string()).collect();
        self.active = Arc::new(self.declared(active));
    }

    /// The known tools, replaced by those of extensions with the same name, then the other tools of extensions, those
    /// of the host and those of MCP servers: each name once.
    fn candidates(&self) -> Vec<(Arc<dyn Tool>, Candidate)> {
        let candidate = |tool: &Arc<dyn Tool>, source, is_shown| {
            (tool.clone(), Candidate { name: tool.spec().name.clone(), source, is_shown })
        };
        let of_extension = |(tool, is_shown): &(Arc<dyn Tool>, bool)| candidate(tool, Source::Extension, *is_shown);
        let known = self.known.iter().filter_map(|tool| {
            let name = &tool.spec().name;
            let is_added = self.is_added(name);
            match self.extensions.iter().find(|(other, _)| other.spec().name == *name) {
                Some(replacing) => Some(of_extension(replacing)),
                None if self.choice.is_unlisted(name) && !is_added => None,
                None => Some(candidate(tool, Source::Known, is_added)),
            }
        });
        let host = self.host.iter().map(|(tool, is_shown)| candidate(tool, Source::Host, *is_shown));
        let mcp = self.mcp_tools();
        let servers = mcp.iter().map(|tool| candidate(tool, Source::Server, true));
        let mut names = HashSet::new();
        let all = known.chain(self.extensions.iter().map(of_extension)).chain(host).chain(servers);
        all.filter(|(_, candidate)| names.insert(candidate.name.clone())).collect()
    }

    fn is_added(&self, name: &str) -> bool {
        self.added.iter().any(|added| added == name)
    }
}

/// Keeps the first tool of each name.
fn unique(tools: impl Iterator<Item = Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
    let mut unique: Vec<Arc<dyn Tool>> = Vec::new();
    for tool in tools {
        if !unique.iter().any(|earlier| earlier.spec().name == tool.spec().name) {
            unique.push(tool);
        }
    }
    unique
}

impl Session {
    /// The directory, shell and state that the built-in tools share.
    pub(crate) fn workbench(&self) -> &Arc<Workbench> {
        &self.tools.workbench
    }
}
