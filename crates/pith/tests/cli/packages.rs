//! `install`, `remove`, `update` and `list`, with the real git on local repositories and an npm that only records.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use pith_testkit::{Output, TempHome, skip};
use serde_json::{Value, json};

use super::support::{finish, start_in};

/// A home in which `npm` makes directories instead of fetching, and `https://git.test/` is a local directory.
struct Place {
    home: TempHome,
}

impl Place {
    fn new() -> Place {
        let home = TempHome::new();
        let npm = r#"#!/bin/sh
echo "$PWD: $*" >> "$HOME/npm.log"
case $1 in
  install)
    case $2 in
      broken) echo "no such package" >&2; exit 7 ;;
      --*) mkdir -p node_modules/dependency ;;
      @*) mkdir -p "node_modules/@${2#@}" && mv "node_modules/$2" "node_modules/${2%@*}" 2>/dev/null || true ;;
      *) mkdir -p "node_modules/${2%@*}" ;;
    esac ;;
  uninstall) rm -r "node_modules/$2" ;;
esac
"#;
        let file = home.home().join("bin/npm");
        fs::create_dir_all(file.parent().expect("a directory")).expect("created");
        fs::write(&file, npm).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("executable");
        Place { home }
    }

    fn pith(&self, arguments: &[&str]) -> Output {
        let path = format!("{}:{}", self.home.home().join("bin").display(), std::env::var("PATH").expect("a path"));
        let repositories = format!("url.file://{}/.insteadOf", self.home.home().join("repositories").display());
        let variables = [
            ("PATH", path.as_str()),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", &repositories),
            ("GIT_CONFIG_VALUE_0", "https://git.test/"),
        ];
        let mut child = start_in(&self.home, arguments, &variables);
        drop(child.stdin.take());
        finish(child)
    }

    fn packages(&self) -> Value {
        let text = fs::read_to_string(self.home.agent().join("settings.json")).unwrap_or_else(|_| "{}".to_owned());
        serde_json::from_str::<Value>(&text).expect("JSON")["packages"].clone()
    }

    fn npm_log(&self) -> String {
        fs::read_to_string(self.home.home().join("npm.log")).unwrap_or_default()
    }

    /// Commits a file to a repository, which is made if need be.
    fn commit(&self, repository: &str, file: &str, text: &str) -> PathBuf {
        let directory = self.home.home().join("repositories").join(repository);
        if !directory.exists() {
            fs::create_dir_all(&directory).expect("created");
            git(&directory, &["init", "--quiet", "--initial-branch=main"]);
        }
        fs::write(directory.join(file), text).expect("written");
        git(&directory, &["add", "."]);
        git(&directory, &["-c", "user.name=n", "-c", "user.email=e@test", "commit", "--quiet", "-m", "change"]);
        directory
    }
}

fn git(directory: &Path, arguments: &[&str]) {
    let status = Command::new("git").args(arguments).current_dir(directory).status().expect("git starts");
    assert!(status.success(), "{arguments:?}");
}

fn has_git() -> bool {
    let is_there = Command::new("git").arg("--version").output().is_ok();
    if !is_there {
        skip("there is no git");
    }
    is_there
}

#[test]
fn a_package_of_npm_is_installed_without_its_scripts_and_named_in_settings() {
    let place = Place::new();
    place.home.write_settings(&json!({"defaultThinkingLevel": "low", "packages": ["npm:old"]}));
    let output = place.pith(&["install", "npm:tools@1.2.3"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let root = place.home.agent().join("npm/node_modules/tools");
    assert_eq!(output.stdout, format!("Installed npm:tools@1.2.3 at {}\n", root.display()));
    assert!(output.stderr.contains("$ npm install tools@1.2.3"), "what is run is said: {}", output.stderr);
    assert!(place.npm_log().contains("install tools@1.2.3") && place.npm_log().contains("--ignore-scripts"));
    assert_eq!(place.packages(), json!(["npm:old", "npm:tools@1.2.3"]));
    // Another version takes the place of the first, and what an entry selects stays.
    place.home.write_settings(&json!({"packages": [{"source": "npm:tools@1.2.3", "skills": []}]}));
    assert_eq!(place.pith(&["install", "npm:tools", "--scripts"]).code, 0);
    assert_eq!(place.packages(), json!([{"source": "npm:tools", "skills": []}]));
    assert!(!place.npm_log().lines().last().expect("a call").contains("--ignore-scripts"));
    let removed = place.pith(&["uninstall", "npm:tools"]);
    assert_eq!((removed.code, removed.stdout.as_str()), (0, "Removed npm:tools\n"), "{}", removed.stderr);
    assert_eq!((place.packages(), root.exists()), (json!([]), false));
}

#[test]
fn what_fails_to_install_is_not_in_settings() {
    let place = Place::new();
    let output = place.pith(&["install", "npm:broken"]);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("no such package") && output.stderr.contains("npm failed"), "{}", output.stderr);
    assert_eq!(place.packages(), Value::Null);
    let missing = place.pith(&["install", "./nowhere"]);
    assert!(missing.code == 1 && missing.stderr.contains("there is no "), "{}", missing.stderr);
    place.home.write_agent_file("settings.json", "{\"packages\": 7}");
    let wrong = place.pith(&["install", "npm:tools"]);
    assert!(wrong.stderr.contains("settings.json: packages must be an array"), "{}", wrong.stderr);
    assert!(!place.npm_log().contains("install tools"), "nothing is fetched for settings that cannot be changed");
}

#[test]
fn a_repository_is_cloned_updated_and_removed() {
    if !has_git() {
        return;
    }
    let place = Place::new();
    place.commit("me/tools", "package.json", r#"{"dependencies": {"dependency": "1"}}"#);
    let output = place.pith(&["install", "https://git.test/me/tools"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let root = place.home.agent().join("git/git.test/me/tools");
    assert!(root.join("node_modules/dependency").is_dir(), "what the manifest names is installed");
    place.commit("me/tools", "new.ts", "export default () => {}");
    let updated = place.pith(&["update"]);
    assert_eq!((updated.code, updated.stdout.as_str()), (0, "https://git.test/me/tools: up to date\n"));
    assert!(root.join("new.ts").exists());
    fs::write(root.join("new.ts"), "mine").expect("written");
    let refused = place.pith(&["update", "https://git.test/me/tools"]);
    assert!(refused.code == 1 && refused.stderr.contains("has changes that are not committed"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(root.join("new.ts")).expect("read"), "mine");
    assert_eq!(place.pith(&["remove", "https://git.test/me/tools"]).code, 0);
    assert!(!place.home.agent().join("git").exists(), "empty directories go, too");
    assert_eq!(place.packages(), json!([]));
}

#[test]
fn a_reference_is_checked_out_and_a_bad_one_leaves_nothing() {
    if !has_git() {
        return;
    }
    let place = Place::new();
    let repository = place.commit("me/tools", "version", "one");
    git(&repository, &["tag", "v1"]);
    place.commit("me/tools", "version", "two");
    let output = place.pith(&["install", "git:git.test/me/tools@v1"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let root = place.home.agent().join("git/git.test/me/tools");
    assert_eq!(fs::read_to_string(root.join("version")).expect("read"), "one");
    place.commit("me/other", "version", "one");
    assert_eq!(place.pith(&["install", "git:git.test/me/other@nowhere"]).code, 1);
    let left: Vec<_> = fs::read_dir(root.parent().expect("a directory")).expect("read").collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(place.packages(), json!(["git:git.test/me/tools@v1"]));
}

#[test]
fn packages_of_a_project_need_its_trust() {
    let place = Place::new();
    place.home.write_file(".pi/settings.json", r#"{"packages": ["../own"]}"#);
    place.home.write_file("own/extensions/a.ts", "export default () => {}");
    let refused = place.pith(&["install", "-l", "npm:tools"]);
    assert!(refused.code == 1 && refused.stderr.contains("is not trusted; add --approve"), "{}", refused.stderr);
    assert_eq!(place.npm_log(), "");
    assert_eq!(place.pith(&["install", "-l", "--approve", "npm:tools"]).code, 0);
    assert!(place.home.work().join(".pi/npm/node_modules/tools").is_dir());
    assert_eq!(place.home.read_file(".pi/npm/.gitignore").as_deref(), Some("*\n!.gitignore\n"));
    let again = place.pith(&["install", "-l", "--approve", "./own"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    let settings: Value =
        serde_json::from_str(&place.home.read_file(".pi/settings.json").expect("there")).expect("JSON");
    assert_eq!(settings["packages"], json!(["../own", "npm:tools"]), "the same directory is named once");
}

#[test]
fn a_no_that_was_remembered_holds_for_a_project_without_settings_too() {
    let place = Place::new();
    let work = place.home.work().canonicalize().expect("there");
    place.home.write_agent_file("trust.json", json!({work.to_str().expect("UTF-8"): false}).to_string());
    let refused = place.pith(&["install", "-l", "npm:tools"]);
    assert!(refused.code == 1 && refused.stderr.contains("is not trusted; add --approve"), "{}", refused.stderr);
    assert!(!place.home.work().join(".pi").exists());
    assert_eq!(place.pith(&["install", "-l", "--approve", "npm:tools"]).code, 0);
}

#[test]
fn the_list_names_each_package_and_where_it_is() {
    let place = Place::new();
    assert_eq!(place.pith(&["list"]).stdout, "No packages are installed.\n");
    place.home.write_settings(&json!({"packages": ["npm:here", {"source": "npm:gone"}]}));
    fs::create_dir_all(place.home.agent().join("npm/node_modules/here")).expect("created");
    let modules = place.home.agent().join("npm/node_modules");
    let expected = format!(
        "User packages:\n  npm:here\n    {}\n  npm:gone    (not installed)\n    {}\n",
        modules.join("here").display(),
        modules.join("gone").display()
    );
    assert_eq!(place.pith(&["list"]).stdout, expected);
    let unknown = place.pith(&["remove", "npm:hree"]);
    assert!(unknown.stderr.contains("names no package npm:hree; did you mean \"npm:here\"?"), "{}", unknown.stderr);
}
