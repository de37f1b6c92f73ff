//! Where a resource comes from, as hosts are told.

use std::borrow::Cow;
use std::path::PathBuf;

use pith_config::{optional_path_text, path_text};
use serde::Serialize;

/// Origin of a command, skill, template or extension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceInfo {
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
    /// `auto` for conventional directories, `local` for named paths, else who brought it.
    pub source: Cow<'static, str>,
    pub scope: Scope,
    pub origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_path_text")]
    pub base_dir: Option<PathBuf>,
}

/// For whom a resource is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    User,
    Project,
    /// For this process only.
    Temporary,
}

/// How a resource got there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    TopLevel,
    Package,
}

impl Scope {
    /// The older word for a scope.
    pub fn location(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
            Scope::Temporary => "path",
        }
    }
}
