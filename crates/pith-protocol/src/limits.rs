//! Limits of a session: their names, what was used of them, and how that is written.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::commands::Answer;

macro_rules! limits {
    ($($(#[doc = $doc:literal])* $name:ident = $word:literal, $kind:ident, $unit:literal;)*) => {
        /// What can be limited.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum LimitName { $($(#[doc = $doc])* #[serde(rename = $word)] $name),* }

        impl LimitName {
            /// Every limit.
            pub const ALL: &[LimitName] = &[$(LimitName::$name),*];

            /// The wire name, which is also the key in `limits` of the settings.
            pub fn as_str(self) -> &'static str {
                match self { $(LimitName::$name => $word),* }
            }

            /// What values it takes.
            pub fn kind(self) -> LimitKind {
                match self { $(LimitName::$name => LimitKind::$kind),* }
            }

            fn unit(self) -> &'static str {
                match self { $(LimitName::$name => $unit),* }
            }
        }
    };
}

limits! {
    /// Answers of the model.
    Turns = "turns", Count, "turns in this session";
    /// Tokens of all kinds, those of summaries too.
    Tokens = "tokens", Count, "tokens in this session";
    /// Tokens the model has written.
    OutputTokens = "outputTokens", Count, "output tokens in this session";
    /// US dollars.
    CostUsd = "costUsd", Amount, "US dollars in this session";
    /// Time from prompts to the end of their work, without pauses and questions.
    WallSeconds = "wallSeconds", Amount, "seconds of work in this session";
    /// Time in which tool calls ran.
    ToolSeconds = "toolSeconds", Amount, "seconds of tool calls in this session";
    /// Time of one tool call.
    ToolCallSeconds = "toolCallSeconds", Amount, "seconds in one tool call";
    /// Processes of one command at the same time.
    Processes = "processes", Count, "processes of one command";
    /// Memory of one command.
    MemoryMb = "memoryMb", Count, "MB of memory for one command";
    /// Size of a file that a command writes.
    FileMb = "fileMb", Count, "MB in one file";
    /// By how much the project has grown.
    DiskMb = "diskMb", Count, "MB that the project has grown by in this session";
    /// Output of one command.
    OutputMb = "outputMb", Count, "MB of output of one command";
    /// Calls of a tool with the same arguments and the same result.
    Repeats = "repeats", Count, "repeated calls";
}

/// What every text about a limit that is used up begins with.
pub const LIMIT_REACHED: &str = "Limit reached: ";

/// What values a limit takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// A whole number above 0.
    Count,
    /// A number above 0.
    Amount,
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A number that is written without a fraction if it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Amount(pub f64);

impl Amount {
    fn whole(self) -> Option<u64> {
        // Larger ones are not exact in other JSON programs either.
        let is_whole = self.0.fract() == 0.0 && (0.0..9.0e15).contains(&self.0);
        is_whole.then_some(self.0 as u64)
    }
}

impl From<u64> for Amount {
    fn from(number: u64) -> Self {
        Amount(number as f64)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.whole() {
            Some(number) => serializer.serialize_u64(number),
            None => serializer.serialize_f64(self.0),
        }
    }
}

/// A limit and what was used of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitUse {
    pub name: LimitName,
    pub used: Amount,
    pub max: Amount,
}

impl LimitUse {
    /// What hosts and users read when the limit ends the work, or refuses a prompt.
    pub fn text(&self) -> String {
        let LimitUse { name, max, .. } = self;
        let advice = match name {
            LimitName::Repeats => "",
            _ => " Raise it with set_limits or start a new session.",
        };
        format!("{LIMIT_REACHED}{max} {} (limits.{name}).{advice}", name.unit())
    }
}

/// How far a limit is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum LimitPhase {
    /// `softPercent` of it.
    Soft,
    /// All of it: something was ended.
    Hard,
}

/// Answer of `set_limits`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitUses {
    pub limits: Vec<LimitUse>,
}

impl Answer for LimitUses {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::to_string;

    #[test]
    fn uses_are_written_as_documented() {
        let tokens = LimitUse { name: LimitName::Tokens, used: 2_003_110.into(), max: 2_000_000.into() };
        assert_eq!(to_string(&tokens), r#"{"name":"tokens","used":2003110,"max":2000000}"#);
        assert_eq!(
            tokens.text(),
            "Limit reached: 2000000 tokens in this session (limits.tokens). Raise it with set_limits or start a new session."
        );
        let cost = LimitUse { name: LimitName::CostUsd, used: Amount(0.25), max: 5.into() };
        assert_eq!(to_string(&cost), r#"{"name":"costUsd","used":0.25,"max":5}"#);
        assert_eq!(serde_json::from_str::<LimitUse>(&to_string(&cost)).ok(), Some(cost));
    }
}
