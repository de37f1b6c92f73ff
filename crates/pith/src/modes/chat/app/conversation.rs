//! The conversation: what the user and the model say, live and from an earlier session.

use std::path::Path;

use pith_protocol::ImageBlock;
use serde_json::Value;

use super::App;
use crate::modes::attach::{Attached, attached};
use crate::modes::chat::markdown;
use crate::modes::chat::text::{Break, Piece, Row, wrap};
use crate::modes::chat::theme;
use crate::modes::tool_line::describe;

/// Lines of thinking that are shown while it goes on, and that stay.
const LIVE_THINKING: usize = 4;
const KEPT_THINKING: usize = 3;

/// Thinking that is kept to be shown in full.
const MAX_THINKING: usize = 256 << 10;

/// Lines and bytes of a message that are shown.
const SAID_LINES: usize = 20;
const SAID_BYTES: usize = 8 << 10;

/// How many of the user's messages of an earlier session are shown again, and how long an answer may be.
const RECALLED: usize = 2;
const MAX_RECALLED: usize = 8 << 10;

impl App {
    /// Takes a piece of the answer.
    pub fn text(&mut self, delta: &str) {
        self.end_thinking();
        self.keep_distance();
        self.set_doing("answering");
        let width = self.width();
        self.stream.push(delta, width, &mut self.rows);
    }

    /// Takes a piece of what the model thinks.
    pub fn think(&mut self, delta: &str) {
        self.keep_distance();
        self.set_doing("thinking");
        if self.thinking.len() < MAX_THINKING {
            self.thinking.push_str(delta);
        }
    }

    fn keep_distance(&mut self) {
        if std::mem::take(&mut self.is_after_tool) {
            self.rows.push(Row::default());
        }
    }

    /// Completes what was being written before anything else is shown.
    pub fn end_answer(&mut self) {
        self.end_thinking();
        let width = self.width();
        let n_rows = self.rows.len();
        self.stream.finish(width, &mut self.rows);
        if self.rows.len() > n_rows {
            self.rows.push(Row::default());
        }
    }

    fn end_thinking(&mut self) {
        let thinking = std::mem::take(&mut self.thinking);
        let text = thinking.trim();
        if text.is_empty() {
            return;
        }
        let number = self.folds.add("thinking", text, false);
        let rows = self.thinking_rows(text);
        let n_hidden = rows.len().saturating_sub(KEPT_THINKING);
        self.rows.extend(rows.into_iter().take(KEPT_THINKING));
        if n_hidden > 0 {
            self.rows.push(Row::new(&format!("  +{n_hidden} lines of thinking, /show {number}"), theme::dim()));
        }
        self.rows.push(Row::default());
    }

    fn thinking_rows(&self, text: &str) -> Vec<Row> {
        let style = theme::dim().patch(theme::italic());
        let indent = [Piece::plain("  ")];
        let rows = |line| wrap(&[Piece::new(line, style)], self.width(), Break::Words, &indent, &indent);
        text.lines().flat_map(rows).collect()
    }

    /// The rows of the answer, and of the thinking before it, that may still change.
    pub fn live_rows(&self) -> Vec<Row> {
        // Only the end is shown, so only the end is wrapped.
        let end = crate::modes::chat::frames::tail(self.thinking.trim_end(), LIVE_THINKING * self.width());
        let thinking = self.thinking_rows(end);
        let mut rows = thinking[thinking.len().saturating_sub(LIVE_THINKING)..].to_vec();
        rows.extend(self.stream.live(self.width()));
        rows
    }

    /// Shows a message that joined the conversation.
    pub fn said(&mut self, text: &str, pictures: &[ImageBlock], is_user: bool) {
        self.end_answer();
        self.keep_distance();
        let (mark, style) = if is_user { ("› ", theme::accent()) } else { ("» ", theme::dim()) };
        let (first, rest) = ([Piece::new(mark, theme::accent())], [Piece::plain("  ")]);
        let (files, text) = if is_user { attached(text) } else { (Vec::new(), text) };
        let text = text.trim_end();
        let shown = &text[..text.floor_char_boundary(SAID_BYTES)];
        for (at, line) in shown.split('\n').take(SAID_LINES).enumerate() {
            let first = if at == 0 { &first } else { &rest };
            self.rows.extend(wrap(&[Piece::new(line, style)], self.width(), Break::Words, first, &rest));
        }
        let n_lines = text.split('\n').count();
        if n_lines > SAID_LINES || shown.len() < text.len() {
            let number = self.folds.add("message", text, false);
            let hidden = format!("  {n_lines} lines in all, /show {number}");
            self.rows.push(Row::new(&hidden, theme::dim()).cut(self.width()));
        }
        for Attached { path, text } in files {
            let number = self.folds.add(path, text, false);
            let shown = Path::new(path).strip_prefix(&self.setup.cwd).unwrap_or(Path::new(path)).display();
            let n_lines = text.lines().count();
            let lines = if n_lines == 1 { "line" } else { "lines" };
            let row = Row::new(&format!("  + {shown}, {n_lines} {lines}, /show {number}"), theme::dim());
            self.rows.push(row.cut(self.width()));
        }
        self.show_pictures(pictures);
        self.rows.push(Row::default());
    }

    /// Names pictures, and draws them where the terminal can.
    pub fn show_pictures(&mut self, pictures: &[ImageBlock]) {
        for picture in pictures {
            // Four characters of base64 are three bytes.
            let kilobytes = (picture.data.len() * 3 / 4).div_ceil(1000);
            let name = format!("  [picture {}, {kilobytes} kB]", picture.mime_type);
            self.rows.push(Row::new(&name, theme::dim()).cut(self.width()));
            let drawing = self.setup.pictures.and_then(|protocol| protocol.draw(picture, self.width()));
            self.rows.extend(drawing.map(Row::drawing));
        }
    }

    /// Shows the end of an earlier conversation.
    pub fn recall(&mut self, messages: &[Value]) {
        let said = messages.iter().enumerate().filter(|(_, message)| message["role"] == "user").map(|(at, _)| at);
        let said: Vec<usize> = said.collect();
        let Some(&first) = said.get(said.len().saturating_sub(RECALLED)) else { return };
        if first > 0 {
            self.note(&format!("{first} earlier messages"));
        }
        for message in &messages[first..] {
            match message["role"].as_str() {
                Some("user") => self.said(&content_text(&message["content"]), &[], true),
                Some("assistant") => self.recall_answer(message),
                _ => {}
            }
        }
    }

    /// Shows an answer of an earlier conversation.
    pub fn recall_answer(&mut self, message: &Value) {
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("text") => {
                    let text = block["text"].as_str().unwrap_or_default();
                    let end = crate::modes::chat::frames::tail(text, MAX_RECALLED);
                    if end.len() < text.len() {
                        self.rows.push(Row::new("…", theme::dim()));
                    }
                    self.rows.extend(markdown::render(end, self.width()));
                    self.rows.push(Row::default());
                }
                Some("toolCall") => {
                    let empty = serde_json::Map::new();
                    let arguments = block["arguments"].as_object().unwrap_or(&empty);
                    let title = describe(block["name"].as_str().unwrap_or_default(), arguments);
                    self.rows.push(Row::new(&format!("· {title}"), theme::dim()).cut(self.width()));
                }
                _ => {}
            }
        }
        if let Some(error) = message["errorMessage"].as_str() {
            self.rows.push(Row::new(&format!("✗ {error}"), theme::bad()).cut(self.width()));
        }
    }

    /// Says what the session is doing.
    pub fn set_doing(&mut self, doing: &str) {
        if let Some(work) = &mut self.work
            && work.doing != doing
        {
            doing.clone_into(&mut work.doing);
        }
    }
}

/// The text of a message's content: a string, or blocks.
fn content_text(content: &Value) -> String {
    let blocks = content.as_array().into_iter().flatten();
    let text = || blocks.filter_map(|block| block["text"].as_str()).collect::<String>();
    content.as_str().map_or_else(text, str::to_owned)
}
