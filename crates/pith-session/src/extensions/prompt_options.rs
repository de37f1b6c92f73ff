//! The system prompt as extensions see and change it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pith_agent::Tool;
use pith_ext::AgentStart;
use pith_resources::{ActiveTool, ContextFile, ListedSkill, PromptParts, Section, server_lines};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::session::Session;

/// The system prompt of the current work, if extensions changed it.
pub(crate) struct RunPrompt {
    /// Replaces the whole prompt.
    text: Option<Arc<str>>,
    /// The edited options; the active tools always replace the tools among them.
    options: Option<Value>,
}

/// The options extensions may edit. Values of the wrong type are ignored.
#[derive(Default)]
struct Options {
    custom: Option<String>,
    forced: Option<String>,
    selected: Vec<String>,
    snippets: Map<String, Value>,
    guidelines: Map<String, Value>,
    extra_rules: Vec<String>,
    append: Vec<String>,
    sections: Vec<Section>,
    cwd: PathBuf,
    context_files: Vec<ContextFile>,
    skills: Vec<SkillOption>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SkillOption {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    file_path: String,
    #[serde(default)]
    disable_model_invocation: bool,
}

impl Session {
    /// Applies the prompt that extensions want for the rest of the work.
    pub(crate) fn take_run_prompt(&mut self, start: AgentStart) {
        let AgentStart { system_prompt, system_prompt_options: options, .. } = start;
        if let Some(options) = &options {
            let active: Vec<String> = self.active_names();
            let selected = strings(options.get("selectedTools"));
            // Tools selected here stay selected, like those of `setActiveTools`.
            if options.get("selectedTools").is_some() && selected != active {
                self.set_active_tools(&selected);
            }
        }
        if let Some(work) = self.activity.work_mut() {
            work.prompt = Some(RunPrompt { text: system_prompt.map(Into::into), options });
        }
    }

    /// The system prompt as extensions changed it.
    pub(crate) fn changed_prompt(&self, changed: &RunPrompt) -> Arc<str> {
        match changed {
            RunPrompt { text: Some(text), .. } => text.clone(),
            RunPrompt { options: Some(options), .. } => {
                let mut options = options.clone();
                options["selectedTools"] = json!(self.active_names());
                self.build_prompt(&options).into()
            }
            RunPrompt { text: None, options: None } => self.project.prompt().clone(),
        }
    }

    /// What the system prompt is made of, as the extension API shows it.
    pub(crate) fn system_prompt_options(&self) -> Value {
        let resources = &self.project.resources;
        let all = self.tools.all();
        let snippet = |tool: &Arc<dyn Tool>| Some((tool.spec().name.to_string(), tool.snippet()?.into()));
        let rules = |tool: &Arc<dyn Tool>| {
            let rules = tool.rules();
            (!rules.is_empty()).then(|| (tool.spec().name.to_string(), json!(rules)))
        };
        let file = |file: &ContextFile| json!({ "path": file.path, "content": file.content });
        let skills = resources.skills().iter().map(|skill| {
            json!({
                "name": skill.name,
                "description": skill.description,
                "filePath": skill.path,
                "baseDir": skill.directory(),
                "disableModelInvocation": skill.disable_model_invocation,
            })
        });
        let mut append = resources.append_prompts().to_vec();
        append.extend(self.sandbox_line());
        append.extend(self.project.locale().map(pith_resources::language_line));
        append.extend(self.mcp.instructions.iter().map(|(server, text)| server_lines(server, text)));
        let mut options = json!({
            "selectedTools": self.active_names(),
            "toolSnippets": all.iter().filter_map(snippet).collect::<Map<_, _>>(),
            "toolGuidelines": all.iter().filter_map(rules).collect::<Map<_, _>>(),
            "promptGuidelines": [],
            "appendSystemPrompt": append.join("\n\n"),
            "sections": {},
            "cwd": self.store.cwd(),
            "contextFiles": resources.context_files().iter().map(file).collect::<Vec<_>>(),
            "skills": skills.collect::<Vec<_>>(),
        });
        if let Some(custom) = resources.custom_prompt() {
            options["customPrompt"] = custom.into();
        }
        options
    }

    /// Assembles the prompt from edited options.
    pub(crate) fn build_prompt(&self, options: &Value) -> String {
        let options = Options::read(options, self.store.cwd());
        options.forced.clone().unwrap_or_else(|| options.assemble())
    }

    fn active_names(&self) -> Vec<String> {
        self.tools.active().iter().map(|tool| tool.spec().name.to_string()).collect()
    }
}

impl Options {
    fn read(options: &Value, cwd: &Path) -> Self {
        let text = |name: &str| options.get(name).and_then(Value::as_str).map(str::to_owned);
        let object = |name: &str| options.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        let section = |(name, body): (String, Value)| Some(Section { name, body: body.as_str()?.to_owned() });
        let list = |name: &str| options.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        let file = |file: &Value| {
            let text = |name: &str| file.get(name).and_then(Value::as_str);
            Some(ContextFile { path: text("path")?.into(), content: text("content")?.to_owned() })
        };
        Options {
            custom: text("customPrompt").filter(|custom| !custom.is_empty()),
            forced: text("forceSystemPrompt"),
            selected: strings(options.get("selectedTools")),
            snippets: object("toolSnippets"),
            guidelines: object("toolGuidelines"),
            extra_rules: strings(options.get("promptGuidelines")),
            append: text("appendSystemPrompt").filter(|append| !append.is_empty()).into_iter().collect(),
            sections: object("sections").into_iter().filter_map(section).collect(),
            cwd: text("cwd").map_or_else(|| cwd.to_owned(), PathBuf::from),
            context_files: list("contextFiles").iter().filter_map(file).collect(),
            skills: list("skills").into_iter().filter_map(|skill| serde_json::from_value(skill).ok()).collect(),
        }
    }

    fn assemble(&self) -> String {
        let rules_of = |name: &String| -> Vec<&str> {
            let rules = self.guidelines.get(name).and_then(Value::as_array);
            rules.into_iter().flatten().filter_map(Value::as_str).map(str::trim).collect()
        };
        let rules: Vec<Vec<&str>> = self.selected.iter().map(rules_of).collect();
        let tools: Vec<ActiveTool<'_>> = self
            .selected
            .iter()
            .zip(&rules)
            .map(|(name, rules)| {
                let snippet = self.snippets.get(name).and_then(Value::as_str).filter(|snippet| !snippet.is_empty());
                ActiveTool { name, snippet, rules }
            })
            .collect();
        PromptParts {
            tools: &tools,
            cwd: &self.cwd,
            custom: self.custom.as_deref(),
            append: &self.append,
            context_files: &self.context_files,
            skills: self.skills.iter().filter_map(listed).collect(),
            extra_rules: &self.extra_rules,
            sections: &self.sections,
            locale: None,
            sandbox: None,
            servers: &[],
        }
        .assemble()
    }
}

fn listed(skill: &SkillOption) -> Option<ListedSkill<'_>> {
    (!skill.disable_model_invocation).then(|| ListedSkill {
        name: &skill.name,
        description: &skill.description,
        location: skill.file_path.as_str().into(),
    })
}

fn strings(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
