//! What pith does for extensions outside the session: HTTP requests, model calls and built-in tools.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use pith_agent::trace::{ChatParent, WatchedChat};
use pith_agent::{ModelClient, ToolContext, ToolOutput};
use pith_ai::{Redirect, Registry, Web, WebRequest};
use pith_ext::outgoing::{FetchHead, FetchReply, FetchRequest, ModelReply, ModelRequest, ToolReply, ToolRequest};
use pith_tools::shell::Shell;
use pith_tools::{Workbench, builtin_tool};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::model_request;
use crate::jobs::{Job, JobEnd};
use crate::session::Session;

/// Carries out a `fetch`, to its end or until the extension aborts it.
pub async fn serve_fetch(web: &Web, request: FetchRequest, reply: FetchReply) {
    let cancel = reply.cancel().clone();
    let outcome = tokio::select! {
        biased;
        () = cancel.cancelled() => Err("This operation was aborted".to_owned()),
        outcome = transfer(web, request, &reply) => outcome,
    };
    reply.finish(outcome);
}

async fn transfer(web: &Web, request: FetchRequest, reply: &FetchReply) -> Result<(), String> {
    let FetchRequest { url, method, headers, redirect, body } = request;
    let redirect = match redirect.as_str() {
        "manual" => Redirect::Manual,
        "error" => Redirect::Refuse,
        _ => Redirect::Follow,
    };
    let mut response = web.send(WebRequest { method, url, headers, body: body.map(Into::into), redirect }).await?;
    reply.head(&FetchHead {
        status: response.status,
        status_text: std::mem::take(&mut response.status_text),
        headers: std::mem::take(&mut response.headers),
        url: std::mem::take(&mut response.url),
    });
    while let Some(bytes) = response.chunk().await? {
        reply.chunk(bytes.into());
    }
    Ok(())
}

/// Sends an extension's request to a model, and the answer back. `trace` is what it is part of.
pub async fn serve_model_request(
    registry: &Registry,
    client: Arc<dyn ModelClient>,
    block_images: bool,
    trace: Option<Arc<dyn ChatParent>>,
    request: ModelRequest,
    mut reply: ModelReply,
) {
    let (mut call, overrides) = match model_request::read(&request, registry) {
        Ok(read) => read,
        Err(error) => return reply.fail(error),
    };
    call.block_images = block_images;
    let mut watched = WatchedChat::begin(trace.as_deref(), &call);
    let mut events = client.stream_with(call, overrides, reply.cancel().clone());
    while let Some(event) = events.recv().await {
        watched.take(&event);
        reply.event(&event);
    }
}

/// Runs a built-in tool that an extension calls, to its end or until the extension aborts it.
pub async fn serve_tool(workbench: &Workbench, request: ToolRequest, reply: ToolReply) {
    let workbench = workbench_for(workbench, &request);
    let Some(tool) = builtin_tool(&request.name, &workbench) else {
        return reply.finish(&ToolOutput::error(format!("Tool {} not found", request.name)));
    };
    let (sender, mut updates) = mpsc::unbounded_channel();
    let context = ToolContext {
        call_id: request.call_id,
        cancel: reply.cancel().clone(),
        // The receiver is gone once the call has ended.
        update: Arc::new(move |output| drop(sender.send(output))),
        trace: None,
    };
    let arguments = tool.adapt(request.arguments);
    let running = tool.run(arguments, context);
    tokio::pin!(running);
    let output = loop {
        tokio::select! {
            biased;
            Some(output) = updates.recv() => reply.update(&output),
            output = &mut running => break output,
        }
    };
    while let Ok(output) = updates.try_recv() {
        reply.update(&output);
    }
    reply.finish(&output);
}

impl Session {
    pub(crate) fn fetch_for_extension(&mut self, request: FetchRequest, reply: FetchReply) {
        let web = self.extensions.web.clone();
        self.serve_extension(async move { serve_fetch(&web, request, reply).await });
    }

    pub(crate) fn run_tool_for_extension(&mut self, request: ToolRequest, reply: ToolReply) {
        let workbench = self.workbench().clone();
        self.serve_extension(async move { serve_tool(&workbench, request, reply).await });
    }

    pub(crate) fn stream_for_extension(&mut self, request: ModelRequest, reply: ModelReply) {
        let router = self.models.router();
        let client = if request.native { router.native().clone() } else { router.clone() as Arc<dyn ModelClient> };
        let (registry, block_images) = (self.models.registry().clone(), self.options.block_images);
        // A provider of an extension that hands on a call is part of that call, which has its span.
        let trace = self.chat_parent().filter(|_| !request.native);
        self.serve_extension(async move {
            serve_model_request(&registry, client, block_images, trace, request, reply).await;
        });
    }

    /// Runs work for extensions in a task that ends when they do.
    pub(super) fn serve_extension(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        let Some(handle) = self.extension_handle().cloned() else { return };
        self.jobs.spawn(Job::Background, async move {
            tokio::select! {
                biased;
                () = work => {}
                () = handle.gone() => {}
            }
            JobEnd::Done
        });
    }
}

/// The workbench for a built-in tool that an extension calls with options of its own.
fn workbench_for(workbench: &Workbench, request: &ToolRequest) -> Arc<Workbench> {
    let path = |name: &str| request.options.get(name).and_then(Value::as_str).map(PathBuf::from);
    // The `shellCommandPrefix` setting is for the agent's own commands only.
    let shell = Shell { path: path("shellPath").or_else(|| workbench.shell.path.clone()), prefix: None };
    let inherited = request.options.get("env").and_then(Value::as_object).map(variables);
    workbench.in_directory(workbench.base.cwd.join(&request.cwd), shell, inherited)
}

fn variables(object: &Map<String, Value>) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    object.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect()
}
