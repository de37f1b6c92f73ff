//! The extensions that a directory contains.

use std::fs;
use std::path::{Path, PathBuf};

use globset::GlobMatcher;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde_json::Value;

use crate::discovery::{glob, selected};

/// The extension files of a directory: those its manifest names, its index, or all scripts in it.
pub fn entries(directory: &Path) -> Vec<PathBuf> {
    // The usual case; it must cost a single system call.
    if !directory.is_dir() {
        return Vec::new();
    }
    if let Some(own) = own_entries(directory) {
        return own;
    }
    let ignored = ignore_rules(directory);
    let mut found = Vec::new();
    for child in children(directory) {
        let is_directory = child.is_dir();
        if ignored.matched(&child, is_directory).is_ignore() {
            continue;
        }
        if is_directory {
            found.extend(own_entries(&child).unwrap_or_default());
        } else if is_script(&child) {
            found.push(child);
        }
    }
    found
}

/// The files listed under `pi.extensions` of a manifest; `None` if there is no such list.
pub fn manifest_entries(directory: &Path) -> Option<Vec<PathBuf>> {
    let text = fs::read_to_string(directory.join("package.json")).ok()?;
    let manifest: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
    let listed = manifest.get("pi")?.as_object()?.get("extensions")?.as_array()?;
    // One entry that is not a string makes the list invalid.
    let listed: Vec<&str> = listed.iter().map(Value::as_str).collect::<Option<_>>()?;
    let (overrides, named): (Vec<&str>, Vec<&str>) =
        listed.into_iter().partition(|entry| entry.starts_with(['!', '+', '-']));
    let mut found: Vec<PathBuf> = Vec::new();
    for file in named.iter().flat_map(|entry| listed_entry(directory, &manifest, entry)) {
        if !found.contains(&file) {
            found.push(file);
        }
    }
    let overrides: Vec<String> = overrides.into_iter().map(str::to_owned).collect();
    found.retain(|file| overrides.is_empty() || selected(&overrides, file, directory));
    Some(found)
}

/// The extension a directory itself is. The index is used if the manifest's entries do not exist.
fn own_entries(directory: &Path) -> Option<Vec<PathBuf>> {
    let listed = manifest_entries(directory).filter(|listed| !listed.is_empty());
    listed.or_else(|| Some(vec![index_file(directory)?]))
}

/// The index of a directory without a manifest.
pub fn index(directory: &Path) -> Option<PathBuf> {
    match manifest_entries(directory) {
        Some(_) => None,
        None => index_file(directory),
    }
}

fn index_file(directory: &Path) -> Option<PathBuf> {
    ["index.ts", "index.js"].map(|name| directory.join(name)).into_iter().find(|path| path.is_file())
}

/// The files that an entry of a manifest names: a file, a directory or a pattern.
fn listed_entry(directory: &Path, manifest: &Value, entry: &str) -> Vec<PathBuf> {
    let path = crate::modules::resolve::normalized(&directory.join(entry));
    if path.is_file() {
        return vec![path];
    }
    if path == crate::modules::resolve::normalized(directory) {
        // A manifest that names its own directory means the package's main file.
        return main_file(directory, manifest).into_iter().collect();
    }
    if path.is_dir() {
        return entries(&path);
    }
    let mut found = Vec::new();
    if let Some(pattern) = glob(entry.strip_suffix('/').unwrap_or(entry)) {
        matching(directory, directory, &pattern, &mut found);
    }
    found
}

/// The file that `main` of a manifest names, otherwise the index.
fn main_file(directory: &Path, manifest: &Value) -> Option<PathBuf> {
    let main = manifest.get("main").and_then(Value::as_str);
    let main = main.map(|main| crate::modules::resolve::normalized(&directory.join(main)));
    main.filter(|main| main.is_file()).or_else(|| index_file(directory))
}

/// Collects files that match a pattern, and the extensions of directories that match it.
fn matching(root: &Path, directory: &Path, pattern: &GlobMatcher, found: &mut Vec<PathBuf>) {
    for child in children(directory) {
        let is_named = child.strip_prefix(root).is_ok_and(|relative| pattern.is_match(relative));
        if child.is_dir() {
            if is_named {
                found.extend(entries(&child));
            }
            matching(root, &child, pattern, found);
        } else if is_named && is_script(&child) {
            found.push(child);
        }
    }
}

/// The entries of a directory, sorted by name, without hidden files and `node_modules`.
fn children(directory: &Path) -> Vec<PathBuf> {
    let Ok(listing) = fs::read_dir(directory) else { return Vec::new() };
    let mut children: Vec<PathBuf> = listing
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            !name.as_encoded_bytes().starts_with(b".") && name != "node_modules"
        })
        .map(|entry| entry.path())
        .collect();
    children.sort();
    children
}

fn is_script(path: &Path) -> bool {
    let is_declaration = path.to_str().is_some_and(|path| path.ends_with(".d.ts"));
    !is_declaration && path.extension().is_some_and(|ending| ending == "ts" || ending == "js")
}

fn ignore_rules(directory: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(directory);
    for name in [".gitignore", ".ignore", ".fdignore"] {
        // A missing file has no rules; a bad line in one is skipped.
        let _ = builder.add(directory.join(name));
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[&str], expected: &[&str]) {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            let (name, text) = file.split_once('=').unwrap_or((file, ""));
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found: Vec<String> = entries(directory.path())
            .iter()
            .map(|path| path.strip_prefix(directory.path()).unwrap().display().to_string())
            .collect();
        assert_eq!(found, expected, "{files:?}");
    }

    #[test]
    fn a_directory_means_its_manifest_its_index_or_its_files() {
        check(
            &["b.ts", "a.js", "c.txt", "types.d.ts", "sub/index.ts", "sub/deep/index.ts", "lib/helper.ts"],
            &["a.js", "b.ts", "sub/index.ts"],
        );
        check(&["index.ts", "other.ts"], &["index.ts"]);
        check(&["index.js", "index.ts"], &["index.ts"]);
        check(&[r#"package.json={"pi":{"extensions":["src/x.ts","gone.ts"]}}"#, "src/x.ts", "index.ts"], &["src/x.ts"]);
        check(
            &[r#"package.json={"pi":{"extensions":["ext/*.ts","!ext/b.ts"]}}"#, "ext/a.ts", "ext/b.ts"],
            &["ext/a.ts"],
        );
        for itself in ["./", ".", "./."] {
            let manifest = format!(r#"package.json={{"pi":{{"extensions":["{itself}"]}},"main":"./dist/main.js"}}"#);
            check(&[&manifest, "index.ts", "a.ts"], &["index.ts"]);
            check(&[&manifest, "dist/main.js", "index.ts"], &["dist/main.js"]);
            check(&[&manifest, "a.ts"], &["a.ts"]);
        }
        let manifest = |entries: &str| format!(r#"package.json={{"pi":{{"extensions":{entries}}}}}"#);
        check(&[&manifest(r#"["./ext/"]"#), "ext/a.ts", "ext/b/index.ts"], &["ext/a.ts", "ext/b/index.ts"]);
        check(
            &[&manifest(r#"["./ext/*"]"#), "ext/a.ts", "ext/b/index.ts", "ext/c.md"],
            &["ext/a.ts", "ext/b/index.ts"],
        );
        check(&[&manifest(r#"["ext/*/"]"#), "ext/b/index.ts", "other/index.ts"], &["ext/b/index.ts"]);
        check(
            &[&manifest(r#"["**/*.ext.ts"]"#), "a.ext.ts", "deep/er/b.ext.ts", "c.ts"],
            &["a.ext.ts", "deep/er/b.ext.ts"],
        );
        check(&[&manifest(r#"["{a,b}.ts","a.ts"]"#), "a.ts", "b.ts", "c.ts"], &["a.ts", "b.ts"]);
        check(&[&manifest(r#"["ext/*.ts","-ext/a.ts"]"#), "ext/a.ts", "ext/b.ts"], &["ext/b.ts"]);
        check(
            &[&manifest(r#"["ext/*.ts","!**/a*","+ext/ab.ts"]"#), "ext/a.ts", "ext/ab.ts", "ext/b.ts"],
            &["ext/ab.ts", "ext/b.ts"],
        );
        check(&[&manifest(r#"["gone.ts"]"#), "index.ts"], &["index.ts"]);
        check(&["package.json=\u{feff}{\"pi\":{\"extensions\":[\"ext\"]}}", "ext/a.ts"], &["ext/a.ts"]);
    }

    #[test]
    fn nonsense_manifests_hidden_and_ignored_files_do_not_count() {
        check(&[r#"package.json={"pi":7}"#, "a.ts"], &["a.ts"]);
        check(&[r#"package.json={"pi":{"extensions":["a.ts",3]}}"#, "a.ts", "b.ts"], &["a.ts", "b.ts"]);
        check(&["package.json=not json", "a.ts"], &["a.ts"]);
        check(&[".hidden.ts", "node_modules/x/index.ts", "a.ts"], &["a.ts"]);
        check(&[".gitignore=skip*\nold/", "skipped.ts", "old/index.ts", "a.ts"], &["a.ts"]);
        check(&[], &[]);
    }
}
