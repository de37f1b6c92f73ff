//! Builds a prompt from text, piped input, files and images.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use pith_protocol::ImageBlock;
use pith_tools::image::{self, Normalised, Rules, Sniffed};
use serde_json::{Value, json};

/// More text than this fits no model.
const MAX_BYTES: u64 = 64 << 20;

/// A prompt that is being built.
#[derive(Debug, Default)]
pub struct Draft {
    text: String,
    images: Vec<ImageBlock>,
}

impl Draft {
    /// Adds text on a line of its own.
    pub fn push(&mut self, text: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') && !text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    /// Adds a file: text between marks, an image as an attachment.
    pub fn attach(&mut self, path: &Path, rules: Rules) -> anyhow::Result<()> {
        let shown = path.display();
        let data = read(path)?;
        if data.is_empty() {
            return Ok(());
        }
        match image::sniff(&data) {
            Sniffed::Image(_) | Sniffed::Unsupported(_) => match image::normalise(&data, rules) {
                Normalised::Image { block, notes } => {
                    self.images.push(block);
                    self.push(&format!("<file name=\"{shown}\">{}</file>\n", notes.join("\n")));
                }
                Normalised::Omitted(remark) => self.push(&format!("<file name=\"{shown}\">{remark}</file>\n")),
            },
            Sniffed::Other if data.contains(&0) => bail!("File is neither text nor an image: {shown}"),
            Sniffed::Other => {
                let text = String::from_utf8_lossy(&data);
                let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                self.push(&format!("<file name=\"{shown}\">\n{text}\n</file>\n"));
            }
        }
        Ok(())
    }

    /// The command that sends the prompt; `None` if it is empty.
    pub fn into_prompt(self) -> Option<Value> {
        if self.text.is_empty() && self.images.is_empty() {
            return None;
        }
        let images: Vec<Value> = self.images.iter().map(picture).collect();
        Some(json!({"type": "prompt", "message": self.text, "images": images}))
    }
}

/// A file that came with a message.
#[derive(Debug, PartialEq, Eq)]
pub struct Attached<'a> {
    pub path: &'a str,
    pub text: &'a str,
}

/// Splits a message into the files that were attached to it and the words of the user.
pub fn attached(mut message: &str) -> (Vec<Attached<'_>>, &str) {
    let mut files = Vec::new();
    while let Some(file) = message.strip_prefix("<file name=\"")
        && let Some((path, rest)) = file.split_once("\">")
        && !path.contains('\n')
        && let Some((text, rest)) = rest.split_once("</file>\n")
    {
        files.push(Attached { path, text: text.strip_prefix('\n').unwrap_or(text) });
        message = rest;
    }
    (files, message)
}

fn picture(image: &ImageBlock) -> Value {
    json!({"type": "image", "data": image.data, "mimeType": image.mime_type})
}

/// The absolute path of a file argument.
pub fn resolve(argument: &str, cwd: &Path, home: &Path) -> PathBuf {
    match argument.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        Some(rest) => home.join(rest.trim_start_matches('/')),
        None => cwd.join(argument),
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => bail!("File not found: {shown}"),
        Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
    };
    if metadata.is_dir() {
        bail!("Not a file: {shown}");
    }
    let mut data = Vec::new();
    let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
    file.take(MAX_BYTES + 1).read_to_end(&mut data).with_context(|| format!("cannot read {shown}"))?;
    if data.len() as u64 > MAX_BYTES {
        bail!("File is too large: {shown} has more than {} MiB", MAX_BYTES >> 20);
    }
    Ok(data)
}

/// Reads everything from a redirected stdin, trimmed.
pub fn piped(mut input: impl Read) -> anyhow::Result<String> {
    let mut data = Vec::new();
    input.by_ref().take(MAX_BYTES + 1).read_to_end(&mut data).context("cannot read stdin")?;
    if data.len() as u64 > MAX_BYTES {
        bail!("stdin is too large: more than {} MiB", MAX_BYTES >> 20);
    }
    Ok(String::from_utf8_lossy(&data).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules =
        Rules { auto_resize: true, limits: image::Limits { width: 2000, height: 2000, base64_bytes: 1 << 20 } };

    #[test]
    fn text_and_files_are_on_separate_lines() {
        let directory = std::env::temp_dir().join(format!("pith-attach-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("temp dir");
        let file = directory.join("a.txt");
        std::fs::write(&file, "one").expect("write");
        let mut draft = Draft::default();
        draft.attach(&file, RULES).expect("attached");
        draft.push("What is it?");
        let prompt = draft.into_prompt().expect("something");
        let (files, words) = attached(prompt["message"].as_str().expect("a text"));
        let path = file.display().to_string();
        assert_eq!((files, words), (vec![Attached { path: &path, text: "one\n" }], "What is it?"));
        assert_eq!(attached("<file name=\"x\">"), (Vec::new(), "<file name=\"x\">"));
        let mut draft = Draft::default();
        draft.push("piped");
        draft.attach(&file, RULES).expect("attached");
        draft.push("question");
        let prompt = draft.into_prompt().expect("something");
        let expected = format!("piped\n<file name=\"{}\">\none\n</file>\nquestion", file.display());
        assert_eq!(prompt["message"], expected.as_str());
        std::fs::write(&file, [0, 159, 146, 150]).expect("write");
        let error = Draft::default().attach(&file, RULES).expect_err("binary").to_string();
        assert!(error.starts_with("File is neither text nor an image: "), "{error}");
        let missing = Draft::default().attach(&directory.join("none"), RULES).expect_err("missing").to_string();
        assert_eq!(missing, format!("File not found: {}", directory.join("none").display()));
        std::fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn an_empty_draft_makes_no_prompt() {
        assert_eq!(Draft::default().into_prompt(), None);
        assert_eq!(piped(&b" \n"[..]).expect("read"), "");
    }

    #[test]
    fn paths_may_start_at_home() {
        let resolve = |argument| resolve(argument, Path::new("/w"), Path::new("/h"));
        assert_eq!(resolve("a/b"), Path::new("/w/a/b"));
        assert_eq!(resolve("~/x"), Path::new("/h/x"));
        assert_eq!(resolve("~user"), Path::new("/w/~user"));
    }
}
