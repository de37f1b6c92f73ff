//! Models, thinking levels and switches as the config options and modes of a session.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    Error, SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue, SessionConfigSelectGroup,
    SessionConfigSelectOption, SessionMode, SessionModeState,
};
use pith_protocol::permissions::{ApprovalMode, PermissionMode};
use pith_protocol::{Model, ThinkingLevel};

use crate::Client;
use crate::error::invalid_params;

/// A mode of a session, as editors list it.
struct ListedMode {
    mode: PermissionMode,
    name: &'static str,
    about: &'static str,
}

const fn listed(mode: PermissionMode, name: &'static str, about: &'static str) -> ListedMode {
    ListedMode { mode, name, about }
}

/// The modes. The last one is listed only where it is in force.
const MODES: [ListedMode; 5] = [
    listed(PermissionMode::Allow, "Full access", "Tools run without asking."),
    listed(
        PermissionMode::Write,
        "Edit freely",
        "Reads, and changes inside the project, run. Commands and everything else are asked about.",
    ),
    listed(PermissionMode::Ask, "Ask", "Everything that is not read-only is asked about."),
    listed(PermissionMode::ReadOnly, "Read only", "Everything that is not read-only is refused without asking."),
    listed(PermissionMode::Deny, "No tools", "Only what a rule allows runs."),
];

/// What the options show.
#[derive(Clone, Debug)]
pub struct Choices {
    pub model: Option<Arc<Model>>,
    pub models: Vec<Arc<Model>>,
    pub level: ThinkingLevel,
    pub levels: Vec<ThinkingLevel>,
    pub mode: PermissionMode,
    pub auto_compact: bool,
    pub auto_retry: bool,
}

/// A change that a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Model {
        provider: String,
        id: String,
    },
    Level(ThinkingLevel),
    Mode(PermissionMode),
    AutoCompact(bool),
    AutoRetry(bool),
    /// What is wanted is so already.
    Nothing,
}

/// Returns the id of a mode: its name as an approval mode, if it has one.
pub fn mode_id(mode: PermissionMode) -> &'static str {
    ApprovalMode::of(mode).map_or(mode.as_str(), ApprovalMode::as_str)
}

impl Choices {
    /// All options.
    pub fn options(&self, client: &Client) -> Vec<SessionConfigOption> {
        let mut options = Vec::new();
        if let Some(model) = &self.model {
            let select = SessionConfigOption::select("model", "Model", name(model), self.groups());
            options.push(select.category(SessionConfigOptionCategory::Model));
        }
        if self.levels.len() > 1 {
            let levels: Vec<_> = self.levels.iter().map(|level| choice(level.as_str(), level.as_str())).collect();
            let select = SessionConfigOption::select("thought_level", "Thinking", self.level.as_str(), levels);
            options.push(select.category(SessionConfigOptionCategory::ThoughtLevel));
        }
        let modes =
            self.listed_modes().map(|mode| choice(mode_id(mode.mode), mode.name).description(mode.about.to_owned()));
        let select = SessionConfigOption::select("mode", "Mode", mode_id(self.mode), modes.collect::<Vec<_>>());
        options.push(select.category(SessionConfigOptionCategory::Mode));
        if client.takes_booleans() {
            options.push(SessionConfigOption::boolean("auto_compact", "Summarise when full", self.auto_compact));
            options.push(SessionConfigOption::boolean("auto_retry", "Retry on failure", self.auto_retry));
        }
        options
    }

    /// The modes, for clients that know no options.
    pub fn modes(&self) -> SessionModeState {
        let mode = |listed: &ListedMode| {
            SessionMode::new(mode_id(listed.mode), listed.name).description(listed.about.to_owned())
        };
        SessionModeState::new(mode_id(self.mode), self.listed_modes().map(mode).collect())
    }

    fn listed_modes(&self) -> impl Iterator<Item = &'static ListedMode> {
        MODES.iter().filter(|listed| listed.mode != PermissionMode::Deny || self.mode == PermissionMode::Deny)
    }

    /// Reads a mode.
    pub fn mode_change(&self, wanted: &str) -> Result<Change, Error> {
        let found = self.listed_modes().find(|listed| mode_id(listed.mode) == wanted);
        found.map(|listed| Change::Mode(listed.mode)).ok_or_else(|| {
            let words: Vec<_> = self.listed_modes().map(|listed| mode_id(listed.mode)).collect();
            unknown_value(wanted, &words)
        })
    }

    /// The models that can be chosen. The one in use is always there: clients show the current value only if it is a
    /// choice.
    fn listed_models(&self) -> impl Iterator<Item = &Arc<Model>> {
        let is_listed = |current: &&Arc<Model>| self.models.iter().any(|model| name(model) == name(current));
        self.models.iter().chain(self.model.iter().filter(move |current| !is_listed(current)))
    }

    /// Models by provider.
    fn groups(&self) -> Vec<SessionConfigSelectGroup> {
        let mut groups: Vec<SessionConfigSelectGroup> = Vec::new();
        for model in self.listed_models() {
            let label = if model.name.is_empty() { &model.id } else { &model.name };
            let option = choice(&name(model), label);
            match groups.iter_mut().find(|group| *group.group.0 == *model.provider) {
                Some(group) => group.options.push(option),
                None => groups.push(SessionConfigSelectGroup::new(
                    model.provider.clone(),
                    model.provider.clone(),
                    vec![option],
                )),
            }
        }
        groups
    }

    /// Reads a change; errors list what there is.
    pub fn change(&self, id: &str, value: &SessionConfigOptionValue) -> Result<Change, Error> {
        let text = || match value {
            SessionConfigOptionValue::ValueId { value } => Ok(value.0.to_string()),
            _ => Err(invalid_params("value", format!("{id} takes one of its values, not a boolean"))),
        };
        let switch = || match value {
            SessionConfigOptionValue::Boolean { value } => Ok(*value),
            _ => Err(invalid_params("value", format!("{id} takes a boolean"))),
        };
        match id {
            "model" => self.model_change(&text()?),
            "thought_level" => self.level_change(&text()?),
            "mode" => self.mode_change(&text()?),
            "auto_compact" => switch().map(Change::AutoCompact),
            "auto_retry" => switch().map(Change::AutoRetry),
            _ => {
                let known = "model, thought_level, mode, auto_compact, auto_retry";
                Err(invalid_params("configId", format!("Unknown config option \"{id}\". There are: {known}")))
            }
        }
    }

    /// Reads a thinking level of the model in use.
    pub fn level_change(&self, wanted: &str) -> Result<Change, Error> {
        let level = ThinkingLevel::parse(wanted).filter(|level| self.levels.contains(level));
        level.map(Change::Level).ok_or_else(|| {
            let words: Vec<_> = self.levels.iter().map(|level| level.as_str()).collect();
            unknown_value(wanted, &words)
        })
    }

    /// Reads a model as `provider/id`, or as an id that only one provider has.
    pub fn model_change(&self, wanted: &str) -> Result<Change, Error> {
        // It is always a choice, also if it is listed nowhere.
        if self.model.as_ref().is_some_and(|model| name(model) == wanted) {
            return Ok(Change::Nothing);
        }
        let found = self.models.iter().find(|model| name(model) == wanted).or_else(|| {
            let mut same = self.models.iter().filter(|model| model.id == wanted);
            same.next().filter(|_| same.next().is_none())
        });
        match found {
            Some(model) => Ok(Change::Model { provider: model.provider.clone(), id: model.id.clone() }),
            None => {
                let names: Vec<_> = self.listed_models().map(|model| name(model)).collect();
                Err(unknown_value(wanted, &names.iter().map(String::as_str).collect::<Vec<_>>()))
            }
        }
    }
}

fn unknown_value(value: &str, known: &[&str]) -> Error {
    invalid_params("value", format!("Unknown value \"{value}\". There are: {}", known.join(", ")))
}

fn choice(value: &str, name: &str) -> SessionConfigSelectOption {
    SessionConfigSelectOption::new(value.to_owned(), name)
}

fn name(model: &Model) -> String {
    format!("{}/{}", model.provider, model.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices() -> Choices {
        let model =
            |provider: &str, id: &str| Arc::new(Model { provider: provider.into(), id: id.into(), ..Model::default() });
        Choices {
            model: Some(model("a", "x")),
            models: vec![model("a", "x"), model("b", "x"), model("b", "y/z")],
            level: ThinkingLevel::Off,
            levels: vec![ThinkingLevel::Off],
            mode: PermissionMode::Allow,
            auto_compact: true,
            auto_retry: true,
        }
    }

    #[test]
    fn options_fit_the_model_and_the_client() {
        let ids: Vec<_> = choices().options(&Client::default()).iter().map(|option| option.id.0.to_string()).collect();
        // A model that does not think has no levels, and this client takes no switches.
        assert_eq!(ids, ["model", "mode"]);
    }

    #[test]
    fn values_are_checked() {
        let choices = choices();
        let value = |text: &str| SessionConfigOptionValue::ValueId { value: text.to_owned().into() };
        let change = |id: &str, text: &str| choices.change(id, &value(text));
        assert_eq!(change("model", "b/y/z"), Ok(Change::Model { provider: "b".into(), id: "y/z".into() }));
        assert_eq!(change("model", "a/x"), Ok(Change::Nothing));
        let unlisted = Choices { models: Vec::new(), ..choices.clone() };
        assert_eq!(unlisted.change("model", &value("a/x")), Ok(Change::Nothing));
        let refused = unlisted.change("model", &value("b/x")).expect_err("it is refused").message;
        assert_eq!(refused, "Unknown value \"b/x\". There are: a/x");
        assert_eq!(change("model", "y/z"), Ok(Change::Model { provider: "b".into(), id: "y/z".into() }));
        let refused = |id: &str, text: &str| change(id, text).expect_err("it is refused").message;
        assert_eq!(refused("model", "x"), "Unknown value \"x\". There are: a/x, b/x, b/y/z");
        assert_eq!(change("mode", "read-only"), Ok(Change::Mode(PermissionMode::ReadOnly)));
        assert_eq!(refused("mode", "deny"), "Unknown value \"deny\". There are: full, write, ask, read-only");
        assert!(refused("dance", "x").starts_with("Unknown config option \"dance\""));
        assert_eq!(refused("auto_retry", "x"), "auto_retry takes a boolean");
    }
}
