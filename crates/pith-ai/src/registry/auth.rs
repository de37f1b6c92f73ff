//! Which credential a request carries, and where it comes from.

use std::sync::PoisonError;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use pith_protocol::Model;
use pith_secrets::is_secret_name;

use super::address::is_private;
use super::offers::{Offer, placeholders};
use super::provider::Provider;
use super::registration::Service;
use super::{CredentialOrigin, Registry, Tables};
use crate::auth_file::{Entries, Stored};
use crate::config_value::{self, Variables};
use crate::credentials::{CredentialSource, Credentials};
use crate::http::without_scheme;
use crate::key_command::Reuse;
use crate::models_file::{Headers, ProviderConfig};
use crate::network;

/// Why there is no credential.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// Nothing is configured.
    Nothing,
    /// A login that has expired.
    Expired,
    /// Something is configured and cannot be used.
    Unusable(String),
}

impl Missing {
    pub fn text(&self, provider: &str) -> String {
        match self {
            Missing::Nothing => no_key(provider),
            Missing::Expired => format!(
                "Authentication failed for \"{provider}\". Credentials may have expired or network is unavailable. \
                 Run '/login {provider}' to re-authenticate."
            ),
            Missing::Unusable(reason) => reason.clone(),
        }
    }
}

/// Where a credential was found, before it is resolved.
enum Source<'a> {
    Given(String),
    /// A key from `auth.json`, in any value form.
    Stored(&'a str),
    Token(&'a str),
    /// A stored login that the extension behind the provider understands.
    Login,
    /// A key from a file or a registration.
    Configured(&'a str, &'a ProviderConfig),
    Variable {
        name: &'static str,
        value: String,
        bearer: bool,
    },
    /// The server wants no key, or a configured header is one.
    Keyless,
}

/// Whether a request makes sense without a credential.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Required,
    IfAny,
}

/// Variables holding a token rather than a key.
const TOKEN_VARIABLES: [&str; 2] = ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN"];
/// Headers that are credentials themselves.
const AUTH_HEADERS: [&str; 5] = ["authorization", "x-api-key", "api-key", "x-goog-api-key", "cf-aig-authorization"];

/// The answer to a prompt when no model is selected.
pub const NO_MODEL: &str = "No model selected.\n\n\
    Set an API key environment variable, log in, or add a provider to models.json.\n\n\
    Then select a model with set_model.";

/// What print mode says when there is nothing to send a prompt to.
pub const NO_KEY: &str = "No API key found for the selected model.\n\n\
    Set an API key environment variable, run pith auth set PROVIDER, or add a provider to models.json.\n\
    pith --list-models --all shows which key each model needs; --model scripted/tour needs none.";

/// Returns the variable that the key of a built-in provider usually stands in.
pub fn key_variable(provider: &str) -> Option<String> {
    let variable = crate::catalogue::provider(provider)?.variables.last()?;
    Some(variable.replace('+', " and "))
}

fn no_key(provider: &str) -> String {
    let first = match key_variable(provider) {
        Some(name) => format!("Set {name}"),
        None => "Set an API key environment variable".to_owned(),
    };
    format!(
        "No API key found for {provider}.\n\n{first}, store a key in auth.json, or give the provider an apiKey in models.json."
    )
}

impl Registry {
    /// Resolves the key and headers of a request. Commands run here and nowhere else.
    pub async fn resolve_credentials(&self, model: &Model) -> Result<Credentials, String> {
        self.check_support(model)?;
        self.credentials_of(model, Need::Required).await
    }

    /// Returns the credentials of a model that an extension talks to itself. Having none is not an error.
    pub async fn credentials_if_any(&self, model: &Model) -> Result<Credentials, String> {
        self.credentials_of(model, Need::IfAny).await
    }

    async fn credentials_of(&self, model: &Model, need: Need) -> Result<Credentials, String> {
        let entries = self.auth.entries();
        let Some(provider) = self.provider(&model.provider) else { return Err(no_key(&model.provider)) };
        let names = self.variables_of(&provider.id, &entries);
        if let Some(name) = placeholders(&model.base_url).first() {
            let id = &provider.id;
            return Err(format!(
                "Provider \"{id}\" needs {name} in the environment or in \"env\" of its auth.json entry"
            ));
        }
        let source = match self.source(&provider, Some(model), &entries) {
            Err(Missing::Nothing) if need == Need::IfAny => Source::Keyless,
            found => found.map_err(|missing| missing.text(&provider.id))?,
        };
        let (api_key, bearer) = self.resolve_key(&provider, source, names).await?;
        let headers = self.resolve_headers(&provider, model, names).await?;
        if let Some(key) = &api_key {
            self.secrets.remember(key);
        }
        let auth_header = provider.configs().any(|config| config.auth_header);
        Ok(Credentials { api_key, bearer, auth_header, headers })
    }

    async fn resolve_key(
        &self,
        provider: &Provider,
        source: Source<'_>,
        names: Variables<'_>,
    ) -> Result<(Option<String>, bool), String> {
        let subject = || format!("API key for provider \"{}\"", provider.id);
        let resolve = |value, reuse| config_value::resolve(value, names, &self.commands, reuse);
        match source {
            Source::Given(key) => Ok((Some(key), false)),
            Source::Token(token) => Ok((Some(token.to_owned()), true)),
            Source::Variable { value, bearer, .. } => Ok((Some(value), bearer)),
            Source::Login => Ok((Some(self.login_key(&provider.id).await?), false)),
            Source::Keyless => Ok((None, false)),
            Source::Stored(value) => match resolve(value, Reuse::Forever).await {
                Ok(key) => Ok((Some(key), false)),
                Err(unresolved) => Err(unresolved.about(subject())),
            },
            Source::Configured(value, config) => {
                let reuse = config.key_command_ttl.map_or(Reuse::Never, Reuse::For);
                match resolve(value, reuse).await {
                    Ok(key) => Ok((Some(key), false)),
                    Err(unresolved) => Err(unresolved.about(subject())),
                }
            }
        }
    }

    /// Returns all headers, lowest precedence first, each name once.
    async fn resolve_headers(
        &self,
        provider: &Provider,
        model: &Model,
        names: Variables<'_>,
    ) -> Result<Headers, String> {
        let offers = provider.offers(&names);
        let offer = offers.iter().find(|offer| offer.model.id == model.id);
        let mut headers = Headers::new();
        for (name, value) in offer.or(offers.first()).map_or(&[][..], |offer: &Offer| &offer.base_headers) {
            set(&mut headers, name, value.clone());
        }
        // The file lies below a registration.
        let configs: Vec<&ProviderConfig> = provider.configs().collect();
        for (name, value) in configs.into_iter().rev().flat_map(|config| &config.headers) {
            let subject = || format!("provider \"{}\" header \"{name}\"", provider.id);
            let value = self.resolve_header(name, value.as_deref(), names, subject).await?;
            set(&mut headers, name, value);
        }
        for (name, value) in offer.map_or(&[][..], |offer| &offer.headers) {
            let subject = || format!("model \"{}/{}\" header \"{name}\"", provider.id, model.id);
            let value = self.resolve_header(name, value.as_deref(), names, subject).await?;
            set(&mut headers, name, value);
        }
        Ok(headers)
    }

    async fn resolve_header(
        &self,
        name: &str,
        value: Option<&str>,
        names: Variables<'_>,
        subject: impl FnOnce() -> String,
    ) -> Result<Option<String>, String> {
        let Some(value) = value else { return Ok(None) };
        // An empty header is legal, an empty key is not.
        if value.is_empty() {
            return Ok(Some(String::new()));
        }
        let text = config_value::resolve(value, names, &self.commands, Reuse::Never).await;
        let text = text.map_err(|unresolved| unresolved.about(subject()))?;
        if text != value || is_secret_name(name) {
            self.secrets.remember(without_scheme(&text));
        }
        Ok(Some(text))
    }

    /// Whether a request would find a credential, as far as can be told without running anything.
    pub(super) fn check_credential(&self, model: &Model) -> Result<(), Missing> {
        let entries = self.auth.entries();
        let provider = self.provider(&model.provider).ok_or(Missing::Nothing)?;
        self.source(&provider, Some(model), &entries).map(drop)
    }

    /// Returns the credentials of a provider.
    pub(super) fn provider_credential(&self, provider: &Provider) -> Result<(), Missing> {
        self.source(provider, None, &self.auth.entries()).map(drop)
    }

    pub(super) fn is_usable_with(
        &self,
        tables: &Tables,
        provider: &Provider,
        model: &Model,
        entries: &Entries,
    ) -> bool {
        tables.supports(provider, model) && self.source(provider, Some(model), entries).is_ok()
    }

    /// Whether any model of the provider can have a credential. Does not look at the models of the catalogue.
    pub(super) fn may_have_credential(&self, provider: &Provider, entries: &Entries) -> bool {
        let is_local = |address: Option<&String>| address.is_some_and(|address| is_private(address));
        self.source(provider, None, entries).is_ok()
            || provider.configs().any(|config| config.models.iter().any(|model| is_local(model.base_url.as_ref())))
    }

    /// Returns the source in the terms of the extension API.
    pub(super) fn origin_of(&self, provider: &Provider) -> Option<CredentialOrigin> {
        let entries = self.auth.entries();
        let found = self.source(provider, None, &entries).ok().or_else(|| {
            // Servers of one's own may have models that need no key, though the provider as such has none.
            self.may_have_credential(provider, &entries).then_some(Source::Keyless)
        })?;
        let (source, label) = match found {
            Source::Given(_) => ("runtime", None),
            Source::Stored(_) | Source::Token(_) | Source::Login => ("stored", None),
            Source::Configured(value, _) if value.starts_with('!') => ("models_json_command", None),
            Source::Configured(value, _) => match (config_value::variables(value), &provider.registered) {
                (names, _) if !names.is_empty() => ("environment", Some(names.join(", "))),
                (_, Some(registered)) if registered.config.api_key.is_some() => ("fallback", None),
                _ => ("models_json_key", None),
            },
            Source::Variable { name, .. } => ("environment", Some(name.to_owned())),
            Source::Keyless => ("models_json_key", None),
        };
        Some(CredentialOrigin { source, label, is_login: matches!(found, Source::Token(_) | Source::Login) })
    }

    /// Returns the variables that the values of a provider may name.
    pub(super) fn variables_of<'a>(&'a self, provider: &str, entries: &'a Entries) -> Variables<'a> {
        let credential = match entries.get(provider) {
            Some(Stored::ApiKey { env, .. }) => Some(env),
            Some(Stored::Token { .. } | Stored::Unreadable(_)) | None => None,
        };
        Variables { credential, environment: &self.environment }
    }

    /// Returns the first source that has something. A configured source that cannot be used ends the search.
    fn source<'a>(
        &self,
        provider: &'a Provider,
        model: Option<&Model>,
        entries: &'a Entries,
    ) -> Result<Source<'a>, Missing> {
        let given = self.given_keys.lock().unwrap_or_else(PoisonError::into_inner).get(&provider.id).cloned();
        if let Some(key) = given {
            return Ok(Source::Given(key));
        }
        let names = self.variables_of(&provider.id, entries);
        if let Some(stored) = entries.get(&provider.id) {
            return stored_source(provider, stored, names);
        }
        let subject = || format!("API key for provider \"{}\"", provider.id);
        if let Some((key, config)) = provider.configs().find_map(|config| Some((config.api_key.as_deref()?, config))) {
            return if config_value::is_configured(key, names) {
                Ok(Source::Configured(key, config))
            } else {
                Err(Missing::Unusable(unset(key, names).about(subject())))
            };
        }
        variable_source(provider, names).or_else(|| keyless_source(provider, model)).ok_or(Missing::Nothing)
    }
}

fn stored_source<'a>(provider: &Provider, stored: &'a Stored, names: Variables<'_>) -> Result<Source<'a>, Missing> {
    let id = &provider.id;
    match stored {
        Stored::ApiKey { key: Some(key), .. } if config_value::is_configured(key, names) => Ok(Source::Stored(key)),
        Stored::ApiKey { key: Some(key), .. } => {
            Err(Missing::Unusable(unset(key, names).about(format!("API key for provider \"{id}\""))))
        }
        // The entry has only variables; one of them may be the key.
        Stored::ApiKey { key: None, .. } => variable_source(provider, names).ok_or(Missing::Nothing),
        Stored::Token { .. } if provider.service().is_some_and(|service| service.logs_in) => Ok(Source::Login),
        Stored::Token { access, expires } if *expires > SystemTime::now() => Ok(Source::Token(access)),
        Stored::Token { .. } => Err(Missing::Expired),
        Stored::Unreadable(reason) => {
            Err(Missing::Unusable(format!("The auth.json entry of \"{id}\" cannot be used: {reason}")))
        }
    }
}

fn unset(value: &str, names: Variables<'_>) -> config_value::Unresolved {
    let missing: Vec<String> =
        config_value::variables(value).into_iter().filter(|name| names.get(name).is_none()).collect();
    if missing.is_empty() { config_value::Unresolved::Empty } else { config_value::Unresolved::Variables(missing) }
}

fn variable_source<'a>(provider: &Provider, names: Variables<'_>) -> Option<Source<'a>> {
    let variables = provider.built_in?.variables;
    variables.iter().find_map(|variable| {
        // `A+B` needs both; the first is the one shown to the server.
        let values: Option<Vec<String>> = variable.split('+').map(|name| names.get(name)).collect();
        let value = values?.into_iter().next()?;
        Some(Source::Variable { name: variable, value, bearer: TOKEN_VARIABLES.contains(variable) })
    })
}

fn keyless_source<'a>(provider: &Provider, model: Option<&Model>) -> Option<Source<'a>> {
    // A server of one's own needs none, but a sign-in that leads there does.
    let has_way = provider.service().is_some_and(Service::needs_credential);
    let needs_none = |address: &str| (!has_way && is_private(address)) || network::has_credentials(address);
    let keyless = model.is_some_and(|model| needs_none(&model.base_url))
        || provider.configs().any(|config| {
            config.keyless
                || config.headers.iter().any(|(name, value)| value.is_some() && is_auth_header(name))
                || (model.is_none() && config.base_url.as_deref().is_some_and(needs_none))
        });
    keyless.then_some(Source::Keyless)
}

fn is_auth_header(name: &str) -> bool {
    AUTH_HEADERS.iter().any(|header| name.eq_ignore_ascii_case(header))
}

/// Replaces a header of the same name, whatever its case.
fn set(headers: &mut Headers, name: &str, value: Option<String>) {
    headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
    headers.push((name.to_owned(), value));
}

impl CredentialSource for Registry {
    fn credentials<'a>(&'a self, model: &'a Model) -> BoxFuture<'a, Result<Credentials, String>> {
        Box::pin(self.resolve_credentials(model))
    }

    fn base_url_location(&self, model: &Model) -> Option<String> {
        let provider = self.provider(&model.provider)?;
        if provider.registered.is_some() {
            return None;
        }
        let config = provider.file.as_ref()?;
        let of_model =
            config.models.iter().find(|entry| entry.id == model.id).and_then(|entry| entry.base_url.as_ref());
        of_model.or(config.base_url.as_ref())?;
        Some(format!("\"baseUrl\" of provider {} in {}", provider.id, self.models_file.display()))
    }

    fn on_window(&self, model: &Model, window: u64) {
        let key = (model.provider.clone(), model.id.clone());
        self.windows.lock().unwrap_or_else(PoisonError::into_inner).insert(key, window);
    }
}
