//! Another session in the place of this one, with the extensions' consent and at
//! their wish: they are asked, say good-bye, and are made anew for the next one.

use std::path::Path;

use pith_ext::EventName;
use pith_ext::outgoing::{self, Answer, ForkPosition};
use pith_protocol::commands::{Compact, NavigateTree};
use pith_store::StoreError;
use serde_json::{Value, json};

use super::generation::Generation;
use super::{CLOSING, Passage};
use crate::activity::{Then, Waiter};
use crate::replace::{Done, Replaced, Successor, Target};
use crate::reply::Reply;
use crate::session::Session;

impl Session {
    pub(crate) fn new_session_for_extension(
        &mut self,
        parent: Option<String>,
        drafts: Vec<Value>,
        answer: Answer<outgoing::Replaced>,
    ) {
        self.in_turn(move |session| session.replace(Target::New { parent, drafts }, to_extension(answer)));
    }

    pub(crate) fn fork_for_extension(&mut self, entry: String, at: ForkPosition, answer: Answer<outgoing::Replaced>) {
        self.in_turn(move |session| {
            let is_possible = match at {
                ForkPosition::Before => session.is_forkable(&entry),
                ForkPosition::At => session.store.tree().contains(&entry),
            };
            let target = match at {
                ForkPosition::Before => Target::Before(entry),
                ForkPosition::At => Target::UpTo(entry),
            };
            match is_possible {
                true => session.replace(target, to_extension(answer)),
                false => answer.fail(StoreError::NotForkable.to_string()),
            }
        });
    }

    pub(crate) fn switch_for_extension(&mut self, path: String, answer: Answer<outgoing::Replaced>) {
        self.in_turn(move |session| session.switch_to(&path, to_extension(answer)));
    }

    pub(crate) fn navigate_for_extension(
        &mut self,
        navigation: outgoing::Navigation,
        answer: Answer<outgoing::Replaced>,
    ) {
        let outgoing::Navigation { target_id, summarize, custom_instructions, replace_instructions, label } =
            navigation;
        let call = NavigateTree {
            target_id,
            summarize: Some(summarize),
            custom_instructions,
            replace_instructions: Some(replace_instructions),
            label,
        };
        let reply = Reply::<NavigateTree>::to_extension(|moved| match moved {
            Ok(moved) => answer.send(outgoing::Replaced { cancelled: moved["cancelled"] == true }),
            Err(why) => answer.fail(why),
        });
        self.in_turn(move |session| session.navigate_tree(call, reply));
    }

    pub(crate) fn compact_for_extension(&mut self, custom_instructions: Option<String>, answer: Answer<Value>) {
        let reply = Reply::<Compact>::to_extension(|result| match result {
            Ok(result) => answer.send(result),
            Err(why) => answer.fail(why),
        });
        self.in_turn(move |session| session.compact(Compact { custom_instructions }, reply));
    }

    /// Later commands wait in the lane from here on, if extensions have a say.
    pub(crate) fn hold_lane_for_replacement(&mut self) {
        if self.extensions.handle().is_some() {
            self.lane.take(Passage::Replacement);
        }
    }

    /// Lets extensions object; the run goes on meanwhile.
    pub(crate) fn ask_to_replace(&mut self, target: Target, done: Done) {
        if self.is_closing {
            return self.end_replacement(done, Err(CLOSING.to_owned()));
        }
        self.lane.take(Passage::Replacement);
        let (event, question) = self.question(&target);
        let Some(handle) = self.listeners(event) else { return self.replace_when_settled(target, done) };
        self.abortable_step(|refusal| async move {
            let is_refused = tokio::select! {
                biased;
                () = refusal.cancelled() => true,
                result = handle.session_before(event, question, &refusal) => is_cancel(result.as_ref()),
            };
            move |session: &mut Session| match is_refused {
                true => session.end_replacement(done, Ok(Replaced::Cancelled)),
                false => session.replace_when_settled(target, done),
            }
        });
    }

    fn question(&self, target: &Target) -> (EventName, Value) {
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let switch = |reason, path: Option<String>| {
            let mut question = json!({"reason": reason});
            if let Some(path) = path {
                question["targetSessionFile"] = path.into();
            }
            (EventName::SessionBeforeSwitch, question)
        };
        let fork =
            |entry: &str, position| (EventName::SessionBeforeFork, json!({"entryId": entry, "position": position}));
        match target {
            Target::New { .. } => switch("new", None),
            Target::Opened(store) => switch("resume", store.path().map(shown)),
            Target::Same => switch("resume", self.store.path().map(shown)),
            Target::Before(entry) => fork(entry, "before"),
            Target::UpTo(entry) => fork(entry, "at"),
            Target::Whole(leaf) => fork(leaf, "at"),
        }
    }

    /// The sessions change places, with the extensions of each. Nothing runs.
    pub(crate) fn hand_over(&mut self, successor: Successor, done: Done) {
        let cwd = successor.cwd().unwrap_or(self.store.cwd()).to_owned();
        let sources = match cwd == self.workbench.base.cwd {
            true => self.extensions.sources().to_vec(),
            false => (self.extensions.find)(&cwd),
        };
        let outcome = successor.outcome();
        let then: Then = Box::new(move |session| session.end_replacement(done, Ok(outcome)));
        let leaving = self.extensions.handle().cloned();
        if leaving.is_none() && sources.is_empty() {
            self.adopt(successor);
            return then(self);
        }
        if self.is_closing {
            // Extensions are about to hear of the end, and of nothing after it; the dropped reply is answered.
            return;
        }
        self.lane.take(Passage::Replacement);
        let generation = Generation::replacing(sources, &successor, self.session_file());
        let Some(handle) = leaving else { return self.enter(successor, cwd.as_path(), generation, then) };
        let target = match &successor.store {
            Some(store) => store.path(),
            None => self.store.path(),
        };
        let target = target.map(|path| path.to_string_lossy().into_owned());
        self.step(async move {
            handle.session_shutdown(successor.beginning.as_str(), target.as_deref()).await;
            handle.invalidate().await;
            move |session: &mut Session| {
                // A handler may have started something on its way out.
                session.when_settled(Waiter::Replace(Box::new(move |session| {
                    session.enter(successor, &cwd, generation, then);
                })));
            }
        });
    }

    fn enter(&mut self, successor: Successor, cwd: &Path, generation: Generation, then: Then) {
        self.drop_requests();
        self.extensions.arriving = Some(successor);
        self.raise(generation, cwd, then);
    }

    /// Puts the session that is ready to take over in force. Extensions of its own may look at it from now on.
    pub(crate) fn take_over(&mut self) {
        if let Some(successor) = self.extensions.arriving.take() {
            self.adopt(successor);
        }
    }
}

/// A handler does not want what it was asked about.
pub(crate) fn is_cancel(result: Option<&Value>) -> bool {
    result.and_then(|result| result.get("cancel")) == Some(&Value::Bool(true))
}

fn to_extension(answer: Answer<outgoing::Replaced>) -> Done {
    Box::new(|_, outcome| match outcome {
        Ok(outcome) => answer.send(outgoing::Replaced { cancelled: matches!(outcome, Replaced::Cancelled) }),
        Err(why) => answer.fail(why),
    })
}
