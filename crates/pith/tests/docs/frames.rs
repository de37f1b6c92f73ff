//! Every JSON block of the reference is what a session of today produces. `PITH_UPDATE_DOCS=1` writes them anew.

use std::collections::BTreeSet;
use std::fs;
use std::sync::OnceLock;

use pith_protocol::host::UiMethod;
use pith_protocol::inbound::Inbound;
use pith_protocol::{Command, Entry, ErrorCode, Event};

use crate::exchanges::{BLOCKS, Exchanges, ROLES};
use crate::pages::{read, root};
use crate::scenes;

/// The pages whose JSON is generated. A block names what it shows: "```json get_state".
const PAGES: [&str; 3] = ["docs/protocol.md", "docs/events.md", "docs/sessions.md"];

const FENCE: &str = "```json";

fn shown() -> &'static Exchanges {
    static SHOWN: OnceLock<Exchanges> = OnceLock::new();
    SHOWN.get_or_init(scenes::play)
}

/// The keys of a page's blocks.
fn keys(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix(FENCE)).map(str::trim).collect()
}

/// A page with what the sessions have produced in its blocks; a key that nothing has produced is the error.
fn filled(page: &str, shown: &Exchanges) -> Result<String, String> {
    let mut out = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out.push(line.to_owned());
        let Some(key) = line.strip_prefix(FENCE) else { continue };
        let text = shown.text(key.trim()).ok_or_else(|| format!("no session produces {key:?}"))?;
        out.extend([text, "```".to_owned()]);
        lines.by_ref().find(|line| *line == "```").ok_or_else(|| format!("the block {key:?} does not end"))?;
    }
    Ok(out.join("\n") + "\n")
}

#[test]
fn every_frame_of_the_documents_is_what_pith_sends() {
    for name in PAGES {
        let page = read(name);
        let wanted = filled(&page, shown()).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        if std::env::var_os("PITH_UPDATE_DOCS").is_some() {
            fs::write(root().join(name), &wanted).expect("writable");
        } else if let Some((now, then)) = wanted.lines().zip(page.lines()).find(|(now, then)| now != then) {
            panic!(
                "{name} is not current (PITH_UPDATE_DOCS=1 cargo test -p pith --test docs):\n  it has {then}\n  now is {now}"
            );
        }
    }
}

#[test]
fn everything_on_the_wire_has_its_frame() {
    let pages: Vec<String> = PAGES.iter().map(|name| read(name)).collect();
    let shown: BTreeSet<&str> = pages.iter().flat_map(|page| keys(page)).collect();
    let with =
        |prefix: &str, names: &[&str]| -> Vec<String> { names.iter().map(|name| format!("{prefix}{name}")).collect() };
    let steps = [
        "text_start",
        "text_delta",
        "text_end",
        "thinking_start",
        "thinking_delta",
        "thinking_end",
        "toolcall_start",
        "toolcall_delta",
        "toolcall_end",
    ];
    let wanted = [
        with("", Command::NAMES),
        with("", Event::NAMES),
        with("", &["ready", "host_tool_call", "host_tool_cancel", "host_tool_update", "host_tool_result"]),
        with("", &["permission_request", "permission_response", "permission_cancelled"]),
        with("ui:", UiMethod::NAMES),
        with("step:", &steps),
        with("role:", &ROLES),
        with("block:", &BLOCKS),
        with("entry:", &["session"]),
        with("entry:", Entry::TYPES),
    ];
    let missing: Vec<_> = wanted.iter().flatten().filter(|key| !shown.contains(key.as_str())).collect();
    assert!(missing.is_empty(), "without a frame in {PAGES:?}: {missing:?}");
}

#[test]
fn every_error_code_is_documented_in_its_own_words() {
    let page = read("docs/protocol.md");
    let (_, table) = page.split_once("## Error codes").expect("a section");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    let wanted: Vec<String> =
        ErrorCode::ALL.iter().map(|(_, code, meaning)| format!("| `{code}` | {} |", meaning.trim())).collect();
    assert_eq!(rows, wanted);
}

#[test]
fn commands_of_the_documents_are_understood() {
    for name in PAGES {
        let page = read(name);
        for block in page.split("\n```json ").skip(1) {
            let (key, body) = block.split_once('\n').expect("a block has lines");
            let line = body.lines().next().filter(|line| line.starts_with("{\"id\":"));
            let Some(line) = line.filter(|_| !["error", "busy"].contains(&key)) else { continue };
            let decoded = pith_protocol::inbound::decode(line.as_bytes());
            assert!(matches!(decoded, Some(Inbound::Command(..))), "{key}: {line}: {decoded:?}");
        }
    }
}
