//! Rules that watch what a model says: a Markdown file with the patterns in its
//! head and the advice in its body.

use std::fs;
use std::path::{Path, PathBuf};

use pith_config::Diagnostic;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::followed::Followed;
use crate::{front_matter, text};

/// What of a file is read at most; a rule is a page, not a book.
const MAX_FILE: usize = 64 * 1024;
/// Files of one directory that are looked at.
const MAX_FILES: usize = 500;

/// A rule as written. Whether its patterns can be used is not decided here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamRule {
    pub name: String,
    #[serde(serialize_with = "pith_config::path_text")]
    pub path: PathBuf,
    /// What the model is told.
    pub content: String,
    /// Regular expressions; one match is enough.
    pub condition: Vec<String>,
    /// What is watched: `text`, `thinking`, `tool`, `tool:<name>`.
    pub scope: Vec<String>,
}

/// Returns the rules in the `rules` directories of the given configuration directories, by file name.
/// Of rules with the same name the first one counts.
pub fn load_rules(directories: &[PathBuf], followed: &Followed) -> (Vec<StreamRule>, Vec<Diagnostic>) {
    let (mut rules, mut found) = (Vec::<StreamRule>::new(), Vec::new());
    for directory in directories {
        for path in markdown_files(&directory.join("rules"), &mut found) {
            match read(&path, followed) {
                Ok(None) => {}
                Ok(Some(rule)) if rules.iter().any(|known| known.name == rule.name) => {
                    let message = format!("rule {:?} exists already and is ignored", rule.name);
                    found.push(Diagnostic::warning("rule_collision", &path, message));
                }
                Ok(Some(rule)) => rules.push(rule),
                Err(problem) => found.push(Diagnostic::warning("rule_unusable", &path, problem)),
            }
        }
    }
    (rules, found)
}

fn markdown_files(directory: &Path, found: &mut Vec<Diagnostic>) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let is_rule = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md" || extension == "mdc");
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(is_rule).collect();
    paths.sort();
    if paths.len() > MAX_FILES {
        let message = format!("only the first {MAX_FILES} of {} rules are read", paths.len());
        found.push(Diagnostic::warning("rule_limit", directory, message));
        paths.truncate(MAX_FILES);
    }
    paths
}

/// Reads a rule. A file without a condition is no stream rule, but advice of another kind.
fn read(path: &Path, followed: &Followed) -> Result<Option<StreamRule>, String> {
    let read = text::read(path, MAX_FILE, followed).map_err(|error| format!("cannot read file: {error}"))?;
    if read.is_cut {
        return Err(format!("a rule must not be longer than {MAX_FILE} bytes"));
    }
    let whole = text::with_plain_line_ends(read.text);
    let Some((yaml, body)) = front_matter::split(&whole) else { return Ok(None) };
    let fields = front_matter::fields(yaml).map_err(|error| error.to_string())?;
    let condition = match texts(&fields, "condition")? {
        Some(condition) => condition,
        // The older name of the field.
        None => texts(&fields, "ttsrTrigger")?.unwrap_or_default(),
    };
    if condition.is_empty() {
        return Ok(None);
    }
    if body.is_empty() {
        return Err("the rule says nothing: the text below the front matter is empty".to_owned());
    }
    let scope = texts(&fields, "scope")?.filter(|scope| !scope.is_empty()).unwrap_or_else(|| vec!["text".to_owned()]);
    let stem = || path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = front_matter::text_field(&fields, "name").filter(|name| !name.is_empty()).unwrap_or_else(stem);
    Ok(Some(StreamRule { name, path: path.to_owned(), content: body.to_owned(), condition, scope }))
}

/// Reads one text or a list of them.
fn texts(fields: &Map<String, Value>, name: &str) -> Result<Option<Vec<String>>, String> {
    let wrong = || format!("{name} must be a text or a list of texts");
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(vec![text.clone()])),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect::<Result<_, _>>()
            .map(Some),
        Some(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(files: &[(&str, &str)]) -> (Vec<StreamRule>, Vec<&'static str>) {
        let root = tempfile::tempdir().expect("a temporary directory");
        for (name, content) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("in a directory"))
                .and_then(|()| fs::write(path, content))
                .expect("written");
        }
        let (rules, found) = load_rules(&[root.path().join("project"), root.path().join("user")], &Followed::default());
        (rules, found.iter().map(|diagnostic| diagnostic.code).collect())
    }

    #[test]
    fn a_rule_has_patterns_in_its_head_and_advice_in_its_body() {
        let (rules, found) = load(&[
            ("user/rules/no-any.md", "---\ncondition: '\\bany\\b'\n---\n\nUse `unknown`.\n"),
            ("user/rules/sql.md", "---\nname: no-sql\ncondition: [a, b]\nscope: [thinking, 'tool:bash']\n---\nNo."),
            ("user/rules/notes.txt", "---\ncondition: x\n---\nnot a rule file"),
            ("user/rules/plain.md", "no head at all"),
            ("user/rules/advice.md", "---\ndescription: no condition\n---\nadvice"),
        ]);
        let shown: Vec<_> =
            rules.iter().map(|rule| (&*rule.name, &*rule.content, &rule.condition[..], &rule.scope[..])).collect();
        let text = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            shown,
            [
                ("no-any", "Use `unknown`.", &text(&["\\bany\\b"])[..], &text(&["text"])[..]),
                ("no-sql", "No.", &text(&["a", "b"])[..], &text(&["thinking", "tool:bash"])[..]),
            ]
        );
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn what_cannot_be_used_is_named_and_costs_only_itself() {
        let long = format!("---\ncondition: x\n---\n{}", "x".repeat(MAX_FILE));
        let (rules, found) = load(&[
            ("user/rules/a.md", "---\ncondition: 5\n---\nx"),
            ("user/rules/b.md", "---\ncondition: x\n---\n"),
            ("user/rules/c.md", "---\n: : :\n\tx\n---\nx"),
            ("user/rules/d.md", &long),
            ("user/rules/e.md", "---\ncondition: e\n---\nfine"),
            ("user/rules/f.md", "---\nno fields\n---\nx"),
        ]);
        assert_eq!(rules.iter().map(|rule| &*rule.name).collect::<Vec<_>>(), ["e"]);
        assert_eq!(found, ["rule_unusable"; 5]);
    }

    #[test]
    fn the_project_wins_over_the_user() {
        let rule = |text: &str| format!("---\ncondition: x\n---\n{text}");
        let (rules, found) = load(&[("project/rules/a.md", &rule("project")), ("user/rules/a.md", &rule("user"))]);
        assert_eq!((rules.len(), &*rules[0].content), (1, "project"));
        assert_eq!(found, ["rule_collision"]);
    }
}
