//! Packages that settings name, where pi puts them. Nothing is fetched but by `pith install` and `pith update`.

mod manage;
mod programs;
mod source;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use pith_config::{AgentDir, Diagnostic, Settings};
use pith_ext::PackagePlace;
use pith_resources::{PackageResources, Scope};
use serde_json::{Map, Value};

pub use manage::run;
use source::Source;

/// The directories in which packages are searched.
#[derive(Clone, Copy)]
pub struct PackageDirs<'a> {
    pub agent_dir: &'a AgentDir,
    pub cwd: &'a Path,
    pub home: &'a Path,
}

/// An installed package and the patterns that select parts of it: `None` is everything, an empty list nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    pub root: PathBuf,
    /// The package as the settings name it.
    pub source: String,
    pub scope: Scope,
    pub extensions: Option<Vec<String>>,
    pub skills: Option<Vec<String>>,
    pub prompts: Option<Vec<String>>,
}

/// Returns the packages of both settings files, the project's first, and a diagnostic for each that is not found.
pub fn installed(settings: &Settings, package_dirs: PackageDirs<'_>) -> (Vec<Package>, Vec<Diagnostic>) {
    let files = [
        (
            &settings.project_resources.packages,
            Scope::Project,
            package_dirs.agent_dir.project_settings_file(package_dirs.cwd),
        ),
        (&settings.user_resources.packages, Scope::User, package_dirs.agent_dir.settings_file()),
    ];
    let (mut packages, mut problems) = (Vec::new(), Vec::new());
    // Only the first entry of a package is used, unless it only changes what another entry selects.
    let mut seen: HashMap<PathBuf, Entry> = HashMap::new();
    for (entries, scope, file) in files {
        for written in entries {
            let mut complain = |message| problems.push(Diagnostic::warning("settings_packages", &file, message));
            let Some(mut entry) = Entry::read(written) else {
                complain(format!("Ignored a package in {}: {written} is no source and has none", file.display()));
                continue;
            };
            let root = match root(&entry.source, scope, package_dirs) {
                Ok(root) => root,
                Err(why) => {
                    complain(format!("Package {} of {} is not loaded: {why}", entry.source, file.display()));
                    continue;
                }
            };
            match seen.get(&root) {
                Some(first) if first.is_change => entry.without(first),
                Some(_) => continue,
                None => drop(seen.insert(root.clone(), entry.clone())),
            }
            entry.take_only_additions();
            let Entry { source, extensions, skills, prompts, .. } = entry;
            packages.push(Package { root, source, scope, extensions, skills, prompts });
        }
    }
    (packages, problems)
}

/// Returns the directory of a package that `--extension` names; `None` if it names a path. `Err` says what is missing.
/// Packages in the project are found only if it is trusted: a name must not select untrusted code.
pub fn named(source: &str, package_dirs: PackageDirs<'_>, is_trusted: bool) -> Option<Result<PathBuf, String>> {
    if matches!(Source::parse(source), Source::Local(_)) {
        return None;
    }
    let user = root(source, Scope::User, package_dirs);
    let project = || root(source, Scope::Project, package_dirs).ok().filter(|_| is_trusted);
    Some(user.or_else(|why| project().ok_or(why)))
}

impl PackageDirs<'_> {
    /// The directory that has the packages of a scope, and that paths in its settings are relative to.
    fn base(&self, scope: Scope) -> PathBuf {
        match scope {
            Scope::Project => self.agent_dir.project_dir(self.cwd),
            Scope::User | Scope::Temporary => self.agent_dir.path().to_owned(),
        }
    }
}

impl Package {
    /// The package as a place of extensions.
    pub fn place(&self) -> PackagePlace {
        let scope = if self.scope == Scope::Project { "project" } else { "user" };
        PackagePlace {
            root: self.root.clone(),
            source: self.source.clone(),
            scope: scope.to_owned(),
            extensions: self.extensions.clone(),
        }
    }

    /// The package as a place of skills and templates.
    pub fn resources(&self) -> PackageResources {
        PackageResources {
            root: self.root.clone(),
            source: self.source.clone(),
            scope: self.scope,
            skills: self.skills.clone(),
            prompts: self.prompts.clone(),
        }
    }
}

/// One entry of a settings file.
#[derive(Clone, Debug)]
struct Entry {
    source: String,
    extensions: Option<Vec<String>>,
    skills: Option<Vec<String>>,
    prompts: Option<Vec<String>>,
    /// `autoload: false` in a project: the entry changes what the user's entry selects.
    is_change: bool,
}

impl Entry {
    fn read(written: &Value) -> Option<Entry> {
        let nothing = Map::new();
        let (source, fields) = match written {
            Value::String(source) => (source.as_str(), &nothing),
            Value::Object(fields) => (fields.get("source")?.as_str()?, fields),
            _ => return None,
        };
        let is_change = fields.get("autoload") == Some(&Value::Bool(false));
        let list = |name: &str| match fields.get(name).and_then(Value::as_array) {
            Some(list) => Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
            None => is_change.then(Vec::new),
        };
        Some(Entry {
            source: source.trim().to_owned(),
            extensions: list("extensions"),
            skills: list("skills"),
            prompts: list("prompts"),
            is_change,
        })
        .filter(|entry| !entry.source.is_empty())
    }

    /// Removes the patterns of a change that only exclude.
    fn take_only_additions(&mut self) {
        if self.is_change {
            let lists = [&mut self.extensions, &mut self.skills, &mut self.prompts];
            lists.into_iter().flatten().for_each(|list| list.retain(|pattern| !pattern.starts_with(['!', '-'])));
        }
    }

    /// Leaves out what a change excludes.
    fn without(&mut self, change: &Entry) {
        let take = |list: &mut Option<Vec<String>>, change: &Option<Vec<String>>| {
            let taken = change.iter().flatten().filter(|pattern| pattern.starts_with(['!', '-'])).cloned();
            let taken: Vec<String> = taken.collect();
            match list {
                // An empty list stays empty.
                Some(list) if list.is_empty() => {}
                _ if taken.is_empty() => {}
                list => list.get_or_insert_default().extend(taken),
            }
        };
        take(&mut self.extensions, &change.extensions);
        take(&mut self.skills, &change.skills);
        take(&mut self.prompts, &change.prompts);
    }
}

/// Returns the directory of an installed package, or why there is none.
fn root(source: &str, scope: Scope, package_dirs: PackageDirs<'_>) -> Result<PathBuf, String> {
    let parsed = Source::parse(source);
    let root = parsed.root(scope, package_dirs);
    if root.exists() {
        Ok(root)
    } else if matches!(parsed, Source::Local(_)) {
        Err(format!("there is no {}", root.display()))
    } else {
        let local = if scope == Scope::Project { " -l" } else { "" };
        Err(format!("it is not installed at {}; run pith install{local} {source}", root.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_narrow_what_a_package_brings() {
        let read = |written: Value| Entry::read(&written);
        let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let plain = read(serde_json::json!("npm:x")).expect("a source");
        assert_eq!((plain.source.as_str(), plain.extensions, plain.skills), ("npm:x", None, None));
        let narrowed = read(serde_json::json!({"source": "npm:x", "extensions": [], "skills": ["a", 7]})).expect("one");
        assert_eq!((narrowed.extensions, narrowed.skills, narrowed.prompts), (list(&[]), list(&["a"]), None));
        let change = serde_json::json!({"source": "npm:x", "autoload": false, "extensions": ["-a.ts", "b.ts"]});
        let change = read(change).expect("a change");
        assert_eq!((&change.extensions, &change.skills), (&list(&["-a.ts", "b.ts"]), &list(&[])));
        let mut user = read(serde_json::json!("npm:x")).expect("a source");
        user.without(&change);
        assert_eq!((user.extensions, user.skills), (list(&["-a.ts"]), None));
        for bad in [serde_json::json!(7), serde_json::json!({"source": 7}), serde_json::json!(" ")] {
            assert!(read(bad.clone()).is_none(), "{bad}");
        }
    }
}
