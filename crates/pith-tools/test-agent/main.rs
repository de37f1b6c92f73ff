//! A stand-in for pith in tests: supervises commands like it, and can be killed.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pith_agent::{Tool, ToolContext, ToolOutput};
use pith_tools::process::{SHUTDOWN_GRACE, SUPERVISOR_ARGUMENT, Supervisor, supervisor_main};
use pith_tools::{Workbench, WorkbenchOptions, builtin_tools};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.next_if(|first| first == SUPERVISOR_ARGUMENT).is_some() {
        return supervisor_main(arguments);
    }
    let mut text = || arguments.next().expect("an argument").into_string().expect("plain text");
    let (role, cwd, subject) = (text(), text(), text());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let options = WorkbenchOptions {
            supervisor: Some(Supervisor::this_program().expect("our own program")),
            keep_background: role == "keep",
            temp: PathBuf::from(&cwd),
            ..WorkbenchOptions::default()
        };
        let workbench = Workbench::new(PathBuf::from(cwd), options);
        match role.as_str() {
            // Runs a command; the test kills this process meanwhile, or closes its input afterwards.
            "run" | "keep" => {
                let output = call(&workbench, "bash", json!({"command": subject}), |_| {}).await;
                say(&format!("{:?}", output.content));
                let _ = std::io::stdin().read(&mut [0]);
                workbench.jobs.shutdown_all(SHUTDOWN_GRACE).await;
            }
            "write" => write_forever(&workbench, &subject).await,
            "read" => read_end(&workbench, &subject).await,
            "call" => {
                let call_and_arguments: Value = serde_json::from_str(&subject).expect("JSON");
                let name = call_and_arguments[0].as_str().expect("a name");
                let output = call(&workbench, name, call_and_arguments[1].clone(), |_| {}).await;
                say(output.content[0].as_text().expect("text"));
            }
            "flood" => flood(&workbench, &subject).await,
            _ => panic!("unknown role {role}"),
        }
    });
    ExitCode::SUCCESS
}

async fn call(
    workbench: &Arc<Workbench>,
    name: &str,
    arguments: Value,
    update: impl Fn(ToolOutput) + Send + Sync + 'static,
) -> ToolOutput {
    let tools = builtin_tools(workbench);
    let tool = tools.iter().find(|tool| &*tool.spec().name == name).expect("a built-in tool");
    let context =
        ToolContext { call_id: "c".into(), cancel: CancellationToken::new(), update: Arc::new(update), trace: None };
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    Arc::<dyn Tool>::clone(tool).run(arguments, context).await
}

/// Writes a file over and over, each version filled with one letter.
async fn write_forever(workbench: &Arc<Workbench>, path: &str) {
    const SIZE: usize = 50 << 20;
    for letter in ["a", "b"].iter().cycle() {
        let output = call(workbench, "write", json!({"path": path, "content": letter.repeat(SIZE)}), |_| {}).await;
        assert!(!output.is_error, "{output:?}");
        say("written");
    }
}

/// Reports how much memory it takes to read the last line but one of a file.
async fn read_end(workbench: &Arc<Workbench>, path: &str) {
    call(workbench, "read", json!({"path": "small"}), |_| {}).await;
    let before = resident();
    let output = call(workbench, "read", json!({"path": path, "offset": 2002, "limit": 1}), |_| {}).await;
    say(&json!({"text": output.content[0].as_text(), "kilobytes": resident().saturating_sub(before)}).to_string());
}

/// Reports how much memory and how many bytes of events a flood of output costs.
async fn flood(workbench: &Arc<Workbench>, command: &str) {
    call(workbench, "bash", json!({"command": "true"}), |_| {}).await;
    let before = resident();
    let events = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&events);
    let update = move |output: ToolOutput| {
        let text: usize = output.content.iter().filter_map(|block| block.as_text()).map(str::len).sum();
        let details = output.details.map_or(0, |details| details.to_string().len());
        count.fetch_add(text + details, Ordering::SeqCst);
    };
    call(workbench, "bash", json!({"command": command}), update).await;
    let grown = resident().saturating_sub(before);
    say(&json!({"events": events.load(Ordering::SeqCst), "kilobytes": grown}).to_string());
}

/// The most memory ever resident, in kilobytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_ascii_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

fn say(text: &str) {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).expect("the test listens");
}
