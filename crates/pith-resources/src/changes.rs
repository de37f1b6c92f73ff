//! What a reload changed, for the host that asked for it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use pith_config::optional_path_text;
use serde::Serialize;

use crate::notes::Stamp;
use crate::resources::Resources;

/// One difference between two loads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResourceChange {
    pub change: Change,
    /// `skill`, `prompt`, `context_file`, `system_prompt` or `append_system_prompt`.
    pub resource: &'static str,
    /// Name of the skill or template, path of the context file; else empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_path_text")]
    pub path: Option<PathBuf>,
}

/// What happened to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    Added,
    Removed,
    Changed,
}

/// A resource reduced to what tells two versions of it apart.
#[derive(PartialEq)]
struct Item<'a> {
    resource: &'static str,
    name: Cow<'a, str>,
    path: Option<&'a Path>,
    version: Version<'a>,
}

#[derive(PartialEq)]
enum Version<'a> {
    /// The body was not read.
    File(Option<Stamp>),
    Text(Cow<'a, str>),
}

/// Returns the differences, in the order of the later load; what is gone comes last.
pub(crate) fn between(earlier: &Resources, later: &Resources) -> Vec<ResourceChange> {
    let (old_items, new_items) = (items(earlier), items(later));
    let mut changes = Vec::new();
    for new in &new_items {
        match old_items.iter().find(|old| old.is_same_resource(new)) {
            Some(old) if old == new => {}
            Some(_) => changes.push(new.with(Change::Changed)),
            None => changes.push(new.with(Change::Added)),
        }
    }
    let is_gone = |old: &&Item| !new_items.iter().any(|new| new.is_same_resource(old));
    changes.extend(old_items.iter().filter(is_gone).map(|old| old.with(Change::Removed)));
    changes
}

impl Item<'_> {
    fn is_same_resource(&self, other: &Item) -> bool {
        self.resource == other.resource && self.name == other.name
    }

    fn with(&self, change: Change) -> ResourceChange {
        let (name, path) = (self.name.clone().into_owned(), self.path.map(Path::to_path_buf));
        ResourceChange { change, resource: self.resource, name, path }
    }
}

fn items(resources: &Resources) -> Vec<Item<'_>> {
    let file = |resource, name: &'_ str, path| {
        let version = Version::File(resources.notes.stamp(path));
        (resource, Cow::Owned(name.to_owned()), Some(path), version)
    };
    let skills = resources.skills().iter().map(|skill| file("skill", &skill.name, &*skill.path));
    let templates = resources.templates().iter().map(|template| file("prompt", &template.name, &*template.path));
    let context_files = resources.context_files().iter().map(|file| {
        let version = Version::Text((&*file.content).into());
        ("context_file", file.path.to_string_lossy(), Some(&*file.path), version)
    });
    let text =
        |resource, text: Cow<'_, str>| (resource, Cow::Borrowed(""), None, Version::Text(text.into_owned().into()));
    let custom = resources.custom_prompt().map(|custom| text("system_prompt", custom.into()));
    let appended = match resources.append_prompts() {
        [] => None,
        appended => Some(text("append_system_prompt", appended.join("\n\n").into())),
    };
    let all = skills.chain(templates).chain(context_files).chain(custom).chain(appended);
    all.map(|(resource, name, path, version)| Item { resource, name, path, version }).collect()
}
