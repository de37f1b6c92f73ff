//! `pith auth`: reports whether a provider is ready, and prints, stores and removes its secret.

mod keys;
mod setup;

use std::time::{Duration, SystemTime};

use pith_ai::{AuthStatus, Credentials, Registry, Stored, select};
use pith_config::{Environment, settings};
use pith_protocol::json;
use pith_secrets::Secrets;
use serde::Serialize;

use crate::cli::{Cli, duration};
use crate::open::agent_dir;
use crate::program::Program;
use crate::{rpc, show};
use keys::KeyChange;

const USAGE: &str = "\
Usage:
  pith auth setup
  pith auth set PROVIDER
  pith auth remove PROVIDER
  pith auth check [--json] [--credentials] (--provider NAME | --model PATTERN)
  pith auth print-api-key (--provider NAME | --model PATTERN)
  pith auth print-bearer-token [--min-expiry 30m] (--provider NAME | --model PATTERN)

setup asks for a provider and its key on the terminal, and tries the key before it stores it.
set reads the key from the terminal, without showing it, or from stdin, and stores it in auth.json.
check prints ready, not_ready or invalid, and exits with 0, 1 or 2.
";

/// The parsed arguments.
#[derive(Debug, Default)]
struct AuthArguments {
    verb: String,
    provider: Option<String>,
    model: Option<String>,
    json: bool,
    credentials: bool,
    min_expiry: Duration,
}

/// The output of `check --json`.
#[derive(Serialize)]
struct Status<'a> {
    status: &'a str,
    provider: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials: Option<&'a str>,
}

/// Runs the subcommand and returns the exit code.
pub fn run(arguments: &[String], program: &Program) -> anyhow::Result<u8> {
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        return show(USAGE);
    }
    let change = KeyChange::of(arguments).map_err(anyhow::Error::msg)?;
    let environment = Environment::of_process();
    let agent_dir = agent_dir(rpc::dialect(&Cli::default(), program)?, &environment);
    let settings = settings::load(&agent_dir, &crate::current_dir()?, false).settings;
    let registry = Registry::load(&agent_dir, environment, &settings).telling(Secrets::of_process());
    if arguments == ["setup"] {
        return setup::run(&registry, &settings);
    }
    if let Some(change) = change {
        return change.carry_out(&registry);
    }
    let wanted = AuthArguments::parse(arguments).map_err(anyhow::Error::msg)?;
    let provider = match wanted.provider(&registry) {
        Ok(provider) => provider,
        // `check` must always print a status, even for an unknown provider.
        Err(_) if wanted.verb == "check" => wanted.provider.clone().or(wanted.model.clone()).unwrap_or_default(),
        Err(error) => anyhow::bail!(error),
    };
    match wanted.verb.as_str() {
        "check" => check(&registry, &wanted, &provider),
        "print-api-key" => {
            secret(&registry, &wanted, &provider, SecretKind::ApiKey).and_then(|key| show(&format!("{key}\n")))
        }
        _ => secret(&registry, &wanted, &provider, SecretKind::Token).and_then(|token| show(&format!("{token}\n"))),
    }
}

impl AuthArguments {
    fn parse(arguments: &[String]) -> Result<AuthArguments, String> {
        let mut wanted = AuthArguments::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let (name, inline) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            let mut value =
                || inline.clone().or_else(|| arguments.next().cloned()).ok_or(format!("{name} requires a value"));
            match name {
                "--provider" => wanted.provider = Some(value()?),
                "--model" => wanted.model = Some(value()?),
                "--min-expiry" => wanted.min_expiry = duration(name, &value()?)?,
                "--json" => wanted.json = true,
                "--credentials" => wanted.credentials = true,
                // Tokens are never refreshed here.
                "--no-refresh" => {}
                verb @ ("check" | "print-api-key" | "print-bearer-token") if wanted.verb.is_empty() => {
                    wanted.verb = verb.to_owned();
                }
                other => return Err(format!("unexpected argument: {other}\n\n{USAGE}")),
            }
        }
        match (wanted.verb.is_empty(), wanted.provider.is_none() && wanted.model.is_none()) {
            (true, _) => {
                Err(format!("auth requires setup, set, remove, check, print-api-key or print-bearer-token\n\n{USAGE}"))
            }
            (_, true) => Err(format!("auth {} requires --provider or --model", wanted.verb)),
            (false, false) => Ok(wanted),
        }
    }

    fn provider(&self, registry: &Registry) -> Result<String, String> {
        if let (Some(name), None) = (&self.provider, &self.model) {
            return registry.provider_named(name).ok_or_else(|| format!("Unknown provider \"{name}\""));
        }
        let choice = select::by_name(registry, self.provider.as_deref(), self.model.as_deref())?;
        choice.map(|choice| choice.model.provider.clone()).ok_or_else(|| "no such model".to_owned())
    }
}

fn check(registry: &Registry, wanted: &AuthArguments, provider: &str) -> anyhow::Result<u8> {
    let status = registry.auth_status(provider);
    let found = match (wanted.credentials, status) {
        (true, AuthStatus::Ready) => Some(secret(registry, wanted, provider, SecretKind::Any)?),
        _ => None,
    };
    let text = match (wanted.json, &found) {
        (true, _) => {
            let credentials = found.as_deref();
            json::to_string(&Status { status: status.as_str(), provider, reason: status.reason(), credentials })
        }
        (false, Some(secret)) => secret.clone(),
        (false, None) => status.as_str().to_owned(),
    };
    show(&format!("{text}\n"))?;
    Ok(match status {
        AuthStatus::Ready => 0,
        AuthStatus::NotReady(_) => 1,
        AuthStatus::Invalid(_) => 2,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SecretKind {
    ApiKey,
    Token,
    Any,
}

/// The secret that a request would carry. Key commands are run.
fn secret(registry: &Registry, wanted: &AuthArguments, provider: &str, kind: SecretKind) -> anyhow::Result<String> {
    let model = registry.models_of(provider).into_iter().next().or_else(|| registry.blank_model(provider, ""));
    let model = model.ok_or_else(|| anyhow::anyhow!("Provider \"{provider}\" has no models"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let found = runtime.block_on(registry.resolve_credentials(&model)).map_err(anyhow::Error::msg)?;
    let Credentials { api_key: Some(secret), bearer, .. } = found else {
        anyhow::bail!("Provider \"{provider}\" needs no key")
    };
    match (kind, bearer) {
        (SecretKind::ApiKey, true) => anyhow::bail!("Provider \"{provider}\" has a bearer token, not an API key"),
        (SecretKind::Token, false) => anyhow::bail!("Provider \"{provider}\" has an API key, not a bearer token"),
        _ => {}
    }
    if let Some(Stored::Token { expires, .. }) = registry.auth_file().entries().get(provider)
        && *expires < SystemTime::now() + wanted.min_expiry
    {
        anyhow::bail!("The token for \"{provider}\" expires too soon; log in again");
    }
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_arguments_are_named() {
        let parse = |line: &str| AuthArguments::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert!(parse("check").expect_err("no provider").contains("requires --provider or --model"));
        assert!(parse("--provider x").expect_err("no verb").contains("auth requires setup"));
        assert!(parse("check --provider").expect_err("no value").contains("--provider requires a value"));
        assert!(parse("check --frob --provider x").expect_err("unknown").contains("--frob"));
    }
}
