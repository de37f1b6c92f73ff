//! The navigator: one line per entry of the whole tree. Its lines are plain
//! links, so that those of the active branch work without the script, which
//! adds filters, search and the other branches.

use std::io;

use pith_store::EntryTree;

use crate::html::{Html, anchor};
use crate::outline::{Group, Outline, Row};
use crate::page::PART;

/// Deeper branches are not indented further.
const MAX_DEPTH: usize = 9;

/// Writes the navigator.
pub(crate) fn navigator(html: &mut Html<'_>, tree: &EntryTree, outline: &Outline<'_>) -> io::Result<()> {
    html.markup(concat!(
        "<nav id=nav data-filter=default aria-label=Entries><div class=tools>",
        "<input id=search type=search placeholder=\"Search all entries\" aria-label=\"Search all entries\">",
        "<div class=filters role=group aria-label=Filter>",
        "<button data-filter=default aria-pressed=true>Default</button>",
        "<button data-filter=notools aria-pressed=false>No tools</button>",
        "<button data-filter=user aria-pressed=false>User</button>",
        "<button data-filter=labelled aria-pressed=false>Labelled</button>",
        "<button data-filter=all aria-pressed=false>All</button>",
        "</div><p id=found class=note aria-live=polite></p></div><div id=rows>\n",
    ))?;
    for part in outline.order.chunks(PART) {
        html.markup("<div class=part>\n")?;
        for &(position, depth) in part {
            let row = &outline.rows[position];
            let label = tree.label(row.entry.id).map(|label| &*label.text);
            line(html, position, depth, row, label)?;
        }
        html.markup("</div>\n")?;
    }
    html.markup("</div></nav>\n")
}

fn line(html: &mut Html<'_>, position: usize, depth: usize, row: &Row<'_>, label: Option<&str>) -> io::Result<()> {
    html.markup("<a class=\"")?;
    html.markup(match row.group {
        Group::User => "u",
        Group::Assistant => "a",
        Group::Calls => "c",
        Group::Tool => "t",
        Group::Other => "o",
        Group::Setting => "s",
    })?;
    html.markup(if row.is_on_branch { " on" } else { "" })?;
    html.markup(if label.is_some() { " l" } else { "" })?;
    if depth > 0 {
        html.markup(" d")?;
        html.number(depth.min(MAX_DEPTH))?;
    }
    html.markup("\" data-n=")?;
    html.number(position)?;
    html.attribute("href", &format!("#{}", anchor(row.entry.id)))?;
    html.markup(">")?;
    if let Some(label) = label {
        html.element("<mark>", label, "</mark> ")?;
    }
    let excerpt = if row.excerpt.is_empty() { "(empty)" } else { &row.excerpt };
    html.text(excerpt)?;
    html.markup("</a>\n")
}
