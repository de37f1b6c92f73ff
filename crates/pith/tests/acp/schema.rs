//! The published schema of the protocol, from the package of the official SDK. It is installed when tests run; nothing
//! of it is kept in the repository.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use jsonschema::Validator;
use pith_testkit::skip;
use serde_json::{Value, json};

/// The version whose schema pith's types come from.
const SDK: &str = "@agentclientprotocol/sdk@2.4.0";

/// Fails if a frame does not fit the schema. `methods` says which request an answer belongs to, by id.
#[track_caller]
pub fn check(frames: &[Value], methods: &HashMap<String, String>) {
    let Some(documents) = documents() else { return };
    let mut validators: HashMap<String, Option<Validator>> = HashMap::new();
    for frame in frames {
        assert_eq!(frame["jsonrpc"], "2.0", "{frame}");
        let (definition, value) = match (frame.get("method").and_then(Value::as_str), frame.get("error")) {
            (Some("session/update"), _) => ("SessionNotification".to_owned(), &frame["params"]),
            (Some("session/request_permission"), _) => ("RequestPermissionRequest".to_owned(), &frame["params"]),
            (Some("fs/read_text_file"), _) => ("ReadTextFileRequest".to_owned(), &frame["params"]),
            (Some("fs/write_text_file"), _) => ("WriteTextFileRequest".to_owned(), &frame["params"]),
            (Some("terminal/create"), _) => ("CreateTerminalRequest".to_owned(), &frame["params"]),
            (Some("terminal/wait_for_exit"), _) => ("WaitForTerminalExitRequest".to_owned(), &frame["params"]),
            (Some("terminal/output"), _) => ("TerminalOutputRequest".to_owned(), &frame["params"]),
            (Some("terminal/kill"), _) => ("KillTerminalRequest".to_owned(), &frame["params"]),
            (Some("terminal/release"), _) => ("ReleaseTerminalRequest".to_owned(), &frame["params"]),
            (Some("elicitation/create"), _) => ("CreateElicitationRequest".to_owned(), &frame["params"]),
            (Some("elicitation/complete"), _) => ("CompleteElicitationNotification".to_owned(), &frame["params"]),
            (Some("$/cancel_request"), _) => ("CancelRequestNotification".to_owned(), &frame["params"]),
            // Methods of pith's own have no schema.
            (Some(method), _) if method.starts_with("_pith/") => continue,
            (Some(method), _) => panic!("no definition for {method}: {frame}"),
            (None, Some(error)) => ("Error".to_owned(), error),
            (None, None) => match methods.get(&frame["id"].to_string()).and_then(|method| response(method)) {
                Some(definition) => (definition.to_owned(), &frame["result"]),
                None => continue,
            },
        };
        let validator = validators.entry(definition.clone()).or_insert_with(|| validator(documents, &definition));
        let validator = validator.as_ref().unwrap_or_else(|| panic!("the schema has no {definition}"));
        let problems: Vec<String> =
            validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(problems.is_empty(), "not a {definition}: {problems:?}\n{frame}");
    }
}

/// The definition of a method's result.
fn response(method: &str) -> Option<&'static str> {
    Some(match method {
        "initialize" => "InitializeResponse",
        "authenticate" => "AuthenticateResponse",
        "session/new" => "NewSessionResponse",
        "session/load" => "LoadSessionResponse",
        "session/resume" => "ResumeSessionResponse",
        "session/fork" => "ForkSessionResponse",
        "session/list" => "ListSessionsResponse",
        "session/close" => "CloseSessionResponse",
        "session/delete" => "DeleteSessionResponse",
        "session/status" => "SessionStatusResponse",
        "session/set_title" => "SetSessionTitleResponse",
        "session/prompt" => "PromptResponse",
        "session/set_mode" => "SetSessionModeResponse",
        "session/set_config_option" => "SetSessionConfigOptionResponse",
        _ => return None,
    })
}

/// The stable document first; what it lacks is looked for in the other one.
fn validator(documents: &[Value; 2], definition: &str) -> Option<Validator> {
    let document = documents.iter().find(|document| document["$defs"].get(definition).is_some())?;
    let schema = json!({
        "$schema": document["$schema"],
        "$ref": format!("#/$defs/{definition}"),
        "$defs": document["$defs"],
    });
    Some(jsonschema::validator_for(&schema).expect("the published schema is one"))
}

fn documents() -> Option<&'static [Value; 2]> {
    static DOCUMENTS: OnceLock<Option<[Value; 2]>> = OnceLock::new();
    let documents = DOCUMENTS.get_or_init(|| {
        let directory = directory()?;
        let read = |name: &str| {
            let text = std::fs::read_to_string(directory.join(name)).ok()?;
            serde_json::from_str(&text).ok()
        };
        Some([read("schema.json")?, read("schema.unstable.json")?])
    });
    if documents.is_none() {
        skip("the schema of the protocol is not to be had: frames are not held against it");
    }
    documents.as_ref()
}

/// Where the schema is; installs the package if it is not there.
fn directory() -> Option<PathBuf> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("acp-sdk");
    let schema = place.join("node_modules/@agentclientprotocol/sdk/schema/v1");
    if !schema.join("schema.unstable.json").exists() {
        let options = ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0"];
        let mut npm = Command::new("npm");
        npm.args(options).arg("--prefix").arg(&place).arg(SDK).stdout(Stdio::null()).stderr(Stdio::null());
        std::fs::create_dir_all(&place).ok()?;
        npm.status().ok().filter(std::process::ExitStatus::success)?;
    }
    Some(schema)
}
