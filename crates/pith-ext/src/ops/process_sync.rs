//! `spawnSync`: a child that the engine's thread waits for.

use std::io::Write;
use std::rc::Rc;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rquickjs::function::Func;
use rquickjs::{Ctx, Object, TypedArray};
use rustix::io::Errno;
use rustix::process::{Pid, kill_process};

use super::errno::Failure;
use super::process::{Collected, MAX_COLLECTED, SpawnRequest, command, ended, read, reap, thread};
use super::sys::signal;
use super::text::Text;
use crate::engine::State;
use crate::shared::lock;

/// How often limits are checked while waiting.
const TICK: Duration = Duration::from_millis(20);

struct Finished {
    pid: u32,
    status: serde_json::Value,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    failure: Option<Failure>,
}

pub(super) fn install<'js>(group: &Object<'js>, state: &Rc<State>) -> rquickjs::Result<()> {
    let here = state.clone();
    group.set(
        "spawnSync",
        Func::from(move |ctx: Ctx<'js>, start: Text| {
            let start = read(&ctx, &start.0)?;
            let finished = here.block(|| run(&start, &here));
            let result = Object::new(ctx.clone())?;
            let failure = match finished {
                Ok(finished) => {
                    result.set("pid", finished.pid)?;
                    result.set("status", finished.status["code"].as_i64().map(|code| code as f64))?;
                    result.set("signal", finished.status["signal"].as_str())?;
                    result.set("stdout", TypedArray::<u8>::new(ctx.clone(), finished.stdout)?)?;
                    result.set("stderr", TypedArray::<u8>::new(ctx.clone(), finished.stderr)?)?;
                    finished.failure
                }
                Err(failure) => Some(failure),
            };
            if let Some(failure) = failure {
                result.set("failure", serde_json::to_string(&failure).expect("failures serialize"))?;
            }
            Ok::<_, rquickjs::Error>(result)
        }),
    )
}

fn run(start: &SpawnRequest, state: &State) -> Result<Finished, Failure> {
    let failed = |error: std::io::Error| Failure::new(&error, "spawnSync", Some(&start.command));
    let mut child = command(start, &state.descriptors).map_err(failed)?.spawn().map_err(failed)?;
    let id = child.id();
    let pid = Arc::new(Mutex::new(Pid::from_raw(id.cast_signed())));
    let input = start.input.as_ref().map(|input| STANDARD.decode(input).unwrap_or_default());
    if let Some(mut pipe) = child.stdin.take() {
        // A child that does not read must not block the engine.
        thread(move || drop(input.map(|input| pipe.write_all(&input))));
    }
    let limit = start.max_buffer.map_or(MAX_COLLECTED, |limit| limit as usize);
    let stdout = Collected::start(child.stdout.take(), limit.saturating_add(1));
    let stderr = Collected::start(child.stderr.take(), limit.saturating_add(1));
    let (done, end) = mpsc::channel();
    thread({
        let pid = pid.clone();
        move || drop(done.send(reap(&mut child, &pid)))
    });
    let deadline = start.timeout.map(|timeout| Instant::now() + Duration::from_secs_f64(timeout / 1000.0));
    let mut failure = None;
    let status = loop {
        match end.recv_timeout(TICK) {
            Ok(status) => break ended(status),
            Err(mpsc::RecvTimeoutError::Disconnected) => break serde_json::json!({}),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let is_full = stdout.exceeds(limit) || stderr.exceeds(limit);
        if (is_late || is_full || state.shared.is_gone()) && failure.is_none() {
            failure = Some(if is_full {
                overflow(start)
            } else {
                Failure::of(Errno::TIMEDOUT, "spawnSync", Some(&start.command))
            });
            let wanted = start.kill_signal.as_deref().and_then(signal).unwrap_or(rustix::process::Signal::TERM);
            if let Some(pid) = *lock(&pid) {
                let _ = kill_process(pid, wanted);
            }
        }
    };
    let drain_time = Duration::from_millis(250);
    let mut finished =
        Finished { pid: id, status, stdout: stdout.take(drain_time), stderr: stderr.take(drain_time), failure };
    // A quick child may have written everything and exited before the first check.
    if finished.stdout.len() > limit || finished.stderr.len() > limit {
        finished.failure.get_or_insert_with(|| overflow(start));
    }
    finished.stdout.truncate(limit);
    finished.stderr.truncate(limit);
    Ok(finished)
}

/// The error for more output than `maxBuffer` allows.
fn overflow(start: &SpawnRequest) -> Failure {
    let mut why = Failure::of(Errno::NOBUFS, "spawnSync", Some(&start.command));
    why.code = "ENOBUFS".into();
    why
}
