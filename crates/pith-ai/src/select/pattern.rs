//! Matching what a person typed against models.

use std::sync::Arc;

use pith_protocol::{Model, ThinkingLevel};

use super::level::parse_level;

/// A model found by a pattern, and the level the pattern asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub model: Arc<Model>,
    pub level: Option<ThinkingLevel>,
}

/// What a pattern led to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Match {
    Found(Found),
    /// The part before the last colon names a model; the part after it is no level.
    BadLevel {
        found: Found,
        suffix: String,
    },
    Nothing,
}

/// Returns the only model with this `provider/id` or bare id, in any case.
pub(super) fn exact(models: &[Arc<Model>], text: &str) -> Option<Arc<Model>> {
    let text = text.trim();
    let full = only(models.iter().filter(|model| is_full_name(model, text)));
    full.or_else(|| only(models.iter().filter(|model| model.id.eq_ignore_ascii_case(text)))).cloned()
}

/// Whether the text is the model's `provider/id`.
pub(super) fn is_full_name(model: &Model, text: &str) -> bool {
    let split = text.len().checked_sub(model.id.len() + 1).filter(|at| text.as_bytes().get(*at) == Some(&b'/'));
    split.is_some_and(|at| {
        model.provider.eq_ignore_ascii_case(&text[..at]) && model.id.eq_ignore_ascii_case(&text[at + 1..])
    })
}

/// Finds an exact match, else the best model that contains the text, else the same without a level suffix.
pub(super) fn find(models: &[Arc<Model>], text: &str) -> Match {
    if let Some(model) = exact(models, text).or_else(|| containing(models, text)) {
        return Match::Found(Found { model, level: None });
    }
    let Some((head, suffix)) = text.rsplit_once(':') else { return Match::Nothing };
    match (find(models, head), parse_level(suffix)) {
        (Match::Found(found), Some(level)) => Match::Found(Found { level: Some(level), ..found }),
        (Match::Found(found), None) => Match::BadLevel { found, suffix: suffix.to_owned() },
        (worse, _) => worse,
    }
}

/// Returns a text without its level suffix, and that level.
pub(super) fn split_level(text: &str) -> (&str, Option<ThinkingLevel>) {
    match text.rsplit_once(':') {
        Some((head, suffix)) => match parse_level(suffix) {
            Some(level) => (head, Some(level)),
            None => (text, None),
        },
        None => (text, None),
    }
}

fn only<'a>(mut models: impl Iterator<Item = &'a Arc<Model>>) -> Option<&'a Arc<Model>> {
    models.next().filter(|_| models.next().is_none())
}

/// Returns the best model whose id or name contains the text: ids without a date before dated ones, then the
/// id that sorts last.
fn containing(models: &[Arc<Model>], text: &str) -> Option<Arc<Model>> {
    let text = text.trim().to_lowercase();
    if text.is_empty() {
        return None;
    }
    let contains = |field: &str| field.to_lowercase().contains(&text);
    let mut best: Option<((bool, String), &Arc<Model>)> = None;
    for model in models.iter().filter(|model| contains(&model.id) || contains(&model.name)) {
        let rank = (is_alias(&model.id), model.id.to_lowercase());
        // Of equal ids the first one stays.
        if best.as_ref().is_none_or(|(best, _)| rank > *best) {
            best = Some((rank, model));
        }
    }
    best.map(|(_, model)| model.clone())
}

/// Whether an id has no date at its end.
fn is_alias(id: &str) -> bool {
    let Some((_, tail)) = id.rsplit_once('-') else { return true };
    !(tail.len() == 8 && tail.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(names: &[&str]) -> Vec<Arc<Model>> {
        let model = |name: &&str| {
            let (provider, id) = name.split_once('/').expect("provider/id");
            Arc::new(Model { provider: provider.into(), id: id.into(), name: id.into(), ..Model::default() })
        };
        names.iter().map(model).collect()
    }

    fn show(found: Match) -> String {
        let name = |found: Found| {
            let level = found.level.map(|level| format!(" {}", level.as_str())).unwrap_or_default();
            format!("{}/{}{level}", found.model.provider, found.model.id)
        };
        match found {
            Match::Found(found) => name(found),
            Match::BadLevel { found, suffix } => format!("{} not {suffix}", name(found)),
            Match::Nothing => "-".into(),
        }
    }

    #[test]
    fn exact_names() {
        let models = models(&["a/m", "b/m", "b/x", "r/a/x", "c/y"]);
        let check = |text: &str, expected: Option<&str>| {
            let found = exact(&models, text).map(|model| format!("{}/{}", model.provider, model.id));
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        check("a/m", Some("a/m"));
        check(" A/M ", Some("a/m"));
        check("m", None); // two of them
        check("x", Some("b/x"));
        check("a/x", Some("r/a/x")); // a bare id with a slash in it
        check("r/a/x", Some("r/a/x"));
        check("nope", None);
        check("", None);
    }

    #[test]
    fn patterns() {
        let list = models(&[
            "a/claude-sonnet-4-20250514",
            "a/claude-sonnet-4",
            "a/claude-sonnet-5",
            "a/old-20240101",
            "a/old-20250101",
            "a/tag:7b",
            "a/fresh-latest",
        ]);
        let check = |text: &str, expected: &str| assert_eq!(show(find(&list, text)), expected, "{text}");
        check("sonnet", "a/claude-sonnet-5");
        check("SONNET-4", "a/claude-sonnet-4");
        check("sonnet-4-2", "a/claude-sonnet-4-20250514");
        check("old", "a/old-20250101");
        check("sonnet:high", "a/claude-sonnet-5 high");
        check("sonnet:HIGH", "a/claude-sonnet-5 high");
        check("a/claude-sonnet-4:off", "a/claude-sonnet-4 off");
        check("sonnet:bogus", "a/claude-sonnet-5 not bogus");
        check("tag:7b", "a/tag:7b");
        check("tag:7b:low", "a/tag:7b low");
        check("fresh", "a/fresh-latest");
        check("nope", "-");
        check("nope:high", "-");
        check("", "-");
        check(":high", "-");
    }

    #[test]
    fn names_for_people_are_searched_too() {
        let model = Model { id: "x1".into(), name: "Grand Model".into(), ..Model::default() };
        assert!(matches!(find(&[Arc::new(model)], "grand"), Match::Found(_)));
    }

    #[test]
    fn levels_are_split_off() {
        assert_eq!(split_level("a*:high"), ("a*", Some(ThinkingLevel::High)));
        assert_eq!(split_level("a*:free"), ("a*:free", None));
        assert_eq!(split_level("a"), ("a", None));
    }
}
