//! Finds packages that settings name and that are installed already, where pi puts them. pith never fetches one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use pith_config::{AgentDir, Diagnostic, Settings};
use pith_ext::PackagePlace;
use pith_resources::{PackageResources, Scope};
use serde_json::{Map, Value};

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

/// What a source names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Npm { name: String },
    Git { host: String, path: String },
    Local(String),
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

fn root(source: &str, scope: Scope, package_dirs: PackageDirs<'_>) -> Result<PathBuf, String> {
    let base = match scope {
        Scope::Project => package_dirs.agent_dir.project_dir(package_dirs.cwd),
        Scope::User | Scope::Temporary => package_dirs.agent_dir.path().to_owned(),
    };
    let (root, is_local) = match Source::parse(source) {
        Source::Npm { name } => (base.join("npm/node_modules").join(name), false),
        Source::Git { host, path } => (base.join("git").join(host).join(path), false),
        Source::Local(path) => (pith_ext::discovery::expand(&path, &base, package_dirs.home), true),
    };
    match (root.exists(), is_local) {
        (true, _) => Ok(root),
        (false, true) => Err(format!("there is no {}", root.display())),
        (false, false) => Err(format!("it is not installed at {}, and pith does not install packages", root.display())),
    }
}

impl Source {
    fn parse(source: &str) -> Source {
        let source = source.trim();
        if let Some(spec) = source.strip_prefix("npm:") {
            let spec = spec.trim();
            // A version follows the name; a leading `@` begins a scope.
            let at =
                spec.char_indices().skip(1).find(|(_, character)| *character == '@').map_or(spec.len(), |(at, _)| at);
            return if is_inside(&spec[..at]) {
                Source::Npm { name: spec[..at].to_owned() }
            } else {
                Source::Local(source.to_owned())
            };
        }
        let is_url = ["https://", "http://", "ssh://", "git://"].iter().any(|scheme| source.starts_with(scheme));
        let address = match source.strip_prefix("git:") {
            Some(rest) if !rest.starts_with("//") => rest.trim(),
            _ if is_url => source,
            _ => return Source::Local(source.to_owned()),
        };
        match repository(address) {
            Some((host, path)) => Source::Git { host, path },
            None => Source::Local(source.to_owned()),
        }
    }
}

/// Host and path of a repository: a URL, `git@host:path`, `host/path`, or `user/name` of GitHub.
fn repository(address: &str) -> Option<(String, String)> {
    let rest = match address.split_once("://") {
        Some((_, rest)) => {
            rest.split_once('@').filter(|(user, _)| !user.contains('/')).map_or(rest, |(_, rest)| rest).to_owned()
        }
        None => match address.strip_prefix("git@") {
            Some(rest) => rest.replacen(':', "/", 1),
            None => address.to_owned(),
        },
    };
    let shortcuts = [("github:", "github.com/"), ("gitlab:", "gitlab.com/"), ("bitbucket:", "bitbucket.org/")];
    let rest =
        match shortcuts.iter().find_map(|(short, host)| rest.strip_prefix(short).map(|path| format!("{host}{path}"))) {
            Some(rest) => rest,
            None => rest,
        };
    let (mut host, mut path) = rest.split_once('/')?;
    if !host.contains('.') && host != "localhost" {
        (host, path) = ("github.com", &rest);
    }
    // A branch, a tag or a commit is not part of the path.
    let path = path.split(['@', '#']).next().unwrap_or(path).trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let host = host.split(':').next().unwrap_or(host);
    let is_repository = path.contains('/') && is_inside(path) && is_inside(host);
    is_repository.then(|| (host.to_owned(), path.to_owned()))
}

/// Whether a name stays below the directory it is joined to.
fn is_inside(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('/')
        && !name.contains(['\\', '\0'])
        && !name.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_name_a_place() {
        let npm = |name: &str| Source::Npm { name: name.to_owned() };
        let git = |host: &str, path: &str| Source::Git { host: host.to_owned(), path: path.to_owned() };
        let local = |path: &str| Source::Local(path.to_owned());
        let check = |source: &str, expected: Source| assert_eq!(Source::parse(source), expected, "{source}");
        check("npm:tools", npm("tools"));
        check("npm:tools@1.2.3", npm("tools"));
        check("npm:@me/tools@^2", npm("@me/tools"));
        check("npm:../up", local("npm:../up"));
        check("git:github.com/me/tools@v1", git("github.com", "me/tools"));
        check("git:git@example.org:me/deep/tools.git", git("example.org", "me/deep/tools"));
        check("git:me/tools", git("github.com", "me/tools"));
        check("git:gitlab:me/tools#main", git("gitlab.com", "me/tools"));
        check("https://github.com/me/tools.git", git("github.com", "me/tools"));
        check("ssh://git@example.org:2222/me/tools@abc", git("example.org", "me/tools"));
        check("git://example.org/me/tools", git("example.org", "me/tools"));
        check("https://example.org/only", local("https://example.org/only"));
        check("git:example.org/a/../../b", local("git:example.org/a/../../b"));
        check("./here", local("./here"));
        check("~/there", local("~/there"));
    }

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
