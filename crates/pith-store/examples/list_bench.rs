//! Fills a directory with sessions and prints what listing them costs, first and later.
//!
//! `cargo run --release -p pith-store --example list_bench [sessions] [kilobytes each]`

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::fs;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let n_sessions = arguments.next().map_or(Ok(1000), |text| text.parse::<usize>())?;
    let kilobytes = arguments.next().map_or(Ok(1000), |text| text.parse::<usize>())?;
    let directory = std::env::temp_dir().join(format!("pith-list-bench-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    for n in 0..n_sessions {
        fs::write(directory.join(format!("{n}.jsonl")), session(n, kilobytes * 1000))?;
    }
    for _ in 0..3 {
        let start = Instant::now();
        let sessions = pith_store::list(&directory, None);
        println!("{} sessions in {:?}", sessions.len(), start.elapsed());
    }
    fs::remove_dir_all(&directory)?;
    Ok(())
}

fn session(n: usize, n_bytes: usize) -> String {
    let time = "2026-11-15T06:52:54.872Z";
    let mut text = format!(r#"{{"type":"session","version":3,"id":"s{n}","timestamp":"{time}","cwd":"/p"}}"#);
    let output = "line of \\\"output\\\" with a tab\\t and text\\n".repeat(50);
    let mut entry = 0;
    while text.len() < n_bytes {
        let role = if entry % 2 == 0 { "user" } else { "assistant" };
        text.push_str(&format!(
            "\n{{\"type\":\"message\",\"id\":\"e{entry}\",\"parentId\":null,\"timestamp\":\"{time}\",\
             \"message\":{{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":\"{output}\"}}],\"timestamp\":{entry}}}}}"
        ));
        entry += 1;
    }
    text + "\n"
}
