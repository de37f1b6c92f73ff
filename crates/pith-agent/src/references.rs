//! What the references of a JSON Schema (`$ref` and its relatives) refer to.

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// So many ids and anchors of a schema are known. Every reference looks at all of them.
const MAX_NAMES: usize = 100;

/// The places in a schema that references can name.
pub struct References<'a> {
    root: &'a Value,
    /// The keyword that gives a part an id.
    id_keyword: &'static str,
    ids: Vec<(&'a str, &'a Value)>,
    anchors: Vec<(&'a str, &'a Value)>,
    n_references: usize,
}

impl<'a> References<'a> {
    /// Reads a schema.
    pub fn of(root: &'a Value) -> Self {
        let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let id_keyword = if draft.contains("draft-04") { "id" } else { "$id" };
        let mut references = References { root, id_keyword, ids: Vec::new(), anchors: Vec::new(), n_references: 0 };
        references.collect(root);
        references
    }

    /// Returns whether the schema refers to nothing.
    pub fn is_empty(&self) -> bool {
        self.n_references == 0
    }

    /// Returns whether everything that has a name is known.
    pub fn is_complete(&self) -> bool {
        self.ids.len() <= MAX_NAMES && self.anchors.len() <= MAX_NAMES
    }

    /// Returns everything in the schema that a reference may mean. Inside a part with an id of its own it means
    /// something else than outside, so several places can fit.
    pub fn targets(&self, reference: &str) -> Vec<&'a Value> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let names = |id: &str| document.is_empty() || id.ends_with(document) || document.ends_with(id);
        let named = self.ids.iter().filter(|(id, _)| names(id)).map(|(_, part)| *part);
        let root = document.is_empty().then_some(self.root);
        let is_other = |part: &&Value| root.is_none_or(|root| !std::ptr::eq(*part, root));
        let bases = root.into_iter().chain(named.filter(is_other));
        if fragment.is_empty() {
            return bases.collect();
        }
        if !fragment.starts_with('/') {
            let anchored = self.anchors.iter().filter(|(anchor, _)| *anchor == fragment);
            // Draft 7 writes anchors as ids.
            let named = self.ids.iter().filter(|(id, _)| id.strip_prefix('#') == Some(fragment));
            return anchored.chain(named).map(|(_, part)| *part).collect();
        }
        let pointer = percent_decode_str(fragment).decode_utf8_lossy();
        bases.filter_map(|base| base.pointer(&pointer)).collect()
    }

    fn collect(&mut self, part: &'a Value) {
        match part {
            Value::Object(members) => {
                for (key, member) in members {
                    match (key.as_str(), member) {
                        (key, Value::String(id)) if key == self.id_keyword => {
                            keep(&mut self.ids, id.trim_end_matches('#'), part);
                        }
                        ("$anchor" | "$dynamicAnchor", Value::String(anchor)) => keep(&mut self.anchors, anchor, part),
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(_)) => self.n_references += 1,
                        (_, member) => self.collect(member),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            _ => {}
        }
    }
}

/// Keeps a name; one too many shows that they are not complete.
fn keep<'a>(names: &mut Vec<(&'a str, &'a Value)>, name: &'a str, part: &'a Value) {
    if names.len() <= MAX_NAMES {
        names.push((name, part));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_found_in_every_spelling() {
        let schema = json!({"$id": "https://example.org/root", "$defs": {
            "a b": {"title": "pointer"}, "n": {"$anchor": "here", "title": "anchor"}, "o": {"$id": "#old", "title": "old"},
            "t": {"$id": "T0", "title": "id", "$defs": {"a b": {"title": "inner"}}}}, "title": "root"});
        let check = |reference: &str, titles: &[&str]| {
            let targets = References::of(&schema).targets(reference);
            let found: Vec<_> = targets.iter().map(|target| target["title"].as_str().expect("a title")).collect();
            assert_eq!(found, titles, "{reference}");
        };
        check("#/%24defs/a%20b", &["pointer", "inner"]);
        check("#here", &["anchor"]);
        check("#old", &["old"]);
        check("T0", &["id"]);
        check("https://example.org/root#/$defs/n", &["anchor"]);
        check("https://example.com/other", &[]);
        check("#none", &[]);
    }
}
