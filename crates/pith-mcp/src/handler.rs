//! What pith answers when a server asks or tells something.
#![expect(
    deprecated,
    reason = "roots, sampling and logging are deprecated in the newest revision only, and servers use them"
)]

use std::path::Path;
use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, CreateMessageRequestParams, CreateMessageResult,
    CustomNotification, ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorCode, ErrorData,
    FormElicitationCapability, Implementation, ListRootsResult, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam, ProtocolVersion, Root, RootsCapabilities, SamplingCapability, SetLevelRequest,
    SetLevelRequestParams, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};

use crate::callers::{Caller, Callers};
use crate::calls::Routes;
use crate::changes::{self, Changes};
use crate::inputs::Inputs;
use crate::questions::Reaction;
use crate::remarks::Remarks;

/// What a server says when a page that the user opened has done its work.
const PAGE_DONE: &str = "notifications/elicitation/complete";

/// The client side of one connection.
#[derive(Clone)]
pub struct Handler {
    /// Answers for the session that opened the connection, from which others that use it differ in nothing a server sees.
    pub inputs: Arc<Inputs>,
    pub callers: Arc<Callers>,
    pub progress: Arc<Routes>,
    pub changes: Changes,
    /// Gets what the server logs.
    pub log: Remarks,
}

/// Asks a server to log what is worth a warning, and nothing less.
pub fn log_level_request() -> ClientRequest {
    ClientRequest::SetLevelRequest(SetLevelRequest::new(SetLevelRequestParams::new(LoggingLevel::Warning)))
}

/// A line of a server's log.
fn logged(message: &LoggingMessageNotificationParam) -> String {
    let level = serde_json::to_value(message.level).unwrap_or_default();
    let level = level.as_str().unwrap_or("log");
    let text = message.data.as_str().map_or_else(|| message.data.to_string(), str::to_owned);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match &message.logger {
        Some(logger) => format!("[{level}] {logger}: {text}"),
        None => format!("[{level}] {text}"),
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
        Ok(ListRootsResult::new(self.inputs.roots.clone()))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(request).unwrap_or_default();
        let reaction = match self.callers.asked() {
            Some(Caller { inputs, call }) => tokio::select! {
                biased;
                () = context.ct.cancelled() => Reaction::Cancelled,
                reaction = inputs.questions.elicit(&params, call.as_deref()) => reaction,
            },
            // Nobody may see a question that is meant for another session.
            None => Reaction::Declined,
        };
        serde_json::from_value(reaction.result()).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let Some(Caller { inputs, .. }) = self.callers.asked() else {
            return Err(ErrorData::internal_error("it is not known which session this is for", None));
        };
        let params = serde_json::to_value(request).unwrap_or_default();
        let answered = tokio::select! {
            biased;
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("the request was withdrawn", None)),
            answered = inputs.sample(&params) => answered,
        };
        let result = answered.map_err(|denial| ErrorData::new(ErrorCode(denial.code), denial.why, None))?;
        serde_json::from_value(result).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.progress.pass(progress);
    }

    async fn on_logging_message(
        &self,
        message: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.log.push(logged(&message).as_bytes());
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        changes::note(&self.changes);
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        changes::note(&self.changes);
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        changes::note(&self.changes);
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _context: NotificationContext<RoleClient>,
    ) {
        if notification.method == PAGE_DONE
            && let Some(id) = notification.params.as_ref().and_then(|params| params.get("elicitationId")?.as_str())
        {
            self.callers.sessions().iter().for_each(|inputs| inputs.questions.page_done(id));
        }
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let mut roots = RootsCapabilities::default();
        roots.list_changed = Some(false);
        capabilities.roots = Some(roots);
        if self.inputs.sampling.is_some() {
            capabilities.sampling = Some(SamplingCapability::default());
        }
        if self.inputs.questions.has_user() {
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
