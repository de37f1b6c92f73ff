//! What host functions share on the engine thread.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use rquickjs::{Ctx, Persistent, Value};
use tokio_util::sync::CancellationToken;

use super::inbox::Inbox;
use super::slice::{Moment, Slice};
use super::timers::Timers;
use crate::config::{ExtensionConfig, Limits, Output};
use crate::modules::resolve::Resolver;
use crate::modules::transpile::{Script, transpile};
use crate::ops::fs::Descriptors;
use crate::ops::net::Network;
use crate::ops::pool::Pool;
use crate::ops::process::Children;
use crate::ops::sqlite::Databases;
use crate::ops::watch::Watchers;
use crate::ops::zlib::Codecs;
use crate::shared::Shared;

/// A rejected promise that was not handled yet, and the reason.
type Rejection = (Persistent<Value<'static>>, Persistent<Value<'static>>);

/// The engine thread's own state; single-threaded, so cells are enough.
pub(crate) struct State {
    pub shared: Arc<Shared>,
    pub inbox: Inbox,
    pub limits: Limits,
    pub output: Output,
    /// The variables that extensions see; `None` means those of this process.
    pub environment: Option<Vec<(String, String)>>,
    /// The arguments of `process.argv`, after the program and the script.
    pub arguments: Vec<String>,
    pub timers: RefCell<Timers>,
    pub start: Instant,
    pub resolver: Resolver,
    pub pool: Pool,
    pub children: Children,
    pub watchers: Watchers,
    pub network: Network,
    pub codecs: Codecs,
    pub databases: Databases,
    pub descriptors: Descriptors,
    /// Operations that have not ended and can be cancelled.
    operations: RefCell<HashMap<u64, CancellationToken>>,
    scripts: RefCell<HashMap<PathBuf, (Stamp, Rc<Script>)>>,
    rejections: RefCell<Vec<Rejection>>,
    /// The time that the current entry into JavaScript has.
    slice: Slice,
    is_interrupted: Cell<bool>,
    /// Whether extension code ran out of memory since the last call of `was_exhausted`.
    is_exhausted: Cell<bool>,
}

/// Size and modification time, to notice that a file has changed.
type Stamp = (u64, Option<SystemTime>);

impl State {
    pub fn new(config: &ExtensionConfig, shared: Arc<Shared>, inbox: Inbox) -> Self {
        State {
            shared,
            limits: config.limits,
            output: config.output.clone(),
            environment: config.environment.clone(),
            arguments: config.arguments.clone(),
            timers: RefCell::default(),
            start: Instant::now(),
            resolver: Resolver::default(),
            pool: Pool::new(inbox.clone()),
            children: Children::new(inbox.clone(), config.launcher.clone()),
            watchers: Watchers::new(inbox.clone()),
            network: Network::new(inbox.clone()),
            codecs: Codecs::default(),
            databases: Databases::default(),
            descriptors: Descriptors::default(),
            operations: RefCell::default(),
            scripts: RefCell::default(),
            rejections: RefCell::default(),
            slice: Slice::new(config.limits.slice),
            is_interrupted: Cell::new(false),
            is_exhausted: Cell::new(false),
            inbox,
        }
    }

    /// Starts a new slice of execution time.
    pub fn arm(&self) {
        self.slice.begin(Moment::now());
    }

    /// Called by the engine every few thousand instructions.
    pub fn must_stop(&self) -> bool {
        let is_asked = self.slice.may_be_over();
        let is_late = self.shared.is_gone() || (is_asked && self.slice.is_over(Moment::now()));
        if is_asked && !is_late {
            // The machine is busy; the code is not stuck.
            self.shared.activity.enter();
        }
        if is_late {
            self.is_interrupted.set(true);
            // What runs next, including the report of this, gets its own time.
            self.arm();
            self.shared.activity.enter();
        }
        is_late
    }

    /// Returns whether the last exception was an interrupt, and resets that.
    pub fn was_interrupted(&self) -> bool {
        self.is_interrupted.take()
    }

    /// Returns whether the last exception was an interrupt.
    pub fn is_interrupted(&self) -> bool {
        self.is_interrupted.get()
    }

    /// Called when memory ran out.
    pub fn note_exhaustion(&self) {
        self.is_exhausted.set(true);
    }

    /// Returns whether memory has run out since the last call.
    pub fn was_exhausted(&self) -> bool {
        self.is_exhausted.take()
    }

    /// Runs something that blocks on purpose; its time does not count.
    pub fn block<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = Moment::now();
        let result = self.shared.activity.block(work);
        self.slice.leave_out(before, Moment::now());
        result
    }

    pub fn track_rejection<'js>(&self, ctx: &Ctx<'js>, promise: Value<'js>, reason: Value<'js>, is_handled: bool) {
        let promise = Persistent::save(ctx, promise);
        let mut rejections = self.rejections.borrow_mut();
        if is_handled {
            rejections.retain(|(known, _)| *known != promise);
        } else {
            rejections.push((promise, Persistent::save(ctx, reason)));
        }
    }

    pub fn take_rejection(&self) -> Option<Persistent<Value<'static>>> {
        let mut rejections = self.rejections.borrow_mut();
        (!rejections.is_empty()).then(|| rejections.remove(0).1)
    }

    /// Registers an operation and returns the token that cancels it.
    pub fn began(&self, op: u64) -> CancellationToken {
        let token = CancellationToken::new();
        self.operations.borrow_mut().insert(op, token.clone());
        token
    }

    pub fn ended(&self, op: u64) {
        self.operations.borrow_mut().remove(&op);
        self.network.forget(op);
    }

    pub fn cancel(&self, op: u64) {
        if let Some(token) = self.operations.borrow_mut().remove(&op) {
            token.cancel();
        }
    }

    /// Returns a transpiled source file; unchanged files are transpiled once per process.
    pub fn script(&self, path: &Path) -> Result<Rc<Script>, String> {
        let name = || path.display();
        let facts = fs::metadata(path).map_err(|error| format!("{}: {error}", name()))?;
        let stamp = (facts.len(), facts.modified().ok());
        if let Some((known, script)) = self.scripts.borrow().get(path)
            && *known == stamp
        {
            return Ok(script.clone());
        }
        let source = fs::read_to_string(path).map_err(|error| format!("{}: {error}", name()))?;
        let script = transpile(path, &source, self.resolver.kind(path))
            .map_err(|error| format!("SyntaxError: {} ({}:{}:{})", error.message, name(), error.line, error.column))?;
        self.shared.activity.note_step();
        let script = Rc::new(script);
        self.scripts.borrow_mut().insert(path.to_owned(), (stamp, script.clone()));
        Ok(script)
    }

    /// Called when the loop has ended: nothing may stay running on its behalf.
    pub fn close(&self) {
        for (_, token) in self.operations.borrow_mut().drain() {
            token.cancel();
        }
        self.rejections.borrow_mut().clear();
        self.watchers.close();
        self.network.close();
        self.databases.close_all();
        self.children.close();
    }
}
