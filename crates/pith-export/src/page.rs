//! The page as a whole.

use std::io::{self, Write};

use pith_protocol::ToolSpec;
use pith_store::EntryTree;

use crate::entry::Entries;
use crate::export::ExportError;
use crate::header::{header, title};
use crate::html::Html;
use crate::navigator::navigator;
use crate::outline::Outline;
use crate::raw::{session_file, shape};
use crate::words::file_name;

const STYLE: &str = include_str!("../assets/page.css");
/// Other colours, which the system or the reader chooses.
const DARK: &str = include_str!("../assets/dark.css");
const SCRIPT: &str = include_str!("../assets/page.js");
/// The SHA-256 of [`SCRIPT`] in base64, as content policies name it. A test prints it when the script has changed.
const SCRIPT_DIGEST: &str = "kV+jDL5M/nIEeHXOt7d/ORJIY/7ILZH+NgL7B61ROsk=";

/// How many entries, and lines of the navigator, a browser lays out together. The script counts with it too.
pub(crate) const PART: usize = 100;
/// The first part is there at once.
const PLAIN: (&str, &str) = ("<div class=part>\n", "</div>\n");
/// Further parts are text to a browser that runs scripts, so that the page is open long before they are read; the script
/// opens them. Without scripts they are parts like the first.
const HELD: (&str, &str) = ("<div class=part><noscript>\n", "</noscript></div>\n");

/// What a page shows.
#[derive(Clone, Copy)]
pub struct Page<'a> {
    pub tree: &'a EntryTree,
    /// The entry whose branch is shown first.
    pub leaf: Option<&'a str>,
    /// The current system prompt, if it is known.
    pub system_prompt: Option<&'a str>,
    /// The current tools, if they are known.
    pub tools: &'a [ToolSpec],
    pub app_version: &'a str,
}

impl<'a> Page<'a> {
    /// Makes the page of a session file at its last entry. Refuses a session that has nothing but settings.
    pub fn of_file(tree: &'a EntryTree, app_version: &'a str) -> Result<Self, ExportError> {
        use pith_store::Kind::{ModelChange, ThinkingLevelChange};
        if tree.outline().all(|entry| matches!(entry.kind, ModelChange | ThinkingLevelChange)) {
            return Err(ExportError::Nothing);
        }
        Ok(Page { tree, leaf: tree.end().map(|end| &**end), system_prompt: None, tools: &[], app_version })
    }
}

/// Writes the page, reading the session entry by entry.
pub fn render(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let outline = Outline::read(page.tree, page.leaf);
    let html = &mut Html::new(out);
    head(html, page, &outline)?;
    html.markup("<body>\n<div id=page>")?;
    header(html, page, &outline)?;
    bar(html, page)?;
    html.markup("<main id=stream>\n")?;
    let mut entries = Entries::new(page.tree, &outline);
    for (number, part) in outline.branch.chunks(PART).enumerate() {
        let (begin, end) = if number == 0 { PLAIN } else { HELD };
        html.markup(begin)?;
        for &position in part {
            entries.write(html, position)?;
        }
        html.markup(end)?;
    }
    html.markup("</main>\n")?;
    html.element("<footer>Exported by pith ", page.app_version, "</footer></div>\n")?;
    // Behind the conversation, though it stands beside it: a browser shows what it has read.
    navigator(html, page.tree, &outline)?;
    // Other branches stand in a template, which browsers neither show, load nor search.
    html.markup("<template id=elsewhere>\n")?;
    for position in 0..outline.rows.len() {
        if !outline.rows[position].is_on_branch {
            entries.write(html, position)?;
        }
    }
    html.markup("</template>\n")?;
    shape(html, &outline)?;
    session_file(html, page.tree)?;
    html.markup("<script>")?;
    html.markup(SCRIPT)?;
    html.markup("</script>\n</body>\n</html>\n")
}

fn head(html: &mut Html<'_>, page: &Page<'_>, outline: &Outline<'_>) -> io::Result<()> {
    html.markup("<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n")?;
    html.markup("<meta http-equiv=\"Content-Security-Policy\"")?;
    html.attribute("content", &policy())?;
    html.markup(concat!(
        ">\n<meta name=viewport content=\"width=device-width, initial-scale=1\">\n",
        "<meta name=color-scheme content=\"light dark\">\n<meta name=referrer content=no-referrer>\n",
        "<link rel=icon href=\"data:,\">\n",
    ))?;
    html.element("<title>", &title(page, outline), "</title>\n<style>\n")?;
    html.markup(STYLE)?;
    html.markup("</style>\n<style id=dark media=\"(prefers-color-scheme: dark)\">\n")?;
    html.markup(DARK)?;
    html.markup("</style>\n</head>\n")
}

/// Returns the policy under which nothing is loaded, and nothing runs but the one script.
fn policy() -> String {
    format!(
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{SCRIPT_DIGEST}'; \
         base-uri 'none'; form-action 'none'"
    )
}

/// Writes the bar of buttons for the script; without a script it stays hidden.
fn bar(html: &mut Html<'_>, page: &Page<'_>) -> io::Result<()> {
    let name = format!("{}.jsonl", file_name(&page.tree.header().id));
    html.markup(concat!(
        "<div class=bar><button id=menu aria-expanded=false aria-controls=nav>Entries</button>",
        "<button id=unfold>Unfold all</button><button id=fold>Fold all</button><button id=theme>Light or dark</button>",
        "<button id=download",
    ))?;
    html.attribute("data-name", &name)?;
    html.markup(">Download JSONL</button><span id=elsewhere-note class=note hidden>Another branch. <a id=back href=\"#\">Back to the active one</a></span></div>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;

    #[test]
    fn the_policy_allows_the_script() {
        let digest = ring::digest::digest(&ring::digest::SHA256, SCRIPT.as_bytes());
        assert_eq!(base64::engine::general_purpose::STANDARD.encode(digest), SCRIPT_DIGEST);
    }
}
