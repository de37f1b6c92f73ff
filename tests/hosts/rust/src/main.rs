//! Drives pith with Rust clients of others: `hosts CRATE PITH SCRIPT`.
//! Prints one line per feature: "FEATURE: ok" or "FEATURE: why not".

use std::error::Error;
use std::time::Duration;

type Outcome = Result<(), Box<dyn Error>>;

fn tell(feature: &str, outcome: Outcome) {
    match outcome {
        Ok(()) => println!("{feature}: ok"),
        Err(error) => println!("{feature}: {error}"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, pith, script] = arguments.as_slice() else { return Err("CRATE PITH SCRIPT".into()) };
    match name.as_str() {
        "pi-rpc-rs" => pi_rpc_rs(pith, script).await,
        "pi-rpc" => pi_rpc(pith, script).await,
        other => Err(format!("no such client: {other}").into()),
    }
}

async fn pi_rpc_rs(pith: &str, script: &str) -> Outcome {
    use pi_rpc_rs::session::{PiSession, PiSessionConfig, PiVersionCheck};
    use pi_rpc_rs::types::{AgentEvent, RpcEvent};

    let config = PiSessionConfig {
        pi_binary: pith.to_owned(),
        extra_args: vec!["--script".to_owned(), script.to_owned()],
        version_check: PiVersionCheck::Disabled,
        ..PiSessionConfig::default()
    };
    let session = PiSession::spawn(config).await?;
    let run = async |message: &str| -> Result<String, Box<dyn Error>> {
        let mut events = session.subscribe().await;
        session.prompt(message, None, None).await?;
        let end = async {
            while let Some(event) = events.recv().await {
                if matches!(event, RpcEvent::Agent(AgentEvent::AgentEnd { .. })) {
                    return;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), end).await?;
        Ok(format!("{:?}", session.get_last_assistant_text().await?))
    };
    let expect = |text: String, wanted: &str| -> Outcome {
        if text.contains(wanted) { Ok(()) } else { Err(format!("{text} instead of {wanted}").into()) }
    };
    tell("text", async { expect(run("hello").await?, "You said: hello") }.await);
    tell("tool call", async { expect(run("use the tool").await?, "It says 42.") }.await);
    let abort = async {
        session.prompt("a long story", None, None).await?;
        session.steer("be brief", None).await?;
        session.abort().await?;
        let state = session.get_state().await?;
        if state.is_streaming { Err("it still streams".into()) } else { Ok(()) }
    };
    tell("steer and abort", abort.await);
    let fork = async {
        let messages = session.get_fork_messages().await?;
        let first = messages.messages.first().ok_or("nothing to fork")?;
        session.fork(&first.entry_id).await?;
        session.get_tree().await?;
        Ok(())
    };
    tell("fork", fork.await);
    tell("new session", async { session.new_session(None).await.map(drop).map_err(Into::into) }.await);
    Ok(())
}

async fn pi_rpc(pith: &str, script: &str) -> Outcome {
    use pi_rpc::{Config, PiConnection, Transport};
    use std::process::Stdio;

    let mut child = tokio::process::Command::new(pith)
        .args(["--mode", "rpc", "--script", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (stdin, stdout) = (child.stdin.take().ok_or("no stdin")?, child.stdout.take().ok_or("no stdout")?);
    // It refuses versions it does not know, so it is told one it does.
    let (client, mut events, mut owner) = PiConnection::connect(Transport::new(stdout, stdin, "1.1.0")?, Config::default())?;
    tell("state", async { client.get_state().await.map(drop).map_err(Into::into) }.await);
    let text = async {
        client.prompt("hello").await?;
        let end = async {
            while let Some(record) = events.recv().await {
                if format!("{:?}", record?).starts_with("Known(AgentEnd") {
                    return Ok(());
                }
            }
            Err("the events ended".into())
        };
        tokio::time::timeout(Duration::from_secs(60), end).await?
    };
    tell("text", text.await);
    tell("messages", async { client.get_messages().await.map(drop).map_err(Into::into) }.await);
    owner.close().await;
    Ok(())
}
