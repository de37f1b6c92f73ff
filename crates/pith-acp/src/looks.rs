//! How tools that are not pith's own look in an editor: those of extensions, of the host and of MCP servers.

use std::collections::HashMap;

use agent_client_protocol_schema::v1::ToolKind;

/// How the calls of one tool are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    pub title: String,
    pub kind: ToolKind,
}

/// The looks of the tools there are, by name. pith's own tools are shown by what they do, see [`crate::call`].
#[derive(Clone, Debug, Default)]
pub struct Looks(HashMap<String, Look>);

impl FromIterator<(String, Look)> for Looks {
    fn from_iter<I: IntoIterator<Item = (String, Look)>>(looks: I) -> Self {
        Looks(looks.into_iter().collect())
    }
}

impl Looks {
    /// The look of a tool; one that is not there any more is shown by its name.
    pub(crate) fn of(&self, tool: &str) -> Look {
        let gone = || Look { title: of_server(tool).unwrap_or_else(|| tool.to_owned()), kind: ToolKind::Other };
        self.0.get(tool).cloned().unwrap_or_else(gone)
    }
}

/// `server: tool`, for the name of a tool of an MCP server.
fn of_server(name: &str) -> Option<String> {
    let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
    Some(format!("{server}: {tool}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_that_are_gone_are_shown_by_their_names() {
        let known = Look { title: "Weather".to_owned(), kind: ToolKind::Fetch };
        let looks: Looks = [("mcp__sky__weather".to_owned(), known.clone())].into_iter().collect();
        assert_eq!(looks.of("mcp__sky__weather"), known);
        let title = |tool: &str| looks.of(tool).title;
        assert_eq!(title("mcp__sky__wind_speed"), "sky: wind_speed");
        assert_eq!(title("mcp__odd"), "mcp__odd");
        assert_eq!(title("mine"), "mine");
    }
}
