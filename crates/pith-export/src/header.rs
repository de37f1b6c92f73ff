//! The top of the page: what session this is and what it came to.

use std::io;

use pith_protocol::ToolSpec;

use crate::blocks::json;
use crate::html::Html;
use crate::outline::Outline;
use crate::page::Page;
use crate::words::{date, dollars, excerpt, grouped, short};

/// Returns the name of the session as people would give it.
pub(crate) fn title(page: &Page<'_>, outline: &Outline<'_>) -> String {
    match (page.tree.name(), outline.first_prompt()) {
        (Some(name), _) => name.to_owned(),
        (None, Some(prompt)) => excerpt(prompt, 80),
        (None, None) => format!("Session {}", page.tree.header().id),
    }
}

/// Writes title, facts and totals.
pub(crate) fn header(html: &mut Html<'_>, page: &Page<'_>, outline: &Outline<'_>) -> io::Result<()> {
    let header = page.tree.header();
    html.element("<header class=top><h1>", &title(page, outline), "</h1>")?;
    html.markup("<dl class=facts>")?;
    fact(html, "Session", &header.id)?;
    fact(html, "Directory", &header.cwd)?;
    fact(html, "Started", &date(header.created))?;
    fact(html, if outline.models.len() > 1 { "Models" } else { "Model" }, &outline.models.join(", "))?;
    fact(html, "Forked from", header.parent_session.as_deref().unwrap_or_default())?;
    html.markup("</dl>")?;
    totals(html, page)?;
    if let Some(prompt) = page.system_prompt {
        html.element(
            "<details class=fold><summary>System prompt <span class=note>",
            &short(prompt.len() as u64),
            " characters</span></summary>",
        )?;
        html.element("<pre class=text>", prompt, "</pre></details>")?;
    }
    tools(html, page.tools)?;
    html.markup("</header>")
}

fn fact(html: &mut Html<'_>, name: &'static str, value: &str) -> io::Result<()> {
    if value.is_empty() {
        return Ok(());
    }
    html.markup("<div><dt>")?;
    html.markup(name)?;
    html.element("</dt><dd>", value, "</dd></div>")
}

/// Writes the totals of all entries, on any branch.
fn totals(html: &mut Html<'_>, page: &Page<'_>) -> io::Result<()> {
    let tally = page.tree.tally();
    html.markup("<dl class=totals>")?;
    for (name, n) in
        [("prompts", tally.user_messages), ("answers", tally.assistant_messages), ("tool calls", tally.tool_calls)]
    {
        total(html, name, &grouped(n), "")?;
    }
    for (name, n) in [
        ("input", tally.input),
        ("output", tally.output),
        ("cache read", tally.cache_read),
        ("cache write", tally.cache_write),
    ] {
        total(html, name, &short(n), &format!("{} tokens", grouped(n)))?;
    }
    total(html, "cost", &dollars(tally.cost), "US dollars")?;
    html.markup("</dl>")
}

fn total(html: &mut Html<'_>, name: &'static str, value: &str, exact: &str) -> io::Result<()> {
    html.markup("<div")?;
    if !exact.is_empty() {
        html.attribute("title", exact)?;
    }
    html.element("><dd>", value, "</dd><dt>")?;
    html.markup(name)?;
    html.markup("</dt></div>")
}

fn tools(html: &mut Html<'_>, tools: &[ToolSpec]) -> io::Result<()> {
    if tools.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    html.element("<details class=fold><summary>Tools <span class=note>", &names.join(", "), "</span></summary>")?;
    for tool in tools {
        html.element("<details class=more><summary><b>", &tool.name, "</b> ")?;
        html.element("<span class=gist>", &excerpt(&tool.description, 100), "</span></summary>")?;
        html.element("<pre class=text>", &tool.description, "</pre>")?;
        json(html, &*tool.parameters)?;
        html.markup("</details>")?;
    }
    html.markup("</details>")
}
