//! Calls that wait for somebody: one question at a time, in the order of the calls.
//!
//! A call is judged again whenever something has changed, so an answer that covers calls behind it settles them too.

use std::collections::VecDeque;
use std::time::Duration;

use pith_agent::{self as agent, ToolOutput};
use pith_permissions::{GrantFile, Origin, Unattended, Verdict};
use pith_protocol::audit::{AuditRecord, PermissionBy, PermissionDecision, PermissionRecord, PermissionScope};
use pith_protocol::host::{UiAnswer, UiRequest};
use pith_protocol::permissions::{OptionId, PermissionFrame, PermissionMode};
use pith_tools::hosts::HostVerdict;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::debug;

use super::held::{FromGate, HeldCall, decided_by};
use super::question::{Grant, Offer, Surroundings, dialog, frame, refusal};
use super::{Attendance, UNSURE_LIMIT, parsed};
use crate::jobs::{Job, JobEnd};
use crate::log::log_line;
use crate::session::Session;

/// The calls that wait, and the question that is open about the first of them.
#[derive(Default)]
pub(crate) struct Questions {
    waiting: VecDeque<Waiting>,
    open: Option<Question>,
}

struct Waiting {
    call: Box<HeldCall>,
    answer: Answer,
    since: Instant,
}

/// Who waits.
enum Answer {
    /// The gate. Dropped, the call ends as aborted.
    Gate(oneshot::Sender<agent::Verdict>),
    /// The proxy, with the number of its question. Dropped, the connection is refused.
    Proxy(u64, oneshot::Sender<HostVerdict>),
}

/// A question that the host has not answered.
struct Question {
    id: String,
    offer: Offer,
    form: Form,
    /// Ends the wait, if anything does.
    limit: Option<AbortHandle>,
}

/// How the host was asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Dialog,
    Frame,
}

/// What becomes of a call, and who says so.
struct Settlement {
    by: PermissionBy,
    scope: Option<PermissionScope>,
    /// The rule that decided, or that the answer has made.
    rule: Option<String>,
    /// `Err` is what the model reads.
    outcome: Result<(), String>,
}

impl Questions {
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if let Some(limit) = &self.limit {
            limit.abort();
        }
    }
}

impl Session {
    pub(crate) fn on_gate(&mut self, message: FromGate) {
        match message {
            FromGate::Held(call, answer) => self.hold(call, answer),
            FromGate::Gone(id) => {
                self.stop_waiting(|waiting| matches!(waiting.answer, Answer::Gate(_)) && waiting.call.id == id);
            }
            FromGate::Host(question) => self.on_host_question(question),
            FromGate::HostGone(gone) => {
                self.stop_waiting(|waiting| matches!(waiting.answer, Answer::Proxy(number, _) if number == gone));
            }
            FromGate::Blocked { id, tool } => {
                self.audit(&AuditRecord::Permission(PermissionRecord {
                    tool_call_id: id.to_string(),
                    tool,
                    decision: PermissionDecision::Deny,
                    by: PermissionBy::Extension,
                    scope: None,
                    rule: None,
                    waited_ms: None,
                }));
            }
        }
    }

    /// Takes a call that does not simply run.
    fn hold(&mut self, call: Box<HeldCall>, answer: oneshot::Sender<agent::Verdict>) {
        let is_stopping = self.activity.run().is_none_or(|run| run.cancel.is_cancelled());
        if is_stopping || self.is_closing || answer.is_closed() {
            // What is stopped asks nothing any more.
            return;
        }
        self.wait(Waiting { call, answer: Answer::Gate(answer), since: Instant::now() });
    }

    /// Takes a connection that some rule is about. Programs connect between runs too.
    pub(super) fn hold_host(&mut self, number: u64, call: Box<HeldCall>, answer: oneshot::Sender<HostVerdict>) {
        if !self.is_closing && !answer.is_closed() {
            self.wait(Waiting { call, answer: Answer::Proxy(number, answer), since: Instant::now() });
        }
    }

    fn wait(&mut self, waiting: Waiting) {
        self.permissions.questions.waiting.push_back(waiting);
        self.settle_calls();
    }

    /// Called when whoever brought a question has gone.
    fn stop_waiting(&mut self, is_gone: impl Fn(&Waiting) -> bool) {
        if let Some(index) = self.permissions.questions.waiting.iter().position(is_gone) {
            self.abandon(index);
            self.settle_calls();
        }
    }

    /// Settles every call that needs nobody, then asks about the first that does.
    pub(crate) fn settle_calls(&mut self) {
        let mut index = 0;
        while index < self.permissions.questions.waiting.len() {
            match self.settlement(index) {
                Some(settlement) => self.settle_call(index, settlement),
                None => index += 1,
            }
        }
        if self.permissions.questions.open.is_none() && self.permissions.is_waiting() {
            self.ask_about_first();
        }
    }

    /// Judges a waiting call by the rules of now; `None` if somebody has to be asked.
    fn settlement(&mut self, index: usize) -> Option<Settlement> {
        let judge = self.judge();
        let attendance = self.options.attendance;
        let rules = self.permissions.rules.as_ref()?;
        let answered = &self.permissions.answered_hosts;
        let call = &mut self.permissions.questions.waiting.get_mut(index)?.call;
        call.judgement = judge.judge(&call.tool, &call.subject, call.server.as_ref());
        let rule = call.judgement.rule().map(str::to_owned);
        match call.judgement.verdict {
            Verdict::Allow => Some(Settlement { by: decided_by(&call.judgement), scope: None, rule, outcome: Ok(()) }),
            Verdict::Deny => {
                let text = refusal(&call.judgement, judge.policy.mode);
                Some(Settlement { by: decided_by(&call.judgement), scope: None, rule, outcome: Err(text) })
            }
            Verdict::Ask if call.unsandboxed().is_none() && rules.own.has_call(call) => {
                Some(Settlement { by: PermissionBy::Rule, scope: None, rule, outcome: Ok(()) })
            }
            Verdict::Ask if let Some(outcome) = answered.about(call) => {
                Some(Settlement { by: PermissionBy::User, scope: None, rule, outcome })
            }
            Verdict::Ask if attendance == Attendance::Nobody => {
                Some(unattended(PermissionBy::Unattended, judge.policy.unattended, rule))
            }
            Verdict::Ask => None,
        }
    }

    /// Ends the wait of a call. The question about it, if it is still open, is withdrawn.
    fn settle_call(&mut self, index: usize, settlement: Settlement) {
        let Some(Waiting { call, answer, since }) = self.take_waiting(index) else { return };
        let Settlement { by, scope, rule, outcome } = settlement;
        let decision = if outcome.is_ok() { PermissionDecision::Allow } else { PermissionDecision::Deny };
        let was_asked = matches!(by, PermissionBy::User | PermissionBy::Timeout);
        let waited_ms = was_asked.then(|| u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX));
        let details = json!({"permission": {"decision": decision, "by": by, "rule": rule}});
        debug!(target: "pith::tool", id = %call.id, ?decision, ?by, waited_ms, "decided");
        self.record_decision(&call, decision, by, scope, rule, waited_ms);
        // Whoever waits may have gone meanwhile.
        match answer {
            Answer::Gate(gate) => drop(gate.send(match outcome {
                Ok(()) => agent::Verdict::Run { arguments: call.arguments, by: Some(by) },
                Err(text) => agent::Verdict::Refuse { output: ToolOutput::error(text).with_details(details), by },
            })),
            Answer::Proxy(_, proxy) => {
                drop(proxy.send(outcome.map_or_else(HostVerdict::Refused, |()| HostVerdict::Allowed)));
            }
        }
    }

    fn record_decision(
        &mut self,
        call: &HeldCall,
        decision: PermissionDecision,
        by: PermissionBy,
        scope: Option<PermissionScope>,
        rule: Option<String>,
        waited_ms: Option<u64>,
    ) {
        let (tool_call_id, tool) = (call.id.to_string(), call.tool.clone());
        let record = PermissionRecord { tool_call_id, tool, decision, by, scope, rule, waited_ms };
        self.audit(&AuditRecord::Permission(record));
    }

    /// Takes a call out. The open question is about the first one.
    fn take_waiting(&mut self, index: usize) -> Option<Waiting> {
        if index == 0 {
            self.withdraw_question();
        }
        self.permissions.questions.waiting.remove(index)
    }

    /// Ends the wait of a call that cannot run any more: dropping its answer ends it as aborted.
    fn abandon(&mut self, index: usize) {
        let Some(Waiting { call, .. }) = self.take_waiting(index) else { return };
        self.record_decision(&call, PermissionDecision::Deny, PermissionBy::Abort, None, None, None);
    }

    /// Called when the run is stopped. Nothing that waits is run.
    pub(crate) fn abandon_calls(&mut self) {
        while self.permissions.is_waiting() {
            self.abandon(0);
        }
    }

    /// Tells the host that an answer is no longer wanted, if it was asked.
    fn withdraw_question(&mut self) {
        let Some(question) = self.permissions.questions.open.take().filter(|_| !self.is_closing) else { return };
        match question.form {
            Form::Dialog => self.tell_withdrawn(question.id.clone()),
            Form::Frame => self.out.permission(&PermissionFrame::PermissionCancelled { id: question.id.clone() }),
        }
    }

    fn ask_about_first(&mut self) {
        let judge = self.judge();
        let Some(first) = self.permissions.questions.waiting.front() else { return };
        let call = &first.call;
        let offer = Offer::of(call, &judge, &self.permissions.bases());
        let id = uuid::Uuid::new_v4().to_string();
        let unsure = (self.options.attendance == Attendance::Unsure).then_some(UNSURE_LIMIT);
        let limit = judge.policy.timeout.or(unsure);
        let timeout = limit.and_then(|limit| u64::try_from(limit.as_millis()).ok());
        let form = if self.permissions.takes_frames { Form::Frame } else { Form::Dialog };
        match form {
            Form::Dialog => {
                let method = dialog(call, &offer, judge.policy.mode, timeout);
                let tool_call_id = Some(call.id.to_string()).filter(|id| !id.is_empty());
                self.out.ui_request(&UiRequest { id: id.clone(), method, tool_call_id });
            }
            Form::Frame => {
                let around = self.surroundings(judge.policy.mode);
                self.out.permission(&frame(id.clone(), call, &offer, around, timeout));
            }
        }
        let limit = limit.map(|limit| self.jobs.spawn(Job::Background, overdue(id.clone(), limit)));
        self.permissions.questions.open = Some(Question { id, offer, form, limit });
    }

    fn surroundings(&self, mode: PermissionMode) -> Surroundings {
        let sandbox = self.workbench().sandbox.as_ref().map(|sandbox| sandbox.state().profile);
        Surroundings {
            cwd: self.store.cwd().to_string_lossy().into_owned(),
            sandbox: sandbox.unwrap_or_else(|| "off".to_owned()),
            mode,
        }
    }

    /// Takes the answer to a dialog, if it is the open question; `false` if it is another dialog.
    pub(crate) fn take_permission_dialog(&mut self, id: &str, answer: &UiAnswer) -> bool {
        let Some(question) = self.open_question(id, Form::Dialog) else { return false };
        let option = match answer {
            UiAnswer::Value(label) => question.offer.chosen(label),
            UiAnswer::Cancelled | UiAnswer::Confirmed(_) | UiAnswer::Malformed(_) => None,
        };
        self.take_answer(question, option, None);
        true
    }

    /// Takes the answer to a `permission_request`. Unknown ids are ignored.
    pub(crate) fn on_permission_reply(&mut self, id: &str, option: Option<OptionId>, message: Option<String>) {
        if let Some(question) = self.open_question(id, Form::Frame) {
            let option = option.filter(|option| question.offer.has(*option));
            self.take_answer(question, option, message);
        }
    }

    fn open_question(&mut self, id: &str, form: Form) -> Option<Question> {
        self.permissions.questions.open.take_if(|question| question.id == id && question.form == form)
    }

    /// Does what the user has chosen. What was not offered, or no answer at all, is a no.
    fn take_answer(&mut self, question: Question, option: Option<OptionId>, message: Option<String>) {
        let Some(first) = self.permissions.questions.waiting.front() else { return };
        let call = first.call.clone();
        let asked_by = call.judgement.rule().map(str::to_owned);
        let allowed = |scope, rule| Settlement { by: PermissionBy::User, scope: Some(scope), rule, outcome: Ok(()) };
        let offer = &question.offer;
        let for_project = match option {
            Some(OptionId::Project) => offer.project.as_ref(),
            Some(OptionId::Similar) => offer.similar.as_ref(),
            _ => None,
        };
        let settlement = match (option, &offer.session, for_project) {
            (Some(OptionId::Once), ..) => allowed(PermissionScope::Once, asked_by),
            (Some(OptionId::Session), Some(Grant::Rules(rules)), _) => {
                self.change_own_rules(|own| own.grant(rules));
                allowed(PermissionScope::Session, Some(rules.join(", ")))
            }
            (Some(OptionId::Session), Some(Grant::Call), _) => {
                self.change_own_rules(|own| own.grant_call(&call));
                allowed(PermissionScope::Session, asked_by)
            }
            (_, _, Some(rules)) => {
                let scope = self.grant_in_project(rules);
                allowed(scope, Some(rules.join(", ")))
            }
            _ => {
                let said = message.map(|message| format!(" {message}")).unwrap_or_default();
                let outcome = Err(format!("The user did not allow this.{said}"));
                Settlement { by: PermissionBy::User, scope: None, rule: asked_by, outcome }
            }
        };
        if matches!(settlement.scope, None | Some(PermissionScope::Once)) {
            self.keep_for_call(&call, &settlement.outcome);
        }
        self.settle_call(0, settlement);
        if option == Some(OptionId::Stop) {
            return self.stop_activity();
        }
        self.settle_calls();
    }

    /// Allows something in this project for good; for this session if that cannot be written.
    fn grant_in_project(&mut self, rules: &[String]) -> PermissionScope {
        let sources = &self.permissions.sources;
        let file = GrantFile::in_agent_dir(sources.agent_dir.path());
        if let Err(error) = file.add(&sources.cwd, rules) {
            log_line(&format!("Warning: {}: {error}; the answer holds for this session", file.path().display()));
            self.change_own_rules(|own| own.grant(rules));
            return PermissionScope::Session;
        }
        let (bases, origin) = (self.permissions.bases(), Origin::File(file.path().to_owned()));
        let granted = rules.iter().filter_map(|rule| parsed(rule, origin.clone(), &bases));
        let granted: Vec<_> = granted.collect();
        self.rules().read.policy.granted.extend(granted);
        self.permissions.compose();
        PermissionScope::Project
    }

    /// Called when the time for an answer is over.
    pub(crate) fn on_permission_overdue(&mut self, id: &str) {
        if self.permissions.questions.open.as_ref().is_none_or(|question| question.id != id) {
            return;
        }
        let policy = self.rules().policy.clone();
        let first = self.permissions.questions.waiting.front();
        let rule = first.and_then(|waiting| waiting.call.judgement.rule().map(str::to_owned));
        self.settle_call(0, unattended(PermissionBy::Timeout, policy.unattended, rule));
        self.settle_calls();
    }
}

async fn overdue(id: String, limit: Duration) -> JobEnd {
    tokio::time::sleep(limit).await;
    JobEnd::PermissionOverdue(id)
}

/// What silence means.
fn unattended(by: PermissionBy, unattended: Unattended, rule: Option<String>) -> Settlement {
    let outcome = match unattended {
        Unattended::Allow => Ok(()),
        Unattended::Deny => Err("Nobody could be asked; permissions.unattended is \"deny\".".to_owned()),
    };
    Settlement { by, scope: None, rule, outcome }
}
