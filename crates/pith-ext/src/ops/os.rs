//! `node:os`, and the properties of `node:process`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::rc::Rc;

use rquickjs::function::Func;
use rquickjs::{Ctx, Object};
use rustix::process::{Pid, kill_process, test_kill_process};
use serde_json::json;

use super::errno::Failure;
use super::sys::signal;
use super::text::Text;
use crate::config::SCRIPT;
use crate::engine::State;

pub(super) fn install<'js>(group: &Object<'js>, state: &Rc<State>) -> rquickjs::Result<()> {
    let (environment, arguments) = (state.environment.clone(), state.arguments.clone());
    group.set("process", Func::from(move || process_facts(environment.clone(), &arguments)))?;
    group.set("facts", Func::from(system_facts))?;
    group.set("errors", Func::from(super::errno::known))?;
    group.set("processorTime", Func::from(processor_time))?;
    group.set("kill", Func::from(|ctx: Ctx<'js>, pid: i32, name: Text| kill(&ctx, pid, &name.0)))
}

fn process_facts(environment: Option<Vec<(String, String)>>, arguments: &[String]) -> String {
    let own = || {
        let text = |value: OsString| value.to_string_lossy().into_owned();
        std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
    };
    let env: BTreeMap<String, String> = environment.map_or_else(own, |variables| variables.into_iter().collect());
    let platform = match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    };
    let arch = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "env": env,
        "execPath": std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default(),
        "script": SCRIPT,
        "arguments": arguments,
        "pid": std::process::id(),
        "ppid": rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get()),
        "platform": platform,
        "arch": arch,
        "uid": rustix::process::getuid().as_raw(),
        "gid": rustix::process::getgid().as_raw(),
    })
    .to_string()
}

fn system_facts() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let memory = read("/proc/meminfo");
    let kilobytes = |name: &str| {
        let line = memory.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok()).unwrap_or(0.0) * 1024.0
    };
    let load: Vec<f64> =
        read("/proc/loadavg").split_whitespace().take(3).filter_map(|part| part.parse().ok()).collect();
    let uptime = read("/proc/uptime").split_whitespace().next().and_then(|part| part.parse::<f64>().ok());
    let name = rustix::system::uname();
    let passwd = read("/etc/passwd");
    let uid = rustix::process::getuid().as_raw().to_string();
    let user = passwd
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.get(2) == Some(&uid.as_str()));
    let user_field = |index: usize| user.as_ref().and_then(|fields| fields.get(index)).map(|field| (*field).to_owned());
    json!({
        "home": std::env::var("HOME").ok().or_else(|| user_field(5)).unwrap_or_else(|| "/".to_owned()),
        "user": user_field(0).or_else(|| std::env::var("USER").ok()).unwrap_or_default(),
        "shell": user_field(6),
        "hostname": name.nodename().to_string_lossy(),
        "release": name.release().to_string_lossy(),
        "cpus": std::thread::available_parallelism().map_or(1, |count| count.get()),
        "totalMemory": kilobytes("MemTotal:"),
        "freeMemory": kilobytes("MemAvailable:"),
        "load": if load.len() == 3 { load } else { vec![0.0; 3] },
        "uptime": uptime.unwrap_or(0.0),
    })
    .to_string()
}

/// Returns the microseconds that the process, or only this thread, has computed: its own, and the kernel's on its behalf.
fn processor_time(of_thread: bool) -> Vec<f64> {
    let path = if of_thread { "/proc/thread-self/stat" } else { "/proc/self/stat" };
    let text = fs::read_to_string(path).unwrap_or_default();
    // The name of the program may have spaces and brackets in it.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    let micros = 1e6 / rustix::param::clock_ticks_per_second() as f64;
    ticks.map(|ticks| ticks * micros).collect()
}

/// Sends a signal, or with `0` only checks whether the process exists.
fn kill(ctx: &Ctx<'_>, pid: i32, name: &str) -> rquickjs::Result<()> {
    let failed = |errno: rustix::io::Errno| Failure::of(errno, "kill", None).throw(ctx);
    // Pid 0 and others that mean several processes are refused.
    let target = Pid::from_raw(pid.abs()).ok_or_else(|| failed(rustix::io::Errno::SRCH))?;
    let outcome = match (name, pid < 0) {
        ("0", _) => test_kill_process(target),
        (name, true) => signal(name)
            .map_or(Err(rustix::io::Errno::INVAL), |signal| rustix::process::kill_process_group(target, signal)),
        (name, false) => signal(name).map_or(Err(rustix::io::Errno::INVAL), |signal| kill_process(target, signal)),
    };
    outcome.map_err(failed)
}

/// The resident memory of the process, in bytes.
pub fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}
