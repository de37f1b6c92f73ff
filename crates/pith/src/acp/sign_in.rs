//! Pages that the editor opens for its user: those that MCP servers name, and those of a sign-in to one.

use pith_acp::acp::{CompleteElicitationNotification, ElicitationSessionScope, Error};
use pith_acp::dialog::{opened, page};
use pith_protocol::commands::McpLogin;
use pith_protocol::host::UiAnswer;

use super::conversation::{Conversation, of_command};

/// The states in which a sign-in has led to something.
const OVER: [&str; 3] = ["ready", "failed", "needs_auth"];

impl Conversation {
    /// Begins a sign-in and shows its page. Returns what the user is told; the end of it changes the server's state.
    pub async fn sign_in(&self, server: &str) -> Result<String, Error> {
        let url = self.seat.ask(McpLogin { name: server.to_owned() }).await.map_err(of_command)?.url;
        if !self.client.opens_pages() {
            return Ok(format!("Sign in to {server} on this page: {url}"));
        }
        let id = format!("pith-sign-in-{}", uuid::Uuid::new_v4());
        self.sign_ins.borrow_mut().insert(server.to_owned(), id.clone());
        let request = page(
            ElicitationSessionScope::new(self.session_id()),
            &id,
            &url,
            format!("Sign in to the MCP server {server}"),
        );
        let answer = self.requests.ask("elicitation/create", &request).await;
        match answer.map_or(UiAnswer::Cancelled, opened) {
            UiAnswer::Confirmed(true) => Ok(format!("{server} is started when you have signed in.")),
            _ => {
                self.sign_ins.borrow_mut().remove(server);
                Ok(format!("Nobody signs in to {server}."))
            }
        }
    }

    /// Called when a server says that a page of its has done its work.
    pub fn page_done(&self, id: &str) {
        self.requests.notify("elicitation/complete", &CompleteElicitationNotification::new(self.page_id(id)));
    }

    /// Names a page of a server so that no other session's is called the same.
    pub fn page_id(&self, id: &str) -> String {
        format!("{}/{id}", self.session_id())
    }

    /// Called when the state of a server has changed: the editor is told that a page has done its work.
    pub fn server_changed(&self, server: &str, state: &str) {
        let id = if OVER.contains(&state) { self.sign_ins.borrow_mut().remove(server) } else { None };
        if let Some(id) = id {
            self.requests.notify("elicitation/complete", &CompleteElicitationNotification::new(id));
        }
    }
}
