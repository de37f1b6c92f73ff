//! The parts of `package.json` that module resolution needs.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

/// A directory's `package.json`. Members of the wrong type are ignored.
#[derive(Debug, Default)]
pub struct Package {
    pub name: Option<String>,
    pub is_module: bool,
    pub main: Option<String>,
    /// The entry for bundlers; used if nothing else names one.
    pub module: Option<String>,
    pub exports: Option<Value>,
    pub imports: Option<Map<String, Value>>,
}

/// Whether a module is imported or required, which selects different files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Importer {
    Import,
    Require,
}

impl Package {
    /// Reads the file of a directory, if there is one.
    pub fn read(directory: &Path) -> Option<Package> {
        let text = fs::read_to_string(directory.join("package.json")).ok()?;
        let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
        let text_of = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(Package {
            name: text_of("name"),
            is_module: value.get("type").and_then(Value::as_str) == Some("module"),
            main: text_of("main"),
            module: text_of("module"),
            exports: value.get("exports").filter(|exports| !exports.is_null()).cloned(),
            imports: value.get("imports").and_then(Value::as_object).cloned(),
        })
    }

    /// Returns the relative target of `.` or `./sub` in `exports`. `None` if it is not exported.
    pub fn exported(&self, subpath: &str, importer: Importer) -> Option<String> {
        let exports = self.exports.as_ref()?;
        let is_map = exports.as_object().is_some_and(|map| map.keys().any(|key| key.starts_with('.')));
        match (is_map, exports) {
            (true, Value::Object(map)) => matched(map, subpath, importer),
            _ if subpath == "." => target(exports, "", importer),
            _ => None,
        }
    }

    /// Returns the target of a `#name` specifier.
    pub fn imported(&self, specifier: &str, importer: Importer) -> Option<String> {
        matched(self.imports.as_ref()?, specifier, importer)
    }
}

/// Finds the exact key, otherwise the pattern with the longest prefix.
fn matched(map: &Map<String, Value>, subpath: &str, importer: Importer) -> Option<String> {
    if let Some(found) = map.get(subpath) {
        return target(found, "", importer);
    }
    let patterns = map.iter().filter_map(|(key, value)| {
        let (prefix, suffix) = key.split_once('*').or_else(|| key.ends_with('/').then_some((key.as_str(), "")))?;
        let star = subpath.strip_prefix(prefix)?.strip_suffix(suffix)?;
        Some((prefix.len(), star, value))
    });
    let (_, star, value) = patterns.max_by_key(|(length, ..)| *length)?;
    target(value, star, importer).map(|path| if path.ends_with('/') { path + star } else { path })
}

/// Follows conditions. Targets offered only to the other kind of importer are used last.
fn target(value: &Value, star: &str, importer: Importer) -> Option<String> {
    let (first, second) = match importer {
        Importer::Import => ("import", "require"),
        Importer::Require => ("require", "import"),
    };
    conditional(value, star, &[first, "node", "default", "module-sync"])
        .or_else(|| conditional(value, star, &[first, "node", "default", "module-sync", second]))
}

fn conditional(value: &Value, star: &str, conditions: &[&str]) -> Option<String> {
    match value {
        Value::String(path) => Some(path.replace('*', star)),
        Value::Array(options) => options.iter().find_map(|option| conditional(option, star, conditions)),
        Value::Object(map) => map
            .iter()
            .filter(|(condition, _)| conditions.contains(&condition.as_str()))
            .find_map(|(_, value)| conditional(value, star, conditions)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(exports: &str, subpath: &str, importer: Importer, expected: Option<&str>) {
        let package = Package { exports: serde_json::from_str(exports).unwrap(), ..Package::default() };
        assert_eq!(package.exported(subpath, importer).as_deref(), expected, "{subpath} of {exports}");
    }

    #[test]
    fn exports_follow_conditions_patterns_and_fallbacks() {
        check(r#""./a.js""#, ".", Importer::Import, Some("./a.js"));
        check(r#""./a.js""#, "./b", Importer::Import, None);
        let both = r#"{"import":"./i.mjs","require":"./r.cjs"}"#;
        check(both, ".", Importer::Import, Some("./i.mjs"));
        check(both, ".", Importer::Require, Some("./r.cjs"));
        check(r#"{".":{"types":"./a.d.ts","require":"./r.cjs"}}"#, ".", Importer::Import, Some("./r.cjs"));
        check(r#"{".":{"browser":"./b.js","node":{"import":"./n.js"}}}"#, ".", Importer::Import, Some("./n.js"));
        let patterns = r#"{"./*":"./x/*.js","./deep/*":"./y/*.js","./old/":"./z/"}"#;
        check(patterns, "./a", Importer::Import, Some("./x/a.js"));
        check(patterns, "./deep/b", Importer::Import, Some("./y/b.js"));
        check(patterns, "./old/c.js", Importer::Import, Some("./z/c.js"));
        check(r#"{".":"./a.js"}"#, "./secret", Importer::Import, None);
        check("7", ".", Importer::Import, None); // invalid values are ignored
    }
}
