//! `get_integrations`: what pith is connected to, as far as it knows without a request to anything.

use pith_protocol::answers::{Connection, ConnectionState, Integrations};

use crate::session::Session;

impl Session {
    pub(crate) fn integrations(&self) -> Integrations {
        let model = match self.models.current() {
            None => Connection { state: ConnectionState::NoProvider, provider: None },
            Some(model) => {
                let is_usable = self.models.usable().is_ok();
                let state = if is_usable { ConnectionState::Connected } else { ConnectionState::AuthError };
                Connection { state, provider: Some(model.provider.clone()) }
            }
        };
        Integrations { version: env!("CARGO_PKG_VERSION").to_owned(), model, services: Vec::new() }
    }
}
