//! A small, complete host: prompt, stream, steer, abort, dialog, host tool, fork, resume.
//!
//! ```sh
//! PITH=target/release/pith cargo run -p pith-client --example host
//! ```
//!
//! The model is scripted, so no key and no network is needed.
#![allow(clippy::print_stdout, reason = "it talks to a person")]

use std::error::Error;
use std::io::Write;
use std::path::Path;

use pith_client::protocol::Event;
use pith_client::protocol::commands::{ClearQueue, Fork, GetForkMessages, GetLastAssistantText, GetState};
use pith_client::protocol::host::UiMethod;
use pith_client::{HostTool, Pith, Run, Told};
use serde_json::json;

const ASK: &str = r#"export default (pi) => pi.registerCommand("ask", { handler: async (_, ctx) => {
  ctx.ui.notify(`Hello ${await ctx.ui.input("Your name?")}`);
} });"#;

/// Prints an answer as it grows.
async fn show(mut run: Run) -> Result<(), pith_client::Error> {
    while let Some(told) = run.next().await? {
        print!("{}", told.text_delta().unwrap_or_default());
        std::io::stdout().flush().ok();
    }
    println!();
    Ok(())
}

async fn start(directory: &Path, more: &[&str]) -> Result<Pith, pith_client::Error> {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let weather = HostTool::new("weather", "Tells the weather", parameters, |arguments, context| async move {
        context.update("looking out of the window");
        let city = arguments.get("city").and_then(|city| city.as_str()).ok_or("which city?")?;
        Ok::<_, &str>(format!("4 degrees in {city}"))
    });
    Pith::builder()
        .program(std::env::var_os("PITH").unwrap_or("pith".into()))
        .arguments(["--script", concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/script.json")])
        .arguments(["-e".into(), directory.join("ask.ts")])
        .arguments(more)
        .cwd(directory)
        .env("PITH_AGENT_DIR", directory.join("agent"))
        .tool(weather)
        .dialog(async |_| "Ada")
        .spawn()
        .await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("ask.ts"), ASK)?;
    let pith = start(directory.path(), &[]).await?;

    show(pith.run("how is the weather?").await?).await?; // prompt, stream, host tool

    let mut events = pith.listen(); // steer, then abort
    pith.prompt("a long story").await?;
    events.wait("message_update").await?;
    pith.steer("make it short").await?;
    pith.abort().await?;
    let settled = |told| match told {
        Told::Event(Event::AgentSettled { aborted, .. }) => Some(aborted),
        _ => None,
    };
    println!("aborted: {}", events.find(settled).await?);
    pith.call(ClearQueue {}).await?;

    show(pith.run("/ask").await?).await?; // dialog
    let notified = |told| match told {
        Told::UiRequest(request) => match request.method {
            UiMethod::Notify { message, .. } => Some(message),
            _ => None,
        },
        _ => None,
    };
    println!("extension: {}", events.find(notified).await?);

    let messages = pith.call(GetForkMessages {}).await?.messages; // fork
    let forked = pith.call(Fork { entry_id: messages[0].entry_id.clone(), restore_files: None }).await?;
    println!("fork before: {}", forked.text.unwrap_or_default());
    show(pith.run("and now something else").await?).await?;
    let path = pith.call(GetState {}).await?.session_file.ok_or("no session file")?;
    pith.close().await;

    let pith = start(directory.path(), &["--session", &path]).await?; // resume
    let text = pith.call(GetLastAssistantText {}).await?.text;
    println!("resumed with: {}", text.unwrap_or_default());
    pith.close().await;
    Ok(())
}
