//! What a server answers to a call, as the model reads it.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pith_agent::ToolOutput;
use pith_protocol::{Block, ImageBlock};
use pith_tools::shell::OutputDir;
use pith_tools::truncate::{self, Extent, Limits};
use serde_json::{Map, Value, json};

use crate::resources::READ_RESOURCE;

/// Half of what a result may have: the beginning and the end are kept.
const HALF: Limits = Limits { lines: Limits::RESULT.lines / 2, bytes: Limits::RESULT.bytes / 2 };
const NO_OUTPUT: &str = "(no output)";

/// Whose result it is, and where what does not fit goes.
pub struct Call<'a> {
    pub server: &'a str,
    pub tool: &'a str,
    pub duration: Duration,
    pub output_dir: &'a OutputDir,
}

impl Call<'_> {
    /// Converts the result of `tools/call`. What is of no known shape is shown as it is.
    pub fn output(&self, result: &Value) -> ToolOutput {
        let is_error = result.get("isError") == Some(&Value::Bool(true));
        let structured = result.get("structuredContent").filter(|value| !value.is_null());
        let (mut blocks, mut for_user) = (Vec::new(), Vec::new());
        match result.get("content").and_then(Value::as_array) {
            Some(content) => {
                for block in content {
                    if is_for_model(block) { &mut blocks } else { &mut for_user }.push(self.block(block));
                }
            }
            None if structured.is_some() => {}
            None => blocks.push(Block::text(result.to_string())),
        }
        if let Some(structured) = structured
            && !blocks.iter().filter_map(Block::as_text).any(|text| is_same_json(text, structured))
        {
            blocks.push(Block::text(structured.to_string()));
        }
        if blocks.is_empty() {
            blocks.push(Block::text(NO_OUTPUT));
        }
        let mut details = self.details();
        if let Some(structured) = structured {
            details.insert("structuredContent".to_owned(), structured.clone());
        }
        if !for_user.is_empty() {
            details.insert("userContent".to_owned(), json!(self.fitted(for_user).0));
        }
        ToolOutput { is_error, ..self.fitted_output(blocks, details) }
    }

    /// A call that failed before there was a result.
    pub fn failure(&self, why: &str) -> ToolOutput {
        ToolOutput { is_error: true, ..self.fitted_output(vec![Block::text(why)], self.details()) }
    }

    fn fitted_output(&self, blocks: Vec<Block>, mut details: Map<String, Value>) -> ToolOutput {
        let (content, truncation) = self.fitted(blocks);
        if let Some(truncation) = truncation {
            details.insert("truncation".to_owned(), truncation);
        }
        ToolOutput { content, details: Some(Value::Object(details)), ..ToolOutput::default() }
    }

    fn details(&self) -> Map<String, Value> {
        let duration = u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX);
        let details = json!({"server": self.server, "tool": self.tool, "durationMs": duration});
        details.as_object().cloned().unwrap_or_default()
    }

    fn block(&self, block: &Value) -> Block {
        let text = |name: &str| block.get(name).and_then(Value::as_str);
        match (text("type"), text("data"), text("mimeType")) {
            (Some("text"), ..) if text("text").is_some() => Block::text(text("text").unwrap_or_default()),
            (Some("image"), Some(data), Some(mime_type)) => {
                Block::Image(ImageBlock { data: data.to_owned(), mime_type: mime_type.to_owned() })
            }
            (Some("audio"), Some(data), mime_type) => self.kept("audio", data, mime_type),
            (Some("resource"), ..) => match block.get("resource") {
                Some(resource) => self.resource(resource),
                None => Block::text(block.to_string()),
            },
            (Some("resource_link"), ..) => Block::text(self.link(block)),
            _ => Block::text(block.to_string()),
        }
    }

    fn resource(&self, resource: &Value) -> Block {
        let text = |name: &str| resource.get(name).and_then(Value::as_str);
        let uri = text("uri").unwrap_or_default();
        match (text("text"), text("blob")) {
            (Some(content), _) => Block::text(format!("<resource uri=\"{uri}\">\n{content}\n</resource>")),
            (None, Some(blob)) => self.kept(uri, blob, text("mimeType")),
            (None, None) => Block::text(resource.to_string()),
        }
    }

    /// A resource that is elsewhere, and how to read it.
    fn link(&self, block: &Value) -> String {
        let text = |name: &str| block.get(name).and_then(Value::as_str);
        let mut facts = vec![text("uri").unwrap_or_default().to_owned()];
        facts.extend(text("mimeType").map(str::to_owned));
        facts.extend(block.get("size").and_then(Value::as_u64).map(|size| format!("{size} bytes")));
        let name = text("name").or(text("title")).unwrap_or("resource");
        format!("{name} ({}): {READ_RESOURCE} of server {} reads it", facts.join(", "), self.server)
    }

    /// Bytes that no model reads go to a file.
    fn kept(&self, what: &str, data: &str, mime_type: Option<&str>) -> Block {
        let mime_type = mime_type.unwrap_or("application/octet-stream");
        let Ok(bytes) = STANDARD.decode(data) else {
            return Block::text(format!("[{what}: {mime_type}, left out: its data is no base64]"));
        };
        let size = truncate::size(bytes.len());
        Block::text(match self.output_dir.keep_bytes(&bytes) {
            Ok(path) => format!("[{what}: {mime_type}, {size}, saved to {}]", path.display()),
            Err(error) => format!("[{what}: {mime_type}, {size}, not saved: {error}]"),
        })
    }

    /// Cuts what is too long for a result: all its texts together. Then one text is left, where the first was.
    fn fitted(&self, blocks: Vec<Block>) -> (Vec<Block>, Option<Value>) {
        let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
        let text = texts.join("\n");
        if Extent::of(&text).fits(Limits::RESULT) {
            return (blocks, None);
        }
        let (text, truncation) = self.cut(&text);
        let mut text = Some(Block::text(text));
        let fit = |block: Block| if block.as_text().is_some() { text.take() } else { Some(block) };
        (blocks.into_iter().filter_map(fit).collect(), Some(truncation))
    }

    fn cut(&self, text: &str) -> (String, Value) {
        let head = match truncate::head(text, HALF) {
            (_, Some(truncation)) if truncation.first_line_exceeds_limit => {
                &text[..text.floor_char_boundary(HALF.bytes)]
            }
            (head, _) => head,
        };
        let (tail, _) = truncate::tail(text, HALF);
        let total = Extent::of(text);
        let left_out = match total.lines.saturating_sub(Extent::of(head).lines + Extent::of(tail).lines) {
            // Lines are shown in part.
            0 => truncate::size(total.bytes.saturating_sub(head.len() + tail.len())),
            n_lines => format!("{n_lines} lines"),
        };
        let (place, path) = match self.output_dir.keep(text) {
            Ok(path) => (format!("full text: {}", path.display()), json!(path.to_string_lossy())),
            Err(error) => (format!("the full text could not be saved: {error}"), Value::Null),
        };
        let details = json!({"totalLines": total.lines, "totalBytes": total.bytes, "fullOutputPath": path});
        (format!("{head}\n… {left_out} left out, {place} …\n{tail}"), details)
    }
}

/// Whether the annotations of a block do not keep it from the model.
fn is_for_model(block: &Value) -> bool {
    let audience = block.pointer("/annotations/audience").and_then(Value::as_array);
    audience.is_none_or(|audience| audience.is_empty() || audience.iter().any(|who| who == "assistant"))
}

fn is_same_json(text: &str, value: &Value) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|text| text == *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(result: Value) -> ToolOutput {
        let directory = tempfile::tempdir().expect("a directory");
        let output_dir = OutputDir::below(directory.path().to_owned());
        let call = Call { server: "s", tool: "t", duration: Duration::from_millis(5), output_dir: &output_dir };
        call.output(&result)
    }

    fn texts(result: Value) -> Vec<String> {
        converted(result).content.iter().map(|block| block.as_text().unwrap_or("(image)").to_owned()).collect()
    }

    #[test]
    fn every_kind_of_content_has_its_form() {
        let check = |result: Value, expected: &[&str]| assert_eq!(texts(result), expected);
        check(
            json!({"content": [{"type": "text", "text": "a"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]}),
            &["a", "(image)"],
        );
        check(json!({"content": []}), &["(no output)"]);
        check(
            json!({"content": [{"type": "resource", "resource": {"uri": "m://x", "text": "t"}}]}),
            &["<resource uri=\"m://x\">\nt\n</resource>"],
        );
        check(
            json!({"content": [{"type": "resource_link", "title": "t", "name": "n", "uri": "m://x", "mimeType": "text/plain", "size": 3}]}),
            &["n (m://x, text/plain, 3 bytes): read_mcp_resource of server s reads it"],
        );
        check(json!({"content": [{"type": "hologram", "x": 1}]}), &[r#"{"type":"hologram","x":1}"#]);
        check(json!({"odd": true}), &[r#"{"odd":true}"#]);
    }

    #[test]
    fn what_is_for_the_user_alone_reaches_the_host_and_not_the_model() {
        let block =
            |text: &str, audience: Value| json!({"type": "text", "text": text, "annotations": {"audience": audience}});
        let output = converted(json!({"content": [block("both", json!(["user", "assistant"])),
            block("user", json!(["user"])), block("model", json!(["assistant"])), block("nobody", json!([]))]}));
        let read: Vec<_> = output.content.iter().filter_map(Block::as_text).collect();
        assert_eq!(read, ["both", "model", "nobody"]);
        let shown = json!([{"type": "text", "text": "user"}]);
        assert_eq!(output.details.expect("details")["userContent"], shown);
        let output = converted(json!({"content": [block("user", json!(["user"]))]}));
        assert_eq!(output.content[0].as_text(), Some("(no output)"));
    }

    #[test]
    fn structured_content_is_shown_once() {
        let content = json!([{"type": "text", "text": "{\"n\": 1}"}]);
        assert_eq!(texts(json!({"content": content, "structuredContent": {"n": 1}})), ["{\"n\": 1}"]);
        assert_eq!(texts(json!({"content": [], "structuredContent": {"n": 1}})), ["{\"n\":1}"]);
        let output = converted(json!({"structuredContent": {"n": 1}, "isError": true}));
        assert!(output.is_error);
        assert_eq!(output.details.expect("details")["structuredContent"], json!({"n": 1}));
    }

    #[test]
    fn bytes_and_long_texts_go_to_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let output_dir = OutputDir::below(directory.path().to_owned());
        let call = Call { server: "s", tool: "t", duration: Duration::ZERO, output_dir: &output_dir };
        let output = call.output(&json!({"content": [{"type": "audio", "data": "AQID", "mimeType": "audio/wav"}]}));
        let text = output.content[0].as_text().expect("text");
        assert!(text.starts_with("[audio: audio/wav, 3") && text.contains("saved to "), "{text}");
        let path = text.split("saved to ").nth(1).expect("a path").trim_end_matches(']');
        assert_eq!(std::fs::read(path).expect("kept"), [1, 2, 3]);
        let lines: String = (0..5000).map(|number| format!("line {number}\n")).collect();
        let output = call.output(&json!({"content": [{"type": "text", "text": lines}]}));
        let text = output.content[0].as_text().expect("text");
        assert!(text.starts_with("line 0\n") && text.trim_end().ends_with("line 4999"), "{text}");
        assert!(text.contains("lines left out, full text: "));
        let path = output.details.expect("details")["truncation"]["fullOutputPath"].clone();
        assert_eq!(std::fs::read_to_string(path.as_str().expect("a path")).expect("kept"), lines);
    }

    #[test]
    fn all_texts_together_are_limited_and_so_are_errors() {
        let directory = tempfile::tempdir().expect("a directory");
        let output_dir = OutputDir::below(directory.path().to_owned());
        let call = Call { server: "s", tool: "t", duration: Duration::ZERO, output_dir: &output_dir };
        let read = |output: &ToolOutput| -> Vec<String> {
            output.content.iter().map(|block| block.as_text().unwrap_or("(image)").to_owned()).collect()
        };
        let text = |number: usize| json!({"type": "text", "text": format!("{number}: {}", "x".repeat(1000))});
        let mut content: Vec<Value> = (0..3000).map(text).collect();
        content.insert(1, json!({"type": "image", "data": "AA==", "mimeType": "image/png"}));
        let output = call.output(&json!({ "content": content }));
        let shown = read(&output);
        assert_eq!((shown.len(), &*shown[1]), (2, "(image)"));
        assert!(shown[0].starts_with("0: x") && shown[0].contains("\n2999: x"), "{}", shown[0]);
        assert!(shown[0].contains("\n… 2950 lines left out, full text: ") && shown[0].len() < 52_000);
        assert_eq!(output.details.expect("details")["truncation"]["totalLines"], 3000);
        // One long line.
        let line = format!("first é{}last", "é".repeat(500_000));
        let output = call.failure(&line);
        let shown = read(&output).remove(0);
        assert!(output.is_error && shown.starts_with("first é") && shown.ends_with("élast"), "{shown}");
        assert!(shown.contains("é\n… 926.6KB left out, full text: ") && shown.len() < 52_000, "{shown}");
        assert_eq!(output.details.expect("details")["truncation"]["totalBytes"], line.len());
    }
}
