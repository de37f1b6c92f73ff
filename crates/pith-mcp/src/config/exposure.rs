//! Which tools of a server the model has, how it learns of them, and which it may call without asking.

use pith_agent::is_named_by;

use super::entry::ServerConfig;

/// How the model learns of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    Auto,
    Direct,
    Deferred,
    Hidden,
}

/// Who has to know the tools of a server first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeededBy {
    /// The first request to the model, which may declare some of them.
    Request,
    /// A search of the model.
    Search,
    /// Only a user or host who asks: they are all hidden.
    Nobody,
}

/// Returns the exposure of a word.
pub fn exposure_named(word: &str) -> Result<Exposure, String> {
    match word {
        "auto" => Ok(Exposure::Auto),
        "direct" => Ok(Exposure::Direct),
        "deferred" | "codemode" | "codemode-deferred" => Ok(Exposure::Deferred),
        "hidden" => Ok(Exposure::Hidden),
        other => Err(format!("expected one of \"auto\", \"direct\", \"deferred\", \"hidden\", got \"{other}\"")),
    }
}

impl ServerConfig {
    /// Whether the model may have a tool at all.
    pub fn offers(&self, tool: &str) -> bool {
        let is_included = self.include.as_ref().is_none_or(|names| names.iter().any(|name| is_named_by(name, tool)));
        let is_excluded = self.exclude.iter().any(|name| is_named_by(name, tool));
        is_included && !is_excluded && self.exposure_of(tool) != Exposure::Hidden
    }

    /// Who has to know the tools first.
    pub fn tools_needed_by(&self) -> NeededBy {
        let is_any = |is_meant: fn(Exposure) -> bool| {
            is_meant(self.exposure) || self.tool_exposure.iter().any(|(_, exposure)| is_meant(*exposure))
        };
        if is_any(|exposure| matches!(exposure, Exposure::Auto | Exposure::Direct)) {
            NeededBy::Request
        } else if is_any(|exposure| exposure == Exposure::Deferred) {
            NeededBy::Search
        } else {
            NeededBy::Nobody
        }
    }

    /// Whether the model gets what the server says about itself: never from a project, whose servers somebody else has
    /// written, nor without a tool that it could be about.
    pub fn instructs_model(&self) -> bool {
        self.is_heard && !self.source.is_of_project() && self.tools_needed_by() != NeededBy::Nobody
    }

    /// Whether the user has approved all calls of a tool.
    pub fn approves(&self, tool: &str) -> bool {
        self.approved.iter().any(|name| is_named_by(name, tool))
    }

    /// How the model learns of a tool.
    pub fn exposure_of(&self, tool: &str) -> Exposure {
        let own = self.tool_exposure.iter().find(|(name, _)| is_named_by(name, tool));
        own.map_or(self.exposure, |(_, exposure)| *exposure)
    }
}
