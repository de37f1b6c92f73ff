//! `get_integrations`: what pith is connected to, as far as it knows without a request to anything.

use serde_json::{Value, json};

use crate::session::Session;

impl Session {
    pub(crate) fn integrations(&self) -> Value {
        let model = match self.models.current() {
            None => json!({"state": "no_provider"}),
            Some(model) => {
                let state = if self.models.usable().is_ok() { "connected" } else { "auth_error" };
                json!({"state": state, "provider": model.provider})
            }
        };
        json!({"version": env!("CARGO_PKG_VERSION"), "model": model, "services": []})
    }
}
