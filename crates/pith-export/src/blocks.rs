//! The pieces messages are made of.

use std::io;

use pith_protocol::{Block, Content, ThinkingBlock};
use serde::Serialize;

use crate::highlight::code;
use crate::html::Html;
use crate::image::image;
use crate::languages::by_name;
use crate::markdown::{code_block, markdown};

/// Writes what a person typed: as typed, but with fenced code set as code.
pub(crate) fn typed(html: &mut Html<'_>, text: &str) -> io::Result<()> {
    let mut rest = text;
    while let Some(fenced) = Fenced::find(rest) {
        plain(html, fenced.before)?;
        code_block(html, fenced.code, fenced.name)?;
        rest = fenced.after;
    }
    plain(html, rest)
}

fn plain(html: &mut Html<'_>, text: &str) -> io::Result<()> {
    match text.trim_matches(['\n', '\r']) {
        "" => Ok(()),
        text => html.element("<div class=typed>", text, "</div>"),
    }
}

/// A block of code between two fences.
struct Fenced<'t> {
    before: &'t str,
    name: &'t str,
    code: &'t str,
    after: &'t str,
}

impl<'t> Fenced<'t> {
    fn find(text: &'t str) -> Option<Self> {
        let start = line_start(text, |line| line.starts_with("```"))?;
        let (fence, inside) = text[start..].split_once('\n')?;
        let marks = fence.len() - fence.trim_start_matches('`').len();
        let (marks, name) = fence.split_at(marks);
        let end = line_start(inside, |line| line.trim_end() == marks)?;
        let after = inside[end..].split_once('\n').map_or("", |(_, after)| after);
        Some(Fenced { before: &text[..start], name: name.trim(), code: &inside[..end], after })
    }
}

/// Returns where the first line of a kind starts.
fn line_start(text: &str, is_wanted: impl Fn(&str) -> bool) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if is_wanted(line) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

/// Writes the content of a prompt or an extension's message.
pub(crate) fn content(
    html: &mut Html<'_>,
    content: &Content,
    text: fn(&mut Html<'_>, &str) -> io::Result<()>,
) -> io::Result<()> {
    match content {
        Content::Text(string) => text(html, string),
        Content::Blocks(blocks) => blocks.iter().try_for_each(|block| match block {
            Block::Text(block) => text(html, &block.text),
            other => odd_block(html, other),
        }),
    }
}

/// Writes a block that is no text where text is usual.
pub(crate) fn odd_block(html: &mut Html<'_>, block: &Block) -> io::Result<()> {
    match block {
        Block::Text(block) => markdown(html, &block.text),
        Block::Image(block) => image(html, &block.mime_type, &block.data, "image"),
        Block::Thinking(block) => thinking(html, block),
        Block::ToolCall(call) => json(html, call),
        Block::Other(object) => json(html, object),
    }
}

/// Writes what the model thought, folded away.
pub(crate) fn thinking(html: &mut Html<'_>, block: &ThinkingBlock) -> io::Result<()> {
    if block.redacted == Some(true) {
        return html.markup("<p class=note>Thinking was withheld by the provider.</p>");
    }
    if block.thinking.trim().is_empty() {
        return Ok(());
    }
    let excerpt = crate::words::excerpt(&block.thinking, 90);
    html.markup("<details class=thinking><summary>Thinking <span class=gist>")?;
    html.text(&excerpt.replace("**", ""))?;
    html.markup("</span></summary>")?;
    markdown(html, &block.thinking)?;
    html.markup("</details>")
}

/// Writes any value as indented JSON.
pub(crate) fn json<T: Serialize + ?Sized>(html: &mut Html<'_>, value: &T) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    html.markup("<pre><code>")?;
    code(html, &text, by_name("json"))?;
    html.markup("</code></pre>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::to_string;

    #[test]
    fn typed_text_keeps_its_characters() {
        let check = |text: &str, expected: &str| assert_eq!(to_string(|html| typed(html, text)), expected);
        check("# no *markdown* <b>\n\nnext", "<div class=typed># no *markdown* &lt;b&gt;\n\nnext</div>");
        check("", "");
        check(
            "see\n```rust\nfn\n```\nend",
            "<div class=typed>see</div><pre><code><i class=k>fn</i>\n</code></pre><div class=typed>end</div>",
        );
        check("```\nnever closed", "<div class=typed>```\nnever closed</div>");
        check("````\n```\n````", "<pre><code>```\n</code></pre>");
        check("a ``` b", "<div class=typed>a ``` b</div>");
    }

    #[test]
    fn thinking_is_folded() {
        let check =
            |block: ThinkingBlock, expected: &str| assert_eq!(to_string(|html| thinking(html, &block)), expected);
        let block = |text: &str| ThinkingBlock { thinking: text.to_owned(), ..ThinkingBlock::default() };
        check(block(" "), "");
        check(
            block("**Plan** </details>"),
            "<details class=thinking><summary>Thinking <span class=gist>Plan &lt;/details&gt;</span></summary>\
             <div class=md><p><strong>Plan</strong> &lt;/details&gt;</p></div></details>",
        );
        check(
            ThinkingBlock { redacted: Some(true), ..block("x") },
            "<p class=note>Thinking was withheld by the provider.</p>",
        );
    }
}
