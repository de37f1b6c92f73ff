//! Native operations of the JavaScript modules, in groups that are created when first used.

mod aead;
pub mod crypto;
pub mod errno;
pub mod fs;
mod fs_calls;
mod fs_tree;
mod md5;
pub mod net;
pub mod os;
pub mod pool;
pub mod process;
mod process_sync;
pub mod sqlite;
mod sys;
pub mod text;
mod url;
mod vm;
pub mod watch;
pub mod zlib;

use std::rc::Rc;

use rquickjs::{Ctx, Object};

use crate::engine::State;
use crate::engine::throw;

/// Creates the object of one group of operations.
pub(crate) fn group<'js>(ctx: &Ctx<'js>, state: &Rc<State>, name: &str) -> rquickjs::Result<Object<'js>> {
    let group = Object::new(ctx.clone())?;
    match name {
        "fs" => fs::install(&group, state)?,
        "process" => process::install(&group, state)?,
        "crypto" => crypto::install(&group)?,
        "text" => text::install(&group)?,
        "os" => os::install(&group, state)?,
        "net" => net::install(&group, state)?,
        "sqlite" => sqlite::install(&group, state)?,
        "vm" => vm::install(&group, state)?,
        "zlib" => zlib::install(&group, state)?,
        _ => return Err(throw(ctx, "ERR_INTERNAL", &format!("no native operations called {name}"))),
    }
    Ok(group)
}
