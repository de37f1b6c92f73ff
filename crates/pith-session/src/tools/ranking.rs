//! Which tools fit a search best.
//!
//! A tool that has more of the words comes first. Among those with equally many, BM25 over the description decides; a
//! word of the name counts more than any number of mentions, a word of the server less than one. The name itself, with
//! or without its server, finds its tool before all others.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pith_agent::Tool;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// More than the most that mentions can add, which is [`SATURATION`] + 1.
const NAME_WEIGHT: f64 = 3.0;
/// Words of a server find the server, but not the tool in it.
const SERVER_WEIGHT: f64 = 0.5;
const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;

/// Words that say nothing about a tool.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it", "of", "on", "or", "that", "the",
    "this", "to", "with",
];

/// What is searched of a tool.
struct Document {
    /// The words of its whole name, the server's among them.
    name: HashSet<String>,
    /// The words of its name on the server.
    own_name: HashSet<String>,
    /// How often each word stands in its descriptions and the names of its parameters.
    text: HashMap<String, usize>,
    n_words: usize,
    server: HashSet<String>,
}

struct Fit<'a> {
    tool: &'a Arc<dyn Tool>,
    is_named: bool,
    /// How many of the words it has.
    n_words: usize,
    score: f64,
}

/// Returns the tools that fit a query best.
pub(super) fn rank(query: &str, tools: &[Arc<dyn Tool>], limit: usize) -> Vec<Arc<dyn Tool>> {
    let wanted: HashSet<String> = words(query).into_iter().collect();
    let documents: Vec<Document> = tools.iter().map(|tool| Document::of(&**tool)).collect();
    let n_words: usize = documents.iter().map(|document| document.n_words).sum();
    let mean_length = (n_words as f64 / documents.len().max(1) as f64).max(1.0);
    let rarity = |word: &String| {
        let n_with = documents.iter().filter(|document| document.has(word)).count() as f64;
        (word.clone(), ((documents.len() as f64 - n_with + 0.5) / (n_with + 0.5)).ln_1p())
    };
    let rarities: HashMap<String, f64> = wanted.iter().map(rarity).collect();
    let name = normal_name(query);
    let fit = |(document, tool): (&Document, &'_ Arc<dyn Tool>)| {
        let full = normal_name(&tool.spec().name);
        let is_named = full == name || full.strip_suffix(&name).is_some_and(|server| server.ends_with("__"));
        (document.score(&rarities, mean_length), is_named)
    };
    let mut fits: Vec<Fit<'_>> = documents
        .iter()
        .zip(tools)
        .map(|pair| {
            let ((score, n_words), is_named) = fit(pair);
            Fit { tool: pair.1, is_named, n_words, score }
        })
        .filter(|fit| fit.n_words > 0)
        .collect();
    // A stable sort: equal tools stay in the order of their servers.
    fits.sort_by(|one, other| {
        let order = (other.is_named, other.n_words).cmp(&(one.is_named, one.n_words));
        order.then(other.score.total_cmp(&one.score))
    });
    fits.into_iter().take(limit).map(|fit| fit.tool.clone()).collect()
}

impl Document {
    fn of(tool: &dyn Tool) -> Self {
        let spec = tool.spec();
        let own_name = spec.name.rsplit("__").next().unwrap_or(&spec.name);
        let mut text = format!("{} {}", tool.label(), spec.description);
        describe(&spec.parameters, &spec.parameters, &mut HashSet::new(), &mut text);
        let mut counts = HashMap::new();
        let text = words(&text);
        let n_words = text.len();
        text.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
        let server = tool.origin().map(|origin| {
            let about = [origin.server, origin.about.unwrap_or_default()];
            about.into_iter().chain(origin.keywords.iter().map(String::as_str)).flat_map(words).collect()
        });
        Document {
            name: words(&spec.name).into_iter().collect(),
            own_name: words(own_name).into_iter().collect(),
            text: counts,
            n_words,
            server: server.unwrap_or_default(),
        }
    }

    fn has(&self, word: &str) -> bool {
        self.name.contains(word) || self.text.contains_key(word) || self.server.contains(word)
    }

    /// Returns what the words are worth here, and how many of them there are.
    fn score(&self, rarities: &HashMap<String, f64>, mean_length: f64) -> (f64, usize) {
        let length = LENGTH_WEIGHT.mul_add(self.n_words as f64 / mean_length, 1.0 - LENGTH_WEIGHT);
        let of_word = |word: &String| {
            let n_times = self.text.get(word).copied().unwrap_or(0) as f64;
            let mentions = n_times * (SATURATION + 1.0) / SATURATION.mul_add(length, n_times);
            let name = if self.name.contains(word) { NAME_WEIGHT } else { 0.0 };
            let server = if self.server.contains(word) { SERVER_WEIGHT } else { 0.0 };
            mentions + name + server
        };
        let mut score: f64 = rarities.iter().map(|(word, rarity)| rarity * of_word(word)).sum();
        if !self.own_name.is_empty() && self.own_name.iter().all(|word| rarities.contains_key(word)) {
            // The tool itself is named among the words.
            score += rarities.values().sum::<f64>();
        }
        (score, rarities.keys().filter(|word| self.has(word)).count())
    }
}

/// Collects descriptions and names of properties, also behind references within the schema; each of those once.
fn describe<'a>(schema: &'a Value, root: &'a Value, seen: &mut HashSet<&'a str>, text: &mut String) {
    let Value::Object(schema) = schema else { return };
    let mut add = |word: &str| {
        text.push(' ');
        text.push_str(word);
    };
    if let Some(Value::String(description)) = schema.get("description") {
        add(description);
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().for_each(|(name, _)| add(name));
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'))
        && let Some(target) = root.pointer(reference).filter(|_| seen.insert(reference))
    {
        describe(target, root, seen, text);
    }
    let below = properties.into_iter().flat_map(|properties| properties.values()).chain(schema.get("items"));
    let variants = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    below.chain(variants).for_each(|part| describe(part, root, seen, text));
}

/// Returns a name as programs write it: `dev-radius` and `Dev Radius` are `dev_radius`.
fn normal_name(name: &str) -> String {
    let normal = |c: char| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    name.trim().nfc().map(normal).collect()
}

/// The words of a text in lower case and in the singular, without those that say nothing. `createIssue` and
/// `create_issue` are two words; scripts without spaces are split as Unicode splits them.
fn words(text: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(text.len() + 8);
    let mut letters = text.nfc().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        let next_is_lower = letters.peek().is_some_and(|next| next.is_lowercase());
        let begins = letter.is_uppercase() && (before.is_lowercase() || before.is_numeric());
        // The last capital of several belongs to the word that follows: `HTMLPage`.
        if begins || (letter.is_uppercase() && before.is_uppercase() && next_is_lower) {
            spaced.push(' ');
        }
        // Unicode counts `_` as a letter.
        spaced.extend(if letter == '_' { ' ' } else { letter }.to_lowercase());
        before = letter;
    }
    let words = spaced.unicode_words().filter(|word| !STOP_WORDS.contains(word));
    words.map(singular).collect()
}

fn singular(word: &str) -> String {
    let is_plural = word.is_ascii() && word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
    let stem = |n_letters: usize| &word[..word.len() - n_letters];
    match word {
        _ if !is_plural => word.to_owned(),
        _ if word.len() == 4 => stem(1).to_owned(),
        _ if word.ends_with("ies") => stem(3).to_owned() + "y",
        _ if ["ches", "shes", "sses", "xes", "zes"].into_iter().any(|end| word.ends_with(end)) => stem(2).to_owned(),
        _ => stem(1).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_agent::{BoxFuture, ToolContext, ToolOutput};
    use pith_protocol::ToolSpec;
    use serde_json::{Map, json};

    struct Named(ToolSpec);

    impl Tool for Named {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn run(self: Arc<Self>, _: Map<String, Value>, _: ToolContext) -> BoxFuture<'static, ToolOutput> {
            Box::pin(async { ToolOutput::text("") })
        }
    }

    fn tool(name: &str, description: &str, parameters: Value) -> Arc<dyn Tool> {
        let (name, description) = (name.into(), description.into());
        Arc::new(Named(ToolSpec { name, description, parameters: Arc::new(parameters), prefer_strict: false }))
    }

    fn found(tools: &[Arc<dyn Tool>], query: &str) -> Vec<String> {
        rank(query, tools, 8).iter().map(|tool| tool.spec().name.to_string()).collect()
    }

    #[test]
    fn the_best_fitting_tools_come_first() {
        let path = || json!({"type": "object", "properties": {"repoPath": {"type": "string"}}});
        let tools = [
            tool("mcp__git__git_log", "Shows the commits of a branch", path()),
            tool("mcp__git__git_commit", "Records changes as a commit", path()),
            tool("mcp__time__get_current_time", "Tells the time of a city", path()),
        ];
        assert_eq!(found(&tools, "what time is it"), ["mcp__time__get_current_time"]);
        assert_eq!(found(&tools, "git commit"), ["mcp__git__git_commit", "mcp__git__git_log"]);
        assert_eq!(rank("git commit", &tools, 1).len(), 1);
        assert_eq!(found(&tools, "repo path").len(), 3, "parameters count");
        assert!(
            found(&tools, "").is_empty() && found(&tools, "weather").is_empty() && found(&tools, "of the").is_empty()
        );
    }

    #[test]
    fn more_words_count_before_names_and_names_before_mentions() {
        let many = "app app app app app window, every app of the screen and its app";
        let tools = [
            tool("mcp__peekaboo__list", many, json!({})),
            tool("mcp__peekaboo__window", "Moves something", json!({})),
            tool("mcp__peekaboo__see", "Takes a screenshot of a window", json!({})),
            tool("mcp__peekaboo__app", "Starts programs", json!({})),
        ];
        assert_eq!(found(&tools, "peekaboo app")[0], "mcp__peekaboo__app");
        assert_eq!(found(&tools, "screenshot window")[0], "mcp__peekaboo__see");
        assert_eq!(found(&tools, "the window")[0], "mcp__peekaboo__window");
        for name in ["see", "peekaboo__see", "mcp__peekaboo__see", "Peekaboo--See"] {
            assert_eq!(found(&tools, name)[0], "mcp__peekaboo__see", "{name}");
        }
    }

    #[test]
    fn what_properties_say_is_found_also_behind_references() {
        let schema = json!({
            "properties": {"who": {"$ref": "#/$defs/person"}, "list": {"items": {"anyOf": [{"description": "A zebra"}]}}},
            "$defs": {"person": {"description": "A customer", "properties": {"iban": {}, "again": {"$ref": "#/$defs/person"}}}},
        });
        let tools = [tool("pay", "Sends money", schema), tool("other", "Does nothing", json!({"$ref": "#"}))];
        for query in ["customers", "IBAN", "zebra"] {
            assert_eq!(found(&tools, query), ["pay"], "{query}");
        }
    }

    #[test]
    fn words_are_those_a_reader_would_see() {
        assert_eq!(words("createIssue_ID für-2"), ["create", "issue", "id", "für", "2"]);
        assert_eq!(
            words("parseHTMLPage the boxes, queries and classes"),
            ["parse", "html", "page", "box", "query", "class"]
        );
        assert_eq!(words("cafe\u{301}"), words("caf\u{e9}"));
        assert!(words("全文搜索工具").contains(&"搜".to_owned()));
    }
}
