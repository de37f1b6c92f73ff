//! The `read` tool: text files by line, images for models that accept them.

mod binary;
mod text;

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use pith_agent::{ABORTED, BoxFuture, Effect, Reach, Tool, ToolContext, ToolOutput};
use pith_protocol::{Block, ToolSpec};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::arguments::Arguments;
use crate::bridge;
use crate::files::open_regular;
use crate::image::{Normalised, Rules, Sniffed, normalise, sniff};
use crate::os_error;
use crate::seen::{Digest, MAX_COMPARED};
use crate::tool::{Outcome, output, spec};
use crate::workbench::Workbench;
use text::Window;

/// How many bytes are checked to tell text from binary.
const HEAD: usize = 8 * 1024;

/// Reads files for the model.
pub struct Read {
    spec: ToolSpec,
    workbench: Arc<Workbench>,
}

/// An open file whose beginning has been read.
struct Opened {
    shown_path: String,
    path: PathBuf,
    /// `None` if only the editor has it; `head` is all of it then.
    file: Option<File>,
    metadata: Option<Metadata>,
    head: Vec<u8>,
}

impl Read {
    /// Creates the tool of one session.
    pub fn new(workbench: Arc<Workbench>) -> Self {
        Read { spec: spec("read", DESCRIPTION, parameters()), workbench }
    }

    async fn read(self: Arc<Self>, arguments: Arguments, cancel: CancellationToken) -> Outcome {
        let shown_path = arguments.text("path")?.to_owned();
        let offset = arguments.number("offset")?;
        let limit = arguments.limit("limit")?;
        let opened = {
            let workbench = Arc::clone(&self.workbench);
            self.workbench.run_read_only(&cancel, move |cancel| open(&workbench, shown_path, cancel)).await?
        };
        match sniff(&opened.head) {
            Sniffed::Image(_) => self.image(opened, &cancel).await,
            // A call that asks for lines of an SVG gets its source.
            Sniffed::Unsupported("image/svg+xml") if offset.is_some() || limit.is_some() => {
                self.text(opened, Window::new(offset, limit), &cancel).await
            }
            Sniffed::Unsupported(mime) => Ok(ToolOutput::text(unsupported(mime))),
            Sniffed::Other if memchr::memchr(0, &opened.head).is_some() => {
                Ok(ToolOutput::text(binary::report(&opened.head, opened.metadata.map_or(0, |metadata| metadata.len()))))
            }
            Sniffed::Other => self.text(opened, Window::new(offset, limit), &cancel).await,
        }
    }

    async fn text(&self, opened: Opened, window: Window, cancel: &CancellationToken) -> Outcome {
        let workbench = Arc::clone(&self.workbench);
        let read = move |cancel: &CancellationToken| {
            let Opened { shown_path, path, file, metadata, mut head } = opened;
            let (Some(mut file), Some(metadata)) = (file, metadata) else {
                // It is in the editor only.
                return text::scan(head.as_slice(), window, None, cancel)?.render(window, &shown_path);
            };
            if workbench.bridge().is_some() && metadata.len() <= bridge::MAX_FILE as u64 {
                file.read_to_end(&mut head).map_err(|error| os_error::on_open_file(&error, "read"))?;
                let unsaved = bridge::unsaved_lines(&workbench, &path, &head, window.lines(), cancel);
                if let Some(buffer) = unsaved {
                    return text::scan(buffer.as_slice(), window, None, cancel)?.render(window, &shown_path);
                }
            }
            let digest = (metadata.len() <= MAX_COMPARED).then(Digest::default);
            let scan = text::scan(head.as_slice().chain(file), window, digest, cancel)?;
            workbench.seen.remember(&path, &metadata, scan.digest);
            scan.render(window, &shown_path)
        };
        self.workbench.run_read_only(cancel, read).await
    }

    async fn image(&self, opened: Opened, cancel: &CancellationToken) -> Outcome {
        let rules = self.workbench.image_rules();
        let sees_images = self.workbench.call_options().model_sees_images;
        let _turn = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ABORTED.to_owned()),
            turn = self.workbench.decoding.acquire() => turn,
        };
        self.workbench.run_read_only(cancel, move |_| image(opened, rules, sees_images)).await
    }
}

fn open(workbench: &Workbench, shown_path: String, cancel: &CancellationToken) -> Result<Opened, String> {
    let path = workbench.base.resolve_existing(&shown_path);
    let (mut file, metadata) = match open_regular(&path, &workbench.confinement) {
        Ok(opened) => opened,
        Err(why) => {
            workbench.confinement.admit(&path, "access")?;
            let is_new = !path.exists();
            let buffer = is_new.then(|| bridge::unsaved(workbench, &path, &[], cancel)).flatten().ok_or(why)?;
            return Ok(Opened { shown_path, path, file: None, metadata: None, head: buffer });
        }
    };
    let mut head = Vec::with_capacity(HEAD);
    let read = (&mut file).take(HEAD as u64).read_to_end(&mut head);
    read.map_err(|error| os_error::on_open_file(&error, "read"))?;
    Ok(Opened { shown_path, path, file: Some(file), metadata: Some(metadata), head })
}

fn image(mut opened: Opened, rules: Rules, sees_images: bool) -> Outcome {
    let mut data = opened.head;
    // One byte past the limit is enough to see that it is exceeded.
    if let Some(file) = &mut opened.file {
        let mut rest = file.take(crate::image::MAX_INPUT as u64 + 1);
        rest.read_to_end(&mut data).map_err(|error| os_error::on_open_file(&error, "read"))?;
    }
    let Sniffed::Image(kind) = sniff(&data) else { return Err("The file changed while it was read".to_owned()) };
    let (mime, notes, block) = match normalise(&data, rules) {
        Normalised::Image { block, notes } => (block.mime_type.clone(), notes, Some(block)),
        Normalised::Omitted(note) => (kind.mime().to_owned(), vec![note], None),
    };
    let mut text = format!("Read image file [{mime}]");
    for note in &notes {
        text.push('\n');
        text.push_str(note);
    }
    if block.is_some() && !sees_images {
        text.push_str("\n[Current model does not support images. The image will be omitted from this request.]");
    }
    let content = std::iter::once(Block::text(text)).chain(block.map(Block::Image)).collect();
    Ok(ToolOutput { content, ..ToolOutput::default() })
}

fn unsupported(mime: &str) -> String {
    let hint = if mime == "image/svg+xml" { " Use offset=1 to read its source as text." } else { "" };
    format!("Read image file [{mime}]\n[Image omitted: images of this type cannot be shown.{hint}]")
}

impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn snippet(&self) -> Option<&str> {
        Some("Read file contents")
    }

    fn rules(&self) -> Vec<&str> {
        vec!["Use read instead of cat or sed to look at files"]
    }

    fn reach(&self) -> Reach {
        Reach::Nothing
    }

    fn effect(&self, arguments: &Map<String, Value>) -> Effect {
        let path = arguments.get("path").and_then(Value::as_str).unwrap_or_default();
        Effect::Read(self.workbench.base.resolve_existing(path))
    }

    fn run(self: Arc<Self>, arguments: Map<String, Value>, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        Box::pin(async move { output(self.read(Arguments(arguments), context.cancel).await) })
    }
}

const DESCRIPTION: &str = "Read a file. Text is returned by line, at most 2000 lines or 50KB at once, whichever is \
    less; use offset and limit to continue in large files until you have all you need. Images (jpg, png, gif, webp, \
    bmp) are returned as pictures.";

fn parameters() -> Value {
    json!({
        "type": "object",
        "required": ["path"],
        "properties": {
            "path": {"type": "string", "description": "Path of the file, relative or absolute"},
            "offset": {"type": "number", "description": "First line to read, counted from 1"},
            "limit": {"type": "number", "description": "How many lines to read"},
        },
    })
}
