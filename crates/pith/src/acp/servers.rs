//! MCP servers that the editor wants its sessions to use.

use pith_acp::acp::{Error, McpServer};
use pith_acp::error::invalid_params;
use serde_json::{Map, Value, json};

/// The servers as a configuration names them.
pub type Servers = Map<String, Value>;

/// Turns the editor's list into a configuration. What the entries say is checked by whoever uses it.
pub fn configuration(servers: &[McpServer]) -> Result<Servers, Error> {
    let mut configured = Servers::new();
    for (index, server) in servers.iter().enumerate() {
        let (name, entry) = match server {
            McpServer::Stdio(server) => {
                let env = server.env.iter().map(|variable| (variable.name.clone(), json!(variable.value)));
                let env: Map<_, _> = env.collect();
                (&server.name, json!({"command": server.command, "args": server.args, "env": env}))
            }
            McpServer::Http(server) => {
                let headers = server.headers.iter().map(|header| (header.name.clone(), json!(header.value)));
                (&server.name, remote("http", &server.url, headers))
            }
            McpServer::Sse(server) => {
                let headers = server.headers.iter().map(|header| (header.name.clone(), json!(header.value)));
                (&server.name, remote("sse", &server.url, headers))
            }
            _ => return Err(invalid_params(&format!("mcpServers[{index}].type"), "Unknown type of MCP server")),
        };
        if configured.insert(name.clone(), entry).is_some() {
            let field = format!("mcpServers[{index}].name");
            return Err(invalid_params(&field, format!("{field}: two servers are called \"{name}\"")));
        }
    }
    Ok(configured)
}

fn remote(kind: &str, url: &str, headers: impl Iterator<Item = (String, Value)>) -> Value {
    json!({"type": kind, "url": url, "headers": headers.collect::<Map<_, _>>()})
}

/// Why the servers were refused, with the place of the one that `why` names.
pub fn refusal(servers: &Servers, why: &str) -> Error {
    let index = servers.keys().position(|name| why.contains(&format!("server \"{name}\"")));
    let field = index.map_or_else(|| "mcpServers".to_owned(), |index| format!("mcpServers[{index}]"));
    invalid_params(&field, format!("{field}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(servers: Value) -> Result<Servers, Error> {
        configuration(&serde_json::from_value::<Vec<McpServer>>(servers).expect("servers"))
    }

    #[test]
    fn entries_become_a_configuration() {
        let stdio = json!({"name": "a", "command": "/bin/a", "args": ["-x"], "env": [{"name": "K", "value": "v"}]});
        let http = json!({"type": "http", "name": "b", "url": "https://b", "headers": [{"name": "H", "value": "w"}]});
        let sse = json!({"type": "sse", "name": "c", "url": "https://c", "headers": []});
        let found = read(json!([stdio, http, sse])).expect("they are usable");
        assert_eq!(
            Value::Object(found),
            json!({
                "a": {"command": "/bin/a", "args": ["-x"], "env": {"K": "v"}},
                "b": {"type": "http", "url": "https://b", "headers": {"H": "w"}},
                "c": {"type": "sse", "url": "https://c", "headers": {}},
            })
        );
    }

    #[test]
    fn a_refusal_names_the_entry() {
        let twice = json!({"name": "a", "command": "x", "args": [], "env": []});
        let error = read(json!([twice, twice])).expect_err("two of a name");
        assert_eq!(error.message, "mcpServers[1].name: two servers are called \"a\"");
        let servers = read(json!([twice])).expect("usable");
        assert_eq!(refusal(&servers, "server \"a\": no").message, "mcpServers[0]: server \"a\": no");
        assert_eq!(refusal(&servers, "too many").message, "mcpServers: too many");
    }
}
