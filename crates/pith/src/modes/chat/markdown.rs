//! Markdown as rows of a terminal.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};

use super::highlight::Highlighter;
use super::table::Table;
use super::text::{Break, Piece, Row, wrap};
use super::theme;

/// Deeper nesting is shown at this depth: a hostile text must not leave a word per row.
const MAX_DEPTH: usize = 8;

/// Renders a text for a width.
pub fn render(text: &str, width: usize) -> Vec<Row> {
    let mut renderer = Renderer { width: width.max(1), ..Renderer::default() };
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    Parser::new_ext(text, options).for_each(|event| renderer.event(event));
    renderer.flush();
    renderer.rows
}

#[derive(Default)]
struct Renderer {
    width: usize,
    rows: Vec<Row>,
    /// The text of the block so far.
    inline: Vec<Piece>,
    styles: Vec<Style>,
    links: Vec<String>,
    /// What rows begin with, one per quote and list item.
    prefixes: Vec<Prefix>,
    /// The numbers of open lists; `None` for those with bullets.
    lists: Vec<Option<u64>>,
    code: Option<Code>,
    table: Option<Table>,
    /// Whether the next block follows the mark of its list item.
    is_after_mark: bool,
}

struct Prefix {
    /// For the next row only.
    first: Option<Piece>,
    rest: Piece,
}

struct Code {
    highlighter: Highlighter,
    text: String,
    fence: Option<String>,
}

impl Renderer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text, Style::default()),
            Event::Code(text) => self.text(&text, theme::code()),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text, theme::code()),
            // Shown as it is written.
            Event::Html(text) | Event::InlineHtml(text) => self.text(text.trim_end_matches('\n'), theme::dim()),
            Event::FootnoteReference(name) => self.text(&format!("[{name}]"), theme::dim()),
            Event::SoftBreak => self.text(" ", Style::default()),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.gap();
                let room = self.room();
                self.inline.push(Piece::new(&"─".repeat(room.min(40)), theme::dim()));
                self.flush();
            }
            Event::TaskListMarker(is_done) => self.text(if is_done { "☑ " } else { "☐ " }, Style::default()),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.gap(),
            Tag::Heading { level, .. } => {
                self.gap();
                self.styles.push(if level <= HeadingLevel::H2 { theme::heading() } else { theme::bold() });
            }
            Tag::BlockQuote(_) => {
                self.gap();
                self.nest(None, "│ ");
                self.is_after_mark = true;
            }
            Tag::CodeBlock(kind) => {
                self.gap();
                let fence = match kind {
                    CodeBlockKind::Fenced(language) => Some(language.to_string()),
                    CodeBlockKind::Indented => None,
                };
                let highlighter = Highlighter::new(fence.as_deref().unwrap_or_default());
                self.code = Some(Code { highlighter, text: String::new(), fence });
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.gap();
                } else {
                    self.flush();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                let rest = " ".repeat(mark.chars().count());
                self.nest(Some(&mark), &rest);
                self.is_after_mark = true;
            }
            Tag::Table(_) => {
                self.gap();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => self.table.iter_mut().for_each(Table::begin_row),
            Tag::Emphasis => self.styles.push(theme::italic()),
            Tag::Strong => self.styles.push(theme::bold()),
            Tag::Strikethrough => self.styles.push(Style::new().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.to_string());
                self.styles.push(theme::link());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.prefixes.pop();
            }
            TagEnd::Item => {
                self.flush();
                // An item without text still shows its mark.
                if self.prefixes.last().is_some_and(|prefix| prefix.first.is_some()) {
                    self.inline.push(Piece::plain(""));
                    self.flush();
                }
                self.prefixes.pop();
                self.is_after_mark = false;
            }
            TagEnd::List(_) => drop(self.lists.pop()),
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(table) = &mut self.table {
                    table.push_cell(cell);
                }
            }
            TagEnd::Table => {
                let table = self.table.take().unwrap_or_default();
                for row in table.rows(self.room()) {
                    self.push_row(row);
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                self.end_link();
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str, own: Style) {
        if let Some(code) = &mut self.code {
            return code.text.push_str(text);
        }
        let style = self.styles.iter().fold(own, |style, outer| outer.patch(style));
        let link = self.links.last().cloned();
        // Lines of HTML; elsewhere there is a single one.
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.flush();
            }
            self.inline.push(Piece::new(line, style).linked(link.as_deref()));
        }
    }

    /// Shows where a link leads unless its text says so: not every terminal opens it.
    fn end_link(&mut self) {
        let Some(target) = self.links.pop() else { return };
        let text = self.inline.iter().rev().take_while(|piece| piece.link().is_some()).map(Piece::text);
        let is_said = text.collect::<Vec<_>>().into_iter().rev().collect::<String>();
        if !target.is_empty() && is_said != target && !target.ends_with(&is_said) {
            self.inline.push(Piece::new(&format!(" ({target})"), theme::dim()));
        }
    }

    fn end_code(&mut self) {
        let Some(mut code) = self.code.take() else { return };
        if let Some(language) = &code.fence {
            self.push_row(Row::new(&format!("```{language}"), theme::dim()));
        }
        for line in code.text.strip_suffix('\n').unwrap_or(&code.text).split('\n') {
            let pieces = code.highlighter.line(line);
            for row in wrap(&pieces, self.room(), Break::Anywhere, &[], &[]) {
                self.push_row(row);
            }
        }
        if code.fence.is_some() {
            self.push_row(Row::new("```", theme::dim()));
        }
    }

    /// Begins a quote or a list item.
    fn nest(&mut self, mark: Option<&str>, rest: &str) {
        let is_shown = self.prefixes.len() < MAX_DEPTH;
        let piece = |text: &str| Piece::new(if is_shown { text } else { "" }, theme::dim());
        self.prefixes.push(Prefix { first: mark.map(piece), rest: piece(rest) });
    }

    /// Leaves a row free between blocks.
    fn gap(&mut self) {
        self.flush();
        if std::mem::take(&mut self.is_after_mark) || self.rows.is_empty() {
            return;
        }
        let rest: Vec<Piece> = self.prefixes.iter().map(|prefix| prefix.rest.clone()).collect();
        let is_marked = self.prefixes.iter().any(|prefix| prefix.first.is_some());
        self.rows.push(if is_marked { Row::default() } else { Row(rest) });
    }

    /// Columns beside the prefixes.
    fn room(&self) -> usize {
        let used: usize = self.prefixes.iter().map(|prefix| Row(vec![prefix.rest.clone()]).width()).sum();
        self.width.saturating_sub(used).max(1)
    }

    /// Ends the text of a block.
    fn flush(&mut self) {
        if self.inline.is_empty() {
            return;
        }
        let inline = std::mem::take(&mut self.inline);
        self.is_after_mark = false;
        let first = self.take_prefix();
        let rest: Vec<Piece> = self.prefixes.iter().map(|prefix| prefix.rest.clone()).collect();
        self.rows.extend(wrap(&inline, self.width, Break::Words, &first, &rest));
    }

    fn push_row(&mut self, row: Row) {
        self.is_after_mark = false;
        let mut pieces = self.take_prefix();
        pieces.extend(row.0);
        self.rows.push(Row(pieces));
    }

    fn take_prefix(&mut self) -> Vec<Piece> {
        self.prefixes.iter_mut().map(|prefix| prefix.first.take().unwrap_or_else(|| prefix.rest.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, width: usize, expected: &[&str]) {
        let rows: Vec<String> = render(text, width).iter().map(|row| row.text().trim_end().to_owned()).collect();
        assert_eq!(rows, expected, "{text:?}");
    }

    #[test]
    fn blocks_become_rows() {
        check("one\ntwo\n\nthree", 80, &["one two", "", "three"]);
        check("# Title\ntext", 80, &["Title", "", "text"]);
        check("- a\n- b\n  - c\n- d", 80, &["• a", "• b", "  • c", "• d"]);
        check("3. x\n4. y y y", 6, &["3. x", "4. y y", "   y"]);
        check("- a\n\n- b", 80, &["• a", "• b"]);
        check("> said\n> more", 80, &["│ said more"]);
        check("before\n\n> said\n>\n> more", 80, &["before", "", "│ said", "│", "│ more"]);
        check("```rs\nlet  x;\n```", 80, &["```rs", "let  x;", "```"]);
        check("a  \nb", 80, &["a", "b"]);
        check("<b>x</b>", 80, &["<b>x</b>"]);
        check("- [x] done", 80, &["• ☑ done"]);
        check("***", 5, &["─────"]);
        check("-", 80, &["•"]);
    }

    #[test]
    fn tables_fit_the_screen() {
        let table = "| a | long head |\n|---|---|\n| 1 | many words in a cell |";
        check(table, 80, &["a │ long head", "──┼─────────────────────", "1 │ many words in a cell"]);
        check(table, 14, &["a │ long head", "──┼───────────", "1 │ many words", "  │ in a cell"]);
    }

    #[test]
    fn links_say_where_they_lead() {
        check("[text](http://a.b)", 80, &["text (http://a.b)"]);
        check("<http://a.b>", 80, &["http://a.b"]);
        let rows = render("[text](http://a.b)", 80);
        assert_eq!(rows[0].0[0].link(), Some("http://a.b"));
    }

    #[test]
    fn hostile_text_is_shown() {
        check("\u{1b}]0;t\u{7}`\u{9b}2J`", 80, &["␛]0;t␇\\u{9b}2J"]);
        check("[x](http://a/\u{9b})", 80, &["x (http://a/\\u{9b})"]);
        render(&"> ".repeat(2000), 10);
        render(&"- ".repeat(2000), 10);
    }
}
