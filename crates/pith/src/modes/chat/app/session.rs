//! Frames of the session change what is shown.

use pith_ai::cause;
use pith_protocol::host::{UiAnswer, UiMethod, UiRequest};
use serde_json::json;

use super::answers::Expected;
use super::tools::{SHELL, ToolEnd};
use super::{Action, App, Overlay, Retry, WidgetLines, Work};
use crate::modes::chat::dialog::{Dialog, Field};
use crate::modes::chat::frames::{Frame, is_question};
use crate::modes::chat::theme;
use crate::modes::screen::count;

impl App {
    /// Takes a frame.
    pub fn frame(&mut self, frame: Frame) {
        match frame {
            Frame::Answer { id, result } => self.answered(id, result),
            Frame::WorkStarted => self.begin_work("waiting for the model"),
            Frame::TurnStarted => {
                self.retry = None;
                self.begin_work("waiting for the model");
                self.set_doing("waiting for the model");
            }
            Frame::Thinking(delta) => self.think(&delta),
            Frame::Text(delta) => self.text(&delta),
            Frame::Calling(tool) => {
                self.end_answer();
                self.set_doing(&format!("writing a call of {tool}"));
            }
            Frame::Said { text, pictures, is_user } => self.said(&text, &pictures, is_user),
            Frame::Answered(failure) => {
                self.end_answer();
                self.failure = failure;
                self.refresh_stats();
            }
            Frame::ToolStarted { id, name, arguments } => {
                self.start_tool(id, name, arguments);
                self.set_doing("working");
                if let Some(text) = self.setup.opening.tour.as_mut().map(std::mem::take).filter(|text| !text.is_empty())
                {
                    self.note("while it works, a message joins the conversation at the next pause:");
                    self.send(json!({"type": "steer", "message": text}), Expected::Nothing);
                }
            }
            Frame::ToolProgress { id, tail } => self.tool_output(&id, &tail, true),
            Frame::ToolEnded { id, text, difference, pictures, is_error } => {
                let end = if is_error { ToolEnd::Failed } else { ToolEnd::Done };
                self.end_tool(&id, &text, difference.as_deref(), end);
                self.show_pictures(&pictures);
            }
            Frame::ShellOutput(delta) => self.tool_output(SHELL, &delta, false),
            Frame::Queue { steering, follow_up } => (self.steering, self.follow_up) = (steering, follow_up),
            Frame::Retrying { attempt, max_attempts, delay, error } => {
                let known = self.failure.as_ref().and_then(|failure| failure.cause.as_ref());
                let cause = cause(&error, known);
                self.tried_again = Some((cause.clone(), attempt));
                let retry = Retry { until: self.now + delay, cause, attempt, max_attempts };
                if !self.setup.has_keys {
                    let text = retry.text(self.now);
                    self.note(&text);
                }
                self.retry = Some(retry);
            }
            Frame::RetryOver => self.end_retry(),
            Frame::Compacting => {
                self.note("summarising the conversation");
                self.begin_work("summarising the conversation");
                self.set_doing("summarising the conversation");
            }
            Frame::Compacted { error: Some(error), .. } => self.note(&format!("not summarised: {error}")),
            Frame::Compacted { error: None, tokens_before } => {
                if let Some(tokens) = tokens_before {
                    self.note(&format!("summarised {} tokens", count(tokens)));
                }
                self.refresh_stats();
            }
            Frame::Note(text) => self.note(&text),
            Frame::StateChanged => self.refresh_state(),
            Frame::Settled { aborted } => self.settled(aborted),
            Frame::Ui(request) => self.ui(request),
            Frame::Asked(asked) => self.asked(*asked),
            Frame::AskedNoMore(id) => self.withdraw(&id),
        }
    }

    pub(super) fn begin_work(&mut self, doing: &str) {
        if self.work.is_none() {
            self.work = Some(Work { since: self.now, doing: doing.to_owned() });
        }
    }

    fn settled(&mut self, aborted: bool) {
        self.end_answer();
        self.end_retry();
        self.tools.retain(|tool| tool.id == SHELL);
        self.work = None;
        match self.failure.take() {
            Some(failure) if !failure.is_on_purpose && !aborted => self.complain(&failure.into_text()),
            Some(failure) => self.complain(&format!("stopped: {}", failure.into_text())),
            None if aborted => self.complain("stopped"),
            None => {}
        }
        self.refresh_state();
        self.refresh_stats();
        if self.setup.opening.tour.is_some() {
            self.actions.push(Action::Leave);
        }
    }

    /// What stays of a retry: one line, however often it was tried.
    fn end_retry(&mut self) {
        self.retry = None;
        if let Some((cause, n_times)) = self.tried_again.take().filter(|_| self.setup.has_keys) {
            let times = if n_times == 1 { "once".to_owned() } else { format!("{n_times} times") };
            self.note(&format!("{cause}, tried again {times}"));
        }
    }

    pub(super) fn refresh_state(&mut self) {
        self.send_once(json!({"type": "get_state"}), Expected::State);
        self.send_once(json!({"type": "get_permissions"}), Expected::Permissions);
    }

    pub(super) fn refresh_stats(&mut self) {
        self.send_once(json!({"type": "get_session_stats"}), Expected::Stats);
    }

    /// Sends a command unless the answer to the same one is still to come.
    fn send_once(&mut self, command: serde_json::Value, expected: Expected) {
        if !self.expected.values().any(|other| *other == expected) {
            self.send(command, expected);
        }
    }

    fn ui(&mut self, request: UiRequest) {
        let id = request.id.clone();
        if is_question(&request.method) {
            let is_writing = !self.editor.is_empty();
            if let Some(dialog) = Dialog::new(request, is_writing) {
                self.questions.push_back(Overlay::Dialog(Box::new(dialog)));
                self.ask_next();
            }
            return;
        }
        match request.method {
            UiMethod::Cancel { target_id } => self.withdraw(&target_id),
            UiMethod::Notify { message, notify_type } => match notify_type.as_deref() {
                Some("error") => self.complain(&message),
                Some("warning") => self.say(&format!("! {message}")),
                _ => self.say(&message),
            },
            UiMethod::SetStatus { status_key, status_text } => match status_text.filter(|text| !text.trim().is_empty())
            {
                Some(text) => drop(self.statuses.insert(status_key, text.trim().replace('\n', " "))),
                None => drop(self.statuses.remove(&status_key)),
            },
            UiMethod::SetWidget { widget_key, widget_lines, widget_placement } => match widget_lines {
                Some(lines) => {
                    let is_below = widget_placement.as_deref() == Some("belowEditor");
                    self.widgets.insert(widget_key, WidgetLines { lines, is_below });
                }
                None => drop(self.widgets.remove(&widget_key)),
            },
            UiMethod::SetTitle { title } => self.actions.push(Action::Title(title)),
            UiMethod::SetEditorText { text } => {
                self.editor.set(&pith_visible::visible(&text));
                self.update_menu();
            }
            other => tracing::debug!(target: "pith::chat", id, ?other, "not shown"),
        }
    }

    /// Shows the next question, if none is shown. A list that the user has opened gives way.
    pub(super) fn ask_next(&mut self) {
        if matches!(self.overlay, Some(Overlay::Dialog(_) | Overlay::Approval(_))) {
            return;
        }
        let Some(question) = self.questions.pop_front() else { return };
        self.menu = None;
        match &question {
            Overlay::Dialog(dialog) => {
                if !self.setup.has_keys {
                    dialog.lines().iter().for_each(|line| self.say(line));
                }
                if let (Field::Text(editor), true) = (&dialog.field, self.setup.has_editor && self.setup.has_keys) {
                    self.actions.push(Action::Edit { id: dialog.id.clone(), text: editor.text() });
                }
            }
            Overlay::Approval(approval) if !self.setup.has_keys => {
                let rows = approval.everything(self.width());
                self.print(rows);
            }
            Overlay::Approval(_) | Overlay::Picker(_) => {}
        }
        self.overlay = Some(question);
    }

    /// Answers the question that is shown.
    pub(super) fn answer(&mut self, answer: UiAnswer) {
        if let Some(Overlay::Dialog(dialog)) = self.overlay.take() {
            if answer == UiAnswer::Cancelled {
                self.note("no answer");
            }
            self.actions.push(Action::Answer { id: dialog.id, answer });
        }
        self.ask_next();
    }

    /// Called with what the user's editor has made of a text; `None` if there is nothing.
    pub fn edited(&mut self, id: &str, text: Option<String>) {
        if matches!(&self.overlay, Some(Overlay::Dialog(dialog)) if dialog.id == id) {
            self.answer(text.map_or(UiAnswer::Cancelled, UiAnswer::Value));
        }
    }

    /// Called when the extension no longer waits.
    fn withdraw(&mut self, id: &str) {
        self.questions.retain(|question| question.id() != Some(id));
        if self.overlay.as_ref().is_some_and(|overlay| overlay.id() == Some(id)) {
            self.end_wait();
            self.overlay = None;
            self.say_styled("· the question was withdrawn", theme::dim());
            self.ask_next();
        }
    }
}
