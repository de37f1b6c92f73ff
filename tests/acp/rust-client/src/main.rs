//! Drives `pith acp` with the official Rust SDK; prints one line per feature.
//!
//!     acp-rust-client PITH SCRIPT

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CloseSessionRequest, ContentBlock, InitializeRequest, ListSessionsRequest, LoadSessionRequest, NewSessionRequest,
    PromptRequest, SessionId, SessionNotification, SessionUpdate, StopReason, TextContent,
};
use agent_client_protocol::{AcpAgent, Agent, Client, Error};

/// What the agent has told, in order.
type Updates = Arc<Mutex<Vec<SessionUpdate>>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [pith, script] = arguments.as_slice() else { return Err("usage: acp-rust-client PITH SCRIPT".into()) };
    let agent = AcpAgent::from_str(&format!("{pith} acp --script {script}"))?;
    let updates = Updates::default();
    let heard = updates.clone();
    Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _connection| {
                heard.lock().expect("no panic").push(notification.update);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_with(agent, |connection: ConnectionTo<Agent>| async move {
            drive(&connection, &updates).await;
            Ok(())
        })
        .await?;
    Ok(())
}

async fn drive(connection: &ConnectionTo<Agent>, updates: &Updates) {
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let greeting = connection.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await;
    feature("initialize", greeting.as_ref().map(|greeting| greeting.protocol_version == ProtocolVersion::V1));
    let opened = connection.send_request(NewSessionRequest::new(cwd.clone())).block_task().await;
    feature("new session", opened.as_ref().map(|_| true));
    let Ok(opened) = opened else { return };
    let session = opened.session_id;
    let text = prompt(connection, &session, "hello").await;
    feature("text", text.as_ref().map(|ended| *ended && said(updates).contains("You said: hello")));
    let call = prompt(connection, &session, "use the tool").await;
    let called = |update: &SessionUpdate| matches!(update, SessionUpdate::ToolCall(_));
    feature("tool call", call.as_ref().map(|ended| *ended && updates.lock().expect("no panic").iter().any(called)));
    let list = connection.send_request(ListSessionsRequest::new()).block_task().await;
    let listed = |list: &Vec<_>| !list.is_empty();
    feature("list", list.map(|list| listed(&list.sessions)).as_ref().map(|found| *found));
    let closed = connection.send_request(CloseSessionRequest::new(session.clone())).block_task().await;
    feature("close", closed.as_ref().map(|_| true));
    updates.lock().expect("no panic").clear();
    let loaded = connection.send_request(LoadSessionRequest::new(session, cwd)).block_task().await;
    feature("load with replay", loaded.as_ref().map(|_| said(updates).contains("You said: hello")));
}

async fn prompt(connection: &ConnectionTo<Agent>, session: &SessionId, words: &str) -> Result<bool, Error> {
    let blocks = vec![ContentBlock::Text(TextContent::new(words))];
    let answer = connection.send_request(PromptRequest::new(session.clone(), blocks)).block_task().await?;
    Ok(answer.stop_reason == StopReason::EndTurn)
}

/// The text of all answers.
fn said(updates: &Updates) -> String {
    let text = |update: &SessionUpdate| match update {
        SessionUpdate::AgentMessageChunk(chunk) => match &chunk.content {
            ContentBlock::Text(text) => Some(text.text.clone()),
            _ => None,
        },
        _ => None,
    };
    updates.lock().expect("no panic").iter().filter_map(text).collect()
}

fn feature(name: &str, result: Result<bool, &Error>) {
    match result {
        Ok(true) => println!("{name}: ok"),
        Ok(false) => println!("{name}: not as expected"),
        Err(error) => println!("{name}: {}", error.message),
    }
}
