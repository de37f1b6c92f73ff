//! `node:fs`: one native function for every call, synchronous or on a helper thread.

use std::collections::HashMap;
use std::fs::File;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use rquickjs::function::Func;
use rquickjs::{Ctx, Object, TypedArray, Value};
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::json;

use super::errno::Failure;
use super::fs_calls::perform;
use super::text::Text;
use crate::engine::State;
use crate::engine::inbox::Payload;
use crate::shared::lock;

/// The arguments of any call; each uses a few.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Request {
    pub path: String,
    pub to: String,
    pub fd: Option<i32>,
    pub flags: String,
    pub mode: Option<u32>,
    pub recursive: bool,
    pub force: bool,
    pub follow: bool,
    pub as_text: bool,
    pub exclusive: bool,
    pub error_on_exist: bool,
    pub text: Option<String>,
    /// Base64.
    pub bytes: Option<String>,
    pub length: Option<f64>,
    pub position: Option<f64>,
    pub atime: f64,
    pub mtime: f64,
    pub uid: u32,
    pub gid: u32,
}

/// The result of a call.
#[derive(Debug)]
pub enum FsResult {
    Json(serde_json::Value),
    Bytes(Vec<u8>),
}

/// Open files, by the numbers extensions know them under.
#[derive(Clone, Default)]
pub struct Descriptors(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    files: HashMap<i32, Arc<File>>,
    last: i32,
}

impl Descriptors {
    /// Lower numbers are the process's own streams.
    const FIRST: i32 = 20;

    /// Adds a file.
    pub fn add(&self, file: File) -> i32 {
        let mut table = lock(&self.0);
        table.last = table.last.max(Self::FIRST) + 1;
        let fd = table.last;
        table.files.insert(fd, Arc::new(file));
        fd
    }

    /// Returns the file with a number.
    pub fn get(&self, fd: Option<i32>, syscall: &str) -> Result<Arc<File>, Failure> {
        if let Some(1 | 2) = fd {
            // Standard output carries the protocol; output for it goes to standard error.
            let stderr = rustix::io::dup(rustix::stdio::stderr()).map_err(|errno| Failure::of(errno, syscall, None))?;
            return Ok(Arc::new(File::from(stderr)));
        }
        let found = fd.and_then(|fd| lock(&self.0).files.get(&fd).cloned());
        found.ok_or_else(|| Failure::of(Errno::BADF, syscall, None))
    }

    /// Removes a file.
    pub fn remove(&self, fd: Option<i32>) -> Option<Arc<File>> {
        fd.and_then(|fd| lock(&self.0).files.remove(&fd))
    }
}

pub(super) fn install<'js>(group: &Object<'js>, state: &Rc<State>) -> rquickjs::Result<()> {
    let here = state.clone();
    group.set(
        "sync",
        Func::from(move |ctx: Ctx<'js>, name: String, request: Text| {
            let request = read(&ctx, &request.0)?;
            // Pipes and network file systems may block for long; that is what the extension asked for.
            let done = here.block(|| perform(&name, &request, &here.descriptors));
            done.map_err(|failure| failure.throw(&ctx)).and_then(|done| value(&ctx, done))
        }),
    )?;
    let here = state.clone();
    group.set(
        "later",
        Func::from(move |ctx: Ctx<'js>, op: f64, name: String, request: Text| {
            let request = read(&ctx, &request.0)?;
            let descriptors = here.descriptors.clone();
            here.pool.run(op as u64, move || {
                Ok(match perform(&name, &request, &descriptors) {
                    Ok(FsResult::Bytes(bytes)) => Payload::Bytes(bytes),
                    Ok(FsResult::Json(value)) => Payload::json(&json!({ "value": value })),
                    Err(failure) => Payload::json(&json!({ "failure": failure })),
                })
            });
            Ok::<(), rquickjs::Error>(())
        }),
    )?;
    group.set("exists", Func::from(|path: Text| std::path::Path::new(&path.0).exists()))?;
    group.set(
        "failure",
        Func::from(|ctx: Ctx<'js>, text: Text| {
            let failure: Failure = serde_json::from_str(&text.0).expect("failures are written by this module");
            failure.to_js(&ctx)
        }),
    )?;
    super::watch::install(group, state)
}

fn read(ctx: &Ctx<'_>, text: &str) -> rquickjs::Result<Request> {
    crate::json::parse(text).map_err(|why| crate::engine::throw(ctx, "ERR_INVALID_ARG_VALUE", &why))
}

fn value<'js>(ctx: &Ctx<'js>, done: FsResult) -> rquickjs::Result<Value<'js>> {
    match done {
        FsResult::Json(serde_json::Value::String(text)) => {
            Ok(rquickjs::String::from_str(ctx.clone(), &text)?.into_value())
        }
        FsResult::Json(serde_json::Value::Null) => Ok(Value::new_null(ctx.clone())),
        FsResult::Json(value) => ctx.json_parse(value.to_string()),
        FsResult::Bytes(bytes) => Ok(TypedArray::<u8>::new(ctx.clone(), bytes)?.into_value()),
    }
}
