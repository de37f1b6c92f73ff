//! Hosts that commands want to reach and no list of the sandbox has: rules decide, or the user.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pith_agent::BoxFuture;
use pith_agent::link::Call;
use pith_permissions::Reason;
use pith_tools::hosts::{Host, HostRules, HostVerdict};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::held::{FromGate, HeldCall, Subject};
use crate::run::Run;
use crate::session::Session;

/// What rules call a connection.
const NETWORK: &str = "network";
/// The argument that says which command wants a connection.
pub(super) const COMMAND: &str = "command";

/// What a command is told whose question is withdrawn.
const WITHDRAWN: &str = "Nobody has answered.";

/// A connection that waits for a decision. Dropping the sender refuses it.
pub(crate) struct HostQuestion {
    /// Tells questions apart.
    pub number: u64,
    pub host: Host,
    pub port: u16,
    pub answer: oneshot::Sender<HostVerdict>,
}

/// Brings questions of the proxy to the session.
pub(crate) struct HostQuestions {
    /// Closed only when the session is gone.
    to_session: mpsc::UnboundedSender<FromGate>,
    n_asked: AtomicU64,
}

impl HostQuestions {
    pub fn new(to_session: mpsc::UnboundedSender<FromGate>) -> Self {
        HostQuestions { to_session, n_asked: AtomicU64::new(0) }
    }
}

impl HostRules for HostQuestions {
    fn judge(&self, host: &Host, port: u16) -> BoxFuture<'static, HostVerdict> {
        let (answer, answered) = oneshot::channel();
        let number = self.n_asked.fetch_add(1, Ordering::Relaxed);
        let waiting = Waiting { number, to_session: self.to_session.clone() };
        // If nobody receives it, the answer is dropped and the connection is refused.
        let _ = self.to_session.send(FromGate::Host(HostQuestion { number, host: host.clone(), port, answer }));
        Box::pin(async move {
            let verdict = answered.await;
            drop(waiting);
            verdict.unwrap_or_else(|_| HostVerdict::Refused(WITHDRAWN.to_owned()))
        })
    }
}

/// Tells the session when a command no longer waits; one that was answered waits no longer either.
struct Waiting {
    number: u64,
    to_session: mpsc::UnboundedSender<FromGate>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.to_session.send(FromGate::HostGone(self.number));
    }
}

/// Answers about hosts that hold as long as the call they were given for: a command seldom connects only once.
#[derive(Default)]
pub(super) struct AnsweredHosts(Vec<AnsweredHost>);

struct AnsweredHost {
    call: Arc<str>,
    /// Host and port.
    arguments: Map<String, Value>,
    outcome: Result<(), String>,
}

impl AnsweredHosts {
    /// Returns what was answered about a connection of the same call to the same host.
    pub fn about(&self, call: &HeldCall) -> Option<Result<(), String>> {
        let is_host = matches!(call.subject, Subject::Host(..)) && !call.id.is_empty();
        let mut answered = self.0.iter().filter(|_| is_host);
        let found = answered.find(|host| host.call == call.id && host.arguments == call.arguments)?;
        Some(found.outcome.clone())
    }
}

impl Session {
    /// Keeps an answer about a host for the other connections of its call. Those of calls that have ended are forgotten.
    pub(super) fn keep_for_call(&mut self, call: &HeldCall, outcome: &Result<(), String>) {
        if !matches!(call.subject, Subject::Host(..)) {
            return;
        }
        let open = self.activity.run().map(Run::open_commands).unwrap_or_default();
        let AnsweredHosts(answered) = &mut self.permissions.answered_hosts;
        answered.retain(|host| open.iter().any(|call| call.id == host.call));
        let (call, arguments) = (Arc::clone(&call.id), call.arguments.clone());
        answered.push(AnsweredHost { call, arguments, outcome: outcome.clone() });
    }

    /// Decides about a connection, or makes it wait for somebody who does.
    pub(super) fn on_host_question(&mut self, question: HostQuestion) {
        let judge = self.judge();
        let HostQuestion { number, host, port, answer } = question;
        let mut arguments =
            Map::from_iter([("host".to_owned(), json!(host.to_string())), ("port".to_owned(), json!(port))]);
        let wanted_by = self.wanted_by();
        let command =
            wanted_by.as_ref().and_then(|call| call.arguments.get(COMMAND)).filter(|command| command.is_string());
        arguments.extend(command.map(|command| (COMMAND.to_owned(), command.clone())));
        let subject = Subject::Host(host, port);
        let judgement = judge.judge(NETWORK, &subject, None);
        if judgement.reason == Reason::Mode {
            // Nobody waits any more if sending fails.
            let _ = answer.send(HostVerdict::NoRule);
            return;
        }
        let id = wanted_by.map_or_else(|| Arc::from(""), |call| Arc::clone(&call.id));
        let call = HeldCall { id, tool: NETWORK.to_owned(), arguments, subject, server: None, judgement };
        self.hold_host(number, Box::new(call), answer);
    }

    /// Returns the call whose command wants a connection, if it is known: nobody knows which of several does.
    fn wanted_by(&self) -> Option<Arc<Call>> {
        let run = self.activity.run()?;
        match run.open_commands().as_slice() {
            [call] => Some(Arc::clone(call)),
            _ => None,
        }
    }
}
