//! Thinking levels: reading them, and which one follows a change.

use pith_config::Settings;
use pith_protocol::{Model, ThinkingLevel};

use crate::catalogue::current_name;

/// Parses a level, in upper or lower case.
pub fn parse_level(name: &str) -> Option<ThinkingLevel> {
    ThinkingLevel::ALL.into_iter().find(|level| level.as_str().eq_ignore_ascii_case(name))
}

/// Returns the error text for a word that is no level.
pub fn invalid_level(name: &str) -> String {
    format!("Invalid thinking level \"{name}\". {}", valid_levels())
}

pub(super) fn valid_levels() -> String {
    format!("Valid values: {}", ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", "))
}

/// Returns the level after switching to a model. `scoped` comes with the scope when the switch was a cycle through it.
pub fn after_switch(
    settings: &Settings,
    model: &Model,
    scoped: Option<ThinkingLevel>,
    current: ThinkingLevel,
) -> ThinkingLevel {
    let wanted = scoped.or_else(|| of_model(settings, model)).or(settings.default_thinking_level).unwrap_or(current);
    model.clamp_thinking(wanted)
}

/// Returns the next level of the model, or none when it does not think.
pub fn next_level(model: &Model, current: ThinkingLevel) -> Option<ThinkingLevel> {
    if !model.reasoning {
        return None;
    }
    let levels = model.thinking_levels();
    let at = levels.iter().position(|level| *level == current);
    Some(levels[at.map_or(0, |at| (at + 1) % levels.len())])
}

pub(super) fn of_model(settings: &Settings, model: &Model) -> Option<ThinkingLevel> {
    let levels = &settings.model_thinking_levels;
    let name = format!("{}/{}", model.provider, model.id);
    let former = || levels.iter().find(|(other, _)| current_name(other) == name).map(|(_, level)| level);
    levels.get(&name).or_else(former).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ThinkingLevel::*;

    fn model(reasoning: bool) -> Model {
        Model { id: "m".into(), provider: "p".into(), reasoning, ..Model::default() }
    }

    #[test]
    fn levels_are_read_in_any_case() {
        assert_eq!(parse_level("HIGH"), Some(High));
        assert_eq!(parse_level("xHigh"), Some(Xhigh));
        assert_eq!(parse_level("silly"), None);
        assert_eq!(
            invalid_level("silly"),
            "Invalid thinking level \"silly\". Valid values: off, minimal, low, medium, high, xhigh, max"
        );
    }

    #[test]
    fn a_switch_takes_the_most_specific_level() {
        let mut settings = Settings::default();
        assert_eq!(after_switch(&settings, &model(true), None, Low), Low);
        settings.default_thinking_level = Some(High);
        assert_eq!(after_switch(&settings, &model(true), None, Low), High);
        settings.model_thinking_levels.insert("p/m".into(), Minimal);
        assert_eq!(after_switch(&settings, &model(true), None, Low), Minimal);
        assert_eq!(after_switch(&settings, &model(true), Some(Max), Low), High, "clamped");
        assert_eq!(after_switch(&settings, &model(false), Some(High), Low), Off);
        settings.model_thinking_levels.insert("azure-openai-responses/m".into(), Max);
        let renamed = Model { provider: "azure".into(), ..model(true) };
        assert_eq!(of_model(&settings, &renamed), Some(Max), "its provider had another id");
    }

    #[test]
    fn levels_cycle_through_what_the_model_has() {
        let check = |from, to| assert_eq!(next_level(&model(true), from), Some(to));
        check(Off, Minimal);
        check(High, Off);
        check(Max, Off);
        assert_eq!(next_level(&model(false), Off), None);
    }
}
