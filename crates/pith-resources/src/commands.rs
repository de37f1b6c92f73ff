//! Entries of the `get_commands` answer.

use std::path::PathBuf;

use pith_config::path_text;
use serde::Serialize;

use crate::skills::Skill;
use crate::source_info::SourceInfo;
use crate::templates::PromptTemplate;

/// One command a host can offer: the union of what older and newer hosts read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandEntry {
    /// What follows the `/`.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub source: CommandSource,
    /// `user`, `project` or `path`; absent for extensions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<&'static str>,
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
    pub source_info: SourceInfo,
}

/// What answers to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CommandSource {
    Extension,
    Prompt,
    Skill,
    /// A prompt of an MCP server.
    Mcp,
}

impl CommandEntry {
    /// Makes the entry of an extension's command.
    pub fn extension(name: String, description: Option<String>, source_info: SourceInfo) -> CommandEntry {
        let path = source_info.path.clone();
        CommandEntry { name, description, source: CommandSource::Extension, location: None, path, source_info }
    }

    /// Makes the entry of a prompt of an MCP server.
    pub fn mcp(name: String, description: Option<String>, source_info: SourceInfo) -> CommandEntry {
        let path = source_info.path.clone();
        CommandEntry { name, description, source: CommandSource::Mcp, location: None, path, source_info }
    }

    pub(crate) fn prompt(template: &PromptTemplate) -> CommandEntry {
        let description = template.description.clone();
        CommandEntry::file(CommandSource::Prompt, template.name.clone(), description, &template.source_info)
    }

    pub(crate) fn skill(skill: &Skill) -> CommandEntry {
        let name = format!("skill:{}", skill.name);
        CommandEntry::file(CommandSource::Skill, name, skill.description.clone(), &skill.source_info)
    }

    fn file(source: CommandSource, name: String, description: String, info: &SourceInfo) -> CommandEntry {
        CommandEntry {
            name,
            description: Some(description),
            source,
            location: Some(info.scope.location()),
            path: info.path.clone(),
            source_info: info.clone(),
        }
    }
}
