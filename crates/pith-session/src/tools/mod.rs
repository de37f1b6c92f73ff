//! Which tools the model has, and where they work.

mod fitting;
pub(crate) mod host;
pub(crate) mod images;
mod link;
mod mcp;
mod ranking;
mod search;
pub(crate) mod shell;

use std::path::Path;
use std::sync::Arc;

use pith_agent::{Tool, Toolset, is_named_by};
use pith_config::Settings;
use pith_tools::{BUILTINS, Workbench};

use crate::session::Session;
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
    /// The names of the active tools, once an extension has chosen them.
    wanted: Option<Vec<String>>,
    active: Arc<Toolset>,
}

/// What the command line and settings say about tools.
#[derive(Clone, Debug, Default)]
pub struct ToolChoice {
    /// `--tools`: exactly these.
    pub only: Option<Vec<String>>,
    /// `--no-tools`, `--no-builtin-tools`.
    pub none: bool,
    /// `--no-tools`: no tools of extensions either.
    pub no_extension_tools: bool,
    /// `--exclude-tools`, applied last.
    pub exclude: Vec<String>,
    /// The `defaultTools` setting.
    pub defaults: Option<Vec<String>>,
    /// Tools that are added to the default ones.
    pub additional: Vec<&'static str>,
    /// Known tools that are not listed until they are named or activated.
    pub unlisted: Vec<&'static str>,
}

/// When extensions registered their tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registered {
    /// While they were loaded: all of the tools become active.
    AtStart,
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
            wanted: None,
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
        let host = self.host.iter().map(|(tool, _)| tool.clone());
        let is_listed = |tool: &Arc<dyn Tool>| {
            let name = &tool.spec().name;
            self.choice.is_allowed(name) && !self.is_unlisted(name)
        };
        let mcp = self.mcp_tools();
        unique(self.candidates().into_iter().filter(is_listed).chain(host).chain(mcp))
    }

    fn is_unlisted(&self, name: &str) -> bool {
        let is_of_extension = || self.extensions.iter().any(|(tool, _)| *tool.spec().name == *name);
        let is_added = || self.added.iter().any(|added| added == name);
        self.choice.is_unlisted(name) && !is_added() && !is_of_extension()
    }

    /// Activates exactly the named tools; unknown names are dropped.
    pub fn choose(&mut self, names: &[String]) {
        let known = self.all();
        let is_known = |name: &&String| known.iter().any(|tool| *tool.spec().name == ***name);
        self.wanted = Some(names.iter().filter(is_known).cloned().collect());
        self.rebuild();
    }

    /// Forgets the tools that extensions chose, because another session begins.
    pub fn forget_choice(&mut self) {
        self.wanted = None;
        self.rebuild();
    }

    /// Replaces the tools of extensions. After the start, a tool that is known already stays as visible as it was.
    pub fn set_extensions(&mut self, tools: Vec<Arc<dyn Tool>>, registered: Registered) {
        let before = std::mem::take(&mut self.extensions);
        for tool in tools {
            let name = &tool.spec().name;
            let was = before.iter().find(|(tool, _)| tool.spec().name == *name).map(|(_, is_shown)| *is_shown);
            let is_shown = match (registered, was) {
                (Registered::AtStart, _) => true,
                (Registered::Later, Some(was)) => was,
                (Registered::Later, None) => !self.known.iter().any(|known| known.spec().name == *name),
            };
            let is_added = registered == Registered::AtStart || (was.is_none() && is_shown);
            if let Some(wanted) = &mut self.wanted
                && is_added
                && !wanted.iter().any(|wanted| **wanted == **name)
            {
                wanted.push(name.to_string());
            }
            self.extensions.push((tool, is_shown));
        }
        self.rebuild();
    }

    /// Activates a known tool, unless the user chose the tools by name.
    pub fn activate(&mut self, name: &str) {
        let is_active = self.active.get(name).is_some();
        let is_chosen = self.choice.only.is_some() || self.choice.none || self.choice.is_excluded(name);
        if !is_active && !is_chosen {
            self.added.push(name.to_owned());
            self.wanted.iter_mut().for_each(|wanted| wanted.push(name.to_owned()));
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
        if let Some(wanted) = &mut self.wanted {
            let new = self.host.iter().filter(|(tool, is_shown)| *is_shown && was(&tool.spec().name).is_none());
            wanted.extend(new.map(|(tool, _)| tool.spec().name.to_string()));
        }
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

    fn rebuild(&mut self) {
        let active = match &self.wanted {
            Some(names) => self.chosen(names),
            None => self.default_tools(),
        };
        self.active = Arc::new(self.declared(active));
    }

    /// The known tools, replaced by those of extensions with the same name, then the other tools of extensions.
    fn candidates(&self) -> Vec<Arc<dyn Tool>> {
        let of_extension = |tool: &Arc<dyn Tool>| {
            self.extensions.iter().map(|(tool, _)| tool).find(|other| other.spec().name == tool.spec().name)
        };
        let known = self.known.iter().map(|tool| of_extension(tool).unwrap_or(tool).clone());
        unique(known.chain(self.extensions.iter().map(|(tool, _)| tool.clone())))
    }

    fn chosen(&self, names: &[String]) -> Vec<Arc<dyn Tool>> {
        let all = self.all();
        let find = |name: &String| all.iter().find(|tool| **name == *tool.spec().name).cloned();
        unique(names.iter().filter_map(find))
    }

    fn default_tools(&self) -> Vec<Arc<dyn Tool>> {
        let candidates = self.candidates();
        let is_added = |tool: &&Arc<dyn Tool>| self.added.iter().any(|name| **name == *tool.spec().name);
        let added = candidates.iter().filter(is_added).cloned();
        let extensions = self.extensions.iter().filter(|(tool, is_shown)| {
            *is_shown && self.choice.only.is_none() && self.choice.is_allowed(&tool.spec().name)
        });
        let host = self.host.iter().filter(|(tool, is_shown)| *is_shown && !self.choice.is_excluded(&tool.spec().name));
        let others = extensions.chain(host).map(|(tool, _)| tool.clone()).chain(self.mcp_tools());
        unique(self.choice.select(&candidates).into_iter().chain(added).chain(others))
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

impl ToolChoice {
    fn is_excluded(&self, name: &str) -> bool {
        self.exclude.iter().any(|excluded| is_named_by(excluded, name))
    }

    fn is_unlisted(&self, name: &str) -> bool {
        let mut named = self.only.iter().chain(&self.defaults).flatten();
        self.unlisted.contains(&name) && !named.any(|named| named == name)
    }

    /// Whether a tool that is not the host's may be active at all.
    fn is_allowed(&self, name: &str) -> bool {
        let is_named = self.only.as_ref().is_none_or(|only| only.iter().any(|allowed| allowed == name));
        is_named && !self.is_excluded(name) && !(self.no_extension_tools && self.only.is_none())
    }

    /// Whether a tool of an MCP server may be active. Naming other tools does not exclude them.
    fn allows_mcp(&self, name: &str) -> bool {
        let mut named = self.only.iter().flatten().filter(|only| only.starts_with("mcp__")).peekable();
        let is_named = named.peek().is_none() || named.any(|only| is_named_by(only, name));
        is_named && !self.is_excluded(name) && !self.no_extension_tools
    }

    fn select(&self, known: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        let wanted: Vec<&str> = match (&self.only, self.none, &self.defaults) {
            (Some(only), _, _) => only.iter().map(String::as_str).collect(),
            (None, true, _) => Vec::new(),
            (None, false, Some(defaults)) => defaults.iter().map(String::as_str).collect(),
            (None, false, None) => {
                let defaults = BUILTINS.iter().filter(|builtin| builtin.is_default).map(|builtin| builtin.name);
                defaults.chain(self.additional.iter().copied()).collect()
            }
        };
        let find = |name: &&str| known.iter().find(|tool| &*tool.spec().name == *name).cloned();
        let mut seen: Vec<&str> = Vec::new();
        let fresh = wanted.into_iter().filter(|name| {
            let is_new = !seen.contains(name) && !self.is_excluded(name);
            seen.push(name);
            is_new
        });
        fresh.collect::<Vec<_>>().iter().filter_map(find).collect()
    }
}
