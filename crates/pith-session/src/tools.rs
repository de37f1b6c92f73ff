//! Which tools the model has, and the prompt that follows from them.

use std::sync::Arc;

use pith_agent::{Tool, Toolset};

/// All known tools and the active ones among them.
pub(crate) struct Tools {
    /// Built in, or added at start: their names are taken.
    known: Vec<Arc<dyn Tool>>,
    choice: ToolChoice,
    /// Names of known tools that were activated later.
    added: Vec<String>,
    /// The host's tools, and whether the model sees them.
    host: Vec<(Arc<dyn Tool>, bool)>,
    locale: Option<String>,
    active: Arc<Toolset>,
    prompt: Arc<str>,
}

/// What the command line and settings say about tools.
#[derive(Clone, Debug, Default)]
pub struct ToolChoice {
    /// `--tools`: exactly these.
    pub only: Option<Vec<String>>,
    /// `--no-tools`, `--no-builtin-tools`.
    pub none: bool,
    /// `--exclude-tools`, applied last.
    pub exclude: Vec<String>,
    /// The `defaultTools` setting.
    pub defaults: Option<Vec<String>>,
    /// Tools that join the built-in choice.
    pub additional: Vec<&'static str>,
}

const DEFAULTS: [&str; 4] = ["read", "bash", "edit", "write"];

impl Tools {
    /// The prompt is empty until it is set.
    pub fn new(known: Vec<Arc<dyn Tool>>, choice: ToolChoice) -> Self {
        let mut tools = Tools {
            known,
            choice,
            added: Vec::new(),
            host: Vec::new(),
            locale: None,
            active: Arc::new(Toolset::new(Vec::new())),
            prompt: "".into(),
        };
        tools.rebuild();
        tools
    }

    pub fn active(&self) -> &Arc<Toolset> {
        &self.active
    }

    pub fn prompt(&self) -> &Arc<str> {
        &self.prompt
    }

    pub fn set_prompt(&mut self, prompt: String) {
        if *self.prompt != prompt {
            self.prompt = prompt.into();
        }
    }

    /// Whether a tool that is not the host's has that name, active or not.
    pub fn is_taken(&self, name: &str) -> bool {
        self.known.iter().any(|tool| &*tool.spec().name == name)
    }

    /// Every tool that could be active, in the order of their origin.
    pub fn all(&self) -> Vec<Arc<dyn Tool>> {
        self.known.iter().chain(self.host.iter().map(|(tool, _)| tool)).cloned().collect()
    }

    /// Adds a known tool to the active ones, unless the user chose the tools by name.
    pub fn activate(&mut self, name: &str) {
        let is_active = self.active.get(name).is_some();
        let is_chosen = self.choice.only.is_some() || self.choice.none || self.choice.is_excluded(name);
        if !is_active && !is_chosen {
            self.added.push(name.to_owned());
            self.rebuild();
        }
    }

    /// Replaces the host's tools. One that was there before stays as visible as it was.
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

    /// Takes tools that work in another directory in the place of their namesakes; all else stays.
    pub fn relocate(&mut self, moved: Vec<Arc<dyn Tool>>) {
        let is_moved = |tool: &Arc<dyn Tool>| moved.iter().any(|other| other.spec().name == tool.spec().name);
        let kept: Vec<_> = self.known.iter().filter(|tool| !is_moved(tool)).cloned().collect();
        self.known = moved.into_iter().chain(kept).collect();
        self.rebuild();
    }

    /// The language answers should have.
    pub fn set_locale(&mut self, tag: &str) {
        self.locale = Some(tag.to_owned());
    }

    pub fn locale(&self) -> Option<&str> {
        self.locale.as_deref()
    }

    fn rebuild(&mut self) {
        let mut active = self.choice.select(&self.known);
        let is_added = |tool: &&Arc<dyn Tool>| self.added.iter().any(|name| **name == *tool.spec().name);
        active.extend(self.known.iter().filter(is_added).cloned());
        let shown =
            self.host.iter().filter(|(tool, is_shown)| *is_shown && !self.choice.is_excluded(&tool.spec().name));
        active.extend(shown.map(|(tool, _)| tool.clone()));
        self.active = Arc::new(Toolset::new(active));
    }
}

impl ToolChoice {
    fn is_excluded(&self, name: &str) -> bool {
        self.exclude.iter().any(|excluded| excluded == name)
    }

    fn select(&self, known: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        let wanted: Vec<&str> = match (&self.only, self.none, &self.defaults) {
            (Some(only), _, _) => only.iter().map(String::as_str).collect(),
            (None, true, _) => Vec::new(),
            (None, false, Some(defaults)) => defaults.iter().map(String::as_str).collect(),
            (None, false, None) => DEFAULTS.iter().chain(&self.additional).copied().collect(),
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
