//! What the model can do to the machine: the built-in tools.
//!
//! Knows nothing of sessions and models. A [`Workbench`] says where and under
//! which rules the tools work; [`builtin_tools`] makes them.

pub mod workbench;

pub mod bash;
pub mod edit;
pub mod read;
pub mod search;
pub mod write;

pub mod image;
pub mod process;
pub mod shell;
pub mod truncate;

mod arguments;
mod command;
mod confine;
mod files;
mod mutation;
mod os_error;
mod paths;
mod replace;
mod seen;
mod tool;

pub use confine::Confinement;
pub use paths::Base;
pub use workbench::{Conditions, Workbench, WorkbenchOptions};

use std::sync::Arc;

use pith_agent::Tool;

/// Names of the built-in tools.
pub const BUILTIN_NAMES: [&str; 7] = ["read", "bash", "edit", "write", "grep", "find", "ls"];

/// All built-in tools: read, bash, edit, write, grep, find, ls.
pub fn builtin_tools(workbench: &Arc<Workbench>) -> Vec<Arc<dyn Tool>> {
    let shared = || Arc::clone(workbench);
    vec![
        Arc::new(read::Read::new(shared())),
        Arc::new(bash::Bash::new(shared())),
        Arc::new(edit::EditTool::new(shared())),
        Arc::new(write::Write::new(shared())),
        Arc::new(search::Grep::new(shared())),
        Arc::new(search::Find::new(shared())),
        Arc::new(search::Ls::new(shared())),
    ]
}

/// One built-in tool.
pub fn builtin_tool(name: &str, workbench: &Arc<Workbench>) -> Option<Arc<dyn Tool>> {
    let workbench = Arc::clone(workbench);
    Some(match name {
        "read" => Arc::new(read::Read::new(workbench)),
        "bash" => Arc::new(bash::Bash::new(workbench)),
        "edit" => Arc::new(edit::EditTool::new(workbench)),
        "write" => Arc::new(write::Write::new(workbench)),
        "grep" => Arc::new(search::Grep::new(workbench)),
        "find" => Arc::new(search::Find::new(workbench)),
        "ls" => Arc::new(search::Ls::new(workbench)),
        _ => return None,
    })
}
