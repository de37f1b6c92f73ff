//! Extensions: TypeScript that runs inside pith, on a thread of its own.
//!
//! The session starts an [`ExtensionHost`], loads extensions through the [`ExtensionHandle`], raises events on it, and
//! serves the [`FromExtension`] requests that come back. Neither side ever blocks the other: the session awaits answers
//! with a limit, and extension code awaits promises.

mod host;

pub mod config;
pub mod discovery;
mod engine;
mod entries;
pub mod events;
pub mod handle;
pub mod hooks;
mod json;
mod modules;
mod ops;
pub mod outgoing;
mod provider;
pub mod registry;
mod request_hooks;
mod shared;
mod tool_call_hook;
pub mod tools;

pub use config::{
    BuiltinTool, ExtensionConfig, ExtensionSource, Launched, Launcher, Limits, Mode, Output, SCRIPT, Surroundings,
};
pub use discovery::{Discovery, PackagePlace, Place, Places, discover};
pub use events::EventName;
pub use handle::{ExtensionHandle, LoadError, LoadReport, LoadedExtension, Loading};
pub use hooks::{
    AgentStart, Boundary, DiscoveredPath, DiscoveredResources, InputVerdict, ToolCallVerdict, ToolResultPatch,
    TrustDecision, UserBash,
};
pub use host::ExtensionHost;
pub use outgoing::{ExtensionError, FromExtension, Query};
pub use provider::{ExtensionModels, ProviderAction};
pub use registry::{Registry, SourceInfo, ToolInfo};
pub use shared::{CallError, Requests};
pub use tools::ExtensionTool;
