//! Tools of extensions among the others.

use crate::session::Session;

impl Session {
    /// Tools, commands or flags are others now.
    pub(crate) fn on_registry_changed(&mut self) {}

    pub(crate) fn set_active_tools(&mut self, _names: &[String]) {}
}
