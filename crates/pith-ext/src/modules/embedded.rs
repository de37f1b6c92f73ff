//! pith's own modules: the JavaScript that is compiled into the binary, and the names that import it.

/// A list of pith's own scripts. Each is compiled when it is first imported.
macro_rules! scripts {
    ($($name:literal => $file:literal,)*) => {
        &[$(($name, include_str!(concat!("../../js/", $file)))),*]
    };
}

const SCRIPTS: &[(&str, &str)] = scripts! {
    "internal/boot" => "core/boot.js",
    "internal/traces" => "core/traces.js",
    "internal/owners" => "core/owners.js",
    "internal/ops" => "core/ops.js",
    "internal/timers" => "core/timers.js",
    "internal/loader" => "core/loader.js",
    "internal/runs" => "core/runs.js",
    "internal/calls" => "core/calls.js",
    "internal/events" => "core/events.js",
    "internal/state" => "core/state.js",
    "internal/api" => "core/api.js",
    "internal/actions" => "core/actions.js",
    "internal/context" => "core/context.js",
    "internal/session" => "core/session.js",
    "internal/models" => "core/models.js",
    "internal/ui" => "core/ui.js",
    "internal/declared" => "core/declared.js",
    "internal/theme" => "core/theme.js",
    "internal/load" => "core/load.js",
    "internal/tools" => "core/tools.js",
    "internal/exec" => "core/exec.js",
    "internal/providers" => "core/providers.js",
    "internal/globals" => "core/globals.js",
    "internal/abort" => "web/abort.js",
    "internal/clone" => "web/clone.js",
    "internal/messaging" => "web/messaging.js",
    "internal/small" => "web/small.js",
    "internal/websocket" => "web/websocket.js",
    "internal/url-pattern" => "web/url-pattern.js",
    "internal/decorators" => "core/decorators.js",
    "internal/fetch" => "web/fetch.js",
    "internal/streams" => "web/streams.js",
    "internal/writable" => "web/writable.js",
    "internal/intl" => "web/intl.js",
    "internal/absent" => "node/absent.js",
    "http2" => "node/http2.js",
    "internal/http2-constants" => "node/http2-constants.js",
    "internal/args" => "node/args.js",
    "internal/fs-streams" => "node/fs-streams.js",
    "internal/fs-watch" => "node/fs-watch.js",
    "internal/glob" => "node/glob.js",
    "internal/http" => "node/http.js",
    "internal/http-server" => "node/http-server.js",
    "internal/wasm" => "web/wasm.js",
    "assert" => "node/assert.js",
    "async_hooks" => "node/async_hooks.js",
    "buffer" => "node/buffer.js",
    "child_process" => "node/child_process.js",
    "console" => "node/console.js",
    "crypto" => "node/crypto.js",
    "diagnostics_channel" => "node/diagnostics_channel.js",
    "dns" => "node/dns.js",
    "events" => "node/events.js",
    "fs" => "node/fs.js",
    "module" => "node/module.js",
    "net" => "node/net.js",
    "os" => "node/os.js",
    "path" => "node/path.js",
    "perf_hooks" => "node/perf_hooks.js",
    "process" => "node/process.js",
    "querystring" => "node/querystring.js",
    "readline" => "node/readline.js",
    "sqlite" => "node/sqlite.js",
    "stream" => "node/stream.js",
    "stream/consumers" => "node/consumers.js",
    "internal/stream-operators" => "node/stream-operators.js",
    "string_decoder" => "node/string_decoder.js",
    "timers" => "node/timers.js",
    "tty" => "node/tty.js",
    "undici" => "node/undici.js",
    "url" => "node/url.js",
    "util" => "node/util.js",
    "util/types" => "node/types.js",
    "internal/util-more" => "node/util-more.js",
    "internal/os-constants" => "node/os-constants.js",
    "vm" => "node/vm.js",
    "zlib" => "node/zlib.js",
    "typebox" => "pi/typebox.js",
    "typebox/value" => "pi/typebox-value.js",
    "internal/text" => "pi/text.js",
    "internal/keys" => "pi/keys.js",
    "internal/components" => "pi/components.js",
    "internal/markdown" => "pi/markdown.js",
    "internal/transcript" => "pi/transcript.js",
    "internal/native-tools" => "pi/native-tools.js",
    "internal/truncate" => "pi/truncate.js",
    "internal/files" => "pi/files.js",
    "internal/stubs" => "pi/stubs.js",
    "internal/agent-loop" => "pi/agent-loop.js",
    "internal/agent" => "pi/agent.js",
    "internal/agent-session" => "pi/agent-session.js",
    "internal/agent-sessions" => "pi/agent-sessions.js",
    "internal/session-manager" => "pi/session-manager.js",
    "internal/settings-manager" => "pi/settings-manager.js",
    "internal/resources" => "pi/resources.js",
    "internal/compaction" => "pi/compaction.js",
    "internal/model-runtime" => "pi/model-runtime.js",
    "internal/packages" => "pi/packages.js",
    "internal/installed" => "pi/installed.js",
    "internal/harness" => "pi/harness.js",
    "internal/rpc-client" => "pi/rpc-client.js",
    "internal/media" => "pi/media.js",
    "internal/provider-kit" => "pi/provider-kit.js",
    "pi-ai" => "pi/pi-ai.js",
    "pi-ai/oauth" => "pi/pi-ai-oauth.js",
    "pi-tui" => "pi/pi-tui.js",
    "pi-agent-core" => "pi/pi-agent-core.js",
    "pi-coding-agent" => "pi/pi-coding-agent.js",
};

/// Modules that are a part or a variant of another one.
const DERIVED: &[(&str, &str)] = &[
    ("assert/strict", "require('assert')"),
    ("constants", "require('fs').constants"),
    ("dns/promises", "require('dns').promises"),
    ("fs/promises", "require('fs').promises"),
    ("http", "require('internal/http').make('http:')"),
    ("https", "require('internal/http').make('https:')"),
    ("path/posix", "require('path').posix"),
    ("path/win32", "require('path').win32"),
    ("punycode", "({toASCII:(text)=>text,toUnicode:(text)=>text,encode:(text)=>text,decode:(text)=>text})"),
    ("readline/promises", "require('readline').promises"),
    ("stream/promises", "require('stream').promises"),
    ("stream/web", "require('internal/streams')"),
    ("sys", "require('util')"),
    ("timers/promises", "require('timers').promises"),
    ("typebox/compile", "require('typebox/value')"),
];

/// Built-in modules that can be imported but not used.
const ABSENT: &[&str] = &["cluster", "dgram", "inspector", "repl", "sea", "tls", "v8", "wasi", "worker_threads"];

/// The scopes under which the packages of pi are published.
const PI_SCOPES: &[&str] = &["@earendil-works/", "@mariozechner/"];

/// Returns the name of pith's own module for a specifier, if there is one.
pub fn canonical(specifier: &str) -> Option<&'static str> {
    if let Some(builtin) = specifier.strip_prefix("node:") {
        return known(builtin).filter(|name| is_node(name));
    }
    if let Some(package) = PI_SCOPES.iter().find_map(|scope| specifier.strip_prefix(scope)) {
        return match package {
            "pi-ai" | "pi-ai/compat" | "pi-ai/providers/all" => Some("pi-ai"),
            "pi-ai/oauth" => Some("pi-ai/oauth"),
            "pi-tui" => Some("pi-tui"),
            "pi-agent-core" => Some("pi-agent-core"),
            "pi-coding-agent" => Some("pi-coding-agent"),
            _ => None,
        };
    }
    match specifier {
        "typebox" | "@sinclair/typebox" => Some("typebox"),
        "undici" => Some("undici"),
        _ => known(specifier).filter(|name| is_node(name)),
    }
}

/// Returns the module that is used only if the extension does not ship its own.
pub fn fallback(specifier: &str) -> Option<&'static str> {
    match specifier.strip_prefix("@sinclair/").unwrap_or(specifier) {
        "typebox/value" => Some("typebox/value"),
        "typebox/compile" | "typebox/compiler" => Some("typebox/compile"),
        _ => None,
    }
}

/// Returns the source of a module as a function body, ready to be wrapped.
pub fn source(name: &str) -> Option<String> {
    if let Some((_, text)) = SCRIPTS.iter().find(|(known, _)| *known == name) {
        return Some((*text).to_owned());
    }
    if let Some((_, expression)) = DERIVED.iter().find(|(known, _)| *known == name) {
        return Some(format!("module.exports={expression}"));
    }
    ABSENT.contains(&name).then(|| format!("module.exports=require('internal/absent').make('{name}')"))
}

/// Returns the names of Node's built-in modules, for `module.builtinModules`.
pub fn builtins() -> Vec<&'static str> {
    names().filter(|name| is_node(name)).collect()
}

fn names() -> impl Iterator<Item = &'static str> {
    let scripts = SCRIPTS.iter().map(|(name, _)| *name);
    scripts.chain(DERIVED.iter().map(|(name, _)| *name)).chain(ABSENT.iter().copied())
}

fn known(name: &str) -> Option<&'static str> {
    names().find(|known| *known == name)
}

fn is_node(name: &str) -> bool {
    !name.starts_with("internal/") && !name.starts_with("pi-") && !name.starts_with("typebox") && name != "undici"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_one_module_each() {
        let check = |specifier: &str, expected: Option<&str>| assert_eq!(canonical(specifier), expected, "{specifier}");
        check("node:fs", Some("fs"));
        check("fs/promises", Some("fs/promises"));
        check("@mariozechner/pi-ai", Some("pi-ai"));
        check("@earendil-works/pi-ai/compat", Some("pi-ai"));
        check("@sinclair/typebox", Some("typebox"));
        check("internal/ops", None);
        check("node:pi-ai", None);
        check("pi-ai", None);
        check("zod", None);
        assert!(names().all(|name| source(name).is_some()));
    }
}
