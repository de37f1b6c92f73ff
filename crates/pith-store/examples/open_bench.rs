//! Builds a large session file and prints what opening and appending cost.
//!
//! `cargo run --release -p pith-store --example open_bench [megabytes] [entries] [compacted]`

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use pith_protocol::{Message, UserMessage};
use pith_store::SessionStore;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let megabytes = arguments.next().map_or(Ok(50), |text| text.parse::<usize>())?;
    let n_entries = arguments.next().map_or(Ok(20_000), |text| text.parse::<usize>())?;
    let is_compacted = arguments.next().is_some();

    let directory = std::env::temp_dir().join(format!("pith-open-bench-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let path = directory.join("session.jsonl");
    build(&path, &directory, megabytes << 20, n_entries, is_compacted)?;
    println!("file: {:.1} MB, {n_entries} entries", fs::metadata(&path)?.len() as f64 / 1e6);

    let before = resident();
    let start = Instant::now();
    let mut store = SessionStore::resume(&path, Path::new("/"))?;
    println!("open: {:?}, {} messages in view", start.elapsed(), store.n_messages());
    println!("memory: {:.1} MB more than before", resident().saturating_sub(before) as f64 / 1e3);
    let start = Instant::now();
    let n_messages = store.messages().len();
    println!("read: {:?} for {n_messages} messages", start.elapsed());
    println!("memory: {:.1} MB more than before", resident().saturating_sub(before) as f64 / 1e3);

    let message = Arc::new(Message::User(UserMessage::new("next".into(), vec![], 1)));
    store.append_message(&message);
    let start = Instant::now();
    for _ in 0..1000 {
        store.append_message(&message);
    }
    println!("append: {:?} each", start.elapsed() / 1000);
    drop(store);
    fs::remove_dir_all(&directory)?;
    Ok(())
}

/// Turns of a prompt, a tool call, its result and an answer; results carry most of the bytes.
fn build(path: &Path, cwd: &Path, n_bytes: usize, n_entries: usize, is_compacted: bool) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let time = "2026-11-15T06:52:54.872Z";
    writeln!(out, r#"{{"type":"session","version":3,"id":"bench","timestamp":"{time}","cwd":{:?}}}"#, cwd)?;
    let usage = r#"{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#;
    let meta = format!(r#""api":"openai-completions","provider":"mock","model":"m1","usage":{usage}"#);
    let output = "line of \\\"output\\\" with a tab\\t and text\\n".repeat(n_bytes * 4 / n_entries / 41);
    for index in 0..n_entries {
        let message = match index % 4 {
            0 => r#"{"role":"user","content":[{"type":"text","text":"please look"}],"timestamp":1}"#.to_owned(),
            1 => format!(
                r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"c","name":"bash","arguments":{{"command":"ls"}}}}],{meta},"stopReason":"toolUse","timestamp":1}}"#
            ),
            2 => format!(
                r#"{{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[{{"type":"text","text":"{output}"}}],"isError":false,"timestamp":1}}"#
            ),
            _ => format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"done"}}],{meta},"stopReason":"stop","timestamp":1}}"#
            ),
        };
        let parent = if index == 0 { "null".to_owned() } else { format!("\"e{:07}\"", index - 1) };
        writeln!(
            out,
            r#"{{"type":"message","id":"e{index:07}","parentId":{parent},"timestamp":"{time}","message":{message}}}"#
        )?;
    }
    if is_compacted {
        let (last, kept) = (n_entries - 1, n_entries - 40);
        writeln!(
            out,
            r#"{{"type":"compaction","id":"cccccccc","parentId":"e{last:07}","timestamp":"{time}","summary":"s","firstKeptEntryId":"e{kept:07}","tokensBefore":1}}"#
        )?;
    }
    out.flush()
}

/// Resident memory in kB, where the system tells.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or_default()
}
