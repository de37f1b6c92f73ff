//! What the user is asked for in entries that are copied from another program: `${input:id}`, with what the other file
//! says about `id`.

use std::iter::once;

use pith_mcp::config::ImportedProgram;
use serde_json::{Map, Value, json};

/// The `inputs` of another program's file.
pub struct ImportedInputs {
    program: ImportedProgram,
    inputs: Vec<Value>,
}

impl ImportedInputs {
    pub fn of(program: ImportedProgram, document: Option<&Value>) -> Self {
        let inputs = document.and_then(|document| document.get("inputs")).and_then(Value::as_array);
        ImportedInputs { program, inputs: inputs.cloned().unwrap_or_default() }
    }

    /// Copies what an entry needs into a file's document. An id that means something else there gets another name, since
    /// what the user says for one server must not reach another. Returns the ids that did, with their new names.
    pub fn copy_into(&self, document: &mut Map<String, Value>, entry: &mut Value) -> Vec<(String, String)> {
        let mut renamed = Vec::new();
        for id in ids(&entry.to_string()) {
            let theirs = find(&self.inputs, &id);
            let name = self.free_name(document, &id, theirs);
            if let Some(input) = theirs
                && defined(document, &name).is_none()
                && let Value::Array(inputs) = document.entry("inputs").or_insert_with(|| json!([]))
            {
                let mut input = input.clone();
                input["id"] = json!(name);
                inputs.push(input);
            }
            if name != id {
                replace(entry, &placeholder(&id), &placeholder(&name));
                renamed.push((id, name));
            }
        }
        renamed
    }

    /// The first name that the document does not use for something else.
    fn free_name(&self, document: &Map<String, Value>, id: &str, theirs: Option<&Value>) -> String {
        let others = (1..).map(|number| {
            let name = format!("{}-{id}", self.program.name());
            if number == 1 { name } else { format!("{name}-{number}") }
        });
        let is_free = |name: &String| match defined(document, name) {
            Some(ours) => theirs.is_some_and(|theirs| is_alike(ours, theirs)),
            None => theirs.is_none() || !is_used(document, name),
        };
        once(id.to_owned()).chain(others).find(is_free).unwrap_or_else(|| id.to_owned())
    }
}

/// Whether two inputs ask for the same, whatever they are called.
fn is_alike(one: &Value, other: &Value) -> bool {
    let members = |input: &Value| {
        let mut members = input.as_object().cloned().unwrap_or_default();
        members.remove("id");
        members
    };
    members(one) == members(other)
}

fn find<'a>(inputs: &'a [Value], id: &str) -> Option<&'a Value> {
    inputs.iter().find(|input| input["id"] == id)
}

fn defined<'a>(document: &'a Map<String, Value>, id: &str) -> Option<&'a Value> {
    find(document.get("inputs")?.as_array()?, id)
}

/// Whether an entry of the document asks for an id.
fn is_used(document: &Map<String, Value>, id: &str) -> bool {
    let servers = ["mcpServers", "servers"].into_iter().filter_map(|key| document.get(key));
    servers.into_iter().any(|servers| servers.to_string().contains(&placeholder(id)))
}

fn placeholder(id: &str) -> String {
    format!("${{input:{id}}}")
}

/// The ids that a text names, each once.
fn ids(text: &str) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for (id, _) in text.split("${input:").skip(1).filter_map(|rest| rest.split_once('}')) {
        if !ids.iter().any(|other| other == id) {
            ids.push(id.to_owned());
        }
    }
    ids
}

fn replace(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) => *text = text.replace(from, to),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, from, to)),
        Value::Object(members) => members.values_mut().for_each(|member| replace(member, from, to)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bring(ours: Value, theirs: Value, entry: Value) -> (Value, Value, Vec<(String, String)>) {
        let (Value::Object(mut document), mut entry) = (ours, entry) else { panic!("an object") };
        let inputs = ImportedInputs::of(ImportedProgram::VsCode, Some(&json!({ "inputs": theirs })));
        let renamed = inputs.copy_into(&mut document, &mut entry);
        (Value::Object(document), entry, renamed)
    }

    #[test]
    fn what_an_entry_asks_for_comes_with_it_and_nothing_else() {
        let key = json!({"id": "key", "type": "promptString", "password": true});
        let entry = json!({"command": "x", "env": {"K": "${input:key}", "L": "${input:plain}", "M": "${env:TOKEN}"}});
        let (document, brought, renamed) =
            bring(json!({}), json!([key, {"id": "unused", "type": "promptString"}]), entry.clone());
        assert_eq!((&document, &brought, renamed), (&json!({"inputs": [key]}), &entry, vec![]));
        // A second entry asks for the same.
        let (again, ..) = bring(document.clone(), json!([key]), entry);
        assert_eq!(again, document);
    }

    #[test]
    fn an_id_that_means_something_else_gets_another_name() {
        let theirs = json!([{"id": "key", "type": "promptString", "description": "theirs"}]);
        let entry = || json!({"args": ["a${input:key}b", "${input:key}"]});
        let renamed_entry = json!({"args": ["a${input:vscode-key}b", "${input:vscode-key}"]});
        let brought = json!({"id": "vscode-key", "type": "promptString", "description": "theirs"});
        let mine = json!({"id": "key", "type": "promptString", "description": "mine"});
        let (document, changed, renamed) = bring(json!({"inputs": [mine]}), theirs.clone(), entry());
        assert_eq!((document, &changed), (json!({"inputs": [mine, brought]}), &renamed_entry));
        assert_eq!(renamed, [("key".to_owned(), "vscode-key".to_owned())]);
        // An entry that asks without saying how has the id, too.
        let used = json!({"mcpServers": {"a": {"command": "${input:key}"}}});
        let (document, changed, _) = bring(used, theirs.clone(), entry());
        assert_eq!((&document["inputs"], &changed), (&json!([brought]), &renamed_entry));
        let both = json!({"inputs": [mine, {"id": "vscode-key", "type": "promptString"}]});
        assert_eq!(bring(both, theirs, entry()).2[0].1, "vscode-key-2");
    }
}
