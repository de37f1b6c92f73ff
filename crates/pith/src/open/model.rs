//! Selects the model a session starts with.

use std::collections::HashMap;

use pith_ai::scripted::{self, SCRIPTED, TOUR};
use pith_ai::select::{self, Defaults, Recorded, Start, Wanted};
use pith_ai::{Registry, Scripts, Visibility};
use pith_config::settings::Settings;
use pith_protocol::ThinkingLevel;
use pith_store::SessionStore;
use serde_json::Value;

use crate::cli::Cli;
use crate::extensions::Loader;

/// The id of the model that plays `--script FILE`.
const SCRIPT_FILE: &str = "file";

/// Why there is no model of the name that was given.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongModel(String);

/// Selects the model a session starts with; waits for extensions only if one of them may provide it.
pub(super) async fn choose_model(
    cli: &Cli,
    defaults: Defaults,
    registry: &Registry,
    settings: &Settings,
    store: &SessionStore,
    loader: &mut Loader<'_>,
    flags: &HashMap<String, Value>,
) -> anyhow::Result<Start> {
    let scope: Vec<String> =
        cli.models.iter().flat_map(|list| list.split(',')).map(|name| name.trim().to_owned()).collect();
    let wanted = Wanted {
        provider: cli.script.as_ref().map(|_| SCRIPTED).or(cli.provider.as_deref()),
        model: cli.script.as_ref().map(|_| SCRIPT_FILE).or(cli.model.as_deref()),
        scope: &scope,
        thinking: cli.thinking,
        api_key: cli.api_key.as_deref(),
        // A script is named to be played.
        defaults: Defaults { model: defaults.model && cli.script.is_none(), ..defaults },
    };
    let recorded = store.settings();
    let recorded = Recorded {
        model: recorded.model.as_ref().map(|(provider, id)| (&**provider, &**id)),
        thinking: recorded.thinking_level.as_deref().and_then(ThinkingLevel::parse),
    };
    let has_talked = store.n_messages() > 0;
    let select = || select::start(registry, &wanted, settings, has_talked.then_some(&recorded));
    let mut start = select();
    // Without a warning, a default model that is not known yet would be replaced.
    let default = settings.default_provider.as_deref().zip(settings.default_model.as_deref());
    let is_default_known = default.is_none_or(|(provider, id)| registry.find(provider, id).is_some());
    let needs_default = wanted.model.is_none() && wanted.scope.is_empty() && !has_talked;
    let is_as_wanted =
        |start: &Start| start.model.is_some() && start.warnings.is_empty() && (is_default_known || !needs_default);
    if loader.is_pending() && !start.as_ref().is_ok_and(is_as_wanted) {
        loader.finish().await;
        loader.bind(flags, registry).await;
        start = select();
    }
    Ok(start.map_err(WrongModel)?)
}

/// The scripted model exists only if it is named.
pub(super) fn scripts(cli: &Cli, registry: &Registry) -> anyhow::Result<Scripts> {
    let asks_by_name = cli.provider.as_deref() == Some(SCRIPTED)
        || cli.model.as_deref().is_some_and(|model| model.starts_with("scripted/"));
    let (id, scripts) = match &cli.script {
        Some(file) => (SCRIPT_FILE, Scripts::load(file).map_err(anyhow::Error::msg)?),
        None if asks_by_name => (TOUR, Scripts::default()),
        None => return Ok(Scripts::default()),
    };
    registry.support_api(SCRIPTED);
    registry.register(scripted::provider(id), Visibility::ByNameOnly);
    Ok(scripts)
}
