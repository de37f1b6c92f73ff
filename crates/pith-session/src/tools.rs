//! Which tools the model has, and the prompt that follows from them.

use std::sync::Arc;

use pith_agent::{Tool, Toolset};

/// All known tools and the active ones among them.
pub(crate) struct Tools {
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
}

const DEFAULTS: [&str; 4] = ["read", "bash", "edit", "write"];

impl Tools {
    /// The prompt is empty until it is set.
    pub fn new(known: Vec<Arc<dyn Tool>>, choice: &ToolChoice) -> Self {
        Tools { active: Arc::new(Toolset::new(choice.select(known))), prompt: Arc::default() }
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
}

impl ToolChoice {
    fn select(&self, known: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
        let wanted: Vec<&str> = match (&self.only, self.none, &self.defaults) {
            (Some(only), _, _) => only.iter().map(String::as_str).collect(),
            (None, true, _) => Vec::new(),
            (None, false, Some(defaults)) => defaults.iter().map(String::as_str).collect(),
            (None, false, None) => DEFAULTS.to_vec(),
        };
        let find = |name: &&str| known.iter().find(|tool| &*tool.spec().name == *name).cloned();
        let mut seen: Vec<&str> = Vec::new();
        let fresh = wanted.into_iter().filter(|name| {
            let is_new = !seen.contains(name) && !self.exclude.iter().any(|excluded| excluded == name);
            seen.push(name);
            is_new
        });
        fresh.collect::<Vec<_>>().iter().filter_map(find).collect()
    }
}
