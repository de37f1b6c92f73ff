//! A prompt of an editor as a prompt of pith: one text, and images.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{
    BlobResourceContents, ContentBlock, EmbeddedResourceResource, Error, ImageContent, TextResourceContents,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pith_protocol::ImageBlock;

use crate::error::invalid_params;
use crate::uri::Place;

/// Above this size the text of a resource is put into a file.
const MAX_INLINE: usize = 200 << 10;
/// How much of such a text the prompt still shows.
const SHOWN: usize = 50 << 10;
/// The largest image that is read from a file.
const MAX_IMAGE: u64 = 32 << 20;

/// A prompt for the model.
#[derive(Debug, Default, PartialEq)]
pub struct PromptInput {
    pub text: String,
    /// Where in the text the first block of text is, which may be a slash command.
    first_text: Range<usize>,
    pub images: Vec<ImageBlock>,
    /// The place in the editor's trace.
    pub traceparent: Option<String>,
}

impl PromptInput {
    /// Returns the first block of text; empty if there is none.
    pub fn first_text(&self) -> &str {
        &self.text[self.first_text.clone()]
    }

    /// Returns the text with the first block of text at its beginning, where a slash command has its name.
    pub fn as_command(&self) -> String {
        let (before, from_command) = self.text.split_at(self.first_text.start);
        if before.is_empty() { self.text.clone() } else { format!("{from_command} {}", before.trim_end()) }
    }
}

/// Where a prompt is read.
pub struct PromptPlace<'a> {
    pub cwd: &'a Path,
    /// Keeps a text that is too long for the prompt; returns its file.
    pub keep: &'a dyn Fn(&str) -> io::Result<PathBuf>,
}

/// Converts the blocks in their order. What resources contain follows the message.
pub fn convert(blocks: &[ContentBlock], place: &PromptPlace<'_>) -> Result<PromptInput, Error> {
    let mut reading =
        Reading { input: PromptInput::default(), attached: String::new(), has_text: false, is_after_text: false };
    for (index, block) in blocks.iter().enumerate() {
        let field = format!("prompt[{index}]");
        match block {
            ContentBlock::Text(text) => reading.text(&text.text),
            ContentBlock::Image(image) => reading.input.images.push(read_image(image, &field)?),
            ContentBlock::ResourceLink(link) => reading.mention(&link.name, &link.uri, place.cwd),
            ContentBlock::Resource(resource) => match &resource.resource {
                EmbeddedResourceResource::TextResourceContents(text) => reading.resource(text, place, &field)?,
                EmbeddedResourceResource::BlobResourceContents(blob) => reading.blob(blob, place, &field)?,
                _ => return Err(invalid_params(&field, "This kind of resource is not known")),
            },
            ContentBlock::Audio(_) => return Err(invalid_params(&field, "This agent takes no audio")),
            _ => return Err(invalid_params(&field, "This kind of block is not known")),
        }
        reading.is_after_text = match block {
            // An image leaves nothing in the text.
            ContentBlock::Image(_) => reading.is_after_text,
            _ => matches!(block, ContentBlock::Text(_)),
        };
    }
    let Reading { mut input, attached, .. } = reading;
    input.text.push_str(&attached);
    if input.text.trim().is_empty() && input.images.is_empty() {
        return Err(invalid_params("prompt", "The prompt is empty"));
    }
    Ok(input)
}

/// A prompt that is being put together.
struct Reading {
    input: PromptInput,
    /// The contents of resources, for the end.
    attached: String,
    /// There has been a block of text.
    has_text: bool,
    /// What comes last in the text is a text block.
    is_after_text: bool,
}

impl Reading {
    fn text(&mut self, text: &str) {
        let so_far = &mut self.input.text;
        // Clients that share buffers as further texts leave nothing between them (CodeCompanion).
        if self.is_after_text && !so_far.ends_with(char::is_whitespace) && !text.starts_with(char::is_whitespace) {
            so_far.push('\n');
        }
        if !self.is_after_text && so_far.ends_with(')') && text.starts_with(is_of_word) {
            so_far.push(' ');
        }
        let start = so_far.len();
        so_far.push_str(text);
        if !std::mem::replace(&mut self.has_text, true) {
            self.input.first_text = start..so_far.len();
        }
    }

    fn mention(&mut self, name: &str, uri: &str, cwd: &Path) {
        let place = Place::of(uri);
        let path = place.shown(uri, cwd);
        let lines = match &place.lines {
            Some(lines) if place.path.is_some() => format!("#L{lines}"),
            _ => String::new(),
        };
        let is_beside = |letter: char| is_of_word(letter) || letter == ')';
        let space = if self.input.text.ends_with(is_beside) { " " } else { "" };
        self.input.text.push_str(&format!("{space}[@{name}]({path}{lines})"));
    }

    fn resource(&mut self, text: &TextResourceContents, place: &PromptPlace<'_>, field: &str) -> Result<(), Error> {
        self.mention(&name_of(&text.uri), &text.uri, place.cwd);
        self.attach(&text.uri, &text.text, place, field)
    }

    fn attach(&mut self, uri: &str, text: &str, place: &PromptPlace<'_>, field: &str) -> Result<(), Error> {
        let named = Place::of(uri);
        let path = named.shown(uri, place.cwd);
        let lines = named.lines.filter(|_| named.path.is_some());
        let lines = lines.map_or(String::new(), |lines| format!(" lines=\"{lines}\""));
        let (shown, rest) = if text.len() > MAX_INLINE {
            let kept = (place.keep)(text)
                .map_err(|error| invalid_params(field, format!("Cannot keep the text of {path}: {error}")))?;
            let cut = text.floor_char_boundary(SHOWN);
            (&text[..cut], format!("\n[{cut} of {} bytes; all of it is in {}]", text.len(), kept.display()))
        } else {
            (text, String::new())
        };
        self.attached.push_str(&format!("\n\n<file name=\"{path}\"{lines}>\n{shown}{rest}\n</file>"));
        Ok(())
    }

    fn blob(&mut self, blob: &BlobResourceContents, place: &PromptPlace<'_>, field: &str) -> Result<(), Error> {
        let kind = blob.mime_type.as_deref().unwrap_or("application/octet-stream");
        if kind.starts_with("image/") {
            self.input.images.push(ImageBlock { data: blob.blob.clone(), mime_type: kind.to_owned() });
            return Ok(());
        }
        let bytes = STANDARD
            .decode(&blob.blob)
            .map_err(|error| invalid_params(&format!("{field}.resource.blob"), format!("Invalid base64: {error}")))?;
        self.mention(&name_of(&blob.uri), &blob.uri, place.cwd);
        let is_text = kind.starts_with("text/") || kind.ends_with("json") || kind.ends_with("xml");
        match String::from_utf8(bytes) {
            Ok(text) if is_text => self.attach(&blob.uri, &text, place, field),
            read => {
                let size = read.map_or_else(|error| error.into_bytes().len(), |text| text.len());
                self.attached.push_str(&format!("\n\n[{}: {kind}, {size} bytes, not shown]", name_of(&blob.uri)));
                Ok(())
            }
        }
    }
}

/// Whether a letter would run into a mention beside it.
fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '/' || letter == '_'
}

/// The last part of an address.
fn name_of(uri: &str) -> String {
    let path = uri.split(['#', '?']).next().unwrap_or(uri).trim_end_matches('/');
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(uri).to_owned()
}

fn read_image(image: &ImageContent, field: &str) -> Result<ImageBlock, Error> {
    if !image.data.is_empty() {
        return Ok(ImageBlock { data: image.data.clone(), mime_type: image.mime_type.clone() });
    }
    let uri = image.uri.as_deref().unwrap_or_default();
    let Some(path) = Place::of(uri).path else {
        return Err(invalid_params(&format!("{field}.data"), "The image is empty"));
    };
    let unreadable = |why: String| invalid_params(&format!("{field}.uri"), format!("{}: {why}", path.display()));
    let metadata = path.metadata().map_err(|error| unreadable(error.to_string()))?;
    if !metadata.is_file() || metadata.len() > MAX_IMAGE {
        return Err(unreadable("not a file of at most 32 MiB".to_owned()));
    }
    let bytes = std::fs::read(&path).map_err(|error| unreadable(error.to_string()))?;
    Ok(ImageBlock { data: STANDARD.encode(bytes), mime_type: image.mime_type.clone() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(blocks: Value) -> Result<PromptInput, Error> {
        let blocks: Vec<ContentBlock> = serde_json::from_value(blocks).expect("blocks");
        convert(&blocks, &PromptPlace { cwd: Path::new("/w"), keep: &|_| Ok(PathBuf::from("/tmp/kept")) })
    }

    fn check(blocks: Value, expected: &str) {
        assert_eq!(read(blocks).expect("a prompt").text, expected);
    }

    #[test]
    fn texts_and_mentions_stay_in_place() {
        check(json!([{"type": "text", "text": " a\n"}]), " a\n");
        check(json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]), "one\ntwo");
        let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
        check(
            json!([{"type": "text", "text": "look at"}, image, {"type": "text", "text": "and say"}]),
            "look at\nand say",
        );
        check(
            json!([{"type": "text", "text": "see "}, {"type": "resource_link", "name": "a.rs", "uri": "file:///w/src/a.rs#L5:15"},
                {"type": "text", "text": " now"}]),
            "see [@a.rs](src/a.rs#L5-15) now",
        );
    }

    #[test]
    fn a_command_is_found_beside_other_blocks() {
        let link = json!({"type": "resource_link", "name": "a.rs", "uri": "file:///w/a.rs"});
        let check = |blocks: Value, text: &str, command: &str| {
            let input = read(blocks).expect("a prompt");
            let found = (input.text.as_str(), input.first_text(), input.as_command());
            assert_eq!(found, (text, "/fix it", command.to_owned()));
        };
        let text = json!({"type": "text", "text": "/fix it"});
        check(json!([text]), "/fix it", "/fix it");
        check(json!([text, link]), "/fix it [@a.rs](a.rs)", "/fix it [@a.rs](a.rs)");
        check(json!([link, text]), "[@a.rs](a.rs) /fix it", "/fix it [@a.rs](a.rs)");
        check(json!([link, link, text]), "[@a.rs](a.rs) [@a.rs](a.rs) /fix it", "/fix it [@a.rs](a.rs) [@a.rs](a.rs)");
        assert_eq!(read(json!([link])).expect("a prompt").first_text(), "");
    }

    #[test]
    fn contents_of_resources_follow_the_message() {
        let resource = |uri: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "text": text}});
        check(
            json!([resource("file:///w/a.rs#L1:2", "fn a"), {"type": "text", "text": " explain"}]),
            "[@a.rs](a.rs#L1-2) explain\n\n<file name=\"a.rs\" lines=\"1-2\">\nfn a\n</file>",
        );
        check(
            json!([resource("zed:///agent/untitled-buffer#L1:10", "let x;")]),
            "[@untitled-buffer](zed:///agent/untitled-buffer#L1:10)\n\n\
             <file name=\"zed:///agent/untitled-buffer#L1:10\">\nlet x;\n</file>",
        );
        check(json!([{"type": "resource_link", "name": "src", "uri": "file:///w/src/"}]), "[@src](src/)");
        let long = "x".repeat(MAX_INLINE + 1);
        let text = read(json!([resource("file:///w/a.rs", &long)])).expect("a prompt").text;
        assert!(text.len() < SHOWN + 300 && text.contains("all of it is in /tmp/kept"));
        let blob = |kind: &str| json!([{"type": "resource", "resource": {"uri": "file:///w/b", "blob": "aGk=", "mimeType": kind}}]);
        check(blob("text/plain"), "[@b](b)\n\n<file name=\"b\">\nhi\n</file>");
        check(blob("application/zip"), "[@b](b)\n\n[b: application/zip, 2 bytes, not shown]");
        assert_eq!(read(blob("image/png")).expect("a prompt").images.len(), 1);
    }

    #[test]
    fn an_image_without_data_is_read_from_its_file() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let blocks = json!([{"type": "image", "data": "", "mimeType": "image/png", "uri": format!("file://{path}")}]);
        let images = read(blocks).expect("a prompt").images;
        let expected = STANDARD.encode(std::fs::read(path).expect("a file"));
        assert_eq!(images, [ImageBlock { data: expected, mime_type: "image/png".to_owned() }]);
    }

    #[test]
    fn what_cannot_be_taken_is_named() {
        let refused = |blocks: Value| read(blocks).expect_err("it is refused").message;
        assert_eq!(refused(json!([])), "The prompt is empty");
        assert_eq!(refused(json!([{"type": "text", "text": " \n"}])), "The prompt is empty");
        assert_eq!(
            refused(json!([{"type": "audio", "data": "", "mimeType": "audio/wav"}])),
            "This agent takes no audio"
        );
        assert_eq!(refused(json!([{"type": "image", "data": "", "mimeType": "image/png"}])), "The image is empty");
        let missing = json!([{"type": "image", "data": "", "mimeType": "image/png", "uri": "file:///nowhere.png"}]);
        assert!(refused(missing).starts_with("/nowhere.png: "));
    }
}
