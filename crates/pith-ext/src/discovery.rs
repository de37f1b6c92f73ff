//! Finds extensions: on the command line, in settings, in directories and in packages.
//!
//! Reads only directories and manifests, and starts nothing. An empty result means that no engine is needed.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use crate::config::ExtensionSource;
use crate::entries::entries;
use crate::handle::LoadError;
use crate::registry::SourceInfo;

/// Where to search, in order of precedence.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pub cwd: PathBuf,
    pub home: PathBuf,
    /// Paths of `--extension`, in order.
    pub named: Vec<String>,
    /// The project's configuration directory; `None` if it is not trusted or discovery is off.
    pub project: Option<Place>,
    /// The agent directory; `None` if discovery is off.
    pub user: Option<Place>,
    /// The installed packages.
    pub packages: Vec<PackagePlace>,
}

/// A configuration directory and its settings about extensions.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// `<cwd>/.pi` or the agent directory; `extensions/` below it is searched.
    pub base: PathBuf,
    /// The `extensions` array of its settings: paths, `!glob`, `+path` and `-path`.
    pub settings: Vec<String>,
}

/// An installed package.
#[derive(Clone, Debug)]
pub struct PackagePlace {
    pub root: PathBuf,
    /// The package as the settings name it.
    pub source: String,
    /// `user` or `project`.
    pub scope: String,
    /// Patterns that select what is loaded; `None` means everything.
    pub extensions: Option<Vec<String>>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Discovery {
    pub sources: Vec<ExtensionSource>,
    /// Paths of the command line that do not lead to an extension.
    pub errors: Vec<LoadError>,
}

/// What names an extension that pi has built in, as in `builtin:mcp`.
const BUILT_IN: &str = "builtin:";
/// Those of them that pith can do without, or has as part of itself.
const BUILT_INS: [&str; 4] = ["mcp", "tool-search", "codemode", "llama.cpp"];

/// Returns what a source of the command line names, if that is built in: its name, or why there is no such thing.
pub fn built_in(source: &str) -> Option<Result<&str, String>> {
    let name = source.strip_prefix(BUILT_IN)?;
    let is_known = BUILT_INS.contains(&name);
    Some(if is_known {
        Ok(name)
    } else {
        Err(format!("there is no such built-in extension; there are {}", BUILT_INS.join(", ")))
    })
}

/// Returns whether an `extensions` array of settings switches something built in on or off: `+builtin:mcp`,
/// `-builtin:mcp`, or `!` and a pattern.
pub fn switches_built_in(settings: &[String], name: &str) -> Option<bool> {
    let path = format!("{BUILT_IN}{name}");
    let has = |mark: &str| settings.iter().any(|entry| entry.strip_prefix(mark) == Some(&path));
    let mut excluded = settings.iter().filter_map(|entry| glob(entry.strip_prefix('!')?));
    if has("-") {
        Some(false)
    } else if has("+") {
        Some(true)
    } else {
        excluded.any(|glob| glob.is_match(&path)).then_some(false)
    }
}

/// Searches everywhere; only the first occurrence of a file is used.
pub fn discover(places: &Places) -> Discovery {
    let mut search = Search { places, found: Discovery::default(), seen: HashSet::new() };
    for named in &places.named {
        search.add_named(named);
    }
    for (place, scope) in [(&places.project, "project"), (&places.user, "user")] {
        if let Some(place) = place {
            search.add_place(place, scope);
        }
    }
    for package in &places.packages {
        search.add_package(package);
    }
    search.found
}

struct Search<'a> {
    places: &'a Places,
    found: Discovery,
    /// The real paths of the extensions found so far.
    seen: HashSet<PathBuf>,
}

impl Search<'_> {
    fn add(&mut self, file: PathBuf, source: &str, scope: &str, origin: &str, base: Option<&Path>) {
        let source_info = SourceInfo {
            path: file.display().to_string(),
            source: source.to_owned(),
            scope: scope.to_owned(),
            origin: origin.to_owned(),
            base_dir: base.map(|base| base.display().to_string()),
        };
        self.add_source(&file, source_info);
    }

    fn add_source(&mut self, file: &Path, source_info: SourceInfo) {
        let real = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        if self.seen.insert(real) {
            let (path, file) = (source_info.path.clone(), file.display().to_string());
            self.found.sources.push(ExtensionSource { path, file, source_info });
        }
    }

    fn add_named(&mut self, named: &str) {
        let path = self.expand(named, &self.places.cwd);
        let files = files_at(&path);
        if files.is_empty() {
            let why = if path.exists() { "no extension in this directory" } else { "no such file or directory" };
            self.found.errors.push(LoadError::new(path.display().to_string(), why));
        }
        // A directory with an index is a single extension and is shown by the path that was given.
        if crate::entries::index(&path).is_some_and(|index| files == [index]) {
            let shown = ExtensionSource::new(path.display().to_string(), "cli", "temporary");
            return self.add_source(&files[0], shown.source_info);
        }
        for file in files {
            self.add(file, "cli", "temporary", "top-level", None);
        }
    }

    fn add_place(&mut self, place: &Place, scope: &str) {
        let choice = Choice::read(&place.settings, &place.base, |path| self.expand(path, &place.base));
        for path in &choice.added {
            for file in files_at(path) {
                self.add(file, "local", scope, "top-level", Some(&place.base));
            }
        }
        for file in entries(&place.base.join("extensions")) {
            if choice.keeps(&file) {
                self.add(file, "auto", scope, "top-level", Some(&place.base));
            }
        }
    }

    fn add_package(&mut self, package: &PackagePlace) {
        let mut files = package_files(&package.root);
        if let Some(patterns) = &package.extensions {
            files.retain(|file| selected(patterns, file, &package.root));
        }
        for file in files {
            self.add(file, &package.source, &package.scope, "package", Some(&package.root));
        }
    }

    fn expand(&self, text: &str, base: &Path) -> PathBuf {
        expand(text, base, &self.places.home)
    }
}

/// Expands `~` to the home directory, odd spaces to spaces, and makes the path relative to `base`.
pub fn expand(text: &str, base: &Path, home: &Path) -> PathBuf {
    let is_space = |character: char| character.is_whitespace() && !character.is_control();
    let text: String = text.chars().map(|character| if is_space(character) { ' ' } else { character }).collect();
    let path = match text.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(&rest[1..]),
        _ => base.join(&text),
    };
    crate::modules::resolve::normalized(&path)
}

/// The extensions of a package: those its manifest lists, those in `extensions/`, or the package itself.
fn package_files(root: &Path) -> Vec<PathBuf> {
    if root.is_file() {
        return vec![root.to_owned()];
    }
    crate::entries::manifest_entries(root).unwrap_or_else(|| {
        let conventional = ["extensions", "skills", "prompts", "themes"].map(|name| root.join(name));
        if conventional.iter().any(|directory| directory.is_dir()) { entries(&conventional[0]) } else { entries(root) }
    })
}

fn files_at(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let found = entries(path);
    // The path may name the directory of a package.
    if found.is_empty() { entries(&path.join("extensions")) } else { found }
}

/// What settings say: paths to add, and which discovered files to leave out.
#[derive(Default)]
struct Choice {
    added: Vec<PathBuf>,
    excluded: Vec<GlobMatcher>,
    kept: Vec<PathBuf>,
    dropped: Vec<PathBuf>,
    base: PathBuf,
}

impl Choice {
    fn read(settings: &[String], base: &Path, expand: impl Fn(&str) -> PathBuf) -> Choice {
        let mut choice = Choice { base: base.to_owned(), ..Choice::default() };
        for entry in settings {
            match entry.split_at_checked(1) {
                Some(("!", pattern)) => choice.excluded.extend(glob(pattern)),
                Some(("+", path)) => choice.kept.push(expand(path)),
                Some(("-", path)) => choice.dropped.push(expand(path)),
                _ => choice.added.push(expand(entry)),
            }
        }
        choice
    }

    fn keeps(&self, file: &Path) -> bool {
        if self.dropped.iter().any(|path| path == file) {
            return false;
        }
        self.kept.iter().any(|path| path == file) || !self.excluded.iter().any(|glob| matches(glob, file, &self.base))
    }
}

/// Applies a list of patterns: plain ones select, `!` ones exclude; `+path` and `-path` refer to one file.
pub(crate) fn selected(patterns: &[String], file: &Path, base: &Path) -> bool {
    let matching = |pattern: &str| glob(pattern).is_some_and(|glob| matches(&glob, file, base));
    let is_exactly = |path: &str| crate::modules::resolve::normalized(&base.join(path)) == file;
    let marked = |mark: char| patterns.iter().filter_map(move |pattern| pattern.strip_prefix(mark));
    let mut plain = patterns.iter().filter(|pattern| !pattern.starts_with(['!', '+', '-'])).peekable();
    let is_chosen = match plain.peek() {
        Some(_) => plain.any(|pattern| matching(pattern)),
        None => !patterns.is_empty(),
    };
    let is_in = is_chosen && !marked('!').any(matching) || marked('+').any(is_exactly);
    is_in && !marked('-').any(is_exactly)
}

/// Compiles a pattern; `None` if it does not parse.
pub(crate) fn glob(pattern: &str) -> Option<GlobMatcher> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    GlobBuilder::new(pattern).literal_separator(true).build().ok().map(|glob| glob.compile_matcher())
}

/// Matches the path below `base`, the name alone, or a directory that contains the file.
fn matches(glob: &GlobMatcher, file: &Path, base: &Path) -> bool {
    let relative = file.strip_prefix(base).unwrap_or(file);
    let by_name = file.file_name().is_some_and(|name| glob.is_match(name));
    by_name || relative.ancestors().any(|path| glob.is_match(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[&str]) -> Tree {
            let tree = Tree(tempfile::tempdir().unwrap());
            for file in files {
                let (name, text) = file.split_once('=').unwrap_or((file, ""));
                let path = tree.path(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            tree
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn place(&self, name: &str, settings: &[&str]) -> Option<Place> {
            Some(Place { base: self.path(name), settings: settings.iter().map(|entry| (*entry).to_owned()).collect() })
        }

        fn check(&self, places: &Places, expected: &[&str]) {
            let found = discover(places);
            let shown: Vec<String> = found
                .sources
                .iter()
                .map(|source| {
                    let path = Path::new(&source.path).strip_prefix(self.0.path()).unwrap().display().to_string();
                    format!("{path} {} {}", source.source_info.source, source.source_info.scope)
                })
                .collect();
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn what_is_built_in_is_switched_by_settings() {
        let check = |settings: &[&str], expected: Option<bool>| {
            let settings: Vec<String> = settings.iter().map(|entry| (*entry).to_owned()).collect();
            assert_eq!(switches_built_in(&settings, "mcp"), expected, "{settings:?}");
        };
        check(&[], None);
        check(&["-builtin:tool-search", "-builtin:codemode", "builtin:mcp", "-mcp"], None);
        check(&["-builtin:mcp"], Some(false));
        check(&["+builtin:mcp"], Some(true));
        check(&["+builtin:mcp", "-builtin:mcp"], Some(false));
        check(&["!builtin:*", "+builtin:mcp"], Some(true));
        check(&["!builtin:m*"], Some(false));
        check(&["!*.ts"], None);
        assert_eq!(built_in("builtin:mcp"), Some(Ok("mcp")));
        assert!(built_in("builtin:x").is_some_and(|found| found.is_err()));
        assert_eq!(built_in("./builtin.ts"), None);
    }

    #[test]
    fn places_are_searched_in_order_and_a_file_counts_once() {
        let tree = Tree::new(&["p/.pi/extensions/a.ts", "p/extra.ts", "u/extensions/b.js", "u/c.ts", "named.ts"]);
        let places = Places {
            cwd: tree.path("p"),
            home: tree.path("u"),
            named: vec!["../named.ts".into(), ".pi/extensions/a.ts".into()],
            project: tree.place("p/.pi", &["../extra.ts"]),
            user: tree.place("u", &["~/c.ts", "extensions/b.js"]),
            packages: Vec::new(),
        };
        tree.check(
            &places,
            &[
                "named.ts cli temporary",
                "p/.pi/extensions/a.ts cli temporary",
                "p/extra.ts local project",
                "u/c.ts local user",
                "u/extensions/b.js local user",
            ],
        );
    }

    #[test]
    fn settings_filter_what_was_discovered() {
        let tree =
            Tree::new(&["u/extensions/a.ts", "u/extensions/b.ts", "u/extensions/c.ts", "u/extensions/d/index.ts"]);
        let settings = ["!extensions/*.ts", "+extensions/b.ts", "-extensions/d/index.ts"];
        let places = Places { user: tree.place("u", &settings), ..Places::default() };
        tree.check(&places, &["u/extensions/b.ts auto user"]);
    }

    #[test]
    fn packages_bring_what_their_manifest_or_their_directory_holds() {
        let tree = Tree::new(&[
            r#"one/package.json={"pi":{"extensions":["./src/main.ts","!src/other.ts"]}}"#,
            "one/src/main.ts",
            "one/src/other.ts",
            "two/extensions/x.ts",
            "two/extensions/y.ts",
        ]);
        let package = |name: &str, extensions: Option<&[&str]>| PackagePlace {
            root: tree.path(name),
            source: format!("npm:{name}"),
            scope: "user".to_owned(),
            extensions: extensions.map(|list| list.iter().map(|entry| (*entry).to_owned()).collect()),
        };
        let places = Places {
            packages: vec![package("one", None), package("two", Some(&["extensions/y.ts"]))],
            ..Places::default()
        };
        tree.check(&places, &["one/src/main.ts npm:one user", "two/extensions/y.ts npm:two user"]);
        let check = |patterns: &[&str], expected: &[&str]| {
            let places = Places { packages: vec![package("two", Some(patterns))], ..Places::default() };
            tree.check(&places, expected);
        };
        let [x, y] = ["two/extensions/x.ts npm:two user", "two/extensions/y.ts npm:two user"];
        check(&[], &[]);
        check(&["-extensions/y.ts"], &[x]);
        check(&["!x.ts"], &[y]);
        check(&["!*.ts", "+extensions/x.ts"], &[x]);
    }

    #[test]
    fn a_package_may_be_a_file_or_a_plain_directory() {
        let tree = Tree::new(&["one.ts", "two/index.ts", "three/skills/s/SKILL.md", "three/index.ts"]);
        let package = |name: &str| PackagePlace {
            root: tree.path(name),
            source: name.to_owned(),
            scope: "user".to_owned(),
            extensions: None,
        };
        let packages = vec![package("one.ts"), package("two"), package("three")];
        let places = Places { packages, ..Places::default() };
        tree.check(&places, &["one.ts one.ts user", "two/index.ts two user"]);
    }

    #[test]
    fn a_named_directory_with_an_index_keeps_its_name() {
        let tree = Tree::new(&[
            "one/index.ts",
            "two/b.ts",
            r#"three/package.json={"pi":{"extensions":["./index.ts"]}}"#,
            "three/index.ts",
        ]);
        let named = ["one", "two", "three", "one/index.ts"].map(str::to_owned).to_vec();
        let places = Places { cwd: tree.path(""), named, ..Places::default() };
        tree.check(&places, &["one cli temporary", "two/b.ts cli temporary", "three/index.ts cli temporary"]);
        assert_eq!(discover(&places).sources[0].file, tree.path("one/index.ts").display().to_string());
    }

    #[test]
    fn a_named_path_that_leads_nowhere_is_an_error() {
        let tree = Tree::new(&["empty/readme.md"]);
        let places = Places { cwd: tree.path(""), named: vec!["gone.ts".into(), "empty".into()], ..Places::default() };
        let errors: Vec<String> = discover(&places).errors.into_iter().map(|error| error.error).collect();
        assert!(errors[0].ends_with("gone.ts\": no such file or directory"), "{errors:?}");
        assert!(errors[1].ends_with("empty\": no extension in this directory"), "{errors:?}");
    }
}
