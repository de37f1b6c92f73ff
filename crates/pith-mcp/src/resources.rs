//! The resources of servers: tools with which the model lists and reads them, and `@server:uri` in texts of the user.

use std::sync::{Arc, Weak};
use std::time::Instant;

use pith_agent::{BoxFuture, Effect, Tool, ToolContext, ToolOutput};
use pith_protocol::{Block, ToolSpec};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::config::{NeededBy, is_same};
use crate::query::Query;
use crate::result::Call;
use crate::server::Server;
use crate::servers::{Servers, Shared};
use crate::state::State;

/// The name of the tool that reads a resource; results of other tools refer to it.
pub const READ_RESOURCE: &str = "read_mcp_resource";
/// Pages of user interfaces, which no model reads.
const APP_SCHEME: &str = "ui://";
const APP_TYPE: &str = "text/html;profile=mcp-app";

/// What a tool does with resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    List(ResourceList),
    Read,
}

/// What a server lists of its resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResourceList {
    Resources,
    Templates,
}

/// One of the three tools.
pub struct ResourceTool {
    spec: ToolSpec,
    action: Action,
    /// Weak, because the servers hand the tool out.
    servers: Weak<Shared>,
}

impl ResourceTool {
    /// The tools for servers that have resources.
    pub fn all(servers: &Arc<Shared>) -> Vec<Arc<dyn Tool>> {
        let server = json!({"type": "string", "description": "Name of the MCP server"});
        let optional = json!({"type": "string", "description": "Only this MCP server"});
        let cursor = json!({"type": "string", "description": "Where a list of this server goes on"});
        let uri = json!({"type": "string", "description": "Address of the resource, as it was listed"});
        let rows = [
            (
                "list_mcp_resources",
                "List the resources that MCP servers offer for reading.",
                json!({"type": "object", "properties": {"server": optional, "cursor": cursor}}),
                Action::List(ResourceList::Resources),
            ),
            (
                "list_mcp_resource_templates",
                "List templates of resource addresses that MCP servers offer; fill in the variables to read one.",
                json!({"type": "object", "properties": {"server": optional}}),
                Action::List(ResourceList::Templates),
            ),
            (
                READ_RESOURCE,
                "Read a resource of an MCP server.",
                json!({"type": "object", "properties": {"server": server, "uri": uri}, "required": ["server", "uri"]}),
                Action::Read,
            ),
        ];
        let tool = |(name, description, parameters, action): (&str, &str, Value, Action)| {
            let spec = ToolSpec {
                name: name.into(),
                description: description.into(),
                parameters: Arc::new(parameters),
                prefer_strict: false,
            };
            Arc::new(ResourceTool { spec, action, servers: Arc::downgrade(servers) }) as Arc<dyn Tool>
        };
        rows.into_iter().map(tool).collect()
    }

    async fn call(&self, arguments: &Map<String, Value>, cancel: &CancellationToken) -> ToolOutput {
        let Some(servers) = self.servers.upgrade().map(Servers::from) else {
            return ToolOutput::error("the session has ended");
        };
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let (server, uri, cursor) = (text("server"), text("uri"), text("cursor"));
        let done = match self.action {
            Action::List(kind) => list(&servers, kind, server, cursor, cancel).await,
            Action::Read => match (server, uri) {
                (Some(server), Some(uri)) => match named(&servers, server) {
                    Ok(server) => read(&servers, &server, uri, cancel).await,
                    Err(why) => Err(why),
                },
                _ => Err("server and uri are needed".to_owned()),
            },
        };
        done.unwrap_or_else(ToolOutput::error)
    }
}

impl Tool for ResourceTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _arguments: &Map<String, Value>) -> Effect {
        Effect::Nothing
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        Box::pin(async move { self.call(&arguments, &context.cancel).await })
    }
}

/// The servers whose resources the model may read: those that have some, are switched on and not hidden.
fn with_resources(servers: &Servers) -> Vec<Arc<Server>> {
    let has_resources = |server: &Arc<Server>| {
        let snapshot = server.snapshot();
        let is_reachable = snapshot.state != State::Disabled && server.config.tools_needed_by() != NeededBy::Nobody;
        is_reachable && snapshot.offer.is_some_and(|offer| offer.has_resources)
    };
    servers.all().into_iter().filter(has_resources).collect()
}

/// Whether any server has resources.
pub fn has_any(servers: &Servers) -> bool {
    !with_resources(servers).is_empty()
}

fn named(servers: &Servers, name: &str) -> Result<Arc<Server>, String> {
    let known = with_resources(servers);
    let names: Vec<&str> = known.iter().map(|server| server.config.name.as_str()).collect();
    let found = known.iter().find(|server| is_same(&server.config.name, name));
    found.cloned().ok_or_else(|| format!("no server \"{name}\" has resources; those that have: {}", names.join(", ")))
}

/// Lists the resources of one server, or the first page of each. A server that fails does not hide the others.
async fn list(
    servers: &Servers,
    kind: ResourceList,
    server: Option<&str>,
    cursor: Option<&str>,
    cancel: &CancellationToken,
) -> Result<ToolOutput, String> {
    let asked = match server {
        Some(name) => vec![named(servers, name)?],
        None if cursor.is_some() => return Err("cursor: it needs the server whose list goes on".to_owned()),
        None => with_resources(servers),
    };
    let (key, began) =
        (if kind == ResourceList::Resources { "resources" } else { "resourceTemplates" }, Instant::now());
    let (mut listed, mut cursors, mut errors) = (Vec::new(), Map::new(), Vec::new());
    for server in asked {
        let name = &server.config.name;
        let query = match kind {
            ResourceList::Resources => Query::Resources { cursor },
            ResourceList::Templates => Query::Templates { cursor },
        };
        match server.query(&query, cancel).await {
            Ok(page) => {
                let items = page.get(key).and_then(Value::as_array).into_iter().flatten();
                listed.extend(items.filter(|item| !is_app(item)).map(|item| with_server(item, name)));
                if let Some(next) = page.get("nextCursor").and_then(Value::as_str).filter(|next| !next.is_empty()) {
                    cursors.insert(name.clone(), json!(next));
                }
            }
            Err(why) => errors.push(why),
        }
    }
    if listed.is_empty() && !errors.is_empty() {
        return Err(errors.join("\n"));
    }
    let mut answer = json!({ key: listed });
    if !cursors.is_empty() {
        answer["nextCursors"] = Value::Object(cursors);
    }
    if !errors.is_empty() {
        answer["errors"] = json!(errors);
    }
    let call =
        Call { server: server.unwrap_or("*"), tool: key, duration: began.elapsed(), output_dir: servers.output_dir() };
    Ok(call.output(&json!({"content": [{"type": "text", "text": answer.to_string()}]})))
}

/// Whether something is an interface for people, which the model has no use for.
fn is_app(item: &Value) -> bool {
    let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
    let is_ui = ["uri", "uriTemplate"].iter().any(|key| text(key).starts_with(APP_SCHEME));
    is_ui || text("mimeType").replace([' ', '"'], "") == APP_TYPE
}

fn with_server(item: &Value, server: &str) -> Value {
    let mut shown = Map::from_iter([("server".to_owned(), json!(server))]);
    for key in ["uri", "uriTemplate", "name", "title", "description", "mimeType", "size"] {
        if let Some(value) = item.get(key).filter(|value| !value.is_null()) {
            shown.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(shown)
}

async fn read(
    servers: &Servers,
    server: &Arc<Server>,
    uri: &str,
    cancel: &CancellationToken,
) -> Result<ToolOutput, String> {
    let began = Instant::now();
    let mut result = server.query(&Query::Resource { uri }, cancel).await?;
    if let Some(Value::Array(contents)) = result.get_mut("contents") {
        contents.retain(|content| !is_app(content));
        if contents.is_empty() {
            return Err(format!("{uri} has nothing that can be read"));
        }
    }
    let call = Call {
        server: &server.config.name,
        tool: READ_RESOURCE,
        duration: began.elapsed(),
        output_dir: servers.output_dir(),
    };
    Ok(call.output(&readable(result)))
}

/// The contents of a resource in the shape of a tool's result: texts as texts, images as images, other bytes as they
/// are in results.
fn readable(result: Value) -> Value {
    let Some(contents) = result.get("contents").and_then(Value::as_array) else { return result };
    let block = |content: &Value| {
        let text = |key: &str| content.get(key).and_then(Value::as_str);
        match (text("text"), text("blob"), text("mimeType")) {
            (Some(words), ..) => json!({"type": "text", "text": words}),
            (None, Some(data), Some(kind)) if kind.starts_with("image/") => {
                json!({"type": "image", "data": data, "mimeType": kind})
            }
            _ => json!({"type": "resource", "resource": content}),
        }
    };
    json!({"content": contents.iter().map(block).collect::<Vec<_>>()})
}

/// A resource that a text of the user names.
#[derive(Debug, PartialEq, Eq)]
pub struct Mention<'a> {
    pub server: &'a str,
    pub uri: &'a str,
}

/// Finds `@server:uri` at the beginning of words.
pub fn mentions(text: &str) -> Vec<Mention<'_>> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    let mention = |word: &'_ str| -> Option<(usize, usize)> {
        let (server, uri) = word.strip_prefix('@')?.split_once(':')?;
        let uri = uri.trim_end_matches(['.', ',', ';', '!', '?', ')', '"', '\'']);
        let is_mention = !server.is_empty() && server.chars().all(is_name) && !uri.is_empty();
        is_mention.then_some((server.len(), uri.len()))
    };
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        if let Some((server, uri)) = mention(word) {
            found.push(Mention { server: &word[1..=server], uri: &word[server + 2..server + 2 + uri] });
        }
    }
    found
}

/// Reads what a text mentions, to be put after it; servers that do not run are started. What cannot be read is said in
/// its place.
pub async fn read_mentions(servers: &Servers, mentioned: Vec<(Arc<Server>, String)>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (server, uri) in mentioned {
        match read(servers, &server, &uri, &CancellationToken::new()).await {
            Ok(output) => {
                for block in output.content {
                    blocks.push(match block.as_text() {
                        Some(text) => Block::text(format!("<resource uri=\"{uri}\">\n{text}\n</resource>")),
                        None => block,
                    });
                }
            }
            Err(why) => {
                let name = &server.config.name;
                blocks.push(Block::text(format!("[@{name}:{uri} could not be read: {why}]")));
            }
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_begin_words_and_end_before_punctuation() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let found: Vec<_> = mentions(text).iter().map(|mention| (mention.server, mention.uri)).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("see @memory:memory://graph, and @a-b:x.", &[("memory", "memory://graph"), ("a-b", "x")]);
        check("mail me@example:com or @name", &[]);
        check("@: @x: @ä:b @é", &[]);
    }

    #[test]
    fn pages_of_user_interfaces_are_left_out() {
        assert!(is_app(&json!({"uri": "ui://a"})) && is_app(&json!({"mimeType": "text/html; profile=mcp-app"})));
        assert!(!is_app(&json!({"uri": "a://b", "mimeType": "text/html"})));
    }

    #[test]
    fn contents_are_read_by_their_kind() {
        let contents = json!({"contents": [
            {"uri": "a", "text": "t"}, {"uri": "b", "blob": "AA==", "mimeType": "image/png"}, {"uri": "c", "blob": "AA=="}
        ]});
        let blocks = readable(contents);
        assert_eq!(blocks["content"][0], json!({"type": "text", "text": "t"}));
        assert_eq!(blocks["content"][1]["type"], "image");
        assert_eq!(blocks["content"][2]["resource"]["uri"], "c");
    }
}
