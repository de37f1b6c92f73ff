//! The `host` object: everything that JavaScript can ask of Rust.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;

use rquickjs::context::EvalOptions;
use rquickjs::function::Func;
use rquickjs::{Ctx, Exception, Function, Object, Value};
use serde_json::json;

use super::state::State;
use crate::config::ExtensionConfig;
use crate::modules::embedded;
use crate::modules::package::Importer;
use crate::modules::resolve::Target;
use crate::modules::stack::named;
use crate::modules::transpile::ModuleKind;
use crate::ops;
use crate::ops::text::Text;
use crate::outgoing::{read_ask, read_query, read_send};
use crate::registry::Registry;

/// Installs `host`, defines the loader of pith's own modules and runs the boot script.
pub(super) fn boot<'js>(ctx: &Ctx<'js>, state: &Rc<State>, config: &ExtensionConfig) -> rquickjs::Result<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    install_modules(&host, state)?;
    install_clock(&host, state)?;
    install_messages(&host, state)?;
    install_misc(&host, state)?;
    let tools = config.builtin_tools.clone();
    host.set("builtinTools", Func::from(move || serde_json::to_string(&tools).expect("plain data serializes")))?;
    let bootstrap: Function = ctx.eval_with_options(BOOTSTRAP, options("pith:bootstrap"))?;
    let require: Function = bootstrap.call((host,))?;
    let entries: Object = require.call(("internal/boot",))?;
    let configure: Function = entries.get("configure")?;
    let millis = |duration: Duration| duration.as_secs_f64() * 1000.0;
    let limits = json!({
        "handlerMs": millis(config.limits.handler),
        "observerMs": millis(config.limits.observer),
        "factoryMs": millis(config.limits.factory),
    });
    let surroundings = serde_json::to_string(&config.surroundings).expect("plain data serializes");
    let () = configure.call((ctx.json_parse(surroundings)?, ctx.json_parse(limits.to_string())?))?;
    Ok(entries)
}

/// Only pith's own modules see `host`.
const BOOTSTRAP: &str = "(function(host){const cache=new Map();const require=(name)=>{\
    let module=cache.get(name);if(module)return module.exports;\
    const wrapper=host.embedded(name);if(!wrapper)throw new Error(`Cannot find module '${name}'`);\
    module={exports:{}};cache.set(name,module);\
    try{wrapper(module.exports,require,module,host)}catch(error){cache.delete(name);throw error}\
    return module.exports};return require})";

fn options(filename: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(filename.to_owned());
    options
}

fn install_modules<'js>(host: &Object<'js>, state: &Rc<State>) -> rquickjs::Result<()> {
    host.set("embedded", Func::from(embedded_module))?;
    host.set("builtins", Func::from(|| serde_json::to_string(&embedded::builtins()).expect("names serialize")))?;
    let here = state.clone();
    host.set(
        "resolve",
        Func::from(move |ctx: Ctx<'js>, specifier: Text, from: Text, is_require: bool| {
            let importer = if is_require { Importer::Require } else { Importer::Import };
            match here.resolver.resolve(&specifier.0, Path::new(&from.0), importer) {
                Ok(Target::Host(name)) => Ok(format!("host:{name}")),
                Ok(Target::File(path)) => Ok(path.display().to_string()),
                Err(why) => Err(throw(&ctx, "MODULE_NOT_FOUND", &why)),
            }
        }),
    )?;
    let here = state.clone();
    host.set(
        "installed",
        Func::from(move |specifier: Text, from: Text| {
            here.resolver.installed(&specifier.0, Path::new(&from.0)).map(|path| path.display().to_string())
        }),
    )?;
    let here = state.clone();
    host.set(
        "readModule",
        Func::from(move |ctx: Ctx<'js>, path: Text, filename: Text| read_module(&ctx, &here, &path.0, &filename.0)),
    )?;
    let here = state.clone();
    host.set("forgetModules", Func::from(move || here.resolver.forget()))?;
    host.set(
        "realpath",
        Func::from(|path: Text| {
            let real = std::fs::canonicalize(&path.0).unwrap_or_else(|_| PathBuf::from(&path.0));
            real.display().to_string()
        }),
    )
}

fn embedded_module(ctx: Ctx<'_>, name: String) -> rquickjs::Result<Option<Function<'_>>> {
    let Some(source) = embedded::source(&name) else { return Ok(None) };
    let code = format!("(function(exports,require,module,host){{\"use strict\";{source}\n}})");
    ctx.eval_with_options(code, options(&format!("pith:{name}"))).map(Some)
}

/// Reads a module of an extension; `filename` is its name in stack traces.
fn read_module<'js>(ctx: &Ctx<'js>, state: &State, path: &str, filename: &str) -> rquickjs::Result<Object<'js>> {
    let script = Object::new(ctx.clone())?;
    if path.ends_with(".json") {
        let text = std::fs::read_to_string(path).map_err(|error| throw(ctx, "ENOENT", &format!("{path}: {error}")))?;
        script.set("kind", "json")?;
        script.set("text", text.trim_start_matches('\u{feff}'))?;
        return Ok(script);
    }
    if path.ends_with(".node") {
        let why = format!("{path}: native add-ons are not available in pith: there is no Node to load them into");
        return Err(throw(ctx, "ERR_DLOPEN_FAILED", &why));
    }
    // Reading and compiling is pith's work and does not count as the extension's.
    let found = state.block(|| state.script(Path::new(path))).map_err(|why| throw(ctx, "ERR_LOAD", &why))?;
    let wrapper: Function = state.block(|| ctx.eval_with_options(found.code.as_str(), options(filename)))?;
    script.set("kind", if found.kind == ModuleKind::Module { "module" } else { "commonjs" })?;
    script.set("fn", wrapper)?;
    script.set("imports", found.imports.clone())?;
    script.set("isAsync", found.is_async)?;
    Ok(script)
}

fn install_clock<'js>(host: &Object<'js>, state: &Rc<State>) -> rquickjs::Result<()> {
    let here = state.clone();
    host.set("now", Func::from(move || here.start.elapsed().as_secs_f64() * 1000.0))?;
    let here = state.clone();
    host.set(
        "timerSet",
        Func::from(move |id: f64, delay: f64| {
            here.timers
                .borrow_mut()
                .set(id as u64, Duration::from_secs_f64(delay.clamp(0.0, 2_147_483_647.0) / 1000.0));
        }),
    )?;
    let here = state.clone();
    host.set("timerClear", Func::from(move |id: f64| here.timers.borrow_mut().clear(id as u64)))
}

fn install_messages<'js>(host: &Object<'js>, state: &Rc<State>) -> rquickjs::Result<()> {
    let here = state.clone();
    host.set("reply", Func::from(move |id: f64, is_ok: bool, text: Text| reply(&here, id as u64, is_ok, text.0)))?;
    let here = state.clone();
    host.set("progress", Func::from(move |id: f64, text: Text| here.shared.progress(id as u64, text.0)))?;
    let here = state.clone();
    host.set(
        "send",
        Func::from(move |ctx: Ctx<'js>, kind: String, text: Text| {
            let message = read_send(&kind, &text.0).map_err(|why| throw(&ctx, "ERR_INVALID_ARG_VALUE", &why))?;
            // Fails only if the session has ended.
            here.shared.send(message);
            here.shared.throttle();
            Ok::<(), rquickjs::Error>(())
        }),
    )?;
    let here = state.clone();
    host.set(
        "ask",
        Func::from(move |ctx: Ctx<'js>, op: f64, kind: String, text: Text| {
            let op = op as u64;
            let token = here.began(op);
            let message = read_ask(op, &kind, &text.0, here.inbox.clone(), token)
                .map_err(|why| throw(&ctx, "ERR_INVALID_ARG_VALUE", &why))?;
            // If the message cannot be delivered it is dropped here, and its answer fails.
            here.shared.send(message);
            here.shared.throttle();
            Ok::<(), rquickjs::Error>(())
        }),
    )?;
    let here = state.clone();
    host.set("cancel", Func::from(move |op: f64| here.cancel(op as u64)))?;
    let here = state.clone();
    host.set("query", Func::from(move |ctx: Ctx<'js>, kind: String, text: Text| query(&ctx, &here, &kind, &text.0)))?;
    let here = state.clone();
    host.set(
        "registry",
        Func::from(move |ctx: Ctx<'js>, text: Text| {
            let registry: Registry =
                crate::json::parse(&text.0).map_err(|why| throw(&ctx, "ERR_INVALID_ARG_VALUE", &why))?;
            here.shared.set_registry(registry);
            Ok::<(), rquickjs::Error>(())
        }),
    )
}

fn reply(state: &State, id: u64, is_ok: bool, text: String) {
    let outcome =
        if is_ok { Ok(text) } else { Err(crate::shared::CallError::Failed(crate::json::parse(&text).unwrap_or(text))) };
    state.shared.answer(id, outcome);
}

/// Asks the session and waits. The session answers from its state, so this takes microseconds or fails.
fn query(ctx: &Ctx<'_>, state: &State, kind: &str, text: &str) -> rquickjs::Result<String> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let message = read_query(kind, text, sender).map_err(|why| throw(ctx, "ERR_INVALID_ARG_VALUE", &why))?;
    let is_sent = state.shared.send(message);
    let answer = is_sent.then(|| state.block(|| receiver.recv_timeout(state.limits.query)));
    match answer {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(_)) | None => Err(throw(ctx, "ERR_NO_SESSION", &format!("The session did not answer ({kind})"))),
    }
}

fn install_misc<'js>(host: &Object<'js>, state: &Rc<State>) -> rquickjs::Result<()> {
    let here = state.clone();
    host.set("log", Func::from(move |text: Text| here.output.write(&text.0)))?;
    let here = state.clone();
    host.set("exhausted", Func::from(move || here.note_exhaustion()))?;
    let here = state.clone();
    host.set("named", Func::from(move |message: Text, stack: Text| here.block(|| named(&message.0, &stack.0))))?;
    host.set("uuid", Func::from(|| uuid::Uuid::new_v4().to_string()))?;
    host.set("uuid7", Func::from(|| uuid::Uuid::now_v7().to_string()))?;
    host.set("memory", Func::from(memory))?;
    let here = state.clone();
    host.set("ops", Func::from(move |ctx: Ctx<'js>, group: String| ops::group(&ctx, &here, &group)))
}

fn memory(ctx: Ctx<'_>) -> rquickjs::Result<Object<'_>> {
    let usage = Object::new(ctx)?;
    usage.set("rss", ops::os::resident() as f64)?;
    usage.set("heapUsed", ops::os::resident() as f64)?;
    Ok(usage)
}

/// Creates an exception with a code, as Node's have.
pub(crate) fn throw(ctx: &Ctx<'_>, code: &str, message: &str) -> rquickjs::Error {
    let made = Exception::from_message(ctx.clone(), message).and_then(|exception| {
        exception.as_object().set("code", code)?;
        Ok(exception)
    });
    match made {
        Ok(exception) => ctx.throw(Value::from(exception.into_object())),
        Err(error) => error,
    }
}
