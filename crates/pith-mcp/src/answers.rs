//! What the user has said for `${input:id}`: known for the session, written nowhere.

use std::collections::HashMap;
use std::path::PathBuf;

use pith_config::Environment;
use pith_protocol::host::{UiAnswer, UiMethod};
use pith_secrets::Secrets;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::config::{Prompted, ServerConfig};
use crate::questions::{LIMIT, User, limit};
use crate::state::Failure;

/// The values of a session. Each belongs to the file that asks for it: another one that asks under the same name, such
/// as a project's, does not get it.
#[derive(Default)]
pub struct Answers(
    /// Held while the user is asked, so that servers which need the same value ask once.
    Mutex<HashMap<(Option<PathBuf>, String), String>>,
);

impl Answers {
    /// Returns a value: the one that is known, that of the variable, or what the user says.
    pub async fn value(
        &self,
        config: &ServerConfig,
        id: &str,
        environment: &Environment,
        user: Option<&dyn User>,
        secrets: &Secrets,
    ) -> Result<String, Failure> {
        let key = (config.path.clone(), id.to_owned());
        let mut known = self.0.lock().await;
        if let Some(value) = known.get(&key) {
            return Ok(value.clone());
        }
        let named = config.prompted.iter().find(|prompted| prompted.id == id).cloned();
        let prompted = named.unwrap_or_else(|| Prompted::named(id));
        let variable = Prompted::variable(id);
        let value = match (environment.get(&variable), user) {
            (Some(value), _) => value,
            (None, None) => return Err(Failure::needs_input(format!("needs input {id}: set the variable {variable}"))),
            (None, Some(user)) => match ask(&config.name, &prompted, user).await {
                Some(value) => value,
                None => return Err(Failure::needs_input(format!("needs input {id}, which was not given"))),
            },
        };
        // Choices stand in the file for everybody to read.
        if prompted.choices.is_none() {
            secrets.remember(&value);
        }
        known.insert(key, value.clone());
        Ok(value)
    }
}

async fn ask(server: &str, prompted: &Prompted, user: &dyn User) -> Option<String> {
    let title = format!("{server} needs {}", prompted.description.as_ref().unwrap_or(&prompted.id));
    let dialog = match &prompted.choices {
        Some(options) => UiMethod::Select { title, options: options.clone(), timeout: limit() },
        None => UiMethod::Input { title, placeholder: prompted.default.clone(), timeout: limit() },
    };
    let Ok(UiAnswer::Value(value)) = timeout(LIMIT, user.ask(dialog, None)).await else { return None };
    let value = if value.is_empty() { prompted.default.clone()? } else { value };
    let is_choice = prompted.choices.as_ref().is_none_or(|choices| choices.contains(&value));
    is_choice.then_some(value)
}
