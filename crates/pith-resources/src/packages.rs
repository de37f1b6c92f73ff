//! Skills and templates of installed packages: what a manifest lists, or what
//! lies in the directory of that name.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::discovery::Resource;
use crate::notes::Notes;
use crate::options::PackageResources;
use crate::scan::{self, Candidate, How, is_markdown};
use crate::selection::Selection;

/// Returns the resources of a package that the settings select.
pub(crate) fn candidates(resource: Resource, package: &PackageResources, notes: &mut Notes) -> Vec<Candidate> {
    let wanted = match resource {
        Resource::Skill => &package.skills,
        Resource::Prompt => &package.prompts,
    };
    if wanted.as_ref().is_some_and(Vec::is_empty) {
        return Vec::new();
    }
    let mut found = brought(resource, &package.root, notes);
    if let Some(patterns) = wanted {
        let selection = Selection::parse(patterns, &package.root, None, notes);
        found.retain(|candidate| selection.chooses(&candidate.path, &package.root));
    }
    found
}

fn brought(resource: Resource, root: &Path, notes: &mut Notes) -> Vec<Candidate> {
    let Some(listed) = listed(root, resource.directory_name()) else {
        return scan::scan(&root.join(resource.directory_name()), resource.listed_rule(), notes);
    };
    let mut places: Vec<PathBuf> = Vec::new();
    for entry in listed.iter().filter(|entry| !entry.starts_with(['!', '+', '-'])) {
        let place = root.join(beginning(entry));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let selection = Selection::parse(&listed, root, None, notes);
    let mut found = Vec::new();
    for place in places {
        if place.is_file() && is_markdown(&place) {
            found.push(named(place));
        } else {
            found.extend(scan::scan(&place, resource.listed_rule(), notes));
        }
    }
    found.retain(|candidate| selection.chooses(&candidate.path, root));
    found
}

/// Returns a list of a manifest, if all its entries are texts.
fn listed(root: &Path, name: &str) -> Option<Vec<String>> {
    let text = fs::read_to_string(root.join("package.json")).ok()?;
    let manifest: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
    let listed = manifest.get("pi")?.as_object()?.get(name)?.as_array()?;
    listed.iter().map(|entry| entry.as_str().map(str::to_owned)).collect()
}

/// Returns the part of a pattern before the first wildcard.
fn beginning(entry: &str) -> PathBuf {
    let is_plain = |part: &&str| !part.contains(['*', '?', '[', '{']);
    entry.split('/').filter(|part| *part != ".").take_while(is_plain).collect()
}

fn named(path: PathBuf) -> Candidate {
    let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
    Candidate { path, real, found: How::Named }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_info::Scope;

    fn check(files: &[&str], skills: Option<&[&str]>, resource: Resource, expected: &[&str]) {
        let directory = tempfile::tempdir().expect("temp dir");
        for file in files {
            let (name, text) = file.split_once('=').unwrap_or((file, ""));
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().expect("parent")).expect("created");
            fs::write(path, text).expect("written");
        }
        let wanted = skills.map(|list| list.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>());
        let package = PackageResources {
            root: directory.path().to_owned(),
            source: "npm:x".to_owned(),
            scope: Scope::User,
            skills: wanted.clone(),
            prompts: wanted,
        };
        let found = candidates(resource, &package, &mut Notes::default());
        let mut shown: Vec<String> = found
            .iter()
            .map(|found| found.path.strip_prefix(directory.path()).expect("inside").display().to_string())
            .collect();
        shown.sort();
        assert_eq!(shown, expected, "{files:?} {skills:?}");
    }

    #[test]
    fn a_package_brings_what_its_manifest_lists_or_its_directories_hold() {
        let plain = ["skills/a/SKILL.md", "skills/b/SKILL.md", "prompts/p.md"];
        check(&plain, None, Resource::Skill, &["skills/a/SKILL.md", "skills/b/SKILL.md"]);
        check(&plain, None, Resource::Prompt, &["prompts/p.md"]);
        let manifest = r#"package.json={"pi":{"skills":["./own/*","!own/no"],"prompts":["x.md"]}}"#;
        let listed = [manifest, "own/yes/SKILL.md", "own/no/SKILL.md", "skills/a/SKILL.md", "x.md", "y.md"];
        check(&listed, None, Resource::Skill, &["own/yes/SKILL.md"]);
        check(&listed, None, Resource::Prompt, &["x.md"]);
        check(
            &[r#"package.json={"pi":{"skills":[7]}}"#, "skills/a/SKILL.md"],
            None,
            Resource::Skill,
            &["skills/a/SKILL.md"],
        );
    }

    #[test]
    fn settings_take_part_of_it() {
        let files = ["skills/a/SKILL.md", "skills/b/SKILL.md"];
        check(&files, Some(&[]), Resource::Skill, &[]);
        check(&files, Some(&["skills/a"]), Resource::Skill, &["skills/a/SKILL.md"]);
        check(&files, Some(&["!skills/a"]), Resource::Skill, &["skills/b/SKILL.md"]);
        check(&files, Some(&["skills/*", "-skills/b"]), Resource::Skill, &["skills/a/SKILL.md"]);
        check(&files, Some(&["b"]), Resource::Skill, &["skills/b/SKILL.md"]);
        check(&files, Some(&["c"]), Resource::Skill, &[]);
    }
}
