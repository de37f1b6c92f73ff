//! Where a resource comes from, as hosts see it.

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
    /// `auto` for conventional directories, `local` for named paths, else the package or extension.
    pub source: Cow<'static, str>,
    pub scope: Scope,
    pub origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_path_text")]
    pub base_dir: Option<PathBuf>,
}

/// Who a resource is for.
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
    /// Returns the older name of a scope.
    pub fn location(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
            Scope::Temporary => "path",
        }
    }
}
