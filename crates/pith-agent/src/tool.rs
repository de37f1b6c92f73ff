//! What a tool is to the agent loop.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pith_protocol::{Block, ToolSpec, Usage};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::TraceContext;

/// Something the model can call.
pub trait Tool: Send + Sync {
    /// Returns name, description and parameters as the model sees them.
    fn spec(&self) -> &ToolSpec;

    /// Returns a short name for people.
    fn label(&self) -> &str {
        &self.spec().name
    }

    /// Returns one line for the system prompt's tool list.
    fn snippet(&self) -> Option<&str> {
        None
    }

    /// Returns rules for the system prompt, used while the tool is active.
    fn rules(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Returns how the model learns of the tool.
    fn exposure(&self) -> Exposure {
        Exposure::Direct
    }

    /// Returns the server the tool belongs to, if it does.
    fn origin(&self) -> Option<Origin<'_>> {
        None
    }

    /// Returns whether batches with this tool run one call after the other.
    fn is_sequential(&self) -> bool {
        false
    }

    /// Returns whether calls run programs, of which it is chance which of several quick ones ends first.
    fn runs_programs(&self) -> bool {
        false
    }

    /// Returns what arguments are checked against, if that is more than the model is told.
    fn argument_schema(&self) -> &Arc<Value> {
        &self.spec().parameters
    }

    /// Returns what calls may change on the machine.
    fn reach(&self) -> Reach {
        Reach::Anything
    }

    /// Returns what a call with these arguments would do, for whoever decides whether it may.
    fn effect(&self, _arguments: &Map<String, Value>) -> Effect {
        let is_read_only = self.origin().is_some_and(|origin| origin.hints.is_read_only);
        if is_read_only || self.reach() == Reach::Nothing { Effect::Nothing } else { Effect::Unknown }
    }

    /// Corrects arguments in forms that models are known to get wrong, before validation.
    fn adapt(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        arguments
    }

    /// Like `adapt`, and before it, for corrections that have to be awaited; `None` if there are none. `Err` is what
    /// the model reads.
    fn prepare(&self, _arguments: &Map<String, Value>) -> Option<BoxFuture<'_, Result<Map<String, Value>, String>>> {
        None
    }

    /// Runs the call. Must return soon after `context.cancel` fires, with its abort text.
    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput>;
}

/// What a running call gets.
#[derive(Clone)]
pub struct ToolContext {
    pub call_id: Arc<str>,
    /// Fires on abort and shutdown.
    pub cancel: CancellationToken,
    /// Receives progress; each update replaces the previous one.
    pub update: ToolUpdate,
    /// The place of the call in a trace, for the programs and servers it uses.
    pub trace: Option<Arc<TraceContext>>,
}

/// Receives the cumulative result so far. Cheap to call, never blocks.
pub type ToolUpdate = Arc<dyn Fn(ToolOutput) + Send + Sync>;

/// The result of a call, or the part of it known so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    pub content: Vec<Block>,
    pub details: Option<Value>,
    pub is_error: bool,
    /// Ends the run after this batch if every result in it says so.
    pub terminate: bool,
    /// Model usage inside the tool.
    pub usage: Option<Usage>,
}

impl ToolOutput {
    /// Creates a success with a text.
    pub fn text(text: impl Into<String>) -> Self {
        ToolOutput { content: vec![Block::text(text)], ..ToolOutput::default() }
    }

    /// Creates an error that the model reads; errors carry empty details.
    pub fn error(text: impl Into<String>) -> Self {
        ToolOutput {
            content: vec![Block::text(text)],
            details: Some(Value::Object(Map::new())),
            is_error: true,
            ..ToolOutput::default()
        }
    }

    /// Adds details for hosts.
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }
}

/// What the calls of a tool may change on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Nothing,
    /// The file that the call names; the tool itself has it recorded before.
    OneFile,
    Anything,
}

/// What a call would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Runs a shell command.
    Command {
        command: String,
        /// Why it asks to run outside the sandbox, if it does.
        unsandboxed: Option<String>,
    },
    /// Reads a file, or what is below a directory.
    Read(PathBuf),
    Change(PathBuf),
    /// Changes nothing, by what its maker says.
    Nothing,
    Unknown,
}

/// How the model learns of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// It is declared with every request.
    Direct,
    /// It is declared as long as there are not too many.
    Auto,
    /// The model searches for it; then it is declared.
    Deferred,
}

/// The server of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    pub server: &'a str,
    /// The tool as the server calls it.
    pub tool: &'a str,
    /// What the server is good for, in a line.
    pub about: Option<&'a str>,
    /// Words that the user gives searches for its tools.
    pub keywords: &'a [String],
    /// What the server says about the tool.
    pub annotations: Option<&'a Map<String, Value>>,
    pub hints: Hints,
}

/// What whoever decides about calls of a server's tool may go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hints {
    /// The server says that the tool only reads, and is believed because the user or the host has chosen it.
    pub is_read_only: bool,
    /// The server says that the tool may destroy something, or does not say.
    pub is_destructive: bool,
    /// The user has approved all calls in advance.
    pub is_approved: bool,
}

/// Whether a pattern in which `*` stands for any text names a tool.
pub fn is_named_by(pattern: &str, name: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == name };
    let Some(rest) = name.strip_prefix(before) else { return false };
    (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| is_named_by(after, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name) in [("a", "a"), ("*", ""), ("mcp__*", "mcp__git"), ("*_é*", "x_éy"), ("a*b*c", "abbc")] {
            assert!(is_named_by(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a", "ab"), ("a*", "b"), ("*b", "abc"), ("a*b*c", "acb"), ("", "a")] {
            assert!(!is_named_by(pattern, name), "{pattern} {name}");
        }
    }
}
