//! Rules: a tool, perhaps with which commands, files or domains.

use std::fmt;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use pith_sandbox::domains::{Domain, Host};

use crate::pattern::CommandPattern;

/// The names of Claude Code's tools, and what they are here.
const ALIASES: [(&str, &str); 8] = [
    ("Bash", "bash"),
    ("Read", "read"),
    ("Edit", "edit"),
    ("Write", "write"),
    ("Grep", "grep"),
    ("Glob", "find"),
    ("LS", "ls"),
    ("WebFetch", "network"),
];

/// A rule that was understood.
#[derive(Clone, Debug)]
pub struct Rule {
    /// As it is written.
    pub text: String,
    pub origin: Origin,
    tool: ToolName,
    pub(crate) specifier: Option<Specifier>,
}

/// Who made a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    File(PathBuf),
    Flag(&'static str),
    /// An answer of the user in this session.
    Session,
    /// The command `set_permissions`.
    Host,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Flag(flag) => f.write_str(flag),
            Origin::Session => f.write_str("an answer in this session"),
            Origin::Host => f.write_str("set_permissions"),
        }
    }
}

/// Where the paths of a rule start.
#[derive(Clone, Debug)]
pub struct Bases {
    pub cwd: PathBuf,
    pub home: PathBuf,
    /// The project or the agent directory that the settings file belongs to.
    pub settings: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ToolName {
    All,
    Named(String),
    /// All tools whose names begin so.
    Server(String),
}

#[derive(Clone, Debug)]
pub(crate) enum Specifier {
    Command(CommandPattern),
    Path(PathPattern),
    Domain(Domain),
}

#[derive(Clone, Debug)]
pub(crate) struct PathPattern {
    root: PathBuf,
    matcher: Gitignore,
}

/// A rule that was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    pub reason: String,
    /// The tool it names, as far as that can be read.
    pub tool: Option<String>,
}

impl Rule {
    /// Reads a rule.
    pub fn parse(text: &str, origin: Origin, bases: &Bases) -> Result<Rule, RuleError> {
        let (name, specifier) = match text.split_once('(') {
            Some((name, rest)) => (name.trim(), Some(rest.trim_end())),
            None => (text.trim(), None),
        };
        let tool = tool_name(name).ok_or_else(|| RuleError { reason: "names no tool".to_owned(), tool: None })?;
        let wrong = |reason: &str| RuleError { reason: reason.to_owned(), tool: Some(canonical(name).to_owned()) };
        let specifier = match specifier {
            None if name.contains(')') => return Err(wrong("has a closing parenthesis without its other")),
            None => None,
            Some(rest) => {
                let inside = rest.strip_suffix(')').ok_or_else(|| wrong("has an open parenthesis"))?;
                Some(Specifier::parse(&tool, inside, bases).map_err(|reason| wrong(&reason))?)
            }
        };
        Ok(Rule { text: text.trim().to_owned(), origin, tool, specifier })
    }

    /// A rule about a whole tool, or about all of them, in the place of one that was not understood.
    pub(crate) fn instead(text: &str, tool: Option<&str>, origin: Origin) -> Rule {
        let tool = tool.and_then(tool_name).unwrap_or(ToolName::All);
        Rule { text: text.to_owned(), origin, tool, specifier: None }
    }

    /// Whether the rule is about a tool. What is said of `edit` holds for `write`, what is said of `read` for searches.
    pub fn names(&self, tool: &str) -> bool {
        match &self.tool {
            ToolName::All => true,
            ToolName::Server(prefix) => tool.starts_with(prefix.as_str()),
            ToolName::Named(name) => {
                name == tool
                    || name == "edit" && tool == "write"
                    || name == "read" && matches!(tool, "grep" | "find" | "ls")
            }
        }
    }

    /// Whether the rule is about which domains commands reach.
    pub(crate) fn is_of_network(&self) -> bool {
        matches!(&self.tool, ToolName::Named(name) if name == "network")
    }

    /// Returns the pattern of commands, if the rule has one.
    pub(crate) fn command(&self) -> Option<&CommandPattern> {
        match &self.specifier {
            Some(Specifier::Command(pattern)) => Some(pattern),
            _ => None,
        }
    }

    /// Whether the rule is about a file; a rule without a pattern is about all.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        match &self.specifier {
            None => true,
            Some(Specifier::Path(pattern)) => pattern.matches(path),
            Some(Specifier::Command(_) | Specifier::Domain(_)) => false,
        }
    }

    /// Whether the rule holds a connection back, if it is one against something; one without a domain is about all.
    pub(crate) fn includes_host(&self, host: &Host, port: u16) -> bool {
        match &self.specifier {
            None => true,
            Some(Specifier::Domain(domain)) => domain.includes(host, port),
            Some(Specifier::Command(_) | Specifier::Path(_)) => false,
        }
    }

    /// Whether the rule lets a connection through, if it is one for something. A rule for all tools does not: it says
    /// nothing about hosts.
    pub(crate) fn admits_host(&self, host: &Host, port: u16) -> bool {
        match &self.specifier {
            None => self.is_of_network(),
            Some(Specifier::Domain(domain)) => domain.admits(host, port),
            Some(Specifier::Command(_) | Specifier::Path(_)) => false,
        }
    }
}

fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name)
}

fn tool_name(name: &str) -> Option<ToolName> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    match canonical(name) {
        "" => None,
        "*" => Some(ToolName::All),
        name if !name.chars().all(is_name) => None,
        name => match name.strip_prefix("mcp__") {
            Some(rest) if !rest.contains("__") => Some(ToolName::Server(format!("{name}__"))),
            _ => Some(ToolName::Named(name.to_owned())),
        },
    }
}

impl Specifier {
    fn parse(tool: &ToolName, text: &str, bases: &Bases) -> Result<Specifier, String> {
        if text.trim().is_empty() {
            return Err("has nothing between its parentheses".to_owned());
        }
        let ToolName::Named(name) = tool else { return Err("takes no parentheses".to_owned()) };
        match name.as_str() {
            "bash" => CommandPattern::parse(text).map(Specifier::Command).ok_or_else(|| "names no command".to_owned()),
            "read" | "edit" | "write" | "grep" | "find" | "ls" => {
                PathPattern::parse(text.trim(), bases).map(Specifier::Path)
            }
            "network" => match text.trim().strip_prefix("domain:").map(str::trim) {
                Some(domain) if !domain.is_empty() => {
                    Domain::read(domain).map(Specifier::Domain).map_err(|why| format!("has a domain that {why}"))
                }
                _ => Err("needs domain: and a name between its parentheses".to_owned()),
            },
            _ => Err(format!("takes no parentheses: only bash, files and network have them, not {name}")),
        }
    }
}

impl PathPattern {
    fn parse(text: &str, bases: &Bases) -> Result<PathPattern, String> {
        let (root, pattern) = if let Some(absolute) = text.strip_prefix("//") {
            (Path::new("/"), format!("/{absolute}"))
        } else if let Some(of_home) = text.strip_prefix("~/") {
            (bases.home.as_path(), format!("/{of_home}"))
        } else if text.starts_with('/') {
            (bases.settings.as_path(), text.to_owned())
        } else if let Some(relative) = text.strip_prefix("./") {
            (bases.cwd.as_path(), format!("/{relative}"))
        } else {
            (bases.cwd.as_path(), text.to_owned())
        };
        if pattern.starts_with(['!', '#']) {
            return Err(format!("begins with {:?}, which means nothing here", &pattern[..1]));
        }
        let mut builder = GitignoreBuilder::new(root);
        builder.add_line(None, &pattern).map_err(|error| error.to_string())?;
        let matcher = builder.build().map_err(|error| error.to_string())?;
        Ok(PathPattern { root: root.to_owned(), matcher })
    }

    fn matches(&self, path: &Path) -> bool {
        match path.strip_prefix(&self.root) {
            Ok(below) if below.as_os_str().is_empty() => false,
            Ok(below) => self.matcher.matched_path_or_any_parents(below, false).is_ignore(),
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bases() -> Bases {
        Bases { cwd: "/work/app".into(), home: "/home/u".into(), settings: "/work/app".into() }
    }

    fn rule(text: &str) -> Result<Rule, RuleError> {
        Rule::parse(text, Origin::Host, &bases())
    }

    #[test]
    fn paths_start_where_the_rule_says() {
        let check = |text: &str, path: &str, is_covered: bool| {
            let rule = rule(text).expect(text);
            assert_eq!(rule.covers(Path::new(path)), is_covered, "{text} {path}");
        };
        check("edit(src/**)", "/work/app/src/a/b.rs", true);
        check("edit(src/**)", "/work/app/other/src/b.rs", false);
        check("read(.env)", "/work/app/.env", true);
        check("read(.env)", "/work/app/deep/.env", true);
        check("read(.env)", "/work/.env", false);
        check("read(./.env)", "/work/app/deep/.env", false);
        check("read(//etc/**)", "/etc/passwd", true);
        check("read(~/.ssh/**)", "/home/u/.ssh/id", true);
        check("read(/docs/*.md)", "/work/app/docs/a.md", true);
        check("Edit(*.rs)", "/work/app/deep/a.rs", true);
        check("write", "/anything", true);
    }

    #[test]
    fn names_cover_what_they_say() {
        let names = |text: &str, tool: &str| rule(text).expect(text).names(tool);
        assert!(names("Bash", "bash") && names("*", "anything") && names("edit", "write") && names("Glob", "find"));
        assert!(names("read", "grep") && !names("write", "edit") && !names("grep", "read"));
        assert!(names("mcp__git", "mcp__git__log") && !names("mcp__git", "mcp__github__log"));
        assert!(names("mcp__git__log", "mcp__git__log") && !names("mcp__git__log", "mcp__git__push"));
    }

    #[test]
    fn rules_that_are_not_understood_say_why() {
        let reason = |text: &str| rule(text).expect_err(text);
        assert_eq!(reason("").tool, None);
        assert_eq!(reason("(rm)").tool, None);
        assert_eq!(reason("bash(rm").tool.as_deref(), Some("bash"));
        assert_eq!(reason("Bash()").tool.as_deref(), Some("bash"));
        assert_eq!(reason("bash( )").reason, "has nothing between its parentheses");
        assert_eq!(reason("todo_write(x)").tool.as_deref(), Some("todo_write"));
        assert_eq!(reason("network(pastebin.com)").tool.as_deref(), Some("network"));
        assert_eq!(reason("network(domain:*.com)").reason, "has a domain that is too broad");
        assert_eq!(reason("ba sh(rm)").tool, None);
    }
}
