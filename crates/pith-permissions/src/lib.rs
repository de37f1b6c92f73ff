//! Permissions: which tool calls run, which are asked about, which are refused.
//!
//! Rules, verdicts and the reading of shell commands. Knows no session, no task and no host: who has to decide about a
//! call hands over what it would do and gets a verdict.

pub mod command;

mod grants;
mod paths;
mod pattern;
mod policy;
mod rule;
mod sources;
mod suggest;

pub use grants::GrantFile;
pub use pattern::{CommandPattern, Fit};
pub use policy::{Action, JudgedPart, Judgement, Mode, Policy, Reason, ToolUse, Unattended, Verdict};
pub use rule::{Bases, Origin, Rule, RuleError};
pub use sources::{LoadedPolicy, RuleFlags, Sources};
pub use suggest::{Suggestions, suggest};
