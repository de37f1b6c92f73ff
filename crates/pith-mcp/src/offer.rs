//! What a server offers, as far as pith uses it. It is read leniently and kept in the cache.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::handshake::Era;
use crate::schema;

/// Descriptions are cut at so many characters.
const MAX_DESCRIPTION: usize = 2048;
/// Instructions of a server are cut at so many characters.
const MAX_INSTRUCTIONS: usize = 4096;
/// More tools, good or bad, are left out.
pub const MAX_TOOLS: usize = 10_000;
/// What all tools together may take. Ten thousand ordinary ones take a third of it.
const MAX_LIST_BYTES: usize = 32 << 20;
/// Longer names are no names.
const MAX_NAME: usize = 1024;
/// So many problems of a list are told, then how many more there are.
const MAX_PROBLEMS: usize = 100;

/// What a server said about itself when it was last connected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    pub protocol_version: String,
    /// Whether the server was reached over the transport of 2024-11-05.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sse: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_info: Option<ServerInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    pub tools: Vec<OfferedTool>,
    pub prompts: Vec<OfferedPrompt>,
    pub has_resources: bool,
    /// How long the server says that its list of tools is good, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u64>,
}

impl Offer {
    /// How the server is best spoken to next time.
    pub fn era(&self) -> Era {
        if self.is_sse { Era::Sse } else { Era::of(&self.protocol_version) }
    }
}

/// A prompt of a server, which users call as a slash command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfferedPrompt {
    /// As the server calls it.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
}

/// A named text that a prompt is filled with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptArgument {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default)]
    pub required: bool,
}

/// Name and version of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerInfo {
    pub name: String,
    pub version: String,
}

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferedTool {
    /// As the server calls it.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub description: String,
    /// As the model gets it.
    pub parameters: Value,
    /// As the server wrote it, if that says more: arguments are checked against it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// What `structuredContent` promises to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints of the server, not facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Map<String, Value>>,
}

/// The tools of a list, and what was wrong with the others.
#[derive(Debug, Default)]
pub struct ToolList {
    pub tools: Vec<OfferedTool>,
    /// How long the page that is outdated first is good, in milliseconds.
    pub ttl: Option<u64>,
    names: HashSet<String>,
    problems: Vec<String>,
    n_more_problems: usize,
    n_entries: usize,
    n_bytes: usize,
    is_full: bool,
}

impl ToolList {
    /// Adds a page of the list; whatever is wrong with one tool leaves out only that tool.
    pub fn add(&mut self, page: &Value) {
        let Some(Value::Array(tools)) = page.get("tools") else {
            self.note("its list of tools is no list".to_owned());
            return;
        };
        let ttl = page.get("ttlMs").and_then(Value::as_u64);
        self.ttl = [self.ttl, ttl].into_iter().flatten().min();
        for tool in tools {
            if self.is_full {
                return;
            }
            self.add_tool(tool);
        }
    }

    /// Keeps a problem, or counts it.
    pub fn note(&mut self, problem: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.n_more_problems += 1;
        }
    }

    /// What was wrong.
    pub fn problems(&self) -> Vec<String> {
        let more = (self.n_more_problems > 0).then(|| format!("it has {} more problems", self.n_more_problems));
        self.problems.iter().cloned().chain(more).collect()
    }

    fn add_tool(&mut self, tool: &Value) {
        self.n_entries += 1;
        if self.n_entries > MAX_TOOLS {
            self.is_full = true;
            return self.note(format!("it has more than {MAX_TOOLS} tools; the rest is left out"));
        }
        let tool = match read_tool(tool) {
            Ok(tool) => tool,
            Err(problem) => return self.note(problem),
        };
        self.n_bytes += tool.size();
        if self.n_bytes > MAX_LIST_BYTES {
            self.is_full = true;
            return self.note(format!("its tools take more than {} MiB; the rest is left out", MAX_LIST_BYTES >> 20));
        }
        if self.names.insert(tool.name.clone()) {
            self.tools.push(tool);
        } else {
            self.note(format!("tool \"{}\" is left out: there are two of that name", tool.name));
        }
    }
}

impl OfferedTool {
    /// How many bytes it takes, about.
    fn size(&self) -> usize {
        let schemas = [Some(&self.parameters), self.input_schema.as_ref(), self.output_schema.as_ref()];
        let annotations = self.annotations.as_ref().map_or(0, schema::size);
        schemas.into_iter().flatten().map(schema::size).sum::<usize>() + annotations + self.description.len()
    }
}

/// Reads a page of prompts; one without a name, or with the name of an earlier one, is left out.
pub fn add_prompts(prompts: &mut Vec<OfferedPrompt>, page: &Value) {
    for value in page.get("prompts").and_then(Value::as_array).into_iter().flatten() {
        let Some(prompt) = read_prompt(value).filter(|_| prompts.len() < MAX_TOOLS) else { continue };
        if !prompts.iter().any(|other| other.name == prompt.name) {
            prompts.push(prompt);
        }
    }
}

fn read_prompt(prompt: &Value) -> Option<OfferedPrompt> {
    let text = |value: &Value, key: &str| {
        let text = value.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        text.map(|text| cut(text, MAX_DESCRIPTION))
    };
    let argument = |value: &Value| {
        let required = value.get("required") == Some(&Value::Bool(true));
        Some(PromptArgument { name: text(value, "name")?, description: text(value, "description"), required })
    };
    let arguments = prompt.get("arguments").and_then(Value::as_array).into_iter().flatten();
    Some(OfferedPrompt {
        name: text(prompt, "name")?,
        description: text(prompt, "description").or_else(|| text(prompt, "title")),
        arguments: arguments.filter_map(argument).collect(),
    })
}

fn read_tool(tool: &Value) -> Result<OfferedTool, String> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let name = text(tool.get("name")).filter(|name| !name.is_empty()).ok_or("a tool without a name is left out")?;
    if name.len() > MAX_NAME {
        return Err(format!("a tool whose name has more than {MAX_NAME} bytes is left out"));
    }
    let left_out = |why: &str| format!("tool \"{name}\" is left out: {why}");
    if tool.pointer("/execution/taskSupport").and_then(Value::as_str) == Some("required") {
        return Err(left_out("it runs only as a task"));
    }
    let schema = tool.get("inputSchema").ok_or_else(|| left_out("it has no input schema"))?;
    let parameters = schema::prepare(schema).map_err(|why| left_out(&why))?;
    let is_bounded = |value: &&Value| schema::size(*value) <= schema::MAX_BYTES;
    let input_schema = Some(schema).filter(|schema| **schema != parameters).filter(is_bounded).cloned();
    let output_schema = tool.get("outputSchema").filter(|schema| schema.is_object()).filter(is_bounded).cloned();
    let annotations = tool.get("annotations").filter(is_bounded).and_then(Value::as_object).cloned();
    let titled = annotations.as_ref().and_then(|annotations| text(annotations.get("title")));
    Ok(OfferedTool {
        title: text(tool.get("title")).or(titled).map(|title| cut(&title, MAX_DESCRIPTION)),
        description: cut(&text(tool.get("description")).unwrap_or_default(), MAX_DESCRIPTION),
        name,
        parameters,
        input_schema,
        output_schema,
        annotations,
    })
}

/// The instructions of a server, cut to a bearable length.
pub fn instructions(text: &str) -> Option<String> {
    Some(cut(text.trim(), MAX_INSTRUCTIONS)).filter(|text| !text.is_empty())
}

fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_page_that_is_outdated_first_decides_how_long_a_list_is_good() {
        let mut list = ToolList::default();
        let mut after = |page: Value| {
            list.add(&page);
            list.ttl
        };
        assert_eq!(after(json!({"tools": []})), None);
        assert_eq!(after(json!({"tools": [], "ttlMs": 5})), Some(5));
        assert_eq!(after(json!({"tools": [], "ttlMs": 9})), Some(5));
        assert_eq!(after(json!({"tools": [], "ttlMs": 0})), Some(0));
    }

    #[test]
    fn a_server_cannot_offer_or_say_without_end() {
        let mut list = ToolList::default();
        let tool = |number: usize| json!({"name": format!("t{number}"), "inputSchema": {}});
        let tools: Vec<Value> = (0..=MAX_TOOLS).map(tool).collect();
        list.add(&json!({ "tools": tools }));
        assert_eq!(list.tools.len(), 10_000);
        assert_eq!(list.problems(), ["it has more than 10000 tools; the rest is left out"]);
        let text = instructions(&format!("  {}  ", "i".repeat(5000))).expect("not empty");
        assert_eq!(text.chars().count(), 4096 + 1);
        assert_eq!(instructions(" \n"), None);
    }

    #[test]
    fn one_bad_tool_leaves_out_only_itself() {
        let mut list = ToolList::default();
        list.add(&json!({"tools": [
            {"name": "good", "inputSchema": {}, "annotations": {"title": "Good", "readOnlyHint": true}},
            {"inputSchema": {}},
            {"name": "bare"},
            {"name": "odd", "inputSchema": [1]},
            {"name": "good", "inputSchema": {}},
            {"name": "task", "inputSchema": {}, "execution": {"taskSupport": "required"}},
            {"name": "last", "title": "Last", "description": "d".repeat(3000), "inputSchema": {"type": "object"}},
        ]}));
        list.add(&json!({"tools": "none"}));
        let names: Vec<_> = list.tools.iter().map(|tool| (&*tool.name, tool.title.as_deref())).collect();
        assert_eq!(names, [("good", Some("Good")), ("last", Some("Last"))]);
        assert_eq!(list.tools[1].description.chars().count(), MAX_DESCRIPTION + 1);
        assert_eq!(
            list.problems(),
            [
                "a tool without a name is left out",
                "tool \"bare\" is left out: it has no input schema",
                "tool \"odd\" is left out: its input schema is no object",
                "tool \"good\" is left out: there are two of that name",
                "tool \"task\" is left out: it runs only as a task",
                "its list of tools is no list",
            ]
        );
    }

    #[test]
    fn bad_tools_are_counted_and_end_the_list_too() {
        let mut list = ToolList::default();
        list.add(&json!({ "tools": vec![json!({}); 20_000] }));
        list.add(&json!({"tools": [{"name": "late", "inputSchema": {}}]}));
        let problems = list.problems();
        assert_eq!((list.tools.len(), problems.len()), (0, MAX_PROBLEMS + 1));
        assert_eq!(problems[0], "a tool without a name is left out");
        assert_eq!(problems[MAX_PROBLEMS], "it has 9901 more problems");
    }

    #[test]
    fn no_member_of_a_tool_is_large() {
        let mut list = ToolList::default();
        let large = "x".repeat(100_000);
        list.add(&json!({"tools": [
            {"name": "a", "title": large, "inputSchema": {}, "annotations": {"x": large, "readOnlyHint": true},
                "outputSchema": {"type": "object", "title": large}},
            {"name": large, "inputSchema": {}}]}));
        assert_eq!(list.problems(), ["a tool whose name has more than 1024 bytes is left out"]);
        let tool = &list.tools[0];
        assert_eq!((&tool.annotations, &tool.output_schema), (&None, &None));
        assert!(tool.title.as_ref().is_some_and(|title| title.len() < 3000));
        // Each is small enough, together they are not.
        let tool = |number: usize| json!({"name": format!("t{number}"), "inputSchema": {"title": "x".repeat(60_000)}, "outputSchema": {"title": "x".repeat(60_000)}});
        let tools: Vec<Value> = (0..400).map(tool).collect();
        list.add(&json!({ "tools": tools }));
        assert_eq!(list.problems()[1], "its tools take more than 32 MiB; the rest is left out");
        assert!(list.tools.len() > 100 && list.tools.len() < 400, "{}", list.tools.len());
    }
}
