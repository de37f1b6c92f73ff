//! The engine thread: one JavaScript runtime, one inbox, one loop.
//!
//! The thread blocks on its inbox with the next timer as deadline. Each message enters JavaScript once and then runs
//! the promises that became ready. The runtime never leaves the thread, and no other thread waits for it without a
//! limit.

mod bind;
pub(crate) mod inbox;
mod slice;
mod state;
mod timers;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Function, Object, Persistent, Runtime, TypedArray, Value};

use crate::config::ExtensionConfig;
use crate::shared::Shared;
pub(crate) use bind::throw;
use inbox::{Inbox, Payload, ToEngine};
pub(crate) use state::State;

/// The native stack of the thread; the engine's own limit is lower.
pub(crate) const THREAD_STACK: usize = 8 << 20;

/// After this many interruptions within one entry the engine is given up.
const MAX_INTERRUPTS: usize = 10;

/// How long the thread waits when there are no timers.
const IDLE: Duration = Duration::from_secs(3600);

/// The engine and everything it needs.
pub(crate) struct Engine {
    // The order matters: saved functions must be dropped before the runtime they belong to.
    entries: Persistent<Object<'static>>,
    state: Rc<State>,
    context: Context,
    runtime: Runtime,
    inbox: mpsc::Receiver<ToEngine>,
}

impl Engine {
    /// Builds the runtime and runs the boot script.
    pub fn new(
        config: &ExtensionConfig,
        shared: Arc<Shared>,
        sender: Inbox,
        inbox: mpsc::Receiver<ToEngine>,
    ) -> Result<Engine, String> {
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        runtime.set_memory_limit(config.limits.memory);
        runtime.set_max_stack_size(config.limits.stack);
        let state = Rc::new(State::new(config, shared, sender));
        let watch = state.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || watch.must_stop())));
        let rejections = state.clone();
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, is_handled| {
            rejections.track_rejection(&ctx, promise, reason, is_handled);
        })));
        let context = Context::full(&runtime).map_err(|error| error.to_string())?;
        state.arm();
        let entries = context
            .with(|ctx| {
                let entries = bind::boot(&ctx, &state, config).catch(&ctx);
                entries.map(|entries| Persistent::save(&ctx, entries)).map_err(|error| error.to_string())
            })
            .map_err(|error| format!("extension engine: {error}"))?;
        Ok(Engine { entries, state, context, runtime, inbox })
    }

    /// Serves until told to stop, or until all senders are gone.
    pub fn run(self) {
        loop {
            let wait = self.state.timers.borrow_mut().next();
            let wait = wait.map_or(IDLE, |due| due.saturating_duration_since(Instant::now()));
            match self.inbox.recv_timeout(wait) {
                Ok(ToEngine::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    if !self.state.shared.is_gone() {
                        self.enter("exit", |_, entry| entry.call(()));
                    }
                    break;
                }
                Ok(message) => self.handle(message),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.fire_timers();
            if self.state.shared.is_gone() {
                break;
            }
        }
        self.state.close();
    }

    fn handle(&self, message: ToEngine) {
        match message {
            ToEngine::Call { id, method, args } => {
                self.enter("call", |ctx, entry| entry.call((id as f64, method, ctx.json_parse(args)?)));
            }
            ToEngine::Update { key } => {
                if let Some(text) = self.state.shared.take_update(&key) {
                    self.enter("update", |ctx, entry| entry.call((ctx.json_parse(text)?, key)));
                }
            }
            ToEngine::Abort { id } => self.enter("abort", |_, entry| entry.call((id as f64,))),
            ToEngine::Settle { op, outcome } => {
                self.state.ended(op);
                self.enter("settle", |ctx, entry| match outcome {
                    Ok(payload) => entry.call((op as f64, true, value(ctx, payload)?)),
                    Err(why) => entry.call((op as f64, false, why)),
                });
            }
            ToEngine::Push { op, payload } => {
                self.enter("push", |ctx, entry| entry.call((op as f64, value(ctx, payload)?)));
            }
            ToEngine::Stop => {}
        }
    }

    fn fire_timers(&self) {
        let now = Instant::now();
        loop {
            let Some(id) = self.state.timers.borrow_mut().pop(now) else { break };
            self.enter("timer", |_, entry| entry.call((id as f64,)));
        }
    }

    /// Calls one of the functions that the boot script returned, then runs pending promises.
    fn enter(&self, name: &str, call: impl for<'js> FnOnce(&Ctx<'js>, &Function<'js>) -> rquickjs::Result<()>) {
        self.state.shared.activity.enter();
        self.call(name, call);
        self.run_pending_jobs();
        self.recover_memory();
        self.state.shared.activity.leave();
    }

    fn call(&self, name: &str, call: impl for<'js> FnOnce(&Ctx<'js>, &Function<'js>) -> rquickjs::Result<()>) {
        if let Err(failure) = self.try_call(name, call) {
            self.recover(failure);
        }
    }

    fn try_call(
        &self,
        name: &str,
        call: impl for<'js> FnOnce(&Ctx<'js>, &Function<'js>) -> rquickjs::Result<()>,
    ) -> Result<(), Failure> {
        self.state.arm();
        self.context.with(|ctx| {
            let result = self.entry(&ctx, name).and_then(|entry| call(&ctx, &entry));
            result.catch(&ctx).map_err(|error| Failure::new(&ctx, error))
        })
    }

    fn entry<'js>(&self, ctx: &Ctx<'js>, name: &str) -> rquickjs::Result<Function<'js>> {
        self.entries.clone().restore(ctx)?.get(name)
    }

    /// Runs jobs until there are none, and reports unhandled rejections.
    fn run_pending_jobs(&self) {
        let mut interrupts = 0;
        while !self.state.shared.is_gone() {
            match self.runtime.execute_pending_job() {
                Ok(true) => {}
                Ok(false) => match self.state.take_rejection() {
                    Some(reason) => self.call("rejected", |ctx, entry| entry.call((reason.restore(ctx)?,))),
                    None => break,
                },
                Err(exception) => {
                    interrupts += 1;
                    if interrupts > MAX_INTERRUPTS {
                        return self.disable("Extensions do not come to rest and are off for this session");
                    }
                    let failure = exception.0.with(|ctx| {
                        let thrown = ctx.catch();
                        Failure::thrown(&ctx, thrown)
                    });
                    self.recover(failure);
                }
            }
        }
    }

    /// Handles an uncaught exception: an interrupt, which no script can catch, or an error in pith's own scripts.
    fn recover(&self, failure: Failure) {
        // Given up from outside: leave as fast as possible.
        if self.state.shared.is_gone() {
            return;
        }
        let is_reported = if self.state.was_interrupted() {
            let seconds = self.state.limits.slice.as_secs_f64();
            self.try_call("interrupted", |_, entry| entry.call((failure.stack, seconds)))
        } else {
            self.try_call("crashed", |ctx, entry| entry.call((failure.thrown.restore(ctx)?,)))
        };
        match is_reported {
            Ok(()) => {}
            // The next handler of the event may be just as bad as this one.
            Err(next) if self.state.is_interrupted() => self.recover(next),
            Err(_) => self.disable("Extensions cannot be run any more and are off for this session"),
        }
    }

    /// Called after memory ran out: collects garbage, and checks whether that was enough.
    fn recover_memory(&self) {
        if !self.state.was_exhausted() || self.state.shared.is_gone() {
            return;
        }
        self.runtime.run_gc();
        if self.try_call("refill", |_, entry| entry.call(())).is_err() {
            self.disable("Extensions have used up their memory and are off for this session");
        }
    }

    /// Ends the engine: all waiting calls fail, and the loop ends.
    fn disable(&self, why: &str) {
        if self.state.shared.end() {
            self.state.shared.report("<runtime>", "disabled", why);
        }
    }
}

/// An exception, kept beyond the stack frame it was caught in.
struct Failure {
    thrown: Persistent<Value<'static>>,
    stack: String,
}

impl Failure {
    fn new<'js>(ctx: &Ctx<'js>, error: CaughtError<'js>) -> Self {
        match error {
            CaughtError::Exception(exception) => Failure::thrown(ctx, exception.into_object().into_value()),
            CaughtError::Value(value) => Failure::thrown(ctx, value),
            CaughtError::Error(error) => {
                let text = rquickjs::String::from_str(ctx.clone(), &error.to_string());
                let value = text.map_or_else(|_| Value::new_undefined(ctx.clone()), rquickjs::String::into_value);
                Failure::thrown(ctx, value)
            }
        }
    }

    fn thrown<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Self {
        let stack = value.as_object().and_then(|object| object.get::<_, String>("stack").ok());
        Failure { thrown: Persistent::save(ctx, value), stack: stack.unwrap_or_default() }
    }
}

fn value<'js>(ctx: &Ctx<'js>, payload: Payload) -> rquickjs::Result<Value<'js>> {
    match payload {
        Payload::Nothing => Ok(Value::new_undefined(ctx.clone())),
        Payload::Json(text) => ctx.json_parse(text),
        Payload::Bytes(bytes) => Ok(TypedArray::<u8>::new(ctx.clone(), bytes)?.into_value()),
    }
}
