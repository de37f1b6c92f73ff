//! Runs that extensions observe and change.

mod boundary;
mod context;
mod order;
mod tool_calls;
mod tools;

use pith_testkit::{HostBuilder, ModelServer, Script, TempHome, Turn};
use serde_json::Value;

use crate::support::Scene;

/// pith with one extension, whose factory has this body.
fn scene(body: &str, turns: impl IntoIterator<Item = Turn>) -> Scene {
    scene_with(body, Script::of(turns), |builder| builder)
}

/// Like [`scene`], with a whole script and further arguments. `note` tells the host something.
fn scene_with(body: &str, script: Script, configure: impl FnOnce(HostBuilder) -> HostBuilder) -> Scene {
    let server = ModelServer::start(script);
    let home = TempHome::for_server(&server);
    let source = format!(
        "const note = (ctx, value) => ctx.ui.notify(typeof value === 'string' ? value : JSON.stringify(value));
         const said = (text) => ({{ content: [{{ type: 'text', text }}], details: {{}} }});
         const object = (properties, required = []) => ({{ type: 'object', properties, required }});
         export default function (pi) {{\n{body}\n}}"
    );
    home.write_agent_file("extensions/own.ts", source);
    Scene::in_home(server, home, configure)
}

/// What `note` told, in order.
fn notes(frames: &[Value]) -> Vec<&str> {
    let notes = frames.iter().filter(|frame| frame["method"] == "notify");
    notes.filter_map(|frame| frame["message"].as_str()).collect()
}

/// The errors of extensions that the host was told of: path, event and text.
fn failures(frames: &[Value]) -> Vec<(&str, &str, &str)> {
    let errors = frames.iter().filter(|frame| frame["type"] == "extension_error");
    errors
        .map(|frame| {
            let field = |name: &str| frame[name].as_str().unwrap_or_default();
            (field("extensionPath"), field("event"), field("error"))
        })
        .collect()
}
