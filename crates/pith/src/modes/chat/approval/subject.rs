//! What a question is about, as the user has to see it: the difference, the command, the host, the arguments.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use pith_tools::edit;
use pith_tools::{Base, real_path};
use ratatui::style::Style;
use serde_json::{Map, Value};

use super::Asked;
use crate::modes::chat::theme;

/// Larger files are not compared with what they would become: the new text is shown instead.
const MAX_COMPARED: u64 = 1 << 20;

/// A line, and how it looks.
type Line = (String, Style);

/// What is shown of a call.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    pub title: String,
    /// What stands beside the title.
    pub remark: String,
    /// What must be seen.
    pub lines: Vec<Line>,
    /// The same with what lies around it.
    pub all: Vec<Line>,
}

impl Subject {
    pub fn of(asked: &Asked, home: &Path) -> Subject {
        let text = |name: &str| asked.arguments.get(name).and_then(Value::as_str);
        let mut subject = match (asked.tool.as_str(), text("path"), text("command")) {
            ("bash", _, Some(command)) => of_command(asked, command, home),
            ("network", _, command) => of_host(asked, command),
            ("write", Some(path), _) if text("content").is_some() => {
                of_write(&file(asked, path, home), text("content").unwrap_or_default())
            }
            ("edit", Some(path), _) => of_edit(&file(asked, path, home), asked),
            (tool, Some(path), _) if ["read", "ls", "grep", "find"].contains(&tool) => {
                let file = file(asked, path, home);
                let lines = [file.place(), others(&asked.arguments, &["path"])].concat();
                Subject { title: format!("{tool} {}", file.shown), lines, ..Subject::default() }
            }
            (tool, ..) => {
                Subject { title: tool.to_owned(), lines: others(&asked.arguments, &[]), ..Subject::default() }
            }
        };
        if subject.all.is_empty() {
            subject.all = subject.lines.clone();
        }
        subject
    }
}

fn of_command(asked: &Asked, command: &str, home: &Path) -> Subject {
    let is_outside =
        asked.arguments.get("unsandboxed") == Some(&Value::Bool(true)) && asked.reason.starts_with("Reason");
    let place = if is_outside { " outside the sandbox" } else { "" };
    let mut lines = plain(command);
    lines.extend(others(&asked.arguments, &["command", "unsandboxed"]));
    let directory = Path::new(&asked.cwd);
    let shown = match directory.strip_prefix(home) {
        Ok(below) => Path::new("~").join(below).display().to_string().trim_end_matches('/').to_owned(),
        Err(_) => asked.cwd.clone(),
    };
    Subject { title: format!("bash{place}"), remark: format!("in {shown}"), lines, ..Subject::default() }
}

fn of_host(asked: &Asked, command: Option<&str>) -> Subject {
    let shown = |name: &str| asked.arguments.get(name).map(spoken).unwrap_or_default();
    let wanted_by = match command {
        Some(command) => plain(&format!("wanted by: {command}")),
        None => plain("wanted by one of the programs that run"),
    };
    let title = format!("connect to {}:{}", shown("host"), shown("port"));
    Subject { title, lines: wanted_by, ..Subject::default() }
}

/// A file that a call is about.
struct Target {
    shown: String,
    path: std::path::PathBuf,
    /// Where it leads to, if that is somewhere else.
    leads_to: Option<String>,
}

impl Target {
    fn place(&self) -> Vec<Line> {
        self.leads_to.iter().map(|place| (format!("leads to {place}"), theme::bad())).collect()
    }

    /// What it holds; `None` if it is not there, is no ordinary file or is too large to be compared.
    fn contents(&self) -> Option<Vec<u8>> {
        let metadata =
            std::fs::metadata(&self.path).ok().filter(|found| found.is_file() && found.len() <= MAX_COMPARED)?;
        let mut contents = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
        File::open(&self.path).ok()?.take(MAX_COMPARED).read_to_end(&mut contents).ok()?;
        Some(contents)
    }
}

fn file(asked: &Asked, path: &str, home: &Path) -> Target {
    let cwd = Path::new(&asked.cwd);
    let base = Base { cwd: cwd.to_owned(), home: Some(home.to_owned()) };
    let resolved = base.resolve(path);
    let (real, real_cwd) = (real_path(&resolved), real_path(cwd));
    let shown = match resolved.strip_prefix(cwd) {
        Ok(below) if !below.as_os_str().is_empty() => below.display().to_string(),
        _ => resolved.display().to_string(),
    };
    let expected = resolved.strip_prefix(cwd).map_or_else(|_| resolved.clone(), |below| real_cwd.join(below));
    let leads_to = (real != expected).then(|| real.display().to_string());
    Target { shown, path: resolved, leads_to }
}

fn of_write(file: &Target, content: &str) -> Subject {
    let n_lines = content.lines().count();
    let old = file.contents();
    let title = format!("write {}", file.shown);
    match old {
        Some(old) => of_difference(title, file, &edit::numbered_difference(&old, content.as_bytes())),
        None => {
            let is_there = std::fs::symlink_metadata(&file.path).is_ok();
            let word = if is_there { "replaced" } else { "new" };
            let width = n_lines.to_string().len();
            let line = |(at, line): (usize, &str)| (format!("+{:>width$} {line}", at + 1), theme::good());
            let lines = file.place().into_iter().chain(content.lines().enumerate().map(line)).collect();
            let lines_word = if n_lines == 1 { "line" } else { "lines" };
            Subject { title, remark: format!("{word}, {n_lines} {lines_word}"), lines, ..Subject::default() }
        }
    }
}

fn of_edit(file: &Target, asked: &Asked) -> Subject {
    let title = format!("edit {}", file.shown);
    let preview = file.contents().and_then(|old| edit::preview(&old, &asked.arguments).ok());
    match preview {
        Some(difference) => of_difference(title, file, &difference),
        // It will fail, or the file is too large to be compared: what the model has written is all there is to see.
        None => {
            let replacements = asked.arguments.get("edits").and_then(Value::as_array).into_iter().flatten();
            let side = |edit: &Value, name: &str, sign: char, style: Style| -> Vec<Line> {
                let text = edit[name].as_str().unwrap_or_default();
                text.lines().map(|line| (format!("{sign} {line}"), style)).collect()
            };
            let change = |edit: &Value| {
                [side(edit, "oldText", '-', theme::bad()), side(edit, "newText", '+', theme::good())].concat()
            };
            let lines = file.place().into_iter().chain(replacements.flat_map(change)).collect();
            Subject { title, lines, ..Subject::default() }
        }
    }
}

fn of_difference(title: String, file: &Target, difference: &str) -> Subject {
    let styled = |line: &str| (line.to_owned(), theme::of_difference(line));
    let changed = |sign: char| difference.lines().filter(|line| line.starts_with(sign)).count();
    let shown = difference.lines().filter(|line| line.starts_with(['+', '-'])).map(styled);
    let lines = file.place().into_iter().chain(shown).collect();
    let all = file.place().into_iter().chain(difference.lines().map(styled)).collect();
    Subject { title, remark: format!("+{} -{}", changed('+'), changed('-')), lines, all }
}

fn plain(text: &str) -> Vec<Line> {
    text.lines().map(|line| (line.to_owned(), Style::default())).collect()
}

/// The arguments but some, each on a line of its own or, if it has several, below its name.
fn others(arguments: &Map<String, Value>, shown: &[&str]) -> Vec<Line> {
    let one = |(name, value): (&String, &Value)| plain(&format!("{name}: {}", spoken(value)));
    arguments.iter().filter(|(name, _)| !shown.contains(&name.as_str())).flat_map(one).collect()
}

fn spoken(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => serde_json::to_string_pretty(value).expect("a value is JSON"),
        value => value.to_string(),
    }
}
