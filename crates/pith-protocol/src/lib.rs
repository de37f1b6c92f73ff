//! What crosses the wire: commands, answers, events, messages and models.
//!
//! Types and their encoding only. This crate knows nothing of files, sockets,
//! tasks or session state, so a Rust host can use it as a client library.

pub mod content;
pub mod json;
pub mod llm;
pub mod message;
pub mod model;
pub mod usage;

pub use content::{Block, Content, ImageBlock, TextBlock, ThinkingBlock, ToolCall};
pub use llm::{AssistantEvent, CacheRetention, LlmCall, ToolSpec};
pub use message::{
    AssistantMessage, BashExecution, BranchSummary, CompactionSummary, CustomMessage, ErrorKind, Failure, Message,
    StopReason, ToolResultMessage, UserMessage,
};
pub use model::{ImageLimits, ImageResize, InputLimits, Model, ModelCost, PriceTier, PromptCache, ThinkingLevel};
pub use usage::{Cost, Usage};
