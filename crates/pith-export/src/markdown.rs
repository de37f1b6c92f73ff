//! Markdown of models. HTML in it is shown as text, links lead only to web and
//! mail, and pictures come from the text itself or become links.

use std::io;

use pith_highlight::by_name;
use pulldown_cmark::{Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};

use crate::diff::{Form, diff};
use crate::highlight::code;
use crate::html::Html;
use crate::image::{data_url, image};
use crate::link::safe_link;

/// Longer text is shown as it is.
const MAX_TEXT: usize = 500_000;

/// Elements deeper than this lose their tags, not their text.
const MAX_DEPTH: usize = 24;

/// Writes Markdown as HTML.
pub(crate) fn markdown(html: &mut Html<'_>, text: &str) -> io::Result<()> {
    if text.len() > MAX_TEXT {
        return html.element("<pre class=text>", text, "</pre>");
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    html.markup("<div class=md>")?;
    let mut writer = Writer::new(html);
    for event in Parser::new_ext(text, options) {
        writer.event(event)?;
    }
    html.markup("</div>")
}

/// Writes a block of code in the language of its fence.
pub(crate) fn code_block(html: &mut Html<'_>, text: &str, fence: &str) -> io::Result<()> {
    let name = fence.split([' ', ',', '{', '\t']).next().unwrap_or_default();
    if name.eq_ignore_ascii_case("diff") || name.eq_ignore_ascii_case("patch") {
        return diff(html, text, Form::Unified);
    }
    html.markup("<pre><code>")?;
    code(html, text, by_name(name))?;
    html.markup("</code></pre>")
}

struct Writer<'h, 'w> {
    html: &'h mut Html<'w>,
    depth: usize,
    /// For each open link whether it has a tag.
    links: Vec<bool>,
    /// Code is collected until its block ends.
    block: Option<(String, String)>,
    picture: Option<Picture>,
    alignments: Vec<Alignment>,
    column: usize,
    in_table: bool,
    in_table_head: bool,
}

/// A picture whose description is being collected. Inside it there are no tags.
struct Picture {
    address: String,
    alt: String,
    /// Elements open inside the description.
    depth: usize,
}

impl<'h, 'w> Writer<'h, 'w> {
    fn new(html: &'h mut Html<'w>) -> Self {
        Writer {
            html,
            depth: 0,
            links: Vec::new(),
            block: None,
            picture: None,
            alignments: Vec::new(),
            column: 0,
            in_table: false,
            in_table_head: false,
        }
    }

    fn event(&mut self, event: Event<'_>) -> io::Result<()> {
        if let Some(mut picture) = self.picture.take() {
            return match picture.describe(event) {
                Described::Further => {
                    self.picture = Some(picture);
                    Ok(())
                }
                Described::Completely => self.end_picture(&picture),
            };
        }
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.text(&text),
            Event::Code(text) => self.html.element("<code>", &text, "</code>"),
            Event::SoftBreak => self.text("\n"),
            Event::HardBreak => self.html.markup("<br>"),
            Event::Rule => self.html.markup("<hr>"),
            Event::TaskListMarker(true) => self.html.markup("<input type=checkbox disabled checked> "),
            Event::TaskListMarker(false) => self.html.markup("<input type=checkbox disabled> "),
        }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        match &mut self.block {
            Some((_, collected)) => {
                collected.push_str(text);
                Ok(())
            }
            None => self.html.text(text),
        }
    }

    fn start(&mut self, tag: Tag<'_>) -> io::Result<()> {
        self.depth += 1;
        match tag {
            Tag::CodeBlock(kind) => {
                let fence = match kind {
                    CodeBlockKind::Fenced(fence) => fence.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.block = Some((fence, String::new()));
                Ok(())
            }
            Tag::HtmlBlock => {
                self.block = Some(("html".to_owned(), String::new()));
                Ok(())
            }
            Tag::Link { link_type, dest_url, .. } => self.start_link(link_type, &dest_url),
            Tag::Image { dest_url, .. } => {
                self.depth -= 1;
                self.picture = Some(Picture { address: dest_url.into_string(), alt: String::new(), depth: 0 });
                Ok(())
            }
            // A table is written with all that is in it or not at all.
            Tag::Table(alignments) => {
                self.in_table = self.depth + 3 <= MAX_DEPTH;
                self.alignments = alignments;
                self.html.markup(if self.in_table { "<div class=wide><table>" } else { "" })
            }
            Tag::TableHead | Tag::TableRow | Tag::TableCell if !self.in_table => Ok(()),
            _ if self.depth > MAX_DEPTH => Ok(()),
            Tag::TableHead => {
                (self.in_table_head, self.column) = (true, 0);
                self.html.markup("<thead><tr>")
            }
            Tag::TableRow => {
                self.column = 0;
                self.html.markup("<tr>")
            }
            Tag::TableCell => self.start_cell(),
            Tag::List(Some(start)) => {
                self.html.markup("<ol start=")?;
                self.html.number(usize::try_from(start).unwrap_or(1))?;
                self.html.markup(">")
            }
            Tag::Paragraph => self.html.markup("<p>"),
            Tag::Heading { level, .. } => self.html.markup(heading(level).0),
            Tag::BlockQuote(_) => self.html.markup("<blockquote>"),
            Tag::List(None) => self.html.markup("<ul>"),
            Tag::Item => self.html.markup("<li>"),
            Tag::Emphasis => self.html.markup("<em>"),
            Tag::Strong => self.html.markup("<strong>"),
            Tag::Strikethrough => self.html.markup("<del>"),
            // Extensions that are not switched on.
            Tag::Superscript
            | Tag::Subscript
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_) => Ok(()),
        }
    }

    fn end(&mut self, tag: TagEnd) -> io::Result<()> {
        let depth = self.depth;
        self.depth = depth.saturating_sub(1);
        match tag {
            TagEnd::CodeBlock | TagEnd::HtmlBlock => match self.block.take() {
                Some((fence, text)) => code_block(self.html, &text, &fence),
                None => Ok(()),
            },
            TagEnd::Link => match self.links.pop() {
                Some(true) => self.html.markup("</a>"),
                _ => Ok(()),
            },
            TagEnd::Table | TagEnd::TableHead | TagEnd::TableRow | TagEnd::TableCell if !self.in_table => Ok(()),
            _ if depth > MAX_DEPTH => Ok(()),
            TagEnd::Table => {
                self.in_table = false;
                self.html.markup("</tbody></table></div>")
            }
            TagEnd::TableHead => {
                self.in_table_head = false;
                self.html.markup("</tr></thead><tbody>")
            }
            TagEnd::TableRow => self.html.markup("</tr>"),
            TagEnd::TableCell => self.html.markup(if self.in_table_head { "</th>" } else { "</td>" }),
            TagEnd::Paragraph => self.html.markup("</p>"),
            TagEnd::Heading(level) => self.html.markup(heading(level).1),
            TagEnd::BlockQuote(_) => self.html.markup("</blockquote>"),
            TagEnd::List(true) => self.html.markup("</ol>"),
            TagEnd::List(false) => self.html.markup("</ul>"),
            TagEnd::Item => self.html.markup("</li>"),
            TagEnd::Emphasis => self.html.markup("</em>"),
            TagEnd::Strong => self.html.markup("</strong>"),
            TagEnd::Strikethrough => self.html.markup("</del>"),
            TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::MetadataBlock(_)
            | TagEnd::Image => Ok(()),
        }
    }

    fn start_link(&mut self, link_type: LinkType, address: &str) -> io::Result<()> {
        let address: CowStr<'_> = match link_type {
            LinkType::Email => format!("mailto:{address}").into(),
            _ => address.into(),
        };
        let target = safe_link(&address);
        self.links.push(target.is_some());
        match target {
            Some(target) => anchor(self.html, &target),
            None => Ok(()),
        }
    }

    fn end_picture(&mut self, picture: &Picture) -> io::Result<()> {
        if let Some((mime_type, data)) = data_url(&picture.address) {
            return image(self.html, mime_type, data, &picture.alt);
        }
        let alt = if picture.alt.is_empty() { "image" } else { &picture.alt };
        let in_link = self.links.contains(&true);
        match safe_link(&picture.address).filter(|_| !in_link) {
            Some(target) => {
                anchor(self.html, &target)?;
                self.html.text(alt)?;
                self.html.markup("</a>")
            }
            None => self.html.text(alt),
        }
    }

    fn start_cell(&mut self) -> io::Result<()> {
        self.html.markup(if self.in_table_head { "<th" } else { "<td" })?;
        self.html.markup(match self.alignments.get(self.column) {
            Some(Alignment::Right) => " class=right>",
            Some(Alignment::Center) => " class=center>",
            Some(Alignment::Left | Alignment::None) | None => ">",
        })?;
        self.column += 1;
        Ok(())
    }
}

/// Whether a description continues.
enum Described {
    Further,
    Completely,
}

impl Picture {
    fn describe(&mut self, event: Event<'_>) -> Described {
        match event {
            Event::Start(_) => self.depth += 1,
            Event::End(_) if self.depth == 0 => return Described::Completely,
            Event::End(_) => self.depth -= 1,
            Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) => self.alt.push_str(&text),
            Event::SoftBreak | Event::HardBreak => self.alt.push(' '),
            _ => {}
        }
        Described::Further
    }
}

fn anchor(html: &mut Html<'_>, target: &str) -> io::Result<()> {
    html.markup("<a rel=\"noreferrer noopener\" target=_blank")?;
    html.attribute("href", target)?;
    html.markup(">")
}

/// Returns the level of a heading on the page, whose first two levels are the page's own.
fn heading(level: HeadingLevel) -> (&'static str, &'static str) {
    match level {
        HeadingLevel::H1 => ("<h3 class=h1>", "</h3>"),
        HeadingLevel::H2 => ("<h3>", "</h3>"),
        HeadingLevel::H3 => ("<h4>", "</h4>"),
        HeadingLevel::H4 => ("<h5>", "</h5>"),
        HeadingLevel::H5 | HeadingLevel::H6 => ("<h6>", "</h6>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::to_string;

    fn render(text: &str) -> String {
        let page = to_string(|html| markdown(html, text));
        page.strip_prefix("<div class=md>").and_then(|page| page.strip_suffix("</div>")).unwrap().to_owned()
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(render(text), expected, "{text}");
    }

    #[test]
    fn common_elements() {
        check("a *b* **c** ~~d~~ `e<`", "<p>a <em>b</em> <strong>c</strong> <del>d</del> <code>e&lt;</code></p>");
        check("# T\n\n### U", "<h3 class=h1>T</h3><h4>U</h4>");
        check(
            "- a\n- [x] b\n\n3. c",
            "<ul><li>a</li><li><input type=checkbox disabled checked> b</li></ul><ol start=3><li>c</li></ol>",
        );
        check("> q\n\n---", "<blockquote><p>q</p></blockquote><hr>");
        check("a  \nb", "<p>a<br>b</p>");
        check(
            "|a|b|\n|-|-:|\n|1|2|",
            "<div class=wide><table><thead><tr><th>a</th><th class=right>b</th></tr></thead>\
             <tbody><tr><td>1</td><td class=right>2</td></tr></tbody></table></div>",
        );
        check("```rust\nfn x\n```", "<pre><code><i class=k>fn</i> x\n</code></pre>");
        check("```diff\n+a\n```", "<pre class=diff><code><i class=in>+a\n</i></code></pre>");
    }

    #[test]
    fn html_is_text() {
        check("a <b onclick=x>c</b>", "<p>a &lt;b onclick=x&gt;c&lt;/b&gt;</p>");
        let page = render("<script>alert(1)</script>\n\n<img src=x onerror=alert(1)>\n\n<!-- c -->");
        assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("<!--"), "{page}");
        assert!(page.contains("onerror"), "{page}");
        check("&lt;script&gt; &#60;b&#62;", "<p>&lt;script&gt; &lt;b&gt;</p>");
    }

    #[test]
    fn links_lead_to_web_and_mail_only() {
        let open = "<a rel=\"noreferrer noopener\" target=_blank href=";
        check("[a](https://x.org/?a=1&b=%22)", &format!("<p>{open}\"https://x.org/?a=1&amp;b=%22\">a</a></p>"));
        check("<https://x.org>", &format!("<p>{open}\"https://x.org\">https://x.org</a></p>"));
        check("<me@x.org>", &format!("<p>{open}\"mailto:me@x.org\">me@x.org</a></p>"));
        check("[a](<https://x.org/\"onclick=x>)", &format!("<p>{open}\"https://x.org/&quot;onclick=x\">a</a></p>"));
        for bad in [
            "javascript:alert(1)",
            "data:text/html,x",
            "/etc/passwd",
            "file:///x",
            "java&#9;script:x",
            "&#106;avascript:x",
        ] {
            check(&format!("[a]({bad})"), "<p>a</p>");
        }
        check("[a][1]\n\n[1]: javascript:x", "<p>a</p>");
        check("<javascript:alert(1)>", "<p>javascript:alert(1)</p>");
    }

    #[test]
    fn pictures_are_inline_or_links() {
        check(
            "![a](data:image/png;base64,AAAA)",
            "<p><img loading=lazy decoding=async alt=\"a\" src=\"data:image/png;base64,AAAA\"></p>",
        );
        check(
            "![a *b* `c`](http://x.org/i.png)",
            "<p><a rel=\"noreferrer noopener\" target=_blank href=\"http://x.org/i.png\">a b c</a></p>",
        );
        check("![](data:image/svg+xml;base64,AAAA)", "<p>image</p>");
        check("![\"><script>](x.png)", "<p>&quot;&gt;&lt;script&gt;</p>");
        check(
            "[![i](http://x.org/i)](http://y.org)",
            "<p><a rel=\"noreferrer noopener\" target=_blank href=\"http://y.org\">i</a></p>",
        );
        check("![a [b](http://x.org) ![c](data:image/png;base64,AAAA)](y)", "<p>a b c</p>");
    }

    #[test]
    fn deep_nesting_is_flattened() {
        let page = render(&format!("{}x", "> ".repeat(1000)));
        assert_eq!(page.matches("<blockquote>").count(), MAX_DEPTH);
        assert_eq!(page.matches("</blockquote>").count(), MAX_DEPTH);
        assert!(page.contains('x'));
        let page = render(&format!("{0}|a|\n{0}|-|\n{0}|b|", "> ".repeat(MAX_DEPTH - 1)));
        assert!(!page.contains("table") && !page.contains("tbody") && page.contains('b'), "{page}");
    }

    #[test]
    fn hostile_repetition_takes_little_time() {
        for piece in ["[", "![", "*a ", "_a_ ", "`", "<", "> ", "- ", "|", "[a](", "&", "\\", "<!--", "***", "[^1]: "] {
            let text = piece.repeat(100_000 / piece.len());
            let started = std::time::Instant::now();
            render(&text);
            assert!(started.elapsed().as_secs() < 60, "{piece:?} took {:?}", started.elapsed());
        }
    }
}
