//! `pith mcp`: looks at servers, configures and tries them.

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pith_ai::{Clients, Registry, Timeouts, Web};
use pith_config::{DiagnosticKind, Environment};
use pith_mcp::config::Places;
use pith_mcp::{Options, Servers, Wanted};
use pith_protocol::answers::{McpServer, McpServers};
use pith_protocol::json;
use pith_secrets::Secrets;
use pith_tools::process::Supervisor;
use pith_tools::sandbox::Oversight;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::arguments::{Scope, USAGE, Wish, parse};
use super::login::login;
use super::{file, options};
use crate::cli::Cli;
use crate::lifecycle::Ending;
use crate::open::agent_dir;
use crate::program::Program;
use crate::project::Project;
use crate::{current_dir, rpc, show, warn};

/// Runs the subcommand and returns the exit code.
pub fn run(arguments: &[String], program: &Program) -> anyhow::Result<u8> {
    let wish = parse(arguments).map_err(anyhow::Error::msg)?;
    let cli = Cli::default();
    let environment = Environment::of_process();
    let agent_dir = agent_dir(rpc::dialect(&cli, program)?, &environment);
    let places = Places { agent_dir, environment, cwd: current_dir()? };
    let file_of = |scope: Scope| match scope {
        Scope::User => places.user_file(),
        Scope::Project => places.project_file(),
    };
    match wish {
        Wish::Help => show(USAGE),
        Wish::Add { name, scope, entry } => {
            let path = file_of(scope);
            file::add(&path, &name, entry)?;
            show(&format!("added {name} to {}\n", path.display()))
        }
        Wish::Remove { name, scope } => {
            let path = file_of(scope);
            file::remove(&path, &name)?;
            show(&format!("removed {name} from {}\n", path.display()))
        }
        Wish::List { is_json } => connected(&cli, places, async |servers| list(&servers, is_json).await),
        Wish::Import { program, is_dry } => {
            let lines = file::import(&places.user_file(), program, &places.environment, is_dry)?;
            let nothing = format!("{} has no MCP servers\n", program.name());
            show(&if lines.is_empty() { nothing } else { lines.join("\n") + "\n" })
        }
        Wish::Login { name, with } => connected(&cli, places, async |servers| login(&servers, &name, with).await),
        Wish::Logout { name } => connected(&cli, places, async |servers| {
            let is_done = servers.logout(&name).await.map_err(anyhow::Error::msg)?;
            show(&format!("{}{name}\n", if is_done { "signed out of " } else { "nobody was signed in to " }))
        }),
        Wish::Test { name, call } => connected(&cli, places, async |servers| test(&servers, &name, call).await),
    }
}

/// Runs something with the servers of this directory, until a signal ends it, and ends them.
fn connected(cli: &Cli, places: Places, work: impl AsyncFnOnce(Servers) -> anyhow::Result<u8>) -> anyhow::Result<u8> {
    let mut project = Project::new(cli, &places.agent_dir, &places.environment, None);
    let settings = project.settings(&places.cwd).settings;
    let registry =
        Registry::load(&places.agent_dir, places.environment.clone(), &settings).telling(Secrets::of_process());
    let trust = project.trust_in_servers(&places.cwd);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ending = Ending::default();
    runtime.block_on(async {
        ending.watch_signals();
        tokio::spawn(ending.clone().limit_when_stopped());
        let hidden = Box::new(move || registry.credential_variables());
        let oversight = Oversight { supervisor: Supervisor::this_program().ok(), ..Oversight::default() };
        let clients = Arc::new(Clients::with_proxy(settings.http_proxy.clone()));
        let web = Web::new(clients, Timeouts::default()).patient();
        let options = options(cli, places, Box::new(move |_| trust), hidden, oversight);
        let renewals = options.renewals.clone();
        let servers = Servers::new(Options { web, ..options });
        servers.load();
        let done = tokio::select! {
            biased;
            () = ending.stop.cancelled() => Ok(u8::try_from(ending.code())?),
            done = work(servers.clone()) => done,
        };
        servers.close().await;
        renewals.end().await;
        done
    })
}

async fn list(servers: &Servers, is_json: bool) -> anyhow::Result<u8> {
    servers.connect(None).await;
    let shown = servers.shown();
    let problems: Vec<_> = servers.diagnostics().into_iter().filter(|found| found.code == "mcp_config").collect();
    for problem in &problems {
        let path = problem.path.as_ref().map(|path| format!("{}: ", path.display())).unwrap_or_default();
        warn(&format!("Warning: {path}{}", problem.message));
    }
    let is_good = |server: &McpServer| ["ready", "disabled"].contains(&&*server.state.state);
    let is_bad = problems.iter().any(|problem| problem.kind == DiagnosticKind::Error);
    let code = u8::from(is_bad || !shown.iter().all(is_good));
    if is_json {
        show(&format!("{}\n", json::to_string(&McpServers { servers: shown })))?;
    } else if shown.is_empty() {
        show("no MCP servers (pith mcp add NAME -- PROGRAM ...)\n")?;
    } else {
        show(&shown.iter().map(described).collect::<String>())?;
    }
    Ok(code)
}

fn described(server: &McpServer) -> String {
    let mut text = format!("{}  {}", server.state.name, server.state.state);
    if let Some(version) = &server.protocol_version {
        let _ = write!(text, ", {} tools, {version}", server.tools.len());
    }
    if let Some(info) = &server.server_info {
        let _ = write!(text, ", {} {}", info.name, info.version);
    }
    if let Some(path) = &server.path {
        let _ = write!(text, "  ({path})");
    }
    text.push('\n');
    if let Some(error) = &server.state.error {
        let _ = writeln!(text, "  {error}");
    }
    for tool in &server.tools {
        let _ = writeln!(text, "  {}", tool.name);
    }
    for prompt in &server.prompts {
        let _ = writeln!(text, "  /{prompt}");
    }
    text
}

async fn test(servers: &Servers, name: &str, call: Option<(String, Map<String, Value>)>) -> anyhow::Result<u8> {
    let Some(server) = servers.find(name) else {
        anyhow::bail!("there is no MCP server \"{name}\" (pith mcp list)");
    };
    let began = Instant::now();
    let connection = match server.connect(Wanted::Asked).await {
        Ok(connection) => connection,
        Err(failure) => {
            warn(&format!("{name}: {}", failure.why));
            return Ok(1);
        }
    };
    let time = milliseconds(began.elapsed());
    let snapshot = server.snapshot();
    let mut text = format!("started in {time} ms\n");
    if let Some(offer) = &snapshot.offer {
        let _ = writeln!(text, "protocol {}", offer.protocol_version);
        if let Some(info) = &offer.server_info {
            let _ = writeln!(text, "server {} {}", info.name, info.version);
        }
        let _ = writeln!(text, "{} tools", offer.tools.len());
        for tool in &offer.tools {
            let _ = writeln!(text, "  {}  {}", tool.name, tool.description.lines().next().unwrap_or_default());
        }
        for prompt in &offer.prompts {
            let description = prompt.description.as_deref().unwrap_or_default();
            let _ = writeln!(text, "prompt {}  {}", prompt.name, description.lines().next().unwrap_or_default());
        }
        if offer.has_resources {
            text.push_str("has resources\n");
        }
    }
    for problem in &snapshot.problems {
        let _ = writeln!(text, "problem: {problem}");
    }
    show(&text)?;
    let mut code = 0;
    if let Some((tool, arguments)) = call {
        let began = Instant::now();
        let report = |step: pith_mcp::Progress| {
            let total = step.total.map(|total| format!("/{total}")).unwrap_or_default();
            warn(&format!("progress {}{total} {}", step.progress, step.message.unwrap_or_default()));
        };
        match connection.call(&server.caller(None), &tool, arguments, None, &CancellationToken::new(), report).await {
            Ok(result) => {
                code = u8::from(result.get("isError") == Some(&Value::Bool(true)));
                let result = serde_json::to_string_pretty(&result)?;
                show(&format!("{tool} answered in {} ms:\n{result}\n", milliseconds(began.elapsed())))?;
            }
            Err(error) => {
                warn(&format!("{tool}: {error}"));
                code = 1;
            }
        }
    }
    let began = Instant::now();
    server.stop().await;
    let remarks = connection.remarks(usize::MAX);
    if !remarks.is_empty() {
        show(&format!("stderr:\n  {}\n", remarks.join("\n  ")))?;
    }
    show(&format!("ended in {} ms\n", milliseconds(began.elapsed())))?;
    Ok(code)
}

fn milliseconds(duration: Duration) -> u128 {
    duration.as_millis()
}
