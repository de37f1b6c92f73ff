//! Tool calls with their results, and commands of the host.

use std::io;

use pith_highlight::{by_name, by_path};
use pith_protocol::{BashExecution, Block, ToolCall, ToolResultMessage};
use serde_json::{Map, Value};

use crate::ansi::terminal;
use crate::blocks::{any_block, json};
use crate::call::{Shape, command, gist, path};
use crate::diff::{Form, diff, replacement};
use crate::highlight::code;
use crate::html::Html;
use crate::words::{body, count, excerpt};

/// Bodies up to this many lines are shown unfolded.
const SHORT: usize = 16;

/// Changes up to this many lines are shown unfolded: they are what a reader came for.
const SHORT_CHANGE: usize = 80;

/// A call and what came of it, as one card.
pub(crate) struct Card<'m> {
    pub call: Option<&'m ToolCall>,
    pub result: &'m ToolResultMessage,
}

impl Card<'_> {
    /// Writes the card; `end` adds to its title line.
    pub fn write(&self, html: &mut Html<'_>, end: impl FnOnce(&mut Html<'_>) -> io::Result<()>) -> io::Result<()> {
        let shape = Shape::of(&self.result.tool_name);
        let gist = self.call.map(gist).unwrap_or_default();
        open(html, &self.result.tool_name, &gist, self.is_short(shape))?;
        match self.exit_code(shape) {
            _ if !self.result.is_error => {}
            Some(code) => html.element("<span class=bad>exit ", code, "</span>")?,
            None => html.markup("<span class=bad>failed</span>")?,
        }
        html.element("<span class=note>", &self.measure(shape), "</span>")?;
        end(html)?;
        html.markup("</summary><div class=body>")?;
        self.body(html, shape)?;
        html.markup("</div></details>")
    }

    fn body(&self, html: &mut Html<'_>, shape: Shape) -> io::Result<()> {
        match (shape, self.call) {
            (Shape::Shell, Some(call)) => {
                full_command(html, call)?;
                self.output(html)
            }
            (Shape::Read, Some(call)) if !self.result.is_error => self.file(html, path(&call.arguments)),
            (Shape::Write, Some(call)) => {
                written(html, &call.arguments)?;
                self.output(html)
            }
            (Shape::Edit, _) => {
                self.change(html)?;
                self.output(html)
            }
            (Shape::Listing | Shape::Read | Shape::Shell | Shape::Write, _) => self.output(html),
            (Shape::Other, _) => self.anything(html),
        }
    }

    /// Writes a call of an unknown tool: arguments, output, details.
    fn anything(&self, html: &mut Html<'_>) -> io::Result<()> {
        if let Some(call) = self.call.filter(|call| !call.arguments.is_empty()) {
            json(html, &call.arguments)?;
        }
        self.output(html)?;
        if self.diff_text().is_some() {
            return self.change(html);
        }
        match &self.result.details {
            Some(details) if !is_empty(details) => {
                html.markup("<details class=more><summary>Details</summary>")?;
                json(html, details)?;
                html.markup("</details>")
            }
            _ => Ok(()),
        }
    }

    /// Writes text as a terminal would show it, and pictures.
    fn output(&self, html: &mut Html<'_>) -> io::Result<()> {
        self.blocks(html, |html, text| {
            html.markup("<pre class=out>")?;
            terminal(html, text)?;
            html.markup("</pre>")
        })
    }

    fn file(&self, html: &mut Html<'_>, path: Option<&str>) -> io::Result<()> {
        let language = path.and_then(by_path);
        self.blocks(html, |html, text| {
            html.markup("<pre><code>")?;
            code(html, text, language)?;
            html.markup("</code></pre>")
        })
    }

    fn blocks(&self, html: &mut Html<'_>, text: impl Fn(&mut Html<'_>, &str) -> io::Result<()>) -> io::Result<()> {
        for block in &self.result.content {
            match block.as_text().map(body) {
                Some("") => {}
                Some(string) => text(html, string)?,
                None => any_block(html, block)?,
            }
        }
        Ok(())
    }

    fn change(&self, html: &mut Html<'_>) -> io::Result<()> {
        if let Some((text, form)) = self.diff_text() {
            return diff(html, text, form);
        }
        let Some(call) = self.call else { return Ok(()) };
        for (old, new) in wanted_edits(&call.arguments) {
            replacement(html, old, new)?;
        }
        Ok(())
    }

    fn diff_text(&self) -> Option<(&str, Form)> {
        let details = self.result.details.as_ref()?;
        let text = |name| details.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let numbered = text("diff").map(|text| (text, Form::Numbered));
        numbered.or_else(|| text("patch").map(|text| (text, Form::Unified)))
    }

    /// Returns the size of what is inside, for the title.
    fn measure(&self, shape: Shape) -> String {
        if let Some((text, form)) = self.diff_text() {
            let changed = |sign| {
                let header = if sign == '+' { "+++" } else { "---" };
                let is_header = |line: &str| form == Form::Unified && line.starts_with(header);
                text.lines().filter(|line| line.starts_with(sign) && !is_header(line)).count()
            };
            return format!("+{} −{}", changed('+'), changed('-'));
        }
        match self.n_lines(shape) {
            0 => String::new(),
            n => count(n, "line"),
        }
    }

    fn n_lines(&self, shape: Shape) -> usize {
        let lines = |text: &str| match body(text) {
            "" => 0,
            text => text.split('\n').count(),
        };
        let written =
            self.call.filter(|_| shape == Shape::Write).and_then(|call| call.arguments.get("content")?.as_str());
        match written {
            Some(content) => lines(content),
            None => self.result.content.iter().filter_map(Block::as_text).map(lines).sum(),
        }
    }

    /// Returns the exit code that the last line of a command's output tells.
    fn exit_code(&self, shape: Shape) -> Option<&str> {
        let text = self.result.content.iter().rev().find_map(Block::as_text).filter(|_| shape == Shape::Shell)?;
        let code = text.trim_end().rsplit('\n').next()?.strip_prefix("Command exited with code ")?;
        code.bytes().all(|byte| byte.is_ascii_digit()).then_some(code)
    }

    fn is_short(&self, shape: Shape) -> bool {
        let has_image = self.result.content.iter().any(|block| matches!(block, Block::Image(_)));
        match (self.diff_text(), shape) {
            _ if has_image => true,
            (Some((text, _)), _) => text.lines().count() <= SHORT_CHANGE,
            (None, _) if self.result.is_error => self.n_lines(shape) <= SHORT_CHANGE,
            (None, Shape::Read | Shape::Listing) => false,
            (None, Shape::Shell | Shape::Write | Shape::Edit | Shape::Other) => self.n_lines(shape) <= SHORT,
        }
    }
}

/// Writes a call that nothing came of.
pub(crate) fn lone_call(html: &mut Html<'_>, call: &ToolCall) -> io::Result<()> {
    open(html, &call.name, &gist(call), false)?;
    html.markup("<span class=note>no result</span></summary><div class=body>")?;
    json(html, &call.arguments)?;
    html.markup("</div></details>")
}

/// Writes a command the host ran.
pub(crate) fn host_command(
    html: &mut Html<'_>,
    run: &BashExecution,
    end: impl FnOnce(&mut Html<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let gist = excerpt(&run.command, 160);
    open(html, "$", &gist, body(&run.output).lines().count() <= SHORT)?;
    match run.exit_code {
        _ if run.cancelled => html.markup("<span class=bad>cancelled</span>")?,
        Some(code) if code != 0 => html.element("<span class=bad>exit ", &code.to_string(), "</span>")?,
        Some(_) | None => {}
    }
    if run.exclude_from_context == Some(true) {
        html.markup("<span class=note>not shown to the model</span>")?;
    }
    end(html)?;
    html.markup("</summary><div class=body>")?;
    if gist != run.command {
        shell_code(html, &run.command)?;
    }
    html.markup("<pre class=out>")?;
    terminal(html, body(&run.output))?;
    html.markup("</pre>")?;
    if let (true, Some(path)) = (run.truncated, &run.full_output_path) {
        html.element("<p class=note>Cut; the whole output was in ", path, ".</p>")?;
    }
    html.markup("</div></details>")
}

fn open(html: &mut Html<'_>, name: &str, gist: &str, is_unfolded: bool) -> io::Result<()> {
    html.markup(if is_unfolded { "<details class=card open>" } else { "<details class=card>" })?;
    html.element("<summary><b>", name, "</b> ")?;
    html.element("<code class=gist>", gist, "</code>")
}

/// Writes the command again where the title had to change it.
fn full_command(html: &mut Html<'_>, call: &ToolCall) -> io::Result<()> {
    match command(&call.arguments) {
        Some(command) if command == gist(call) => Ok(()),
        Some(command) => shell_code(html, command),
        None => json(html, &call.arguments),
    }
}

fn shell_code(html: &mut Html<'_>, command: &str) -> io::Result<()> {
    html.markup("<pre class=cmd><code>")?;
    code(html, command, by_name("bash"))?;
    html.markup("</code></pre>")
}

fn written(html: &mut Html<'_>, arguments: &Map<String, Value>) -> io::Result<()> {
    let Some(content) = arguments.get("content").and_then(Value::as_str) else { return json(html, arguments) };
    html.markup("<pre><code>")?;
    code(html, content, path(arguments).and_then(by_path))?;
    html.markup("</code></pre>")
}

/// Returns the replacements a call asks for, in the shapes models send them.
fn wanted_edits(arguments: &Map<String, Value>) -> Vec<(&str, &str)> {
    fn one(edit: &Map<String, Value>) -> Option<(&str, &str)> {
        let text = |names: [&str; 2]| names.iter().find_map(|&name| edit.get(name)?.as_str());
        Some((text(["oldText", "old_string"])?, text(["newText", "new_string"])?))
    }
    let listed = arguments.get("edits").and_then(Value::as_array).into_iter().flatten();
    listed.filter_map(Value::as_object).chain([arguments]).filter_map(one).collect()
}

fn is_empty(details: &Value) -> bool {
    match details {
        Value::Null => true,
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}
