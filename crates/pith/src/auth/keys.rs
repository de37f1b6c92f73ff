//! `pith auth set` and `pith auth remove`, and what `setup` shares with them: the keys in `auth.json`, in the format other agents read too.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, ensure};
use pith_ai::Registry;
use pith_config::suggestion;

use crate::modes::read_secret;
use crate::show;

/// A change of a stored key.
#[derive(Debug, PartialEq, Eq)]
pub enum KeyChange {
    Set(String),
    Remove(String),
}

impl KeyChange {
    /// Reads the arguments of `pith auth`; `None` if they ask for something else.
    pub fn of(arguments: &[String]) -> Result<Option<KeyChange>, String> {
        let make = match arguments.first().map(String::as_str) {
            Some("set") => KeyChange::Set,
            Some("remove") => KeyChange::Remove,
            _ => return Ok(None),
        };
        match &arguments[1..] {
            [provider] if !provider.starts_with('-') => Ok(Some(make(provider.clone()))),
            [_, key, ..] if !key.starts_with('-') => {
                Err("a key on the command line can be seen by others; pipe it, or type it when asked".to_owned())
            }
            _ => Err(format!("auth {0} requires a provider, as in pith auth {0} anthropic", arguments[0])),
        }
    }

    /// Changes the file.
    pub fn carry_out(self, registry: &Registry) -> anyhow::Result<u8> {
        refuse_damaged(registry)?;
        let file = registry.auth_file();
        let path = file.path().to_owned();
        match self {
            KeyChange::Set(name) => set_key(registry, &name, |_, _| Ok(())),
            KeyChange::Remove(name) => {
                // Entries of providers that are not known any more can be removed, too.
                let stored = file.entries();
                let provider = registry.provider_named(&name).filter(|id| stored.contains_key(id)).unwrap_or(name);
                let near = suggestion(&provider, stored.keys().map(String::as_str));
                ensure!(stored.contains_key(&provider), "{} has no key of {provider}{near}", path.display());
                file.remove(&provider).context("cannot remove the key")?;
                show(&format!("The key of {provider} is no longer in {}\n", path.display()))
            }
        }
    }
}

/// Asks for the key of a provider and stores it, unless `check`, called with both, refuses it.
pub fn set_key(
    registry: &Registry,
    name: &str,
    check: impl FnOnce(&str, &str) -> anyhow::Result<()>,
) -> anyhow::Result<u8> {
    refuse_damaged(registry)?;
    let file = registry.auth_file();
    let path = file.path().to_owned();
    let provider = known(registry, name)?;
    let key = read_secret(&format!("Key of {provider}: "))?;
    ensure!(!key.is_empty(), "no key was given");
    ensure!(!key.contains(char::is_whitespace), "the key has spaces or more than one line");
    check(&provider, &key)?;
    make_private(&path)?;
    file.store_key(&provider, &key).context("cannot store the key")?;
    show(&format!("The key of {provider} is in {}\n", path.display()))
}

fn refuse_damaged(registry: &Registry) -> anyhow::Result<()> {
    match registry.auth_file().problem() {
        Some(problem) => anyhow::bail!("{problem}; repair or remove it first"),
        None => Ok(()),
    }
}

fn known(registry: &Registry, name: &str) -> anyhow::Result<String> {
    registry.provider_named(name).with_context(|| {
        let ids = registry.provider_ids();
        let near = suggestion(name, ids.iter().map(String::as_str));
        format!("there is no provider \"{name}\"{near} pith --list-models --all lists them, models.json adds others")
            .replacen("\" pith", "\"; pith", 1)
    })
}

/// A file that others can read is closed before a key is in it.
fn make_private(path: &Path) -> anyhow::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.permissions().mode() & 0o077 != 0 => {
            std::fs::set_permissions(path, Permissions::from_mode(0o600))
                .with_context(|| format!("cannot change the mode of {}", path.display()))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_an_argument() {
        let of = |line: &str| KeyChange::of(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of("set anthropic"), Ok(Some(KeyChange::Set("anthropic".to_owned()))));
        assert_eq!(of("remove openai"), Ok(Some(KeyChange::Remove("openai".to_owned()))));
        assert_eq!(of("check --provider x"), Ok(None));
        assert!(of("set anthropic sk-1").expect_err("a key").starts_with("a key on the command line"));
        assert!(of("set").expect_err("nothing").contains("as in pith auth set anthropic"));
    }
}
