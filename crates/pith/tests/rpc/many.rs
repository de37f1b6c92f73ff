//! Many sessions in one process: what one of them says, knows and stops does not affect the others.

use std::sync::Arc;
use std::thread;

use pith::embed::Shared;
use pith_testkit::{Api, Host, InProcess, ModelServer, Script, TempHome, Turn};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use crate::support::{assert_closed, of_type, texts};
use crate::transcripts::serve;

const N_SESSIONS: usize = 50;

/// One thread and one runtime in which all sessions of a test are served.
struct Process {
    sessions: mpsc::UnboundedSender<(InProcess, std::sync::mpsc::Sender<i32>)>,
}

impl Process {
    fn start() -> Self {
        let (sessions, mut requests) = mpsc::unbounded_channel::<(InProcess, std::sync::mpsc::Sender<i32>)>();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let shared = Arc::new(Shared::default());
            LocalSet::new().block_on(&runtime, async move {
                while let Some((inside, ended)) = requests.recv().await {
                    let shared = shared.clone();
                    tokio::task::spawn_local(async move {
                        let code = if serve(&shared, inside).await.is_ok() { 0 } else { 1 };
                        // The test may have ended already.
                        let _ = ended.send(code);
                    });
                }
            });
        });
        Process { sessions }
    }

    /// Opens a session in its own home, directory and environment.
    fn open(&self, server: &ModelServer, name: &str) -> Host {
        let home = TempHome::for_server(server);
        home.write_file("AGENTS.md", format!("You are {name}."));
        let agent = home.agent().display().to_string();
        let sessions = self.sessions.clone();
        let builder = Host::builder(env!("CARGO_BIN_EXE_pith")).rpc(Api::Anthropic).home(&home);
        builder.env("PITH_AGENT_DIR", &agent).env("SESSION_NAME", name).spawn_in_process(move |inside| {
            let (ended, end) = std::sync::mpsc::channel();
            sessions.send((inside, ended)).expect("the sessions are served");
            end.recv().unwrap_or(-1)
        })
    }
}

#[test]
fn fifty_sessions_stream_at_once_and_know_nothing_of_each_other() {
    // No answer ends before all have begun: each waits for the test after its first piece.
    let turn = || Turn::text("one two three").chunk(4).hold_after(1);
    let server = ModelServer::start(Script::of((0..N_SESSIONS).map(|_| turn())));
    let process = Process::start();
    let mut hosts: Vec<Host> = (0..N_SESSIONS).map(|n| process.open(&server, &format!("session {n}"))).collect();
    for (n, host) in hosts.iter_mut().enumerate() {
        let answer = host.ask(json!({"type": "prompt", "message": format!("prompt {n}")}));
        assert_eq!(answer["data"]["disposition"], "started", "{answer}");
    }
    for host in &mut hosts {
        host.wait(|frame| frame["assistantMessageEvent"]["type"] == "text_delta");
        assert_eq!(host.data(json!({"type": "get_state"}))["isStreaming"], true);
    }
    // One of them is stopped; the others go on.
    let aborted = hosts.len() / 2;
    assert_eq!(hosts[aborted].ask(json!({"type": "abort"}))["success"], true);
    (0..N_SESSIONS).for_each(|request| server.release(request));
    let ids: Vec<Value> =
        hosts.iter_mut().map(|host| host.data(json!({"type": "get_state"}))["sessionId"].clone()).collect();
    for (n, mut host) in hosts.into_iter().enumerate() {
        let settled = host.wait_type("agent_settled");
        assert_eq!(settled["aborted"], n == aborted, "session {n}");
        let environment = host.data(json!({"type": "bash", "command": "echo $SESSION_NAME in $PWD"}));
        let here = host.home().work().canonicalize().expect("the directory");
        assert_eq!(environment["output"], format!("session {n} in {}\n", here.display()));
        let (frames, code) = host.finish();
        assert_eq!(code, 0, "session {n}");
        assert_closed(&frames);
        let said: Vec<String> =
            of_type(&frames, "message_end").iter().map(|frame| texts(&frame["message"]["content"])).collect();
        assert_eq!(said[0], format!("prompt {n}"));
        assert_eq!(said[1] == "one two three", n != aborted, "session {n} said {said:?}");
    }
    assert!(ids.iter().enumerate().all(|(n, id)| !ids[..n].contains(id)), "each has its own id");
}
