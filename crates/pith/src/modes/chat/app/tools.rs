//! Tool calls: the last lines of their output while they run, and what stays of them.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::App;
use crate::modes::chat::approval::Approval;
use crate::modes::chat::frames::tail;
use crate::modes::chat::text::{Break, Piece, Row, wrap};
use crate::modes::chat::theme;
use crate::modes::screen::duration;
use crate::modes::tool_line::describe;

/// Lines of output that are shown of a running and of a finished call.
const LIVE_LINES: usize = 5;
const KEPT_LINES: usize = 5;

/// Lines of a difference that are shown.
const DIFFERENCE_LINES: usize = 40;

/// Calls that are shown while they run.
const MAX_LIVE: usize = 4;

/// Output that is kept of a running call.
const MAX_OUTPUT: usize = 4 << 10;

/// The id of a shell command of the user, which no tool call has.
pub const SHELL: &str = "\n!";

/// A call that runs.
#[derive(Debug)]
pub struct RunningTool {
    pub id: String,
    pub name: String,
    pub title: String,
    arguments: Map<String, Value>,
    pub(super) began: Instant,
    output: String,
}

/// How a call ended.
pub enum ToolEnd {
    Done,
    Failed,
}

impl App {
    pub fn start_tool(&mut self, id: String, name: String, arguments: Map<String, Value>) {
        self.end_answer();
        let title = describe(&name, &arguments);
        self.tools.push(RunningTool { id, name, title, arguments, began: self.now, output: String::new() });
    }

    /// Shows a shell command of the user as a call.
    pub fn start_shell(&mut self, command: &str) {
        let arguments = Map::from_iter([("command".to_owned(), command.into())]);
        self.start_tool(SHELL.to_owned(), "bash".to_owned(), arguments);
    }

    /// Replaces or extends the output of a running call.
    pub fn tool_output(&mut self, id: &str, more: &str, is_whole: bool) {
        if let Some(tool) = self.tools.iter_mut().find(|tool| tool.id == id) {
            if is_whole {
                tool.output.clear();
            }
            tool.output.push_str(more);
            if tool.output.len() > 2 * MAX_OUTPUT || is_whole {
                tool.output = tail(&tool.output, MAX_OUTPUT).to_owned();
            }
        }
    }

    /// Puts what stays of a call into the scrollback.
    pub fn end_tool(&mut self, id: &str, text: &str, difference: Option<&str>, end: ToolEnd) {
        let Some(at) = self.tools.iter().position(|tool| tool.id == id) else { return };
        let tool = self.tools.remove(at);
        self.end_answer();
        self.is_after_tool = true;
        let took = self.now.saturating_duration_since(tool.began);
        let (mark, style) = match end {
            ToolEnd::Done => ("✓ ", theme::good()),
            ToolEnd::Failed => ("✗ ", theme::bad()),
        };
        let mut row = Row::new(mark, style).with(&tool.title, theme::bold());
        if took >= Duration::from_secs(1) {
            row = row.with(&format!(" ({})", duration(took)), theme::dim());
        }
        let text = text.trim_end();
        let whole = difference.unwrap_or(text);
        let number = match difference {
            Some(difference) => self.folds.add(&tool.title, difference, true),
            None => self.folds.add(&tool.title, &tool.in_full(text), false),
        };
        let mut lines: Vec<&str> = whole.lines().collect();
        // One blank line says as much as several.
        lines.dedup_by(|line, before| line.trim().is_empty() && before.trim().is_empty());
        let (n_shown, from_start) = match (&end, difference) {
            (_, Some(_)) => (DIFFERENCE_LINES, true),
            (ToolEnd::Failed, None) => (2 * KEPT_LINES, false),
            // What a file or a list says is of interest to the model.
            (ToolEnd::Done, None) if ["read", "ls", "find", "grep", "write"].contains(&tool.name.as_str()) => (0, true),
            (ToolEnd::Done, None) => (KEPT_LINES, false),
        };
        let n_hidden = lines.len().saturating_sub(n_shown);
        let hidden = match n_hidden {
            0 => String::new(),
            n_hidden if n_shown == 0 => format!("  {n_hidden} lines, /show {number}"),
            n_hidden => format!("  +{n_hidden} lines, /show {number}"),
        };
        self.rows.extend(wrap(
            &row.with(&hidden, theme::dim()).0,
            self.width(),
            Break::Words,
            &[],
            &[Piece::plain("  ")],
        ));
        let shown = if from_start { &lines[..lines.len() - n_hidden] } else { &lines[n_hidden..] };
        for line in shown {
            let rows = self.output_rows(line, difference.is_some());
            self.rows.extend(rows);
        }
    }

    /// The rows of a line of output. A line of megabytes is shown in part.
    fn output_rows(&self, line: &str, is_difference: bool) -> Vec<Row> {
        const MAX_ROWS: usize = 3;
        let style = if is_difference { theme::of_difference(line) } else { theme::dim() };
        let most = self.width() * MAX_ROWS;
        let shown: String = line.chars().take(most).collect();
        let indent = [Piece::plain("  ")];
        let mut rows = wrap(&[Piece::new(&shown, style)], self.width(), Break::Anywhere, &indent, &indent);
        if rows.len() > MAX_ROWS {
            rows.truncate(MAX_ROWS);
            rows.push(Row::new("  …", theme::dim()));
        }
        rows
    }

    /// The rows of the calls that run.
    pub fn tool_rows(&self, max_rows: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        // What the user is asked about does not run.
        let asked = self.approval().filter(|approval| !approval.is_connection()).map(Approval::tool_call);
        let tools: Vec<&RunningTool> = self.tools.iter().filter(|tool| Some(tool.id.as_str()) != asked).collect();
        let n_shown = tools.len().min(MAX_LIVE);
        let each = (max_rows / n_shown.max(1)).saturating_sub(1).min(LIVE_LINES);
        for tool in tools.iter().take(n_shown) {
            let took = duration(self.now.saturating_duration_since(tool.began));
            let row = Row::new("⋯ ", theme::accent()).with(&tool.title, theme::bold());
            rows.push(row.with(&format!(" {took}"), theme::dim()).cut(self.width()));
            let lines: Vec<&str> = tool.output.trim_end().lines().collect();
            for line in &lines[lines.len().saturating_sub(each)..] {
                let line: String = line.chars().take(self.width()).collect();
                rows.push(Row::new(&format!("  {line}"), theme::dim()).cut(self.width()));
            }
        }
        if tools.len() > n_shown {
            rows.push(Row::new(&format!("  and {} more calls", tools.len() - n_shown), theme::dim()));
        }
        rows
    }

    /// `/show`: prints an output in full.
    pub fn show(&mut self, number: Option<usize>) {
        let fold = match number {
            Some(number) => self.folds.get(number).cloned(),
            None => self.folds.next_to_show().cloned(),
        };
        let Some(fold) = fold else {
            return self.complain("there is no such output; the last 50 are kept");
        };
        self.end_answer();
        self.rows.push(Row::new(&format!("─ {} {}", fold.number, fold.title), theme::bold()).cut(self.width()));
        for line in fold.text.lines() {
            let style = if fold.is_difference { theme::of_difference(line) } else { Default::default() };
            self.rows.extend(wrap(&[Piece::new(line, style)], self.width(), Break::Anywhere, &[], &[]));
        }
        self.rows.push(Row::new("─", theme::bold()));
    }
}

impl RunningTool {
    /// Arguments and output, for a reader who wants all of it.
    fn in_full(&self, output: &str) -> String {
        let mut text = String::new();
        for (name, value) in &self.arguments {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.push_str(&format!("{name}: {value}\n"));
        }
        text + output
    }
}
