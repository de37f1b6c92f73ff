//! `docs/environment.md` has every variable that the sources name, and no other.

use std::collections::BTreeSet;
use std::fs;

use crate::pages::{files, read, root};

/// The variables that confined commands get, which pith itself does not read.
const PASSED_ON: &str = "pith-sandbox/src/environment.rs";

/// Files with words in capitals that are no variables; a variable that is read right there is found all the same.
const OTHER_WORDS: [&str; 22] = [
    // Signals and error names.
    "pith-ext/src/ops/sys.rs",
    "pith-ext/src/ops/errno.rs",
    "pith-ext/src/ops/crypto.rs",
    "pith-ext/src/ops/process",
    "pith-ext/src/ops/net/",
    "pith-ext/src/ops/sqlite/",
    "pith-ext/src/ops/zlib.rs",
    "pith-ext/src/ops/fs.rs",
    "pith-ext/src/ops/mod.rs",
    "pith-ext/src/engine/bind.rs",
    "pith-tools/src/os_error.rs",
    "pith-tools/src/process/exit.rs",
    // Words of file formats, providers and placeholders of flags.
    "pith-tools/src/image/",
    "pith-tools/src/read/",
    "pith-ai/src/failure.rs",
    "pith-ai/src/wire/google/",
    "pith-conformance/src/",
    "pith/src/cli/",
    "pith-store/src/lenient.rs",
    // Variables in commands of the model, and names of tools.
    "pith-permissions/src/",
    "pith-resources/src/substitution.rs",
    PASSED_ON,
];

/// Variables of the build, a time zone, the name of a provider, and files of git.
const NO_VARIABLES: [&str; 16] = [
    "CARGO_PKG_VERSION",
    "CARGO_MANIFEST_DIR",
    "UTC",
    "USD",
    "NVIDIA",
    "HEAD",
    "FETCH_HEAD",
    "ORIG_HEAD",
    "COMMIT_EDITMSG",
    "MERGE_MSG",
    "SQUASH_MSG",
    "DIRC",
    "GET",
    "POST",
    "DELETE",
    "S256",
];

/// Variables that something below pith reads, and the words in the sources that make it do so.
const READ_BELOW: [(&str, &str); 8] = [
    ("HOME", "std::env::home_dir()"),
    ("TMPDIR", "std::env::temp_dir()"),
    ("SSL_CERT_DIR", "load_native_certs()"),
    ("OTEL_SERVICE_NAME", "SdkProvidedResourceDetector"),
    ("OTEL_RESOURCE_ATTRIBUTES", "Resource::builder()"),
    ("OTEL_TRACES_SAMPLER", "SdkTracerProvider::builder()"),
    ("OTEL_TRACES_SAMPLER_ARG", "SdkTracerProvider::builder()"),
    ("OTEL_METRIC_EXPORT_INTERVAL", "with_periodic_exporter("),
];

/// What the Rust runtime reads.
const READ_BY_THE_RUNTIME: &str = "RUST_BACKTRACE";

fn is_name(text: &str) -> bool {
    text.len() > 1
        && text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.chars().all(|char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_')
}

/// The logic of all crates but the test kit, by path.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    files(&root().join("crates"), ".rs", &mut found);
    let path = |file: &std::path::Path| {
        file.strip_prefix(root().join("crates")).expect("below").to_string_lossy().into_owned()
    };
    let is_logic = |path: &String| {
        let is_test = path.contains("/tests") || path.ends_with("tests.rs") || path.ends_with("/testing.rs");
        path.contains("/src/") && !path.starts_with("pith-testkit") && !is_test
    };
    let logic = |file: &std::path::Path| {
        let text = fs::read_to_string(file).expect("UTF-8 source");
        let logic = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned();
        let lines = logic.lines().map(|line| line.split("// ").next().unwrap_or_default());
        lines.filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    };
    found.iter().map(|file| (path(file), logic(file))).filter(|(path, _)| is_logic(path)).collect()
}

/// String literals that could name variables, each with the code before it.
fn literals(code: &str) -> impl Iterator<Item = (&str, &str)> {
    code.match_indices('"').filter_map(|(at, _)| {
        let (text, _) = code[at + 1..].split_once('"')?;
        let is_list = text.split('+').all(is_name);
        is_list.then(|| (&code[..at], text))
    })
}

fn in_the_sources() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, code) in sources() {
        let has_other_words = OTHER_WORDS.iter().any(|prefix| path.starts_with(prefix));
        for (before, text) in literals(&code) {
            let is_read =
                ["var(", "var_os(", "environment.get(", "environment.has("].iter().any(|call| before.ends_with(call));
            if is_read || (!has_other_words && !NO_VARIABLES.contains(&text)) {
                found.extend(text.split('+').map(str::to_owned));
            }
        }
    }
    let mut scripts = Vec::new();
    files(&root().join("crates/pith-ext/js"), ".js", &mut scripts);
    for script in scripts {
        let text = fs::read_to_string(script).expect("UTF-8 source");
        let names = text
            .split("process.env.")
            .skip(1)
            .map(|rest| rest.split(|char: char| !(char.is_ascii_alphanumeric() || char == '_')).next());
        found.extend(names.flatten().filter(|name| is_name(name)).map(str::to_owned));
    }
    let mut tables = Vec::new();
    files(&root().join("crates/pith-ai/data"), ".json", &mut tables);
    for table in tables {
        let text = fs::read_to_string(table).expect("UTF-8");
        let names = text.split('{').filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
        found.extend(names.filter(|name| is_name(name)).map(str::to_owned));
    }
    found
}

fn documented() -> BTreeSet<String> {
    let page = read("docs/environment.md");
    page.split('`').skip(1).step_by(2).filter(|word| is_name(word)).map(str::to_owned).collect()
}

#[test]
fn every_variable_is_documented() {
    let documented = documented();
    let missing: Vec<_> = in_the_sources().into_iter().filter(|name| !documented.contains(name)).collect();
    assert!(documented.len() > 60 && missing.is_empty(), "not in docs/environment.md: {missing:?}");
}

#[test]
fn every_documented_variable_is_read_or_set() {
    let code: String = sources().into_iter().filter(|(path, _)| path != PASSED_ON).map(|(_, code)| code).collect();
    let mut known = in_the_sources();
    known.extend(READ_BELOW.iter().filter(|(_, reader)| code.contains(reader)).map(|(name, _)| (*name).to_owned()));
    known.insert(READ_BY_THE_RUNTIME.to_owned());
    let unknown: Vec<_> = documented().into_iter().filter(|name| !known.contains(name)).collect();
    assert!(unknown.is_empty(), "docs/environment.md has variables that nobody reads or sets: {unknown:?}");
    let n_read = code.matches("\"XDG_").count();
    assert_eq!(n_read, 1, "docs/environment.md says that XDG_RUNTIME_DIR alone is read");
}

#[test]
fn every_key_of_a_provider_stands_beside_it() {
    let page = read("docs/environment.md");
    let catalogue = read("crates/pith-ai/src/catalogue/providers.rs");
    let mut n_rows = 0;
    for entry in catalogue.split("id: \"").skip(1) {
        let (id, rest) = entry.split_once('"').expect("an id ends");
        let (_, list) = rest.split_once("variables: &[").expect("a list of variables");
        let (list, _) = list.split_once(']').expect("the list ends");
        let variables: Vec<_> = literals(list).map(|(_, text)| format!("`{}`", text.replace('+', "` and `"))).collect();
        if variables.is_empty() {
            continue;
        }
        n_rows += 1;
        let row = format!("| `{id}` | {} |", variables.join(", "));
        assert!(page.lines().any(|line| line == row), "not in docs/environment.md: {row}");
    }
    assert!(n_rows > 30);
}
