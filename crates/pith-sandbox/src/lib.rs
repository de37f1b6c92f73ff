//! The sandbox: what commands and file tools of a session may touch, and how the kernel is told.
//!
//! [`settings`] says what the user and the project want, [`policy`] turns it into paths and rights for one directory,
//! [`confine`](mod@confine) makes the kernel hold a thread and everything it starts to a policy, `namespaces` takes
//! from processes the view of everything else, and [`support`] says what this kernel can hold. A thread that was confined stays so until it ends.

pub mod confine;
pub mod domains;
mod environment;
#[cfg(target_os = "linux")]
pub mod git;
#[cfg(target_os = "linux")]
mod guard;
pub mod names;
#[cfg(target_os = "linux")]
pub mod namespaces;
pub mod policy;
mod protected;
#[cfg(target_os = "linux")]
mod put_back;
#[cfg(target_os = "linux")]
mod record;
pub mod settings;
pub mod support;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
pub mod watch;
#[cfg(target_os = "linux")]
mod worker;

pub use policy::{NetworkRule, Policy};
pub use protected::below as protected_below;
pub use settings::{NetworkMode, Profile, Require, SandboxSettings};
pub use support::Support;
#[cfg(target_os = "linux")]
pub use worker::Worker;
