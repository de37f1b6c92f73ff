//! The outbox of a session that an editor watches: turns events into updates.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pith_acp::Client;
use pith_acp::acp::{NoticeSeverity, SessionUpdate, ToolKind};
use pith_acp::looks::Look;
use pith_acp::piece::Piece;
use pith_acp::updates::{Notable, Sink, Translator};
use pith_agent::{Tool, Toolset};
use pith_protocol::answers::{Disposition, PromptDisposition, Queues};
use pith_protocol::host::{HostToolFrame, UiMethod, UiRequest};
use pith_protocol::permissions::PermissionFrame;
use pith_protocol::{AssistantEvent, AssistantMessage, CommandError, ErrorCode, Event, Id, Response, StreamUpdates};
use pith_session::{Outbox, Room};
use tokio::sync::mpsc;

use super::channel::Channel;
use super::own_events;

/// How long the arguments of a call may stream before it is announced without them.
const ANNOUNCED_AFTER: Duration = Duration::from_millis(100);

/// What the session tells the conversation beside the updates. Their order is that of the frames.
#[derive(Debug)]
pub enum Notice {
    /// The prompt that was sent under this number was accepted or refused.
    Prompted { number: u64, result: Result<Disposition, CommandError> },
    /// A run has begun, settled, or changed something.
    Happened(Notable),
    /// Model, thinking level, mode or a switch may be another.
    OptionsChanged,
    /// An extension asks the user.
    Asked(UiRequest),
    /// A page that the user opened has done its work.
    PageDone { id: String },
    /// The state of an MCP server has changed.
    ServerChanged { name: String, state: String },
    /// The model calls a tool of the editor, or no longer waits for it.
    HostTool(HostToolFrame),
    /// A tool call needs permission, or no longer does.
    Permission(Box<PermissionFrame>),
}

/// The translator of a session: used by its outbox, set up by its conversation.
pub type SharedTranslator = Arc<Mutex<Translator>>;

/// The session's outbox in acp mode.
pub struct AcpOutbox {
    translator: SharedTranslator,
    out: Out,
    /// Whether the editor wants to hear what only pith has.
    tells_own: bool,
}

/// Where translated events go.
#[derive(Clone)]
struct Out {
    channel: Arc<Channel>,
    /// To the conversation, which may have ended.
    notices: mpsc::UnboundedSender<Notice>,
}

impl AcpOutbox {
    pub fn new(
        translator: SharedTranslator,
        channel: Arc<Channel>,
        notices: mpsc::UnboundedSender<Notice>,
        client: &Client,
    ) -> Self {
        let tells_own = client.wants_own_events();
        AcpOutbox { translator, out: Out { channel, notices }, tells_own }
    }
}

/// Shows a call whose arguments still stream after a while.
async fn announce_later(translator: SharedTranslator, mut out: Out, call: String) {
    tokio::time::sleep(ANNOUNCED_AFTER).await;
    lock(&translator).announce(&call, &mut out);
}

/// Locks a translator for a few lines.
pub fn lock(translator: &SharedTranslator) -> MutexGuard<'_, Translator> {
    translator.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a tool that is not pith's own does, as far as its server says so and is believed.
fn kind_of(tool: &dyn Tool) -> ToolKind {
    let Some(origin) = tool.origin().filter(|origin| origin.hints.is_read_only) else { return ToolKind::Other };
    let is_open = origin.annotations.and_then(|all| all.get("openWorldHint")).is_some_and(|hint| hint == true);
    if is_open { ToolKind::Fetch } else { ToolKind::Read }
}

impl Sink for Out {
    fn update(&mut self, update: SessionUpdate) {
        self.channel.update(update);
    }

    fn text(&mut self, piece: Piece, text: &str) {
        self.channel.text(piece, text);
    }

    fn progress(&mut self, call: &str, update: SessionUpdate) {
        self.channel.progress(call, update);
    }

    fn progress_ended(&mut self, call: &str) {
        self.channel.progress_ended(call);
    }

    fn tell(&mut self, notable: Notable) {
        let _ = self.notices.send(Notice::Happened(notable));
    }

    fn log(&mut self, text: &str) {
        self.channel.warn(text);
    }
}

impl Outbox for AcpOutbox {
    fn respond(&mut self, response: &Response<'_>) {
        if response.command == "clear_queue" {
            let cleared = response.data.as_ref().and_then(|data| serde_json::from_str::<Queues>(data.get()).ok());
            let n_inputs = cleared.map_or(0, |cleared| cleared.steering.len() + cleared.follow_up.len());
            lock(&self.translator).forget_inputs(n_inputs);
        }
        if response.command == "navigate_tree" {
            // The summary of the branch that was left, if one was wanted, has no event of its own.
            self.out.tell(Notable::Compacted);
        }
        if !["prompt", "steer", "follow_up"].contains(&&*response.command) {
            return;
        }
        let data = response.data.as_ref().and_then(|data| serde_json::from_str::<PromptDisposition>(data.get()).ok());
        let result = match data {
            Some(placed) if response.success => Ok(placed.disposition),
            _ => {
                let text = response.error.as_deref().unwrap_or("The prompt was not accepted");
                Err(CommandError::new(response.code.unwrap_or(ErrorCode::Internal), text))
            }
        };
        if matches!(result, Ok(Disposition::Started | Disposition::Queued)) {
            lock(&self.translator).expect_input();
        }
        if response.command == "prompt" {
            lock(&self.translator).set_commanded(false);
            if let Some(number) = response.id.as_ref().and_then(|id| id.get().parse().ok()) {
                let _ = self.out.notices.send(Notice::Prompted { number, result });
            }
        }
    }

    fn respond_unknown(&mut self, _id: &Id, _name: &str) {}

    fn event(&mut self, event: &Event<'_>) {
        if self.tells_own {
            own_events::tell(event, &self.out.channel);
        }
        if let Event::McpServerUpdate { name, state, .. } = event {
            let (name, state) = (name.to_string(), state.to_string());
            let _ = self.out.notices.send(Notice::ServerChanged { name, state });
        }
        lock(&self.translator).event(event, &mut self.out);
    }

    fn entry(&mut self, id: &str) {
        lock(&self.translator).entry(id);
    }

    fn tools(&mut self, tools: &Arc<Toolset>) {
        let look = |tool: &Arc<dyn Tool>| Look { title: tool.label().to_owned(), kind: kind_of(&**tool) };
        let looks = tools.callable().map(|tool| (tool.spec().name.to_string(), look(tool)));
        lock(&self.translator).set_looks(looks.collect());
    }

    fn options_changed(&mut self) {
        let _ = self.out.notices.send(Notice::OptionsChanged);
    }

    fn commands_changed(&mut self) {
        self.out.tell(Notable::CommandsChanged);
    }

    fn ui_request(&mut self, request: &UiRequest) {
        if let UiMethod::Notify { message, notify_type } = &request.method {
            let severity = match notify_type.as_deref() {
                Some("error") => NoticeSeverity::Error,
                Some("warning") => NoticeSeverity::Warning,
                _ => NoticeSeverity::Info,
            };
            return lock(&self.translator).notify(severity, message, &mut self.out);
        }
        if self.tells_own {
            own_events::tell_display(&request.method, &self.out.channel);
        }
        let _ = self.out.notices.send(Notice::Asked(request.clone()));
    }

    fn page_done(&mut self, id: &str) {
        let _ = self.out.notices.send(Notice::PageDone { id: id.to_owned() });
    }

    fn permission(&mut self, frame: &PermissionFrame) {
        let _ = self.out.notices.send(Notice::Permission(Box::new(frame.clone())));
    }

    fn host_tool(&mut self, frame: &HostToolFrame) {
        let _ = self.out.notices.send(Notice::HostTool(frame.clone()));
    }

    fn open_answer(&mut self, _mode: StreamUpdates, _start: &AssistantMessage) {}

    fn stream(&mut self, event: &AssistantEvent) {
        lock(&self.translator).stream(event, &mut self.out);
        if let AssistantEvent::ToolCallStart { id, .. } = event {
            tokio::spawn(announce_later(self.translator.clone(), self.out.clone(), id.clone()));
        }
    }

    fn conversation_read(&mut self) {
        self.out.channel.conversation_read(|| lock(&self.translator).underway());
    }

    fn follows_servers(&self) -> bool {
        true
    }

    fn room(&self) -> Room {
        self.out.channel.room()
    }
}
