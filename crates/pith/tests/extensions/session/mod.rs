//! Extensions and the session as a whole: replacement, reload, compaction, navigation, the host's shell, the end.

mod end;
mod reload;
mod replace;
mod requests;
mod shell;
mod summaries;
mod tools;

use pith_testkit::{ModelServer, Script, TempHome, Turn};
use serde_json::{Value, json};

use crate::support::Scene;

/// Tells the host every event of these names, and nothing else.
pub fn reporting(events: &[&str]) -> String {
    format!(
        r#"export default (pi) => {{
            for (const name of {events:?}) pi.on(name, (event, ctx) => ctx.ui.notify(JSON.stringify(event)));
        }};"#
    )
}

/// Starts pith with a model that gives these answers and user extensions of these sources.
pub fn scene(turns: impl IntoIterator<Item = Turn>, sources: &[(&str, &str)]) -> Scene {
    scene_with(Script::of(turns), &json!({}), sources)
}

/// Starts pith with a whole script and settings.
pub fn scene_with(script: Script, settings: &Value, sources: &[(&str, &str)]) -> Scene {
    let server = ModelServer::start(script);
    let home = TempHome::for_server(&server);
    home.write_settings(settings);
    for (name, source) in sources {
        home.write_agent_file(&format!("extensions/{name}"), source);
    }
    let mut scene = Scene::in_home(server, home, |builder| builder);
    scene.state();
    scene
}

/// What extensions have told the host so far, parsed where it is JSON.
pub fn notes(frames: &[Value]) -> Vec<Value> {
    let told = frames.iter().filter(|frame| frame["type"] == "extension_ui_request" && frame["method"] == "notify");
    let read = |frame: &Value| {
        let text = frame["message"].as_str().expect("notes are texts");
        serde_json::from_str(text).unwrap_or_else(|_| json!(text))
    };
    told.map(read).collect()
}

/// The file of the session.
pub fn file(scene: &mut Scene) -> Value {
    scene.state()["sessionFile"].clone()
}

impl Scene {
    /// Waits until an extension tells exactly this.
    #[track_caller]
    pub fn wait_note(&mut self, text: &str) {
        self.host.wait(|frame| frame["method"] == "notify" && frame["message"] == text);
    }

    /// Waits for a dialog and returns its id.
    #[track_caller]
    pub fn wait_dialog(&mut self, method: &str) -> String {
        let frame = self.host.wait(|frame| frame["type"] == "extension_ui_request" && frame["method"] == method);
        frame["id"].as_str().expect("dialogs have an id").to_owned()
    }

    /// Answers a dialog.
    pub fn reply(&self, id: &str, mut answer: Value) {
        answer["type"] = json!("extension_ui_response");
        answer["id"] = json!(id);
        self.host.send(answer);
    }

    /// Runs a slash command to its end.
    #[track_caller]
    pub fn slash(&mut self, command: &str) {
        let data = self.host.data(json!({"type": "prompt", "message": command}));
        assert_eq!(data, json!({"disposition": "handled"}));
    }
}
