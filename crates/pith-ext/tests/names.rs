//! The names of Node 24 that extensions find, and those they do not, as docs/sdk.md lists them.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use support::Harness;

/// What Node 24 has; tests/extensions/node-names.mjs makes it.
const NODE: &str = include_str!("data/node-24.json");
const PAGE: &str = include_str!("../../../docs/sdk.md");
/// Where the table is on the page.
const MARKS: (&str, &str) = ("<!-- node: checked by crates/pith-ext/tests/names.rs -->\n", "<!-- end of node -->");

/// Looks each name up as an extension would. Of a class that is not there, only the class itself is missing.
const PROBE: &str = r#"
import { readFileSync, writeFileSync } from "node:fs";
const KIND = Symbol.for("pith.export");
const lookUp = (from, name) => {
  if (from === null || from === undefined || !(name in Object(from))) return "absent";
  let value;
  try { value = from[name]; } catch { return "works"; }
  return (typeof value === "function" && value[KIND]) || "works";
};
export default async function () {
  const { modules, members } = JSON.parse(readFileSync("node.json", "utf8"));
  const found = {};
  const loaded = { globals: globalThis }; // null for a module that is not there
  for (const [name, names] of Object.entries(modules)) {
    const exports = (loaded[name] ??= await import(`node:${name}`).catch(() => null));
    const kinds = (found[name] = {});
    if (exports === null) kinds["(module)"] = "absent";
    else for (const key of names.split(" ")) kinds[key] = lookUp(exports, key);
  }
  for (const [path, names] of Object.entries(members)) {
    const dot = path.indexOf(".");
    const [module, owner] = dot < 0 ? ["globals", path] : [path.slice(0, dot), path.slice(dot + 1)];
    if (!loaded[module]) continue;
    const value = owner.split(".").reduce((from, name) => from?.[name], loaded[module]);
    if (value === undefined || value[KIND]) continue;
    for (const name of names.split(" ")) {
      const isMethod = name.startsWith("prototype.");
      const from = isMethod ? value.prototype : value;
      found[module][`${owner}.${name}`] = lookUp(from, isMethod ? name.slice(10) : name);
    }
  }
  writeFileSync("found.json", JSON.stringify(found));
}
"#;

#[derive(Deserialize)]
struct Node {
    modules: BTreeMap<String, String>,
}

/// What became of each name: `works`, `refuses` or `absent`, by module.
type Found = BTreeMap<String, BTreeMap<String, String>>;

async fn probe() -> Found {
    let harness = Harness::patient();
    std::fs::write(harness.surroundings.cwd.join("node.json"), NODE).unwrap();
    harness.run(&[("probe.ts", PROBE)]).await;
    let text = std::fs::read_to_string(harness.surroundings.cwd.join("found.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A row of the table: names of a module that are absent or refuse, and why. A name may end in a star.
struct Row {
    module: String,
    kind: String,
    names: Vec<String>,
    why: String,
}

impl Row {
    fn has(&self, module: &str, kind: &str, name: &str) -> bool {
        self.module == module && self.kind == kind && self.names.iter().any(|listed| covers(listed, name))
    }
}

fn covers(listed: &str, name: &str) -> bool {
    listed.strip_suffix('*').map_or(listed == name, |start| name.starts_with(start))
}

fn rows(table: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [module, kind, names, why] = cells[..] else { panic!("not four cells: {line}") };
        assert!(why.len() > 8, "no reason: {line}");
        rows.push(Row {
            module: module.trim_matches('`').to_owned(),
            kind: kind.to_owned(),
            names: names.split(' ').map(|name| name.trim_matches('`').to_owned()).collect(),
            why: why.to_owned(),
        });
    }
    rows
}

/// Writes the section as it should be, without names that are there by now.
fn section(found: &Found, rows: &[Row]) -> String {
    let node: Node = serde_json::from_str(NODE).unwrap();
    let all: usize = node.modules.values().map(|names| names.split(' ').count()).sum();
    let members = found.values().flat_map(BTreeMap::iter).filter(|(name, _)| name.contains('.')).count();
    let there = |is_member: bool| {
        let names = found.values().flat_map(BTreeMap::iter).filter(|(name, _)| name.contains('.') == is_member);
        names.filter(|(_, kind)| *kind == "works").count()
    };
    let mut text = format!(
        "\nOf the {all} names of globals and exports of modules, {} are there; of {members} methods and constants below them, {}.\n\n\
         | of | in pith | names | why |\n|---|---|---|---|\n",
        there(false),
        there(true)
    );
    for row in rows {
        let names = &found[&row.module];
        let left = row
            .names
            .iter()
            .filter(|listed| names.iter().any(|(name, kind)| *kind == row.kind && covers(listed, name)));
        let left: Vec<String> = left.map(|name| format!("`{name}`")).collect();
        if !left.is_empty() {
            writeln!(text, "| `{}` | {} | {} | {} |", row.module, row.kind, left.join(" "), row.why).unwrap();
        }
    }
    text.push('\n');
    text
}

#[tokio::test]
async fn every_name_of_node_is_there_or_listed_with_the_reason() {
    let (before, rest) = PAGE.split_once(MARKS.0).unwrap();
    let (table, after) = rest.split_once(MARKS.1).unwrap();
    let found = probe().await;
    let rows = rows(table);
    let mut unlisted = BTreeMap::<(&str, &str), Vec<&str>>::new();
    for (module, names) in &found {
        for (name, kind) in names.iter().filter(|(_, kind)| *kind != "works") {
            if !rows.iter().any(|row| row.has(module, kind, name)) {
                unlisted.entry((module, kind)).or_default().push(name);
            }
        }
    }
    assert!(unlisted.is_empty(), "names of Node that are not there and not on docs/sdk.md: {unlisted:#?}");
    let expected = section(&found, &rows);
    if std::env::var_os("PITH_UPDATE_DOCS").is_some() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sdk.md");
        return std::fs::write(page, format!("{before}{}{expected}{}{after}", MARKS.0, MARKS.1)).unwrap();
    }
    assert_eq!(table, expected, "docs/sdk.md is not up to date; PITH_UPDATE_DOCS=1 writes it");
}
