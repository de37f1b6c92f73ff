//! `docs/models.md` has every key of `models.json` that something reads, and no other.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::pages::{files, read, root};

/// The words in the first column of a table, given the beginning of its head.
fn column(page: &str, head: &str) -> BTreeSet<String> {
    let (_, below) = page.split_once(head).unwrap_or_else(|| panic!("no table {head:?}"));
    let rows = below.lines().skip(2).take_while(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.trim_start_matches("| ").split(" | ").next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// The names that calls of these functions are given as text: the first argument, or the one after `n_before` others.
fn named_in(code: &str, functions: &[&str], n_before: usize) -> BTreeSet<String> {
    let calls = functions.iter().flat_map(|function| {
        let begin = format!("{function}(");
        code.match_indices(&begin).map(|(at, begin)| &code[at + begin.len()..]).collect::<Vec<_>>()
    });
    let names = calls.filter_map(|call| {
        let argument = call.splitn(n_before + 1, ',').nth(n_before)?.trim_start().strip_prefix('"')?;
        let name = argument.split('"').next()?;
        name.chars().all(char::is_alphanumeric).then(|| name.to_owned())
    });
    names.collect()
}

/// The functions of a source, from their names to their ends.
fn functions(source: &str, names: &[&str]) -> String {
    let function = |name: &&str| {
        let (_, rest) = source.split_once(&format!("fn {name}(")).unwrap_or_else(|| panic!("no function {name}"));
        rest.split("\n}\n").next().unwrap_or_default().to_owned()
    };
    names.iter().map(function).collect()
}

/// How the reader takes a value.
const READS: [&str; 8] = [".text", ".flag", ".headers", ".object", ".array", ".positive", ".price", ".take"];

#[test]
fn every_key_of_a_provider_and_of_a_model_is_documented() {
    let page = read("docs/models.md");
    let reader = read("crates/pith-ai/src/models_file/parse.rs");
    let provider = ["described", "discovery", "overrides"];
    let model = ["model_fields", "levels"];
    let mut of_providers = named_in(&functions(&reader, &provider), &READS, 0);
    // Inside `discovery`, which is one row.
    assert!(of_providers.remove("type"));
    of_providers.insert("models".to_owned());
    assert_eq!(column(&page, "| key of a provider "), of_providers);
    let mut of_models = named_in(&functions(&reader, &model), &READS, 0);
    of_models.extend(["id", "api", "baseUrl", "cost"].map(str::to_owned));
    assert_eq!(column(&page, "| key of a model "), of_models);
    let of_both: BTreeSet<String> = of_providers.union(&of_models).cloned().collect();
    let inside = named_in(&functions(&reader, &["cost", "discovery"]), &READS, 0);
    let all: BTreeSet<String> = of_both.union(&inside).cloned().collect();
    assert_eq!(named_in(&reader, &READS, 0), all, "a function reads keys that this test does not know of");
}

#[test]
fn every_member_of_a_model_s_objects_is_named() {
    let page = read("docs/models.md");
    let schema: Value = serde_json::from_str(&read("schema/pi.json")).expect("JSON");
    for (row, types) in [
        ("inputLimits", &["InputLimits", "ImageLimits", "ImageResize"][..]),
        ("promptCache", &["PromptCache"]),
        ("cost", &["ModelCost", "PriceTier"]),
    ] {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{row}` |"))).expect("a row");
        for name in types {
            for member in schema["$defs"][name]["properties"].as_object().expect("an object").keys() {
                assert!(row.contains(&format!("`{member}`")), "{member} of {name} is not in: {row}");
            }
        }
    }
}

#[test]
fn every_switch_of_a_server_is_documented() {
    let mut sources = Vec::new();
    files(&root().join("crates/pith-ai/src/wire"), ".rs", &mut sources);
    let is_logic = |path: &std::path::PathBuf| !path.to_string_lossy().ends_with("tests.rs");
    let text = |path| std::fs::read_to_string(path).expect("UTF-8 source");
    let code: String = sources.into_iter().filter(is_logic).map(text).collect();
    let mut read_keys = named_in(&code, &["flag", "compat", "compat_key", "template", "Compat::object"], 1);
    let compat = read("crates/pith-ai/src/wire/completions/compat.rs");
    read_keys.extend(named_in(&compat, &["text"], 0));
    assert_eq!(column(&read("docs/models.md"), "| key of `compat` "), read_keys);
}
