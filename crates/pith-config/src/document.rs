//! Reading a configuration file into a JSON tree: JSON with comments and
//! trailing commas, or YAML by file name.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use serde_json::Value;

/// Configuration beyond this size is a mistake, not a configuration.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Reads and parses a file; `None` when there is none. The error is a reason without the path.
pub fn read(path: &Path) -> Result<Option<Value>, String> {
    match read_text(path) {
        Ok(Some(text)) => parse(path, &text).map(Some),
        Ok(None) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Like [`read`], for a file that the user names on the command line: it has to be there, and may be a pipe.
pub fn read_named(path: &Path) -> Result<Value, String> {
    let text = fs::File::open(path).and_then(text_of).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    });
    parse(path, &text?)
}

/// Parses the text of a file, choosing the format by its name.
pub fn parse(path: &Path, text: &str) -> Result<Value, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("yml" | "yaml") => parse_yaml(text, YamlBooleans::Lenient),
        _ => parse_json(text),
    }
}

fn read_text(path: &Path) -> io::Result<Option<String>> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // A sandbox puts an empty directory in the place of a protected file that does not exist.
    if metadata.is_dir() && fs::read_dir(path)?.next().is_none() {
        return Ok(None);
    }
    // A pipe may never end, or never begin; a repository can bring a link to one.
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    text_of(fs::File::open(path)?).map(Some)
}

fn text_of(file: fs::File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("larger than {MAX_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8 text"))
}

fn parse_json(text: &str) -> Result<Value, String> {
    // Most files are plain JSON; only the others pay for the second pass.
    serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(&strip_comments(text)).map_err(|error| error.to_string()))
}

/// Merges objects key by key; any other value replaces the one below it.
pub fn merge(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (name, value) in above {
                match below.get_mut(&name) {
                    Some(slot) => merge(slot, value),
                    None => {
                        below.insert(name, value);
                    }
                }
            }
        }
        (below, above) => *below = above,
    }
}

/// Whose rules decide which words of a YAML text are booleans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YamlBooleans {
    /// `yes`, `no`, `on` and `off` count too, as people expect of a settings file.
    Lenient,
    /// Only `true` and `false`: a skill may be called `on` or `no`.
    Strict,
}

/// Parses a YAML text. Infinite numbers become null, which is what JSON has for them.
pub fn parse_yaml(text: &str, booleans: YamlBooleans) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    // What people write is small; anchors that multiply it are refused early.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 200_000,
            max_aliases: 1_000,
            max_anchors: 200,
            max_depth: 64,
            max_nodes: 100_000,
        },
        strict_booleans: booleans == YamlBooleans::Strict,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}

/// Blanks out comments and trailing commas. Positions stay, so parse errors point into the original text.
fn strip_comments(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    // The last comma, as long as only blanks followed it.
    let mut comma = None;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = end_of_string(&bytes, at);
                comma = None;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                let end = find(&bytes, at, b"\n").unwrap_or(bytes.len());
                at = blank(&mut bytes, at, end);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let end = find(&bytes, at + 2, b"*/").map_or(bytes.len(), |end| end + 2);
                at = blank(&mut bytes, at, end);
                continue;
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
    String::from_utf8(bytes).expect("only whole comments and ASCII bytes were replaced")
}

/// Returns the index after the closing quote of the string opening at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn find(bytes: &[u8], from: usize, needle: &[u8]) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(needle.len()).position(|window| window == needle).map(|position| from + position)
}

fn blank(bytes: &mut [u8], start: usize, end: usize) -> usize {
    for byte in &mut bytes[start..end] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str, expected: Value) {
        assert_eq!(parse(Path::new("x.json"), text).expect(text), expected, "{text}");
    }

    #[test]
    fn comments_and_trailing_commas_are_allowed() {
        check("{\"a\":1}", json!({"a": 1}));
        check("// head\n{\"a\":[1,2,], // tail\n}", json!({"a": [1, 2]}));
        check("{\"a\": /* é */ 1, /* , */ }", json!({"a": 1}));
        check("{\"url\":\"https://x/*y*/\",}", json!({"url": "https://x/*y*/"}));
        check("{\"q\":\"a\\\"//b,]\",}", json!({"q": "a\"//b,]"}));
        check("\u{feff}{\"a\":1,}", json!({"a": 1}));
    }

    #[test]
    fn broken_text_is_refused_with_a_position() {
        for text in ["{", "{\"a\":}", "{\"a\":1 /* open", "{,}x", "{\"a\":1 \"b\":2}", ""] {
            let error = parse(Path::new("x.json"), text).expect_err(text);
            assert!(error.contains("line"), "{error}");
        }
        let error = parse(Path::new("x.json"), "{ // note\n \"a\": nope }").expect_err("bad word");
        assert!(error.contains("line 2"), "{error}");
    }

    #[test]
    fn yaml_by_file_name() {
        let parsed = parse(Path::new("config.yml"), "a:\n  - 1\n  - x: true\nb: text # note\n").expect("yaml");
        assert_eq!(parsed, json!({"a": [1, {"x": true}], "b": "text"}));
        assert_eq!(parse(Path::new("config.yaml"), " \n").expect("empty"), json!({}));
        assert!(parse(Path::new("config.yml"), "a: [1").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_never_ends_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let link = directory.path().join("x.json");
        std::os::unix::fs::symlink("/dev/zero", &link).expect("linked");
        assert_eq!(read(&link), Err("not a regular file".to_owned()));
        assert_eq!(read_named(&link), Err(format!("larger than {MAX_BYTES} bytes")));
        assert_eq!(read_named(&directory.path().join("none")), Err("there is no such file".to_owned()));
    }

    #[test]
    fn yaml_bombs_hit_the_budget() {
        let mut text = String::from("a: &a [x,x,x,x,x,x,x,x,x]\n");
        for level in 1..12 {
            let (name, before) = ((b'a' + level) as char, (b'a' + level - 1) as char);
            let aliases = vec![format!("*{before}"); 9].join(",");
            text.push_str(&format!("{name}: &{name} [{aliases}]\n"));
        }
        assert!(parse(Path::new("config.yml"), &text).is_err());
    }

    #[test]
    fn missing_files_are_none_and_directories_with_something_in_them_are_errors() {
        let directory = tempfile::tempdir().expect("temp dir");
        assert_eq!(read(&directory.path().join("none.json")), Ok(None));
        assert_eq!(read(directory.path()), Ok(None), "it stands for a file that does not exist");
        fs::write(directory.path().join("file"), "").expect("write");
        assert!(read(directory.path()).is_err());
    }
}
