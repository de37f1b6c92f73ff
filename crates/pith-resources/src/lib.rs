//! Files that shape what the model is told: instructions, skills, prompt templates, stream rules; and whether a
//! project's own may be used.
//!
//! Everything here is synchronous and works on files alone. It knows nothing of
//! sessions, models or the RPC protocol.

mod changes;
mod commands;
mod context_files;
mod discovery;
mod followed;
mod front_matter;
mod ignore_files;
mod notes;
mod options;
mod packages;
mod paths;
mod prompt_files;
mod resources;
mod rules;
mod scan;
mod selection;
mod skills;
mod source_info;
mod substitution;
mod system_prompt;
mod templates;
mod text;
mod trust;

pub use changes::{Change, ResourceChange};
pub use commands::{CommandEntry, CommandSource};
pub use context_files::ContextFile;
pub use followed::Followed;
pub use options::{ContributedPath, PackageResources, PromptText, ResourceOptions};
pub use resources::{Expansion, ExpansionFailure, Resources};
pub use rules::{StreamRule, load_rules};
pub use skills::Skill;
pub use source_info::{Origin, Scope, SourceInfo};
pub use system_prompt::{ActiveTool, ListedSkill, PromptParts, Section, is_section_name, language_line, server_lines};
pub use templates::PromptTemplate;
pub use trust::{GatedResources, HOST_ANSWER_LIMIT, Question, TrustError, TrustFile, TrustInputs, Verdict, decide};
