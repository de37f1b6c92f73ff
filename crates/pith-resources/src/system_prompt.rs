//! The system prompt, assembled from its parts. Equal parts give equal bytes, so
//! that providers can keep the prompt cached.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

use crate::context_files::ContextFile;
use crate::paths;
use crate::skills::Skill;

const PREAMBLE: &str = "You are an expert coding assistant working inside pith, a coding agent. You help by reading files, \
                        running commands, and editing and writing files.";
const OTHER_TOOLS: &str = "Other tools may be available; their descriptions come with them.";
const SHELL_SEARCH: &str = "Use bash for listing and searching files (ls, rg, find)";
const ALWAYS: [&str; 2] = ["Be concise", "Show file paths clearly when you work with files"];
const CONTEXT_LEAD: &str =
    "Instructions of the user and of this project. Where two of them disagree, the later one applies.";
const SKILLS_LEAD: &str = "Skills are instructions for particular kinds of work. When a task fits the description of a skill, \
                           first load its file with the";
const SKILLS_PATHS: &str = "Relative paths in a skill file start from the directory of that file.";

/// Names of the sections that pith itself writes, in their order.
const BUILT_IN: [&str; 6] = ["tools", "rules", "addendum", "project_context", "skills", "cwd"];

/// Everything the prompt depends on.
#[derive(Clone, Debug)]
pub struct PromptParts<'a> {
    /// In activation order.
    pub tools: &'a [ActiveTool<'a>],
    pub cwd: &'a Path,
    /// Replaces the preamble and drops tools and rules.
    pub custom: Option<&'a str>,
    pub append: &'a [String],
    pub context_files: &'a [ContextFile],
    /// Skills the model may use.
    pub skills: Vec<ListedSkill<'a>>,
    /// Rules added by extensions.
    pub extra_rules: &'a [String],
    /// Sections added by extensions; one with a built-in name replaces that section.
    pub sections: &'a [Section],
    /// BCP 47 tag of the language to answer in.
    pub locale: Option<&'a str>,
    /// What the sandbox lets commands do.
    pub sandbox: Option<&'a str>,
    /// Names of MCP servers with their instructions.
    pub servers: &'a [(String, String)],
}

/// A tool as the prompt mentions it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveTool<'a> {
    pub name: &'a str,
    /// One line for the list of tools.
    pub snippet: Option<&'a str>,
    pub rules: &'a [&'a str],
}

/// A skill as the prompt lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSkill<'a> {
    pub name: &'a str,
    pub description: &'a str,
    /// Path of the file to load.
    pub location: Cow<'a, str>,
}

/// A named part of the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub name: String,
    pub body: String,
}

/// Whether an extension may call a section so.
pub fn is_section_name(name: &str) -> bool {
    let is_start = name.starts_with(|char: char| char.is_ascii_lowercase());
    let is_inner = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || matches!(char, '_' | '-');
    is_start && name.chars().all(is_inner) && name != "preamble"
}

/// Returns the instructions of an MCP server between markers that name it.
pub fn server_lines(name: &str, instructions: &str) -> String {
    let name = escaped(name);
    format!("<mcp_server name=\"{name}\">\n{instructions}\n</mcp_server>")
}

/// Returns what the prompt says about the language of answers.
pub fn language_line(locale: &str) -> String {
    format!("Answer in the language with the tag {locale}.")
}

impl<'a> From<&'a Skill> for ListedSkill<'a> {
    fn from(skill: &'a Skill) -> Self {
        ListedSkill { name: &skill.name, description: &skill.description, location: skill.path.to_string_lossy() }
    }
}

impl Default for PromptParts<'_> {
    fn default() -> Self {
        PromptParts {
            tools: &[],
            cwd: Path::new(""),
            custom: None,
            append: &[],
            context_files: &[],
            skills: Vec::new(),
            extra_rules: &[],
            sections: &[],
            locale: None,
            sandbox: None,
            servers: &[],
        }
    }
}

impl PromptParts<'_> {
    /// Puts the parts together.
    pub fn assemble(&self) -> String {
        let mut prompt = self.custom.unwrap_or(PREAMBLE).to_owned();
        for name in BUILT_IN {
            let replaced = self.sections.iter().rfind(|section| section.name == name);
            let body =
                replaced.map(|section| section.body.as_str().into()).or_else(|| self.built_in(name).map(Cow::Owned));
            push_section(&mut prompt, name, &body.unwrap_or_default());
        }
        for section in self.added_sections() {
            push_section(&mut prompt, &section.name, &section.body);
        }
        prompt
    }

    /// Extensions' own sections. A name given twice keeps its place and takes the later text.
    fn added_sections(&self) -> Vec<&Section> {
        let mut added: Vec<&Section> = Vec::new();
        let is_added = |section: &&Section| is_section_name(&section.name) && !BUILT_IN.contains(&&*section.name);
        for section in self.sections.iter().filter(is_added) {
            match added.iter_mut().find(|earlier| earlier.name == section.name) {
                Some(earlier) => *earlier = section,
                None => added.push(section),
            }
        }
        added
    }

    fn built_in(&self, name: &str) -> Option<String> {
        match name {
            "tools" => self.custom.is_none().then(|| self.tool_list()),
            "rules" => self.custom.is_none().then(|| self.rules()),
            "addendum" => self.addendum(),
            "project_context" => self.project_context(),
            "skills" => self.skill_list(),
            "cwd" => Some(paths::slashed(self.cwd)),
            _ => None,
        }
    }

    fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    fn tool_list(&self) -> String {
        let mut list = String::new();
        for tool in self.tools {
            if let Some(snippet) = tool.snippet {
                _ = writeln!(list, "- {}: {snippet}", tool.name);
            }
        }
        if list.is_empty() {
            list.push_str("(none)\n");
        }
        list + OTHER_TOOLS
    }

    fn rules(&self) -> String {
        let mut rules: Vec<&str> = Vec::new();
        if self.has("bash") && !["grep", "find", "ls"].into_iter().any(|name| self.has(name)) {
            rules.push(SHELL_SEARCH);
        }
        let of_tools = self.tools.iter().flat_map(|tool| tool.rules.iter().copied());
        let of_extensions = self.extra_rules.iter().map(|rule| rule.trim());
        for rule in of_tools.chain(of_extensions) {
            if !rule.is_empty() && !rules.contains(&rule) && !ALWAYS.contains(&rule) {
                rules.push(rule);
            }
        }
        rules.extend(ALWAYS);
        rules.iter().map(|rule| format!("- {rule}")).collect::<Vec<_>>().join("\n")
    }

    fn addendum(&self) -> Option<String> {
        let language = self.locale.map(language_line);
        let lines = self.sandbox.into_iter().chain(language.as_deref());
        let servers: Vec<String> = self.servers.iter().map(|(name, text)| server_lines(name, text)).collect();
        let added = lines.chain(servers.iter().map(String::as_str));
        let parts: Vec<&str> = self.append.iter().map(|part| &**part).chain(added).collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }

    fn project_context(&self) -> Option<String> {
        if self.context_files.is_empty() {
            return None;
        }
        let mut text = CONTEXT_LEAD.to_owned();
        for ContextFile { path, content } in self.context_files {
            let path = path.display();
            _ = write!(text, "\n\n<project_instructions path=\"{path}\">\n{content}\n</project_instructions>");
        }
        Some(text)
    }

    fn skill_list(&self) -> Option<String> {
        let loader = ["read", "bash"].into_iter().find(|name| self.has(name))?;
        if self.skills.is_empty() {
            return None;
        }
        let mut text = format!("{SKILLS_LEAD} {loader} tool. {SKILLS_PATHS}\n\n<available_skills>\n");
        for skill in &self.skills {
            text.push_str("  <skill>\n");
            for (tag, value) in
                [("name", skill.name), ("description", skill.description), ("location", &*skill.location)]
            {
                _ = writeln!(text, "    <{tag}>{}</{tag}>", escaped(value));
            }
            text.push_str("  </skill>\n");
        }
        Some(text + "</available_skills>")
    }
}

/// Appends a section. One without text is left out, which is how an extension removes it.
fn push_section(prompt: &mut String, name: &str, body: &str) {
    if !body.is_empty() {
        _ = write!(prompt, "\n\n<{name}>\n{body}\n</{name}>");
    }
}

fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            other => escaped.push(other),
        }
    }
    escaped.into()
}
