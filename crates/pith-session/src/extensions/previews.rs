//! The system prompt and the context as extensions would have them.

use std::sync::Arc;

use pith_protocol::{CustomMessage, Message};
use pith_resources::{ActiveTool, PromptParts, Section};
use serde_json::{Map, Value, json};

use crate::session::Session;

impl Session {
    /// What the system prompt is made of.
    pub(crate) fn system_prompt_options(&self) -> Value {
        let resources = &self.library.resources;
        let active = self.tools.active();
        let names: Vec<_> = active.iter().map(|tool| tool.spec().name.clone()).collect();
        let snippets: Map<String, Value> =
            active.iter().filter_map(|tool| Some((tool.spec().name.to_string(), tool.snippet()?.into()))).collect();
        let rules: Map<String, Value> = active
            .iter()
            .filter(|tool| !tool.rules().is_empty())
            .map(|tool| (tool.spec().name.to_string(), json!(tool.rules())))
            .collect();
        let files = resources.context_files().iter();
        let skills = resources.skills().iter();
        json!({
            "customPrompt": resources.custom_prompt(),
            "selectedTools": names,
            "toolSnippets": snippets,
            "toolGuidelines": rules,
            "promptGuidelines": [],
            "appendSystemPrompt": resources.append_prompts().join("\n\n"),
            "sections": {},
            "cwd": self.store.cwd().to_string_lossy(),
            "contextFiles": files
                .map(|file| json!({ "path": file.path.to_string_lossy(), "content": file.content }))
                .collect::<Vec<_>>(),
            "skills": skills
                .map(|skill| json!({
                    "name": skill.name,
                    "description": skill.description,
                    "filePath": skill.path.to_string_lossy(),
                    "disableModelInvocation": skill.disable_model_invocation,
                }))
                .collect::<Vec<_>>(),
        })
    }

    /// The prompt that edited options would give.
    pub(crate) fn build_prompt(&self, options: &Value) -> String {
        if let Some(whole) = options["forceSystemPrompt"].as_str() {
            return whole.to_owned();
        }
        let active = self.tools.active();
        let tools: Vec<ActiveTool<'_>> = active
            .iter()
            .map(|tool| ActiveTool { name: &tool.spec().name, snippet: tool.snippet(), rules: tool.rules() })
            .collect();
        let append: Vec<String> = options["appendSystemPrompt"].as_str().map(str::to_owned).into_iter().collect();
        let sections = options["sections"].as_object().into_iter().flatten();
        let sections: Vec<Section> = sections
            .filter_map(|(name, body)| Some(Section { name: name.clone(), body: body.as_str()?.to_owned() }))
            .collect();
        let rules = options["promptGuidelines"].as_array().into_iter().flatten();
        let rules: Vec<String> = rules.filter_map(|rule| rule.as_str().map(str::to_owned)).collect();
        PromptParts {
            custom: options["customPrompt"].as_str(),
            append: &append,
            sections: &sections,
            extra_rules: &rules,
            locale: self.tools.locale(),
            ..self.library.resources.prompt_parts(&tools, self.store.cwd())
        }
        .assemble()
    }

    /// What the context would be with these drafts.
    pub(crate) fn boundary_preview(&self, _event: &str, entries: &[Value]) -> Value {
        let mut messages: Vec<Arc<Message>> = self.store.messages().to_vec();
        let drafts = entries.iter().filter(|entry| entry["type"] == "custom_message");
        let drafts = drafts.filter_map(|draft| serde_json::from_value::<CustomMessage>(draft.clone()).ok());
        messages.extend(drafts.map(|draft| Arc::new(Message::Custom(draft))));
        let can_continue = messages.last().is_some_and(|message| message.as_assistant().is_none());
        json!({
            "contextEntries": [],
            "contextMessages": messages,
            "llmMessages": messages,
            "pendingMessages": [],
            "canContinue": can_continue,
        })
    }
}
