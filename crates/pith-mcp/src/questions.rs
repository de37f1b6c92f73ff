//! Questions of a server to the user (`elicitation/create`), asked with the dialogs of the host.

mod fields;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pith_agent::{BoxFuture, mismatch};
use pith_protocol::host::{Page, UiAnswer, UiMethod};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout};
use url::Url;

use fields::{Field, Filled, fields};

/// The user of a session, whom servers may ask.
pub trait User: Send + Sync {
    /// Shows a dialog and returns the answer. A future that is dropped takes the dialog back. `call` is the tool call
    /// during which the server asks, if that is known.
    fn ask(&self, dialog: UiMethod, call: Option<&str>) -> BoxFuture<'static, UiAnswer>;

    /// Whether a form is handed over as a whole ([`UiMethod::Form`]). Otherwise its fields are asked for one by one.
    fn sees_forms(&self) -> bool;

    /// Called when a page that the user opened has done its work.
    fn page_done(&self, id: &str);
}

/// How long the user may take for all dialogs of a question.
pub const LIMIT: Duration = Duration::from_secs(5 * 60);
/// How often something is asked for that was filled with what does not fit.
const MAX_TRIES: usize = 3;

/// The questions of one server to the user of a session.
pub struct Questions {
    server: String,
    /// `None` if there is nobody to ask.
    user: Option<Arc<dyn User>>,
    waiting: Mutex<Waiting>,
    /// Pages that the user opened and that the server has not called done.
    pages: Mutex<HashSet<String>>,
}

/// The requests of a server that wait for an answer.
#[derive(Default)]
struct Waiting {
    n_open: usize,
    /// When the last of them was answered.
    answered: Option<Instant>,
}

/// What the user made of a question.
#[derive(Debug, PartialEq)]
pub enum Reaction {
    Accepted(Map<String, Value>),
    Declined,
    Cancelled,
}

impl Reaction {
    /// The result of the request.
    pub fn result(self) -> Value {
        match self {
            Reaction::Accepted(content) => json!({"action": "accept", "content": content}),
            Reaction::Declined => json!({"action": "decline"}),
            Reaction::Cancelled => json!({"action": "cancel"}),
        }
    }
}

/// The user, and the tool call that they are asked about.
struct Asker<'a> {
    user: &'a dyn User,
    call: Option<&'a str>,
}

impl Asker<'_> {
    fn ask(&self, dialog: UiMethod) -> BoxFuture<'static, UiAnswer> {
        self.user.ask(dialog, self.call)
    }
}

impl Questions {
    pub fn of(server: &str, user: Option<Arc<dyn User>>) -> Self {
        Questions { server: server.to_owned(), user, waiting: Mutex::default(), pages: Mutex::default() }
    }

    /// Whether somebody can answer.
    pub fn has_user(&self) -> bool {
        self.user.is_some()
    }

    /// When a request of the server last waited for its answer: now, if one does. The time of calls stands still until
    /// then.
    pub fn last_waited(&self) -> Option<Instant> {
        let waiting = self.waiting();
        if waiting.n_open > 0 { Some(Instant::now()) } else { waiting.answered }
    }

    /// Counts a request of the server that waits for its answer, until the returned value is dropped.
    pub fn open(&self) -> Open<'_> {
        self.waiting().n_open += 1;
        Open(self)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks whether something may be done. Nobody there, or no answer in time, means no.
    pub async fn confirm(&self, title: String, message: String) -> bool {
        let Some(user) = &self.user else { return false };
        matches!(timeout(LIMIT, user.ask(confirm(title, message), None)).await, Ok(UiAnswer::Confirmed(true)))
    }

    /// Asks the user what a server wants to know during a call. Nobody there declines at once.
    pub async fn elicit(&self, params: &Value, call: Option<&str>) -> Reaction {
        let Some(user) = self.user.as_deref() else { return Reaction::Declined };
        let _open = self.open();
        let asker = Asker { user, call };
        let asked = async {
            match params.get("mode").and_then(Value::as_str) {
                Some("url") => self.open_page(&asker, params).await,
                _ => self.fill_form(&asker, params).await,
            }
        };
        timeout(LIMIT, asked).await.unwrap_or(Reaction::Cancelled)
    }

    /// Called when a server says that what a page was for is done. Pages that the user did not open are ignored.
    pub fn page_done(&self, elicitation: &str) {
        let id = self.page_id(elicitation);
        if self.pages().remove(&id)
            && let Some(user) = &self.user
        {
            user.page_done(&id);
        }
    }

    /// Names a page so that no other server's is called the same.
    fn page_id(&self, elicitation: &str) -> String {
        format!("{}/{elicitation}", self.server)
    }

    fn pages(&self) -> MutexGuard<'_, HashSet<String>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows an address with its host; the user opens it, pith never does.
    async fn open_page(&self, asker: &Asker<'_>, params: &Value) -> Reaction {
        let text = |key: &str| params.get(key).and_then(Value::as_str).unwrap_or_default();
        let address = text("url");
        let host = Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned));
        let Some(host) = host else { return Reaction::Declined };
        let title = format!("{} asks you to open a page of {host}", self.server);
        let message = format!("{}\n\n{address}", message(params));
        let id = self.page_id(text("elicitationId"));
        let page = Some(Page { id: id.clone(), url: address.to_owned() });
        let reaction = confirmed(asker.ask(UiMethod::Confirm { title, message, timeout: limit(), page }).await);
        if matches!(reaction, Reaction::Accepted(_)) {
            self.pages().insert(id);
        }
        reaction
    }

    async fn fill_form(&self, asker: &Asker<'_>, params: &Value) -> Reaction {
        let lead = format!("{} asks: {}", self.server, message(params));
        let schema = params.get("requestedSchema");
        if asker.user.sees_forms()
            && let Some(schema) = schema
        {
            return fill_whole(asker, &lead, schema).await;
        }
        let fields: Vec<Field> = schema.map(fields).unwrap_or_default();
        if fields.is_empty() {
            let dialog = confirm(format!("{} asks", self.server), message(params).to_owned());
            return confirmed(asker.ask(dialog).await);
        }
        let mut content = Map::new();
        for field in fields {
            match field.fill(asker, &lead).await {
                Filled::With(value) => drop(content.insert(field.name, value)),
                Filled::LeftOut => {}
                Filled::Cancelled => return Reaction::Cancelled,
            }
        }
        Reaction::Accepted(content)
    }
}

/// Shows the whole form; again if what was filled in does not fit it.
async fn fill_whole(asker: &Asker<'_>, lead: &str, schema: &Value) -> Reaction {
    let mut message = lead.to_owned();
    for _ in 0..MAX_TRIES {
        let answer = match asker.ask(UiMethod::Form { message, schema: schema.clone() }).await {
            UiAnswer::Value(answer) => answer,
            UiAnswer::Confirmed(false) => return Reaction::Declined,
            UiAnswer::Confirmed(true) | UiAnswer::Cancelled | UiAnswer::Malformed(_) => return Reaction::Cancelled,
        };
        let Ok(Value::Object(content)) = serde_json::from_str(&answer) else { return Reaction::Cancelled };
        match mismatch(schema, &Value::Object(content.clone())) {
            None => return Reaction::Accepted(content),
            Some(why) => message = format!("{lead}\n({why})"),
        }
    }
    Reaction::Cancelled
}

/// A request of a server that waits for its answer.
pub struct Open<'a>(&'a Questions);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        waiting.n_open -= 1;
        waiting.answered = Some(Instant::now());
    }
}

fn message(params: &Value) -> &str {
    params.get("message").and_then(Value::as_str).unwrap_or_default()
}

fn confirm(title: String, message: String) -> UiMethod {
    UiMethod::Confirm { title, message, timeout: limit(), page: None }
}

fn confirmed(answer: UiAnswer) -> Reaction {
    match answer {
        UiAnswer::Confirmed(true) => Reaction::Accepted(Map::new()),
        UiAnswer::Confirmed(false) => Reaction::Declined,
        UiAnswer::Value(_) | UiAnswer::Cancelled | UiAnswer::Malformed(_) => Reaction::Cancelled,
    }
}

/// The same, as dialogs have it.
pub fn limit() -> Option<u64> {
    u64::try_from(LIMIT.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_of_calls_stands_still_until_the_last_answer() {
        let questions = Questions::of("s", None);
        assert_eq!(questions.last_waited(), None);
        let (first, second) = (questions.open(), questions.open());
        drop(first);
        tokio::time::advance(Duration::from_secs(50)).await;
        assert_eq!(questions.last_waited(), Some(Instant::now()));
        drop(second);
        let answered = Instant::now();
        tokio::time::advance(Duration::from_secs(50)).await;
        assert_eq!(questions.last_waited(), Some(answered));
    }

    /// A user with prepared answers, who remembers the dialogs that were shown and the pages that are done.
    #[derive(Default)]
    struct Prepared {
        answers: Mutex<VecDeque<UiAnswer>>,
        shown: Mutex<Vec<UiMethod>>,
        done: Mutex<Vec<String>>,
        sees_forms: bool,
    }

    impl User for Prepared {
        fn ask(&self, dialog: UiMethod, _call: Option<&str>) -> BoxFuture<'static, UiAnswer> {
            self.shown.lock().expect("no panic").push(dialog);
            let answer = self.answers.lock().expect("no panic").pop_front().unwrap_or(UiAnswer::Cancelled);
            Box::pin(async move { answer })
        }

        fn sees_forms(&self) -> bool {
            self.sees_forms
        }

        fn page_done(&self, id: &str) {
            self.done.lock().expect("no panic").push(id.to_owned());
        }
    }

    fn prepared(answers: impl IntoIterator<Item = UiAnswer>) -> Prepared {
        Prepared { answers: Mutex::new(answers.into_iter().collect()), ..Prepared::default() }
    }

    /// Asks a user, and returns what came of it and the dialogs that were shown.
    async fn asked_of(user: Prepared, params: &Value) -> (Reaction, Vec<UiMethod>) {
        let user = Arc::new(user);
        let reaction = Questions::of("git", Some(user.clone())).elicit(params, None).await;
        let shown = std::mem::take(&mut *user.shown.lock().expect("no panic"));
        (reaction, shown)
    }

    async fn asked(params: Value, answers: impl IntoIterator<Item = UiAnswer>) -> (Reaction, Vec<UiMethod>) {
        asked_of(prepared(answers), &params).await
    }

    fn form(properties: Value, required: &[&str]) -> Value {
        json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": properties, "required": required}})
    }

    fn accepted(content: Value) -> Reaction {
        Reaction::Accepted(content.as_object().expect("an object").clone())
    }

    #[tokio::test]
    async fn every_kind_of_field_has_its_dialog() {
        let properties = json!({
            "age": {"type": "integer", "title": "Age", "description": "in years"},
            "kind": {"type": "string", "enum": ["a", "b"], "enumNames": ["Ay", "Bee"]},
            "name": {"type": "string"},
            "size": {"type": "number", "default": 1.5},
            "sure": {"type": "boolean"},
            "tags": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "Ex"}, {"const": "y", "title": "Why"}]}},
        });
        let answers = ["Ann", "old", "7", "Bee", "", "Yes", "Ex, y"].map(UiAnswer::from);
        let (reaction, shown) = asked(form(properties, &["name"]), answers).await;
        let content = json!({"name": "Ann", "age": 7, "kind": "b", "size": 1.5, "sure": true, "tags": ["x", "y"]});
        assert_eq!(reaction, accepted(content));
        let titles: Vec<&str> = shown
            .iter()
            .map(|dialog| match dialog {
                UiMethod::Input { title, .. } | UiMethod::Select { title, .. } => title.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [
            "git asks: Who?\nname",
            "git asks: Who?\nAge: in years",
            "git asks: Who?\nAge: in years (a whole number is needed)",
            "git asks: Who?\nkind",
            "git asks: Who?\nsize",
            "git asks: Who?\nsure",
            "git asks: Who?\ntags",
        ];
        assert_eq!(titles, expected);
    }

    #[tokio::test]
    async fn a_form_is_left_in_the_middle_or_filled_in_part() {
        let properties = json!({"a": {"type": "string"}, "b": {"type": "string"}});
        let (reaction, _) = asked(form(properties.clone(), &["a"]), ["x".into(), UiAnswer::Cancelled]).await;
        assert_eq!(reaction, Reaction::Cancelled);
        let (reaction, _) = asked(form(properties.clone(), &["a"]), ["x", ""].map(UiAnswer::from)).await;
        assert_eq!(reaction, accepted(json!({"a": "x"})));
        let (reaction, shown) = asked(form(properties, &["a"]), ["", "", "", "x"].map(UiAnswer::from)).await;
        assert_eq!((reaction, shown.len()), (Reaction::Cancelled, MAX_TRIES));
    }

    #[tokio::test]
    async fn a_question_without_fields_and_an_address_are_confirmed() {
        for (answer, expected) in [
            (true.into(), accepted(json!({}))),
            (false.into(), Reaction::Declined),
            (UiAnswer::Cancelled, Reaction::Cancelled),
        ] {
            let (reaction, _) = asked(form(json!({}), &[]), [answer]).await;
            assert_eq!(reaction, expected);
        }
        let page = json!({"mode": "url", "message": "Sign in", "url": "https://example.com/x?y", "elicitationId": "1"});
        let (reaction, shown) = asked(page, [true.into()]).await;
        assert_eq!(reaction, accepted(json!({})));
        let UiMethod::Confirm { title, message, page, .. } = &shown[0] else { panic!("{shown:?}") };
        assert!(page.as_ref().is_some_and(|page| message.ends_with(&page.url)), "{shown:?}");
        assert_eq!(title, "git asks you to open a page of example.com");
        assert_eq!(message, "Sign in\n\nhttps://example.com/x?y");
        let (reaction, shown) = asked(json!({"mode": "url", "url": "no address"}), []).await;
        assert_eq!((reaction, shown.len()), (Reaction::Declined, 0));
    }

    #[tokio::test]
    async fn a_whole_form_is_shown_until_what_is_filled_in_fits_it() {
        let params = form(json!({"age": {"type": "integer", "maximum": 9}}), &["age"]);
        let check = async |answers: &[UiAnswer], expected: Reaction, n_shown: usize| {
            let user = Prepared { sees_forms: true, ..prepared(answers.to_vec()) };
            let (reaction, shown) = asked_of(user, &params).await;
            assert_eq!((reaction, shown.len()), (expected, n_shown), "{answers:?}: {shown:?}");
            shown
        };
        let shown = check(&[r#"{"age": 10}"#.into(), r#"{"age": 7}"#.into()], accepted(json!({"age": 7})), 2).await;
        let first = UiMethod::Form { message: "git asks: Who?".into(), schema: params["requestedSchema"].clone() };
        assert_eq!(shown[0], first);
        let UiMethod::Form { message, .. } = &shown[1] else { panic!("{shown:?}") };
        assert!(message.starts_with("git asks: Who?\n(") && message.contains("age"), "{message}");
        check(&["{}".into(), "{}".into(), "{}".into()], Reaction::Cancelled, MAX_TRIES).await;
        check(&["[]".into()], Reaction::Cancelled, 1).await;
        check(&[false.into()], Reaction::Declined, 1).await;
        check(&[UiAnswer::Cancelled], Reaction::Cancelled, 1).await;
    }

    #[tokio::test]
    async fn only_pages_that_were_opened_can_be_done_and_once() {
        let page = |id: &str| json!({"mode": "url", "message": "", "url": "https://example.com/", "elicitationId": id});
        let user = Arc::new(prepared([true.into(), false.into()]));
        let questions = Questions::of("git", Some(user.clone()));
        questions.elicit(&page("1"), None).await;
        questions.elicit(&page("2"), None).await;
        ["1", "1", "2", "3"].into_iter().for_each(|id| questions.page_done(id));
        assert_eq!(*user.done.lock().expect("no panic"), ["git/1"]);
    }

    #[tokio::test]
    async fn nobody_declines() {
        assert_eq!(Questions::of("git", None).elicit(&form(json!({}), &[]), None).await, Reaction::Declined);
    }
}
