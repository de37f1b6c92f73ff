//! `pith auth setup`: asks which provider, then for its key, tries the key and stores it. Editors start it in a terminal
//! when they have no model to talk to.

use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use pith_agent::ModelClient;
use pith_ai::{ClientOptions, Providers, Registry};
use pith_config::Settings;
use pith_protocol::{
    AssistantEvent, AssistantMessage, CacheRetention, Content, ErrorKind, LlmCall, Message, Model, ThinkingLevel,
    UserMessage,
};
use pith_visible::write_stderr;
use tokio_util::sync::CancellationToken;

use super::keys::set_key;
use crate::modes::read_line;

/// What a model may say to the question that tries a key.
const MAX_TOKENS: u64 = 16;

/// Carries it out; an error means that nothing was stored.
pub fn run(registry: &Arc<Registry>, settings: &Settings) -> anyhow::Result<u8> {
    let listed: Vec<_> = registry.provider_ids().into_iter().filter(|id| registry.is_listed(id)).collect();
    let name = read_line(&format!("Providers: {}\nProvider: ", listed.join(", ")))?
        .context("auth setup asks on a terminal; scripts use pith auth set PROVIDER")?;
    ensure!(!name.is_empty(), "nothing was changed");
    set_key(registry, &name, |provider, key| {
        // The name of a variable, or a command that prints the key.
        let is_reference = key.starts_with(['$', '!']);
        let Some(model) = model_of(registry, provider).filter(|_| !is_reference) else { return Ok(()) };
        write_stderr("Trying the key ...\n");
        registry.give_key(provider, key);
        let answer = ask(registry.clone(), settings, model)?;
        let why = answer.error_message.as_deref().unwrap_or_default();
        match answer.error.map(|error| error.kind) {
            Some(ErrorKind::Auth) => bail!("{provider} does not accept the key, which was not stored: {why}"),
            // The key may be right all the same.
            Some(_) => write_stderr(&format!("The key could not be tried: {why}\n")),
            None => {}
        }
        Ok(())
    })
}

/// The model that is asked; `None` if the provider tells its models only to those who have a key.
fn model_of(registry: &Registry, provider: &str) -> Option<Arc<Model>> {
    let usual = registry.default_model_id(provider).and_then(|id| registry.find(provider, id));
    usual.or_else(|| registry.models_of(provider).into_iter().next())
}

/// Asks a model something short, and returns its answer.
fn ask(registry: Arc<Registry>, settings: &Settings, model: Arc<Model>) -> anyhow::Result<AssistantMessage> {
    let question = UserMessage { content: Content::Text("Say hello.".to_owned()), ..UserMessage::default() };
    let call = LlmCall {
        model,
        system_prompt: Arc::from(""),
        messages: vec![Arc::new(Message::User(question))],
        tools: Arc::from([]),
        thinking: ThinkingLevel::Off,
        search_tool: None,
        max_tokens: Some(MAX_TOKENS),
        session_id: None,
        cache: CacheRetention::None,
        block_images: true,
        hooks: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let providers = Providers::new(registry, ClientOptions::from(settings));
    runtime.block_on(async {
        let mut events = providers.stream(call, CancellationToken::new());
        while let Some(event) = events.recv().await {
            if let AssistantEvent::End(answer) = event {
                return Ok(*answer);
            }
        }
        bail!("the request came to no end")
    })
}
