//! The `edit` tool: exact replacements of which either all apply or none.

mod apply;
mod diff;
mod document;
mod fuzzy;
mod render;

pub use apply::{Edit, Edited, apply};
pub(crate) use document::same_text;

use std::io::Read;
use std::sync::Arc;

use pith_agent::{BoxFuture, Effect, Reach, Tool, ToolContext, ToolOutput};
use pith_protocol::ToolSpec;
use rustix::fs::{Access, AtFlags};
use rustix::io::Errno;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::arguments::Arguments;
use crate::bridge;
use crate::files::open_regular;
use crate::mutation::{Target, change_file, change_of, put};
use crate::os_error;
use crate::seen::{digest, remark};
use crate::tool::{Outcome, check_aborted, spec};
use crate::workbench::Workbench;

/// Changes parts of files for the model.
pub struct EditTool {
    spec: ToolSpec,
    workbench: Arc<Workbench>,
}

impl EditTool {
    /// Creates the tool of one session.
    pub fn new(workbench: Arc<Workbench>) -> Self {
        EditTool { spec: spec("edit", DESCRIPTION, parameters()), workbench }
    }
}

/// Returns what a call would change in a file with these contents, as numbered lines; why it would fail otherwise.
pub fn preview(contents: &[u8], arguments: &Map<String, Value>) -> Result<String, String> {
    let arguments = Arguments(adapt(arguments.clone()));
    let path = arguments.text("path")?.to_owned();
    let edits = parse(&arguments)?;
    let edited = apply(contents, &edits, &path)?;
    Ok(render::difference(&edited.before, &edited.after, &path).diff)
}

/// Returns the difference between two texts as numbered lines.
pub fn numbered_difference(before: &[u8], after: &[u8]) -> String {
    render::difference(before, after, "").diff
}

fn edit(workbench: &Workbench, target: &Target, edits: &[Edit], cancel: &CancellationToken) -> Outcome {
    let Target { shown_path, path } = target;
    check_aborted(cancel)?;
    workbench.confinement.admit_change(path, "access")?;
    let (original, changed) = read_original(workbench, target, cancel)?;
    check_aborted(cancel)?;
    let edited = apply(&original, edits, shown_path)?;
    check_aborted(cancel)?;
    let mut remark = if changed { remark(shown_path) } else { String::new() };
    remark += &put(workbench, target, &edited.contents, cancel)?;
    let difference = render::difference(&edited.before, &edited.after, shown_path);
    let text = format!("Successfully replaced {} block(s) in {shown_path}.{remark}", edits.len());
    Ok(ToolOutput::text(text).with_details(json!({
        "diff": difference.diff,
        "patch": difference.patch,
        "firstChangedLine": difference.first_changed_line,
    })))
}

/// Returns the text to change, as the editor has it or as it is on the disk, and whether the file has changed since the
/// model saw it.
fn read_original(
    workbench: &Workbench,
    target: &Target,
    cancel: &CancellationToken,
) -> Result<(Vec<u8>, bool), String> {
    let Target { shown_path, path } = target;
    let takes_writes = || workbench.bridge().is_some_and(|bridge| bridge.takes_writes());
    let unfit =
        |error: Errno| format!("Could not edit file: {shown_path}. Error code: {}.", os_error::code(&error.into()));
    match rustix::fs::accessat(rustix::fs::CWD, path, Access::READ_OK | Access::WRITE_OK, AtFlags::empty()) {
        Ok(()) => {}
        // The editor may have a file that was never saved.
        Err(Errno::NOENT) if takes_writes() => {
            let buffer = bridge::unsaved(workbench, path, &[], cancel);
            return buffer.map(|buffer| (buffer, false)).ok_or_else(|| unfit(Errno::NOENT));
        }
        Err(error) => return Err(unfit(error)),
    }
    // A directory gets another message, when it is opened.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        return Err(unfit(Errno::INVAL));
    }
    let (mut file, metadata) = open_regular(path, &workbench.confinement)?;
    let mut original = Vec::new();
    file.read_to_end(&mut original).map_err(|error| os_error::on_open_file(&error, "read"))?;
    drop(file);
    let changed = workbench.seen.has_changed(path, &metadata, || digest(&original));
    if let Some(buffer) = bridge::unsaved(workbench, path, &original, cancel) {
        if !takes_writes() {
            return Err(format!("{shown_path} has unsaved changes in the editor"));
        }
        return Ok((buffer, false));
    }
    Ok((original, changed))
}

fn parse(arguments: &Arguments) -> Result<Vec<Edit>, String> {
    let list = arguments.0.get("edits").and_then(Value::as_array).ok_or("edits: must be array")?;
    let member = |edit: &Value, at: usize, name: &str| {
        edit.get(name).and_then(Value::as_str).map(str::to_owned).ok_or(format!("edits.{at}.{name}: must be string"))
    };
    let parse =
        |(at, edit)| Ok(Edit { old_text: member(edit, at, "oldText")?, new_text: member(edit, at, "newText")? });
    list.iter().enumerate().map(parse).collect()
}

/// Normalises the forms in which models pass `edits`: JSON in a string, a single object, the two texts beside the path.
fn adapt(mut arguments: Map<String, Value>) -> Map<String, Value> {
    let is_edit = |value: &Value| value.get("oldText").is_some() && value.get("newText").is_some();
    if let Some(Value::String(text)) = arguments.get("edits")
        && let Ok(parsed) = serde_json::from_str::<Value>(text)
        && (parsed.is_array() || is_edit(&parsed))
    {
        arguments.insert("edits".to_owned(), parsed);
    }
    if let Some(single) = arguments.get_mut("edits").filter(|edits| edits.is_object()) {
        *single = Value::Array(vec![single.take()]);
    }
    let both = matches!(
        (arguments.get("oldText"), arguments.get("newText")),
        (Some(Value::String(_)), Some(Value::String(_)))
    );
    if both && arguments.get("edits").is_none_or(|edits| edits.is_array() || edits.is_null()) {
        let edit = json!({"oldText": arguments.shift_remove("oldText"), "newText": arguments.shift_remove("newText")});
        match arguments.get_mut("edits") {
            Some(Value::Array(edits)) => edits.push(edit),
            _ => drop(arguments.insert("edits".to_owned(), json!([edit]))),
        }
    }
    arguments
}

impl Tool for EditTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn snippet(&self) -> Option<&str> {
        Some("Make precise replacements in files, several per call")
    }

    fn rules(&self) -> Vec<&str> {
        vec![
            "With edit, oldText must match the file exactly, including white space",
            "Change several places of one file in one edit call with several entries in edits",
            "Each oldText is matched against the original file, not against other edits' results; avoid overlaps",
            "Keep oldText as small as is unique in the file",
        ]
    }

    fn adapt(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        adapt(arguments)
    }

    fn reach(&self) -> Reach {
        Reach::OneFile
    }

    fn effect(&self, arguments: &Map<String, Value>) -> Effect {
        change_of(&self.workbench, arguments)
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        change_file("edit", self.workbench.clone(), arguments, context, parse, |workbench, target, edits, cancel| {
            edit(workbench, target, edits, cancel)
        })
    }
}

const DESCRIPTION: &str = "Change parts of a file by replacing exact text. Every oldText must occur exactly once in \
    the original file. All edits refer to the original, not to each other's results, and must not overlap: merge \
    neighbouring changes into one edit. Keep oldText short.";

fn parameters() -> Value {
    json!({
        "type": "object",
        "required": ["path", "edits"],
        "properties": {
            "path": {"type": "string", "description": "Path of the file, relative or absolute"},
            "edits": {
                "type": "array",
                "description": "The replacements, all matched against the original file",
                "items": {
                    "type": "object",
                    "required": ["oldText", "newText"],
                    "properties": {
                        "oldText": {"type": "string", "description": "Exact text to replace, unique in the file"},
                        "newText": {"type": "string", "description": "Text to put in its place"},
                    },
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_forms_of_edits_are_normalised() {
        let edit = json!({"oldText": "a", "newText": "b"});
        let check = |given: Value, expected: Value| {
            assert_eq!(Value::Object(adapt(given.as_object().unwrap().clone())), expected);
        };
        let good = json!({"path": "f", "edits": [edit]});
        check(good.clone(), good.clone());
        check(json!({"path": "f", "edits": "[{\"oldText\":\"a\",\"newText\":\"b\"}]"}), good.clone());
        check(json!({"path": "f", "edits": "{\"oldText\":\"a\",\"newText\":\"b\"}"}), good.clone());
        check(json!({"path": "f", "edits": edit}), good.clone());
        check(json!({"path": "f", "oldText": "a", "newText": "b"}), good);
        check(
            json!({"path": "f", "edits": [edit], "oldText": "c", "newText": "d"}),
            json!({"path": "f", "edits": [edit, {"oldText": "c", "newText": "d"}]}),
        );
        for untouched in
            [json!({"edits": "not json"}), json!({"edits": "3"}), json!({"oldText": "a"}), json!({"edits": 3})]
        {
            check(untouched.clone(), untouched);
        }
    }
}
