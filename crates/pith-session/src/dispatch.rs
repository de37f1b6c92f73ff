//! Routes every command to the function that serves it: one match, no logic.

use pith_agent::Queue;
use pith_protocol::answers::{Level, Levels, Messages, Models as ModelList};
use pith_protocol::{Call, Command, CommandError, HostReply, Id, Inbound, Response, commands};
use serde_json::value::RawValue;
use tracing::{debug, debug_span};

use crate::admission::UserInput;
use crate::extensions::ReloadReply;
use crate::reply::{InputReply, Reply};
use crate::session::Session;

impl Session {
    /// Takes one line. Lines are admitted strictly in order.
    pub(crate) fn dispatch(&mut self, line: Inbound) {
        match line {
            Inbound::Command(id, command) => {
                debug!(target: "pith::command", name = command.name(), id = id.raw().map(RawValue::get), "received");
                if let Some((id, command)) = self.admit(id, command) {
                    self.command(id, command);
                }
            }
            Inbound::Reply(reply) => self.host_reply(reply),
            Inbound::Announced(announced) => self.on_announced_host(announced),
            Inbound::Unknown { id, name } => self.out.respond_unknown(&id, &name),
            Inbound::Malformed { id, error } => self.out.respond(&Response::failure(id.raw(), "parse", &error)),
            Inbound::BadFields { id, name, error } => self.out.respond(&Response::failure(id.raw(), name, &error)),
        }
    }

    pub(crate) fn command(&mut self, id: Id, command: Command) {
        let _span = debug_span!(target: "pith::command", "command", name = command.name()).entered();
        match command {
            Command::Hello(call) => self.hello(call, self.reply(id)),
            Command::Prompt(call) => self.prompt(call, self.reply(id)),
            Command::Steer(call) => {
                let input = UserInput { text: call.message, images: call.images };
                self.submit_queued(Queue::Steering, input, InputReply::Steer(self.reply(id)));
            }
            Command::FollowUp(call) => {
                let input = UserInput { text: call.message, images: call.images };
                self.submit_queued(Queue::FollowUp, input, InputReply::FollowUp(self.reply(id)));
            }
            Command::Abort(_) => self.abort(self.reply(id)),
            Command::AbortAndPrompt(call) => self.abort_and_prompt(call, self.reply(id)),
            Command::ClearQueue(_) => self.clear_queue(self.reply(id)),
            Command::SetSteeringMode(call) => {
                self.queues.set_mode(Queue::Steering, call.mode);
                self.respond::<commands::SetSteeringMode>(id, Ok(()));
            }
            Command::SetFollowUpMode(call) => {
                self.queues.set_mode(Queue::FollowUp, call.mode);
                self.respond::<commands::SetFollowUpMode>(id, Ok(()));
            }
            Command::SetInterruptMode(call) => {
                self.options.interrupt_mode = call.mode;
                self.respond::<commands::SetInterruptMode>(id, Ok(()));
            }
            Command::SetStreamUpdates(call) => {
                self.options.stream_updates = call.mode;
                self.respond::<commands::SetStreamUpdates>(id, Ok(()));
            }
            Command::GetState(_) => self.respond::<commands::GetState>(id, Ok(self.state())),
            Command::GetMessages(_) => {
                let messages = Messages { messages: self.store.messages().to_vec() };
                self.respond::<commands::GetMessages>(id, Ok(messages));
                self.report_store();
            }
            Command::GetLastAssistantText(_) => {
                self.respond::<commands::GetLastAssistantText>(id, Ok(self.last_text()))
            }
            Command::GetSessionStats(_) => self.respond::<commands::GetSessionStats>(id, Ok(self.stats())),
            Command::SetModel(call) => self.set_model(&call, self.reply(id)),
            Command::CycleModel(_) => self.cycle_model(self.reply(id)),
            Command::GetAvailableModels(_) => {
                self.respond::<commands::GetAvailableModels>(id, Ok(ModelList { models: self.models.available() }));
            }
            Command::SetThinkingLevel(call) => {
                self.set_level(call.level);
                self.respond::<commands::SetThinkingLevel>(id, Ok(()));
            }
            Command::CycleThinkingLevel(_) => {
                let next = self.models.next_level();
                if let Some(level) = next {
                    self.set_level(level);
                }
                self.respond::<commands::CycleThinkingLevel>(
                    id,
                    Ok(next.map(|level| Level { level: self.level_for_host(level) })),
                );
            }
            Command::GetAvailableThinkingLevels(_) => {
                self.respond::<commands::GetAvailableThinkingLevels>(id, Ok(Levels { levels: self.levels_for_host() }));
            }
            Command::SetAutoCompaction(call) => {
                self.options.auto_compaction = call.enabled;
                self.out.options_changed();
                self.respond::<commands::SetAutoCompaction>(id, Ok(()));
            }
            Command::SetAutoRetry(call) => {
                self.options.retry.is_enabled = call.enabled;
                self.out.options_changed();
                self.respond::<commands::SetAutoRetry>(id, Ok(()));
            }
            Command::AbortRetry(_) => self.abort_retry(self.reply(id)),
            Command::Bash(call) => self.bash(call, self.reply(id)),
            Command::AbortBash(call) => self.abort_bash(call, self.reply(id)),
            Command::NewSession(call) => self.new_session(call, self.reply(id)),
            Command::SetSessionName(call) => self.set_session_name(&call, self.reply(id)),
            Command::SetTodos(call) => self.set_todos(call, self.reply(id)),
            Command::SetHostTools(call) => self.set_host_tools(call, self.reply(id)),
            Command::SetMcpServers(call) => self.set_mcp_servers(&call, self.reply(id)),
            Command::GetMcpServers(call) => self.get_mcp_servers(&call, self.reply(id)),
            Command::McpReconnect(call) => self.mcp_reconnect(&call, self.reply(id)),
            Command::McpLogin(call) => self.mcp_login(&call, self.reply(id)),
            Command::SetMcpEnabled(call) => self.set_mcp_enabled(&call, self.reply(id)),
            Command::SetLocale(call) => self.set_locale(&call, self.reply(id)),
            Command::GetIntegrations(_) => self.respond::<commands::GetIntegrations>(id, Ok(self.integrations())),
            Command::Compact(call) => self.compact(call, self.reply(id)),
            Command::SwitchSession(call) => self.switch_session(&call, self.reply(id)),
            Command::Fork(call) => self.fork(call, self.reply(id)),
            Command::Branch(call) => self.branch(call, self.reply(id)),
            Command::CloneSession(_) => self.clone_session(self.reply(id)),
            Command::GetForkMessages(_) => self.respond::<commands::GetForkMessages>(id, Ok(self.fork_messages())),
            Command::GetBranchMessages(_) => self.respond::<commands::GetBranchMessages>(id, Ok(self.fork_messages())),
            Command::GetEntries(call) => self.get_entries(&call, self.reply(id)),
            Command::GetAudit(call) => self.get_audit(&call, self.reply(id)),
            Command::GetTree(call) => self.get_tree(&call, self.reply(id)),
            Command::ListSessions(call) => self.list_sessions(&call, self.reply(id)),
            Command::NavigateTree(call) => self.navigate_tree(call, self.reply(id)),
            Command::ListCheckpoints(call) => self.list_checkpoints(&call, self.reply(id)),
            Command::RestoreCheckpoint(call) => self.restore_checkpoint(call, self.reply(id)),
            Command::SetLabel(call) => self.set_label(&call, self.reply(id)),
            Command::GetCommands(_) => self.get_commands(self.reply(id)),
            Command::GetDiagnostics(_) => self.get_diagnostics(self.reply(id)),
            Command::SetSandbox(call) => self.set_sandbox(&call, self.reply(id)),
            Command::Pause(call) => self.pause(&call, self.reply(id)),
            Command::Resume(_) => self.resume(self.reply(id)),
            Command::SetLimits(call) => self.set_limits(call, self.reply(id)),
            Command::GetPermissions(_) => self.get_permissions(self.reply(id)),
            Command::SetPermissions(call) => self.set_permissions(&call, self.reply(id)),
            Command::SetApprovalMode(call) => self.set_approval_mode(&call, self.reply(id)),
            Command::Reload(_) => self.reload(ReloadReply::Host(self.reply(id))),
            Command::ExportHtml(call) => self.export_html(call, self.reply(id)),
        }
    }

    /// Routes the host's answers to questions of extensions and to calls of host tools. Unknown ids are ignored, as the
    /// protocol says.
    fn host_reply(&mut self, reply: HostReply) {
        match reply {
            HostReply::ToolUpdate { .. } | HostReply::ToolResult { .. } => self.on_host_tool_reply(reply),
            HostReply::Permission { id, option, message } => {
                self.on_permission_reply(id.as_deref().unwrap_or_default(), option, message);
            }
            HostReply::Ui { id, answer } => self.on_ui_answer(id.as_deref(), &answer),
        }
    }

    pub(crate) fn reply<C: Call>(&self, id: Id) -> Reply<C> {
        Reply::new(id, self.unanswered.sender())
    }

    fn respond<C: Call>(&mut self, id: Id, answer: Result<C::Answer, CommandError>) {
        self.answer(self.reply::<C>(id), answer);
    }

    pub(crate) fn answer<C: Call>(&mut self, reply: Reply<C>, answer: Result<C::Answer, CommandError>) {
        reply.send(&mut *self.out, answer);
    }
}
