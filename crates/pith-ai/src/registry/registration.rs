//! Providers that extensions register while pith runs.

use serde_json::{Map, Value};

use super::Registry;
use super::offers;
use super::provider::{Provider, Registered, Visibility};
use crate::config_value::Variables;
use crate::models_file;

/// What the extension that registered a provider does for it, besides describing it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    pub answers: Answers,
    /// Turns a stored login into a key, also an expired one.
    pub logs_in: bool,
    /// Looks for the key itself and has found none.
    pub lacks_key: bool,
}

impl Service {
    /// Whether calls need a credential wherever the provider is: there is a way to get one.
    pub fn needs_credential(&self) -> bool {
        self.logs_in || self.lacks_key
    }
}

/// Which calls do not need an API of pith's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    #[default]
    Nothing,
    /// Calls to models of this API.
    Api(String),
    Everything,
}

impl Answers {
    /// Whether calls to models of an API are among them.
    pub fn covers(&self, api: &str) -> bool {
        match self {
            Answers::Nothing => false,
            Answers::Api(own) => own == api,
            Answers::Everything => true,
        }
    }
}

impl Registry {
    /// Registers what an extension says about a provider, over what it said before. Absent keys keep what there is.
    ///
    /// An error leaves everything as it was. Otherwise the values that made no sense are named; they are left out.
    pub fn register_entry(&self, id: &str, entry: &Value, service: Service) -> Result<Vec<String>, String> {
        if id.trim().is_empty() {
            return Err("Provider id must not be empty.".to_owned());
        }
        let Some(object) = entry.as_object() else { return Err(format!("Provider {id}: expected an object")) };
        let mut object = object.clone();
        object.retain(|_, value| !value.is_null());
        let mut problems = Vec::new();
        let alone = registered(id, object.clone(), service, &mut problems)?;
        self.check_models(&alone)?;
        let previous = self.provider(id).and_then(|provider| provider.registered.clone());
        let whole = match previous {
            Some(Registered { entry: Some(mut entry), service: before, .. }) => {
                entry.extend(object);
                let service = Service {
                    logs_in: alone.service.logs_in || before.logs_in,
                    lacks_key: alone.service.lacks_key,
                    answers: if alone.service.answers == Answers::Nothing {
                        before.answers
                    } else {
                        alone.service.answers
                    },
                };
                registered(id, entry, service, &mut Vec::new())?
            }
            _ => alone,
        };
        self.change(|tables| tables.put(whole));
        Ok(problems)
    }

    /// Replaces the models of a registered provider. A value that is no list changes nothing.
    pub fn replace_models(&self, id: &str, models: Value) -> Result<(), String> {
        let Value::Array(mut models) = models else { return Ok(()) };
        let Some(provider) = self.provider(id) else { return Ok(()) };
        let Some(registered) = &provider.registered else { return Ok(()) };
        // A list made from descriptions has lost the headers.
        for model in models.iter_mut().filter_map(Value::as_object_mut) {
            let known = registered.config.models.iter().find(|known| model.get("id").is_some_and(|id| *id == known.id));
            if let Some(known) = known.filter(|known| !known.fields.headers.is_empty()) {
                model.entry("headers").or_insert_with(|| known.fields.headers.iter().cloned().collect());
            }
        }
        let mut entry = registered.entry.clone().unwrap_or_default();
        entry.insert("models".to_owned(), Value::Array(models));
        let ignored = self.register_entry(id, &Value::Object(entry), registered.service.clone())?;
        if ignored.is_empty() { Ok(()) } else { Err(format!("some values were ignored: {}", ignored.join("; "))) }
    }

    /// Returns what the extension that registered a provider does for it.
    pub fn service(&self, provider: &str) -> Service {
        self.provider(provider).and_then(|provider| provider.service().cloned()).unwrap_or_default()
    }

    /// Checks that every model has an API and an address, its own or one of the layers below.
    fn check_models(&self, registered: &Registered) -> Result<(), String> {
        let id = registered.config.id.as_str();
        let edit = |layers: &mut Provider| layers.registered = Some(registered.clone());
        let provider = match self.provider(id) {
            Some(provider) => provider.changed(edit),
            None => Provider::registered(registered.clone()).changed(|_| {}),
        };
        // An extension that answers all calls needs neither.
        if !registered.lists_models() || registered.service.answers == Answers::Everything {
            return Ok(());
        }
        for offer in offers::merge_layers(&provider, &Variables::of(&self.environment)) {
            let model = &offer.model;
            if model.api.is_empty() {
                let model = &model.id;
                return Err(format!(
                    "Provider {id}, model {model}: no \"api\" specified. Set at provider or model level."
                ));
            }
            if model.base_url.is_empty() {
                return Err(format!("Provider {id}: \"baseUrl\" is required when defining custom models."));
            }
        }
        Ok(())
    }
}

fn registered(
    id: &str,
    entry: Map<String, Value>,
    service: Service,
    problems: &mut Vec<String>,
) -> Result<Registered, String> {
    let entry = Value::Object(entry);
    let mut config = models_file::described(id, &entry, problems)?;
    // An extension that answers calls itself and gives no key has one, or needs none.
    config.keyless |= service.answers != Answers::Nothing && config.api_key.is_none() && !service.needs_credential();
    let Value::Object(entry) = entry else { unreachable!("made above") };
    Ok(Registered { service, entry: Some(entry), ..Registered::new(config, Visibility::Listed) })
}
