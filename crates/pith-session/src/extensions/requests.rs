//! Routes every request of an extension to the function that serves it: one match, no logic.

use pith_ext::{ExtensionError, FromExtension};
use pith_protocol::Event;

use crate::activity::AfterSettled;
use crate::log::log_line;
use crate::replace::{ReplacementReply, Target};
use crate::session::Session;

impl Session {
    /// Takes one request. It is served at once, since extension code may be waiting, unless it would start or replace
    /// something: then it waits for its turn.
    pub(crate) fn on_extension(&mut self, request: FromExtension) {
        if looks_at_session(&request) {
            self.install_successor();
        }
        let is_message = matches!(request, FromExtension::SendMessage { .. } | FromExtension::SendUserMessage { .. });
        if is_message && self.activity.announces_requested() {
            return self.after_settled.push(AfterSettled::Request(request));
        }
        let must_wait = match &request {
            _ if is_message => self.activity.is_settling(),
            _ if needs_turn(&request) => self.is_held() || self.admission.is_anything_waiting(),
            _ => false,
        };
        if must_wait {
            return self.hold_request(request);
        }
        self.serve_request(request);
    }

    /// Serves a request whose turn it is.
    pub(crate) fn serve_request(&mut self, request: FromExtension) {
        match request {
            FromExtension::Error(error) => self.tell_extension_error(&error),
            FromExtension::Dialog { request, answer } => self.open_dialog(request, answer.into()),
            FromExtension::DialogWithdrawn { id } => self.withdraw_dialog(id),
            FromExtension::Display(request) => self.out.ui_request(&request),
            FromExtension::RegistryChanged => self.on_registry_changed(),
            FromExtension::RegisterProvider(registration) => self.register_provider(registration),
            FromExtension::UnregisterProvider { name } => self.unregister_provider(&name),
            FromExtension::SendMessage { message, answer } => self.send_custom_message(message, answer),
            FromExtension::SendUserMessage { message, answer } => self.send_user_message(message, answer),
            FromExtension::AppendEntry { custom_type, data } => self.append_custom_entry(&custom_type, data),
            FromExtension::SetSessionName { name } => self.rename(&name),
            FromExtension::SetLabel { entry_id, label } => self.label_from_extension(&entry_id, label.as_deref()),
            FromExtension::SetActiveTools { names } => self.set_active_tools(&names),
            FromExtension::SetModel { model, answer } => self.set_model_from_extension(model, answer),
            FromExtension::SetThinkingLevel { level } => self.set_level_from_extension(&level),
            FromExtension::Abort => self.abort_from_extension(),
            FromExtension::Shutdown { status } => {
                self.extensions.exit_requested = true;
                self.extensions.exit_status = self.extensions.exit_status.or(status);
                self.check_fully_idle();
            }
            FromExtension::Compact { custom_instructions, answer } => {
                self.compact_for_extension(custom_instructions, answer);
            }
            FromExtension::WaitForIdle { answer } => self.answer_when_idle(answer),
            FromExtension::NewSession { parent_session, entries, answer } => {
                let target = Target::New { parent: parent_session, drafts: entries };
                self.replace(target, ReplacementReply::Extension(answer));
            }
            FromExtension::Fork { entry_id, position, answer } => self.fork_for_extension(entry_id, position, answer),
            FromExtension::SwitchSession { path, answer } => {
                self.switch_to(&path, ReplacementReply::Extension(answer));
            }
            FromExtension::NavigateTree { navigation, answer } => self.navigate_for_extension(navigation, answer),
            FromExtension::Reload { answer } => self.reload_for_extension(answer),
            FromExtension::ModelAuth { provider, model, answer } => self.model_auth(provider, model, answer),
            FromExtension::RefreshModels { answer } => self.refresh_models(answer),
            FromExtension::Stream { request, reply } => self.stream_for_extension(request, reply),
            FromExtension::Fetch { request, reply } => self.fetch_for_extension(request, reply),
            FromExtension::RunTool { request, reply } => self.run_tool_for_extension(request, reply),
            FromExtension::Query(query) => self.answer_query(query),
        }
    }

    pub(crate) fn tell_extension_error(&mut self, error: &ExtensionError) {
        if let Some(stack) = &error.stack {
            log_line(&format!("{}: {}: {}\n{stack}", error.path, error.event, error.error));
        }
        self.tell_error(&error.path, &error.event, &error.error);
    }

    /// Tells the host that something has gone wrong beside the work, without secrets that the text may quote.
    pub(crate) fn tell_error(&mut self, path: &str, event: &str, error: &str) {
        let secrets = self.models.registry().secrets();
        let error = secrets.redact(error);
        self.out.event(&Event::ExtensionError { extension_path: path.into(), event: event.into(), error });
    }
}

/// Whether a request is about the session. Extensions of the next session must not see the previous one.
fn looks_at_session(request: &FromExtension) -> bool {
    matches!(
        request,
        FromExtension::Query(_)
            | FromExtension::SendMessage { .. }
            | FromExtension::SendUserMessage { .. }
            | FromExtension::AppendEntry { .. }
            | FromExtension::SetSessionName { .. }
            | FromExtension::SetLabel { .. }
            | FromExtension::SetActiveTools { .. }
            | FromExtension::SetModel { .. }
            | FromExtension::SetThinkingLevel { .. }
    )
}

/// Whether a request changes what later ones mean, like the host commands whose order matters.
fn needs_turn(request: &FromExtension) -> bool {
    matches!(
        request,
        FromExtension::NewSession { .. }
            | FromExtension::Fork { .. }
            | FromExtension::SwitchSession { .. }
            | FromExtension::NavigateTree { .. }
            | FromExtension::Compact { .. }
            | FromExtension::Reload { .. }
    )
}
