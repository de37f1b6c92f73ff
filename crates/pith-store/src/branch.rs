//! What a branch says about the settings it was used with.

use crate::sketch::Sketch;
use crate::tree::{EntryTree, Kind, NodeIndex, Role};

/// The model and the thinking level at a leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchSettings {
    /// Provider and model id of the last `model_change` or answer.
    pub model: Option<(String, String)>,
    /// The last `thinking_level_change`, in the file's words.
    pub thinking_level: Option<String>,
}

impl BranchSettings {
    /// Reads as little of the branch as needed, newest first.
    pub(crate) fn of(tree: &EntryTree, leaf: Option<NodeIndex>) -> Self {
        let mut settings = BranchSettings::default();
        let mut lines = tree.lines();
        let mut scratch = Vec::new();
        for index in std::iter::successors(leaf, |&index| tree.node(index).parent) {
            let kind = tree.node(index).kind;
            let is_wanted = match kind {
                Kind::ModelChange | Kind::Message(Role::Assistant) => settings.model.is_none(),
                Kind::ThinkingLevelChange => settings.thinking_level.is_none(),
                _ => false,
            };
            if is_wanted && let Some(sketch) = lines.get(index).ok().and_then(|line| Sketch::read(line, &mut scratch)) {
                let mut older = BranchSettings::default();
                older.observe(kind, &sketch);
                settings.model = settings.model.or(older.model);
                settings.thinking_level = settings.thinking_level.or(older.thinking_level);
            }
            if settings.model.is_some() && settings.thinking_level.is_some() {
                break;
            }
        }
        settings
    }

    /// Applies what a newer entry says.
    pub(crate) fn observe(&mut self, kind: Kind, sketch: &Sketch<'_>) {
        let (provider, model) = match kind {
            Kind::ModelChange => (&sketch.provider, &sketch.model_id),
            Kind::Message(Role::Assistant) => (&sketch.message.provider, &sketch.message.model),
            Kind::ThinkingLevelChange => {
                if let Some(level) = &sketch.thinking_level {
                    self.thinking_level = Some(level.clone().into_owned());
                }
                return;
            }
            _ => return,
        };
        if let (Some(provider), Some(model)) = (provider, model) {
            let is_same = self.model.as_ref().is_some_and(|(p, m)| p == provider && m == model);
            if !is_same {
                self.model = Some((provider.clone().into_owned(), model.clone().into_owned()));
            }
        }
    }
}
