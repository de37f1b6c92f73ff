//! What crosses the wire: commands, answers, events, messages and models.
//!
//! Types and their encoding only. This crate knows nothing of files, sockets,
//! tasks or session state, so a Rust host can use it as a client library.

pub mod commands;

pub mod answers;
pub mod audit;
pub mod content;
pub mod entry;
pub mod errors;
pub mod events;
pub mod fields;
pub mod frame;
pub mod host;
pub mod host_tool;
pub mod inbound;
pub mod json;
pub mod limits;
pub mod live;
pub mod llm;
pub mod message;
pub mod model;
pub mod partial;
pub mod permissions;
pub mod response;
pub mod result;
#[cfg(feature = "schema")]
pub mod schema;
pub mod todos;
pub mod usage;

pub use commands::{
    Answer, Call, Command, InterruptMode, QueueMode, SandboxNamespaces, SandboxNetwork, SandboxProfile,
    SandboxRequirement, StreamUpdates, StreamingBehavior,
};
pub use content::{Block, Content, ImageBlock, TextBlock, ThinkingBlock, ToolCall};
pub use entry::{Entry, SessionHeader};
pub use errors::{CommandError, ErrorCode};
pub use events::{CompactionReason, Event, SandboxDenial, ToolResult};
pub use frame::Frame;
pub use host::HostReply;
pub use inbound::{Announcement, Id, Inbound};
pub use limits::{Amount, LimitKind, LimitName, LimitPhase, LimitUse};
pub use live::LiveMessage;
pub use llm::{AssistantEvent, CacheRetention, Hooked, LlmCall, RequestHooks, RequestPart, ToolSpec};
pub use message::{
    AssistantMessage, BashExecution, BranchSummary, CompactionSummary, CustomMessage, ErrorKind, Failure, Message,
    StopReason, ToolResultMessage, UserMessage,
};
pub use model::{ImageLimits, ImageResize, InputLimits, Model, ModelCost, PriceTier, PromptCache, ThinkingLevel};
pub use partial::{BadArguments, PartialArguments};
pub use response::Response;
pub use result::{ResultError, ResultRecord};
pub use usage::{Cost, Usage};
