//! What a compaction is made from, and how its summary is assembled.

use std::sync::Arc;

use pith_protocol::{Block, Content, Message, Usage};
use pith_store::EntryId;
use serde_json::Value;

use super::files::FileLists;
use super::prompts;
use super::serialise::paragraphs;
use super::summariser::{Instructions, Summariser, SummaryFailure};

/// Everything a summary is written from.
pub(crate) struct Material {
    /// The summary of an earlier compaction, see [`split_previous`].
    pub previous: Option<String>,
    /// Whole turns.
    pub history: Vec<Arc<Message>>,
    /// The beginning of a turn whose end is kept.
    pub turn_prefix: Vec<Arc<Message>>,
    /// The newest prompt, if it is not kept as a message.
    pub request: Option<String>,
    pub files: FileLists,
    /// What the user asked the summary to stress.
    pub focus: Option<String>,
}

/// A finished summary.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    pub text: String,
    pub details: Option<Value>,
    pub usage: Usage,
    pub author: Author,
}

/// Who wrote a summary.
#[derive(Clone, Debug, Default)]
pub(crate) enum Author {
    #[default]
    Model,
    /// An extension. It may keep another part of the conversation than was proposed to it.
    Extension { first_kept: Option<EntryId>, tokens_before: Option<u64> },
}

impl Author {
    pub fn is_extension(&self) -> bool {
        matches!(self, Author::Extension { .. })
    }
}

const NO_HISTORY: &str = "No prior history.";
const REQUEST_START: &str = "\n\nThe request being worked on, in the person's own words:\n\n<request>\n";
const REQUEST_END: &str = "\n</request>";

impl Material {
    /// Writes the summary.
    pub async fn summarise(self, mut summariser: Summariser) -> Result<Summary, SummaryFailure> {
        let history = paragraphs(&self.history);
        let focus = self.focus.as_deref();
        let mut text = if history.is_empty() {
            self.previous.unwrap_or_else(|| NO_HISTORY.to_owned())
        } else {
            let instructions = Instructions { first: prompts::history(focus), further: prompts::update(focus) };
            summariser.fold(history, self.previous, &instructions).await?
        };
        let prefix = paragraphs(&self.turn_prefix);
        let prefix = if prefix.is_empty() {
            None
        } else {
            let instructions =
                Instructions { first: prompts::turn_prefix(focus), further: prompts::turn_prefix_update(focus) };
            Some(summariser.fold(prefix, None, &instructions).await?)
        };
        if prefix.is_some() || self.request.is_some() {
            text.push_str("\n\n---\n\n**The turn in progress**");
        }
        if let Some(request) = self.request {
            text.push_str(REQUEST_START);
            text.push_str(&request);
            text.push_str(REQUEST_END);
        }
        if let Some(prefix) = prefix {
            text.push_str("\n\n");
            text.push_str(&prefix);
        }
        text.push_str(&self.files.blocks());
        Ok(Summary { text, details: Some(self.files.details()), usage: summariser.usage, author: Author::Model })
    }
}

/// Splits an earlier summary into its text, without file lists, and the prompt it quotes.
pub(crate) fn split_previous(summary: &str) -> (String, Option<String>) {
    let summary = without_lists(summary);
    let Some((before, rest)) = summary.split_once(REQUEST_START) else { return (summary.to_owned(), None) };
    match rest.rsplit_once(REQUEST_END) {
        Some((request, after)) => (format!("{before}{after}"), Some(request.to_owned())),
        None => (summary.to_owned(), None),
    }
}

/// Removes the file lists at the end of a summary; the next summary gets its own.
fn without_lists(summary: &str) -> &str {
    let ends = ["\n\n<read-files>\n", "\n\n<modified-files>\n"].into_iter().filter_map(|mark| summary.find(mark));
    &summary[..ends.min().unwrap_or(summary.len())]
}

/// The text of a prompt, with a note about images, which a summary cannot quote.
pub(crate) fn request_text(content: &Content) -> String {
    let n_images = match content {
        Content::Text(_) => 0,
        Content::Blocks(blocks) => blocks.iter().filter(|block| matches!(block, Block::Image(_))).count(),
    };
    let note = if n_images == 0 {
        String::new()
    } else {
        format!("\n[{n_images} image(s) of this request are no longer shown]")
    };
    content.text() + &note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_lists_do_not_pile_up() {
        let check = |text, expected| assert_eq!(without_lists(text), expected);
        check("## Goal\nx", "## Goal\nx");
        check("s\n\n<read-files>\na\n</read-files>\n\n<modified-files>\nb\n</modified-files>", "s");
        check("s\n\n<modified-files>\nb\n</modified-files>", "s");
    }

    #[test]
    fn a_request_that_was_repeated_can_be_repeated_again() {
        let check = |text: &str, summary: &str, request: Option<&str>| {
            assert_eq!(split_previous(text), (summary.to_owned(), request.map(str::to_owned)));
        };
        check("plain", "plain", None);
        let text =
            format!("s{REQUEST_START}say </request> twice{REQUEST_END}\n\nprefix\n\n<read-files>\na\n</read-files>");
        check(&text, "s\n\nprefix", Some("say </request> twice"));
    }
}
