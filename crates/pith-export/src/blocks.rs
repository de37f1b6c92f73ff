//! The pieces messages are made of.

use std::io;

use pith_highlight::by_name;
use pith_protocol::{Block, Content, ThinkingBlock};
use serde::Serialize;

use crate::highlight::code;
use crate::html::Html;
use crate::image::image;
use crate::markdown::markdown;

/// Writes the content of a prompt or an extension's message.
pub(crate) fn content(html: &mut Html<'_>, content: &Content) -> io::Result<()> {
    match content {
        Content::Text(text) => markdown(html, text),
        Content::Blocks(blocks) => blocks.iter().try_for_each(|block| any_block(html, block)),
    }
}

/// Writes a block of any kind.
pub(crate) fn any_block(html: &mut Html<'_>, block: &Block) -> io::Result<()> {
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
