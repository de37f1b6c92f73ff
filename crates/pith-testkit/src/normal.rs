//! Makes frames look the same every time, for documents: ids, moments and paths become those of an example.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use crate::TempHome;

static UUID: LazyLock<Regex> =
    LazyLock::new(|| pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static ENTRY_ID: LazyLock<Regex> = LazyLock::new(|| pattern("\"([0-9a-f]{8})\""));
static CALL_ID: LazyLock<Regex> = LazyLock::new(|| pattern("\"([0-9a-f]{16})\""));
static COMMAND_ID: LazyLock<Regex> = LazyLock::new(|| pattern("\"req-\\d+\""));
static MOMENT: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d{4}-\d\d-\d\dT\d\d([:-])\d\d[:-]\d\d[.-]\d{3}Z"));
static MILLIS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b(c?)1[789]\d{11}\b"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

/// Replaces what differs from run to run; the same thing by the same, in all frames.
#[derive(Default)]
pub struct Normal {
    /// Every id that was seen, in order.
    ids: HashMap<String, usize>,
    /// Paths of this run and those shown instead, longest first.
    paths: Vec<(String, String)>,
}

impl Normal {
    /// Takes over the paths of a home.
    pub fn enter(&mut self, home: &TempHome) {
        let text = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
        // Session files are sorted into directories named after the working directory.
        let folder = |path: &str| path.trim_start_matches('/').replace('/', "-");
        let (work, shown) = (text(home.work()), "/home/me/project".to_owned());
        self.paths = vec![
            (folder(&work), folder(&shown)),
            (work, shown),
            (text(home.home()), "/home/me".to_owned()),
            (text(home.tmp()), "/tmp".to_owned()),
        ];
    }

    /// Returns a frame as a line of an example.
    pub fn line(&mut self, frame: &Value) -> String {
        let mut text = frame.to_string();
        for (path, shown) in &self.paths {
            text = text.replace(path, shown);
        }
        text = text.replace(concat!("\"", env!("CARGO_PKG_VERSION"), "\""), "\"1.0.0\"");
        text =
            MOMENT
                .replace_all(&text, |found: &Captures<'_>| {
                    if &found[1] == ":" { "2026-01-01T12:00:00.000Z" } else { "2026-01-01T12-00-00-000Z" }
                })
                .into_owned();
        text = MILLIS.replace_all(&text, "${1}1767268800000").into_owned();
        text = UUID
            .replace_all(&text, |found: &Captures<'_>| {
                let digits = self.digits(&found[0]);
                format!(
                    "{:08x}-{:04x}-7{:03x}-a{:03x}-{:012x}",
                    digits >> 32,
                    digits >> 16 & 0xffff,
                    digits & 0xfff,
                    digits >> 20 & 0xfff,
                    digits >> 8 & 0xffff_ffff_ffff
                )
            })
            .into_owned();
        text = COMMAND_ID.replace_all(&text, "\"1\"").into_owned();
        text = CALL_ID
            .replace_all(&text, |found: &Captures<'_>| format!("\"{:016x}\"", self.digits(&found[1])))
            .into_owned();
        ENTRY_ID
            .replace_all(&text, |found: &Captures<'_>| format!("\"{:08x}\"", self.digits(&found[1]) >> 32))
            .into_owned()
    }

    /// Returns digits that depend only on how many ids came before.
    fn digits(&mut self, id: &str) -> u64 {
        let n_before = self.ids.len();
        let at = *self.ids.entry(id.to_owned()).or_insert(n_before);
        (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}
