//! Earlier sessions of the same directory, and the question whether a project is trusted.

use std::io::{self, BufRead};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pith_resources::Question;
use pith_store::SessionSummary;
use pith_visible::write_stderr;
use serde_json::json;

use super::Chat;
use crate::modes::client::Client;
use crate::modes::tool_line::cut;

/// How many sessions are listed at most.
const MAX_LISTED: usize = 20;

impl Chat {
    /// Earlier sessions, newest first, without the one that is open.
    async fn earlier(&self, client: &mut Client) -> Vec<SessionSummary> {
        let Some(directory) = &self.sessions else { return Vec::new() };
        let state = client.call(json!({"type": "get_state"})).await.unwrap_or_default();
        let mut sessions = pith_store::list(directory, Some(&self.cwd));
        sessions.retain(|session| state["sessionId"] != session.id.as_str());
        sessions.sort_by_key(|session| std::cmp::Reverse(session.modified));
        sessions.truncate(MAX_LISTED);
        sessions
    }

    pub(super) async fn mention_last_session(&self, client: &mut Client) {
        if let Some(last) = self.earlier(client).await.first() {
            self.say(&format!("Last session here: {}. /resume continues it.", title(last)));
        }
    }

    pub(super) async fn list_sessions(&self, client: &mut Client) {
        let sessions = self.earlier(client).await;
        if sessions.is_empty() {
            return self.say("No earlier sessions in this directory.");
        }
        for (index, session) in sessions.iter().enumerate() {
            self.say(&format!("{:>3}  {}", index + 1, title(session)));
        }
        self.say("/resume <number> continues one.");
    }

    /// `/resume`, `/resume 3`, or a path.
    pub(super) async fn resume(&mut self, client: &mut Client, which: &str) {
        let earlier = self.earlier(client).await;
        let path = match which.parse::<usize>() {
            Ok(number) => earlier.get(number.wrapping_sub(1)).map(|session| session.path.clone()),
            Err(_) if which.is_empty() => earlier.first().map(|session| session.path.clone()),
            Err(_) => Some(self.cwd.join(which)),
        };
        let Some(path) = path else { return self.complain("there is no such session; /sessions lists them") };
        match client.call(json!({"type": "switch_session", "sessionPath": path.to_string_lossy()})).await {
            Err(error) => self.complain(&error),
            Ok(_) => {
                let state = client.call(json!({"type": "get_state"})).await.unwrap_or_default();
                self.show_last_answer(client, state["messageCount"].as_u64().unwrap_or(0)).await;
            }
        }
    }

    pub(super) async fn show_last_answer(&self, client: &mut Client, n_messages: u64) {
        self.say(&format!("Continuing a session of {n_messages} messages."));
        let last = client.call(json!({"type": "get_last_assistant_text"})).await.unwrap_or_default();
        if let Some(text) = last["text"].as_str() {
            self.say(&format!("\n{text}\n"));
        }
    }
}

fn title(session: &SessionSummary) -> String {
    let name = session.name.as_deref().unwrap_or(&session.first_message);
    format!("\"{}\" ({})", cut(name), ago(session.modified))
}

/// Formats an age, such as `2 h ago`.
fn ago(modified: i64) -> String {
    let then = UNIX_EPOCH + Duration::from_millis(u64::try_from(modified).unwrap_or(0));
    let seconds = SystemTime::now().duration_since(then).unwrap_or_default().as_secs();
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// Asks the user at the terminal; anything but yes or no is no answer.
pub fn ask(question: &Question) -> Option<bool> {
    write_stderr(&format!("{}\n{}\n\nTrust it from now on? [y/n] ", question.title, question.message));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).ok()?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    }
}
