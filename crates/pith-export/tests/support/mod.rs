//! Shared by the tests: sessions as files, pages as text, and reading tags back.

#![allow(dead_code, reason = "each test file uses its own part")]

pub mod hostile;

use std::fs;
use std::path::{Path, PathBuf};

use pith_export::{Page, render};
use pith_store::EntryTree;
use serde_json::{Value, json};

/// A session with two branches, as they come out of a day's work.
pub fn ledger() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/ledger.jsonl")
}

pub fn header() -> Value {
    json!({"type":"session","version":3,"id":"s-1","timestamp":"2026-11-15T06:52:54.872Z","cwd":"/work"})
}

/// An entry with the members every entry has.
pub fn entry(kind: &str, id: &str, parent: Option<&str>, payload: Value) -> Value {
    let mut entry = json!({"type":kind,"id":id,"parentId":parent,"timestamp":"2026-11-15T06:52:59.059Z"});
    let members = entry.as_object_mut().expect("an object");
    members.extend(payload.as_object().expect("an object").clone());
    entry
}

pub fn message(id: &str, parent: Option<&str>, message: Value) -> Value {
    entry("message", id, parent, json!({ "message": message }))
}

pub fn user(id: &str, parent: Option<&str>, text: &str) -> Value {
    message(id, parent, json!({"role":"user","content":[{"type":"text","text":text}],"timestamp":1}))
}

pub fn write_session(directory: &Path, values: &[Value]) -> PathBuf {
    let path = directory.join("session.jsonl");
    fs::write(&path, values.iter().map(|value| format!("{value}\n")).collect::<String>()).expect("a file");
    path
}

pub fn open(path: &Path) -> EntryTree {
    EntryTree::open(path).unwrap_or_else(|error| panic!("{error}")).0
}

/// The page of a session file.
pub fn page_of(path: &Path) -> String {
    let tree = open(path);
    to_string(&Page::of_file(&tree, "0.0.0").unwrap_or_else(|error| panic!("{error}")))
}

pub fn to_string(page: &Page<'_>) -> String {
    let mut out = Vec::new();
    render(page, &mut out).expect("memory takes every byte");
    String::from_utf8(out).expect("pages are UTF-8")
}

/// The page of some entries behind a header.
pub fn page_of_entries(entries: &[Value]) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let values: Vec<_> = std::iter::once(header()).chain(entries.iter().cloned()).collect();
    page_of(&write_session(directory.path(), &values))
}

/// The text between two marks.
pub fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("no {start} in the page"));
    rest.split_once(end).unwrap_or_else(|| panic!("no {end} behind {start}")).0
}

/// One start tag as a browser reads it.
#[derive(Debug)]
pub struct Tag {
    pub name: String,
    pub attributes: Vec<(String, String)>,
}

impl Tag {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }
}

/// All start tags of a document. The content of scripts and styles is skipped as browsers do.
pub fn tags(html: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            continue;
        }
        let (tag, behind) = read_tag(rest);
        rest = behind;
        if tag.name == "script" || tag.name == "style" {
            let close = format!("</{}", tag.name);
            rest = &rest[rest.to_ascii_lowercase().find(&close).unwrap_or(rest.len())..];
        }
        tags.push(tag);
    }
    tags
}

fn read_tag(text: &str) -> (Tag, &str) {
    let end = text.find(|c: char| c.is_ascii_whitespace() || c == '>' || c == '/').unwrap_or(text.len());
    let mut tag = Tag { name: text[..end].to_ascii_lowercase(), attributes: Vec::new() };
    let mut rest = &text[end..];
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() || rest.starts_with('>') {
            return (tag, rest.strip_prefix('>').unwrap_or(rest));
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '>')).unwrap_or(rest.len());
        let name = rest[..end].to_ascii_lowercase();
        rest = &rest[end..];
        let mut value = "";
        if let Some(behind) = rest.strip_prefix('=') {
            let (found, behind) = match behind.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').expect("quotes are closed"),
                None => {
                    let end = behind.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(behind.len());
                    behind.split_at(end)
                }
            };
            (value, rest) = (found, behind);
        }
        tag.attributes.push((name, value.to_owned()));
    }
}

/// Checks that every element ends where it should.
pub fn assert_well_nested(html: &str) {
    let mut open = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(end) = rest.strip_prefix('/') {
            let name = end.split('>').next().unwrap_or_default();
            let last = open.pop();
            assert_eq!(last.as_deref(), Some(name), "{open:?} before {}", &rest[..rest.floor_char_boundary(200)]);
        } else if rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let (tag, behind) = read_tag(rest);
            rest = behind;
            if matches!(&*tag.name, "script" | "style") {
                rest = &rest[rest.find("</").unwrap_or(rest.len())..];
            }
            if !["meta", "link", "input", "img", "br", "hr"].contains(&&*tag.name) {
                open.push(tag.name);
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// Checks that a document has only what a page is made of.
pub fn assert_harmless(html: &str) {
    let mut n_scripts = 0;
    for tag in tags(html) {
        assert!(TAGS.split_whitespace().any(|name| name == tag.name), "{tag:?}");
        for (name, value) in &tag.attributes {
            assert!(ATTRIBUTES.split_whitespace().any(|allowed| allowed == name), "{tag:?}");
            match (&*tag.name, &**name) {
                ("a", "href") => {
                    let allowed = ["#", "http://", "https://", "mailto:"];
                    assert!(allowed.iter().any(|start| value.starts_with(start)), "{tag:?}");
                    assert!(value.starts_with('#') || tag.get("rel") == Some("noreferrer noopener"), "{tag:?}");
                }
                ("img", "src") => {
                    let is_picture = ["png", "jpeg", "gif", "webp"]
                        .iter()
                        .any(|kind| value.starts_with(&format!("data:image/{kind};base64,")));
                    assert!(is_picture, "{tag:?}");
                }
                ("link", "href") => assert_eq!(value, "data:,"),
                (_, "href" | "src") => panic!("{tag:?}"),
                _ => {}
            }
        }
        n_scripts += usize::from(tag.name == "script");
    }
    assert_eq!(n_scripts, 3, "the tree, the file and the one script");
}

const TAGS: &str = "html head meta link title style body nav div input button p a mark header h1 h2 h3 h4 h5 h6 dl dt dd details \
    summary span pre code i b strong em del ul ol li blockquote hr br table thead tbody tr th td img section main footer template script";

const ATTRIBUTES: &str = "lang media charset http-equiv content name rel href class id data-n data-call data-result data-filter data-name target \
    title hidden open loading decoding alt src type placeholder role start disabled checked aria-label aria-live aria-pressed aria-expanded \
    aria-controls";
