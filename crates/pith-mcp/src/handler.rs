//! What pith answers when a server asks or tells something.
#![expect(deprecated, reason = "roots are deprecated in the newest revision only, and servers ask for them")]

use std::path::Path;
use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorData,
    FormElicitationCapability, Implementation, ListRootsResult, ProgressNotificationParam, ProtocolVersion, Root,
    RootsCapabilities, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::Notify;

use crate::connection::Routes;
use crate::questions::{Questions, Reaction};

/// The client side of one connection.
pub struct Handler {
    root: Root,
    progress: Arc<Routes>,
    list_changed: Arc<Notify>,
    questions: Arc<Questions>,
}

impl Handler {
    pub fn new(cwd: &Path, progress: Arc<Routes>, list_changed: Arc<Notify>, questions: Arc<Questions>) -> Self {
        Handler { root: root_of(cwd), progress, list_changed, questions }
    }
}

/// A directory as servers are told of it.
pub fn root_of(cwd: &Path) -> Root {
    let mut root = Root::new(file_address(cwd));
    root.name = cwd.file_name().map(|name| name.to_string_lossy().into_owned());
    root
}

/// The `file://` address of a path.
fn file_address(path: &Path) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let escaped = path.to_string_lossy().bytes().fold(String::new(), |mut text, byte| {
        if is_plain(byte) {
            text.push(byte.into())
        } else {
            text.push_str(&format!("%{byte:02X}"))
        }
        text
    });
    format!("file://{escaped}")
}

impl ClientHandler for Handler {
    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![self.root.clone()]))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(request).unwrap_or_default();
        let reaction = tokio::select! {
            biased;
            () = context.ct.cancelled() => Reaction::Cancelled,
            reaction = self.questions.elicit(&params) => reaction,
        };
        serde_json::from_value(reaction.result()).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.progress.pass(progress);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.list_changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.list_changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.list_changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let mut roots = RootsCapabilities::default();
        roots.list_changed = Some(false);
        capabilities.roots = Some(roots);
        if self.questions.has_user() {
            let modes = ElicitationCapability::new().with_form(FormElicitationCapability::default());
            capabilities.elicitation = Some(modes.with_url(UrlElicitationCapability::default()));
        }
        let pith = Implementation::new("pith", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, pith).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_addresses() {
        assert_eq!(file_address(Path::new("/home/a b/ü")), "file:///home/a%20b/%C3%BC");
    }
}
