//! Drives pith with Rust clients of others: `hosts CRATE PITH SCRIPT EXTENSION`.
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
    let [name, pith, script, extension] = arguments.as_slice() else {
        return Err("CRATE PITH SCRIPT EXTENSION".into());
    };
    let options = ["--script", script, "-e", extension];
    match name.as_str() {
        "pi-rpc-rs" => pi_rpc_rs(pith, &options).await,
        "pi-rpc" => pi_rpc(pith, &options).await,
        other => Err(format!("no such client: {other}").into()),
    }
}

/// What `dialogs.ts` tells when the drivers have answered.
const ANSWERS: &str = r#"answers ["second",true,"main","Mend it"]"#;

async fn pi_rpc_rs(pith: &str, options: &[&str]) -> Outcome {
    use pi_rpc_rs::session::{PiSession, PiSessionConfig, PiVersionCheck};
    use pi_rpc_rs::types::RpcExtensionUIRequestKind as Kind;
    use pi_rpc_rs::types::{AgentEvent, ExtensionUIResponseType, RpcEvent, RpcExtensionUIResponse};

    let config = PiSessionConfig {
        pi_binary: pith.to_owned(),
        extra_args: options.iter().map(|option| (*option).to_owned()).collect(),
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
    let dialogs = async {
        let mut events = session.subscribe().await;
        let answer = async {
            while let Some(event) = events.recv().await {
                let RpcEvent::ExtensionUI(request) = event else { continue };
                let (type_, id) = (ExtensionUIResponseType, request.id);
                let value = match request.kind {
                    Kind::Notify { message, .. } => return expect(message, ANSWERS),
                    Kind::Confirm { .. } => {
                        let yes = RpcExtensionUIResponse::Confirmed { type_, id, confirmed: true };
                        session.respond_extension_ui(yes).await?;
                        continue;
                    }
                    Kind::Select { .. } => "second",
                    Kind::Input { .. } => "main",
                    Kind::Editor { .. } => "Mend it",
                    _ => continue,
                };
                let value = value.to_owned();
                session.respond_extension_ui(RpcExtensionUIResponse::Value { type_, id, value }).await?;
            }
            Err("the events ended".into())
        };
        let (asked, answered) =
            tokio::join!(session.prompt("/ask", None, None), tokio::time::timeout(Duration::from_secs(60), answer));
        asked?;
        answered?
    };
    tell("dialogs", dialogs.await);
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

async fn pi_rpc(pith: &str, options: &[&str]) -> Outcome {
    use pi_rpc::protocol::{Event, UiAnswer, UiMethod};
    use pi_rpc::{Config, PiConnection, Transport, UiPolicy};
    use std::process::Stdio;

    let mut child = tokio::process::Command::new(pith)
        .args(["--mode", "rpc"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (stdin, stdout) = (child.stdin.take().ok_or("no stdin")?, child.stdout.take().ok_or("no stdout")?);
    // It refuses versions it does not know, so it is told one it does.
    let config = Config { ui_policy: UiPolicy::Manual, ..Config::default() };
    let (client, mut events, mut owner) = PiConnection::connect(Transport::new(stdout, stdin, "1.1.0")?, config)?;
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
    let dialogs = async {
        let answer = async {
            while let Some(record) = events.recv().await {
                let Event::Ui(request) = record? else { continue };
                let answer = match &request.method {
                    UiMethod::Notify { message, .. } if message == ANSWERS => return Ok(()),
                    UiMethod::Notify { message, .. } => return Err(format!("{message} instead of {ANSWERS}").into()),
                    UiMethod::Confirm { .. } => UiAnswer::Confirmed(true),
                    UiMethod::Select { .. } => UiAnswer::Value("second".to_owned()),
                    UiMethod::Input { .. } => UiAnswer::Value("main".to_owned()),
                    UiMethod::Editor { .. } => UiAnswer::Value("Mend it".to_owned()),
                    _ => continue,
                };
                client.respond_ui(&request, answer).await?;
            }
            Err("the events ended".into())
        };
        let (asked, answered) =
            tokio::join!(client.prompt("/ask"), tokio::time::timeout(Duration::from_secs(60), answer));
        asked?;
        answered?
    };
    tell("dialogs", dialogs.await);
    tell("messages", async { client.get_messages().await.map(drop).map_err(Into::into) }.await);
    owner.close().await;
    Ok(())
}
