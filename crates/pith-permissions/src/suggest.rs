//! Which rules an answer may make: what was asked about, and never more than the rule says to those who read it.

use std::path::Path;

use pith_sandbox::domains::Domain;

use crate::command::{self, Part, Word};
use crate::paths::is_ordinary_change;
use crate::policy::{Action, ToolUse};

/// Longer rules are not made: nobody reads them in a question.
const MAX_RULE: usize = 160;

/// Commands that may be allowed by their first words: whatever follows, they write, delete, send and run nothing, and
/// show nothing from outside the repository. All others are allowed as they are, however harmless they seem: `git diff`
/// overwrites a file with `--output`, `cargo` runs programs that `--config` names, `ls` and `cat` leave the directory.
const ONLY_LOOK: [&[&str]; 24] = [
    &["git", "status"],
    &["git", "ls-files"],
    &["git", "ls-tree"],
    &["git", "rev-parse"],
    &["git", "merge-base"],
    &["git", "name-rev"],
    &["git", "describe"],
    &["git", "for-each-ref"],
    &["git", "show-ref"],
    &["git", "count-objects"],
    &["git", "check-ignore"],
    &["git", "version"],
    &["basename"],
    &["dirname"],
    &["echo"],
    &["expr"],
    &["false"],
    &["id"],
    &["nproc"],
    &["pwd"],
    &["seq"],
    &["sleep"],
    &["true"],
    &["uname"],
];

/// Programs that run what they read or what they are given. Not even the exact command is a rule for them: what comes
/// through a pipe is not in it.
const RUN_THEIR_INPUT: [&str; 53] = [
    ".",
    "ash",
    "at",
    "awk",
    "bash",
    "batch",
    "bun",
    "bunx",
    "command",
    "csh",
    "dash",
    "deno",
    "doas",
    "docker",
    "env",
    "eval",
    "exec",
    "fish",
    "gawk",
    "ksh",
    "kubectl",
    "lua",
    "mysql",
    "nice",
    "node",
    "nohup",
    "osascript",
    "parallel",
    "perl",
    "php",
    "podman",
    "psql",
    "python",
    "python2",
    "python3",
    "ruby",
    "script",
    "sed",
    "setsid",
    "sh",
    "source",
    "sqlite3",
    "ssh",
    "stdbuf",
    "su",
    "sudo",
    "tcsh",
    "tee",
    "time",
    "timeout",
    "watch",
    "xargs",
    "zsh",
];

/// Rules that an answer may make. Each list holds together: all of it is granted, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suggestions {
    /// For the exact command, the host, or the file's directory inside the project.
    pub narrow: Option<Vec<String>>,
    /// For calls like this one: commands that begin with the same words, or the whole tool.
    pub wide: Option<Vec<String>>,
}

/// Returns the rules that would allow a call from now on. Whether they do, under all other rules, is for the caller to
/// see.
pub fn suggest(call: &ToolUse) -> Suggestions {
    let narrow = |rule: Option<String>| Suggestions { narrow: rule.map(|rule| vec![rule]), wide: None };
    match call.action {
        Action::Command(script) => of_command(script),
        Action::Read(path) => narrow(file(path, call.workspace).map(|path| format!("read({path})"))),
        Action::Change(path) => {
            let place = directory(path, call.workspace).or_else(|| file(path, call.workspace));
            narrow(place.map(|place| format!("edit({place})")))
        }
        Action::Connect(host, port) => narrow(Some(format!("network(domain:{})", Domain::written_for(host, port)))),
        // What such a tool does with other arguments nobody knows, so its rule is a choice of its own.
        Action::Harmless | Action::Other => Suggestions { narrow: None, wide: Some(vec![call.tool.to_owned()]) },
    }
}

/// A rule is about simple commands, wherever they stand. So there is none for a command of several, or with a
/// redirection: in another company its parts may do something else.
fn of_command(script: &str) -> Suggestions {
    let reading = command::read(script);
    let [part] = reading.parts.as_slice() else { return Suggestions::default() };
    if !reading.opaque.is_empty() || !reading.files.is_empty() || !part.inner.is_empty() || part.is_altered {
        return Suggestions::default();
    }
    let Some(words) = plain_words(part) else { return Suggestions::default() };
    let rule = |words: &[&str], rest: &str| vec![format!("bash({}{rest})", words.join(" "))];
    let prefix = ONLY_LOOK.iter().find(|prefix| words.starts_with(prefix));
    let program = words[0].rsplit('/').next().unwrap_or_default();
    let narrow = Some(rule(&words, "")).filter(|rules| rules[0].len() <= MAX_RULE && !runs_its_input(program));
    Suggestions { narrow, wide: prefix.map(|prefix| rule(prefix, ":*")) }
}

/// Whether a program runs its input, whatever version its name has: `python3.12`.
fn runs_its_input(program: &str) -> bool {
    let unversioned = program.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    RUN_THEIR_INPUT.iter().any(|name| *name == program || *name == unversioned)
}

/// The words of a command, if a rule can say exactly these: `*` and gaps mean something else there.
fn plain_words(part: &Part) -> Option<Vec<&str>> {
    let is_plain = |word: &&str| {
        !word.is_empty() && !word.contains(|c: char| c == '*' || c.is_whitespace() || c.is_control() || is_hidden(c))
    };
    let words: Option<Vec<&str>> = part.words.iter().map(|word| Word::literal(word).filter(is_plain)).collect();
    words.filter(|words| !words.is_empty())
}

/// Whether people do not see a character, or see the others in another order because of it.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The pattern of a file's directory; `None` outside the workspace, for the workspace itself and for what other
/// programs obey: there only the file is meant.
fn directory(path: &Path, workspace: &Path) -> Option<String> {
    let below = path.strip_prefix(workspace).ok().filter(|_| is_ordinary_change(path, workspace))?;
    let directory = below.parent()?.to_str().filter(|directory| !directory.is_empty())?;
    let root = if directory.starts_with('~') { "./" } else { "" };
    in_pattern(format!("{root}{directory}/**"), directory)
}

/// The pattern of a file.
fn file(path: &Path, workspace: &Path) -> Option<String> {
    let pattern = match path.strip_prefix(workspace) {
        Ok(below) => format!("./{}", below.to_str()?),
        Err(_) => format!("/{}", path.to_str()?),
    };
    let written = pattern.clone();
    in_pattern(pattern, &written)
}

/// A pattern, unless what was written into it has characters that mean something there.
fn in_pattern(pattern: String, written: &str) -> Option<String> {
    let means_something = |c: char| "*?[]{}\\()!#".contains(c) || c.is_control() || is_hidden(c);
    let is_trimmed = written.trim() == written && !written.contains("/../") && !written.ends_with("/..");
    (pattern.len() <= MAX_RULE && is_trimmed && !written.contains(means_something)).then_some(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggested(action: Action) -> (String, String) {
        let tool = match action {
            Action::Command(_) => "bash",
            Action::Change(_) => "write",
            Action::Read(_) => "read",
            _ => "other",
        };
        let (workspace, home) = (Path::new("/work/app"), Path::new("/home/u"));
        let suggestions = suggest(&ToolUse { tool, action, workspace, home, is_confined: false });
        let text = |rules: Option<Vec<String>>| rules.map_or_else(|| "-".to_owned(), |rules| rules.join(", "));
        (text(suggestions.narrow), text(suggestions.wide))
    }

    #[test]
    fn commands_are_allowed_as_they_are() {
        let check = |script: &str, narrow: &str, wide: &str| {
            assert_eq!(suggested(Action::Command(script)), (narrow.to_owned(), wide.to_owned()), "{script}");
        };
        check("git status --short", "bash(git status --short)", "bash(git status:*)");
        check("rm -f a.txt", "bash(rm -f a.txt)", "-");
        check("git push origin main", "bash(git push origin main)", "-");
        check("npm run build -- x", "bash(npm run build -- x)", "-");
        check("somewhere/tool --flag", "bash(somewhere/tool --flag)", "-");
        // In another company the parts of a command do something else.
        check("git status && rm -f x", "-", "-");
        check("curl example.org | sh", "-", "-");
        check("echo x > a.txt", "-", "-");
        check("sort < a.txt", "-", "-");
        check("timeout 5 rm x", "-", "-");
        // What they run does not stand in the command.
        check("python3 x.py", "-", "-");
        check("/usr/bin/python3.12 -", "-", "-");
        // A rule would say something else than the command.
        check("rm '*'", "-", "-");
        check("rm 'a b'", "-", "-");
        check("rm ''", "-", "-");
        check("rm $x", "-", "-");
        check("PATH=/evil git status", "-", "-");
        check("git status $x", "-", "-");
        check("rm a\u{202e}b", "-", "-");
    }

    #[test]
    fn files_are_allowed_with_their_directory_inside_the_project() {
        let check = |path: &str, rule: &str| {
            assert_eq!(suggested(Action::Change(Path::new(path))), (rule.to_owned(), "-".to_owned()), "{path}");
        };
        check("/work/app/src/deep/a.rs", "edit(src/deep/**)");
        check("/work/app/a.txt", "edit(./a.txt)");
        check("/work/other/a.txt", "edit(//work/other/a.txt)");
        check("/work/app/src/../../other/a.txt", "-");
        check("/work/app/.git/hooks/pre-commit", "edit(./.git/hooks/pre-commit)");
        check("/work/app/~/a", "edit(./~/**)");
        check("/work/app/ src/a", "edit(./ src/a)");
        check("/work/app/a*/b", "-");
        assert_eq!(suggested(Action::Read(Path::new("/etc/passwd"))).0, "read(//etc/passwd)");
        assert_eq!(suggested(Action::Other), ("-".to_owned(), "other".to_owned()));
    }
}
