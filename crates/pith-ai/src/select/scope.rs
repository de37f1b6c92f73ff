//! The models a session moves between: `--models`, `enabledModels`, and cycling.

use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use pith_protocol::{Model, ThinkingLevel};

use super::pattern::{self, Match, split_level};
use crate::catalogue::{current_id, current_name};
use crate::registry::Registry;

/// A model in scope.
#[derive(Clone, Debug, PartialEq)]
pub struct Scoped {
    pub model: Arc<Model>,
    /// The level its pattern asked for.
    pub level: Option<ThinkingLevel>,
}

/// The usable models that patterns selected, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    pub models: Vec<Scoped>,
    pub warnings: Vec<String>,
}

/// Resolves patterns against the usable models. The first pattern that selects a model decides its level.
pub fn resolve_scope<S: AsRef<str>>(registry: &Registry, patterns: &[S]) -> Scope {
    let mut scope = Scope::default();
    if patterns.is_empty() {
        return scope;
    }
    let available = registry.available();
    for text in patterns.iter().map(|text| text.as_ref().trim()).filter(|text| !text.is_empty()) {
        let text = &*current_name(text);
        let selected = if text.contains(['*', '?', '[']) {
            by_glob(&available, text, &mut scope.warnings)
        } else {
            by_pattern(&available, text, &mut scope.warnings)
        };
        if selected.is_empty() {
            scope.warnings.push(format!("No models match pattern \"{text}\""));
        }
        for scoped in selected {
            if !scope.contains(&scoped.model) {
                scope.models.push(scoped);
            }
        }
    }
    scope
}

impl Scope {
    /// Whether the model is in scope.
    pub fn contains(&self, model: &Model) -> bool {
        self.find(&model.provider, &model.id).is_some()
    }

    /// Returns the member of that provider and id.
    pub fn find(&self, provider: &str, id: &str) -> Option<&Scoped> {
        let provider = current_id(provider);
        self.models.iter().find(|scoped| scoped.model.provider == provider && scoped.model.id == id)
    }
}

fn by_pattern(available: &[Arc<Model>], text: &str, warnings: &mut Vec<String>) -> Vec<Scoped> {
    match pattern::find(available, text) {
        Match::Found(found) => same_id(available, found.model, found.level, text, warnings),
        Match::BadLevel { found, suffix } => {
            let what = format!("Invalid thinking level \"{suffix}\" in pattern \"{text}\". Using default instead.");
            warnings.push(what);
            same_id(available, found.model, None, text, warnings)
        }
        Match::Nothing => vec![],
    }
}

/// Returns the found model and, unless the pattern names its provider, those of the same id of other providers.
fn same_id(
    available: &[Arc<Model>],
    found: Arc<Model>,
    level: Option<ThinkingLevel>,
    pattern: &str,
    warnings: &mut Vec<String>,
) -> Vec<Scoped> {
    // The id may be followed by a level.
    let mut names = std::iter::successors(Some(pattern), |name| Some(name.rsplit_once(':')?.0));
    if names.any(|name| pattern::is_full_name(&found, name.trim())) {
        return vec![Scoped { model: found, level }];
    }
    let same: Vec<&Arc<Model>> = available.iter().filter(|model| model.id.eq_ignore_ascii_case(&found.id)).collect();
    if same.len() > 1 {
        let mut providers: Vec<&str> = same.iter().map(|model| &*model.provider).collect();
        providers.sort_unstable();
        let providers = providers.join(", ");
        warnings.push(format!(
            "Pattern \"{pattern}\" matches several providers: {providers}. Use provider/id to choose one."
        ));
    }
    same.into_iter().map(|model| Scoped { model: model.clone(), level }).collect()
}

fn by_glob(available: &[Arc<Model>], pattern: &str, warnings: &mut Vec<String>) -> Vec<Scoped> {
    let (text, level) = split_level(pattern);
    // Ids may contain brackets.
    let named = pattern::exact(available, text);
    if let Some(model) = named.or_else(|| available.iter().find(|model| model.id.eq_ignore_ascii_case(text)).cloned()) {
        return same_id(available, model, level, pattern, warnings);
    }
    let Some(glob) = glob(text) else { return vec![] };
    let matches =
        |model: &&Arc<Model>| glob.is_match(format!("{}/{}", model.provider, model.id)) || glob.is_match(&model.id);
    available.iter().filter(matches).map(|model| Scoped { model: model.clone(), level }).collect()
}

/// Compiles a glob in which `*` stops at a slash and `**` does not, except that `provider/*` is all of that provider.
fn glob(text: &str) -> Option<GlobMatcher> {
    let whole_provider = text.strip_suffix("/*").filter(|head| !head.contains('/')).map(|head| format!("{head}/**"));
    let text = whole_provider.as_deref().unwrap_or(text);
    let glob = GlobBuilder::new(text).case_insensitive(true).literal_separator(true).backslash_escape(false).build();
    Some(glob.ok()?.compile_matcher())
}

/// Where cycling leads.
#[derive(Clone, Debug, PartialEq)]
pub struct Cycled {
    pub model: Arc<Model>,
    /// The scope's level for it.
    pub level: Option<ThinkingLevel>,
    pub is_scoped: bool,
}

/// Returns the usable model after the current one, in the scope or, without one, among all. None with fewer than two.
/// A current model that is not among them counts as the first.
pub fn next_model(registry: &Registry, scope: &[Scoped], current: Option<&Model>) -> Option<Cycled> {
    let is_scoped = !scope.is_empty();
    let candidates: Vec<Scoped> = if is_scoped {
        scope.iter().filter(|scoped| registry.is_usable(&scoped.model)).cloned().collect()
    } else {
        registry.available().into_iter().map(|model| Scoped { model, level: None }).collect()
    };
    if candidates.len() < 2 {
        return None;
    }
    let is_current = |scoped: &Scoped| {
        current.is_some_and(|current| scoped.model.provider == current.provider && scoped.model.id == current.id)
    };
    let next = (candidates.iter().position(is_current).unwrap_or(0) + 1) % candidates.len();
    let Scoped { model, level } = candidates[next].clone();
    Some(Cycled { model, level, is_scoped })
}
