//! Which tools fit a search best.
//!
//! A tool that has more of the words comes first. Among those with equally many, BM25 over the description decides; a
//! word of the name counts more than any number of mentions, a word of the server less than one. The name itself, with
//! or without its server, finds its tool before all others.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pith_agent::{References, Tool};
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
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

/// Returns the tools that fit a query best.
pub(super) fn rank(query: &str, tools: &[Arc<dyn Tool>], limit: usize) -> Vec<Arc<dyn Tool>> {
    let documents: Vec<Document> = tools.iter().map(|tool| Document::of(&**tool)).collect();
    let search = Search::new(query, &documents);
    let mut fits: Vec<(Fit, &Arc<dyn Tool>)> =
        documents.iter().map(|document| search.fit(document)).zip(tools).filter(|(fit, _)| fit.n_words > 0).collect();
    // A stable sort: equal tools stay in the order of their servers.
    fits.sort_by(|(one, _), (other, _)| {
        let order = (other.is_named, other.n_words).cmp(&(one.is_named, one.n_words));
        order.then(other.score.total_cmp(&one.score))
    });
    fits.into_iter().take(limit).map(|(_, tool)| tool.clone()).collect()
}

/// What is searched of a tool.
struct Document {
    /// Its whole name, as [`normal_name`] writes it.
    full_name: String,
    /// The words of its whole name, the server's among them.
    name: HashSet<String>,
    /// The words of its name on the server.
    own_name: HashSet<String>,
    /// How often each word stands in its descriptions and the names of its parameters.
    text: HashMap<String, usize>,
    n_words: usize,
    server: HashSet<String>,
}

impl Document {
    fn of(tool: &dyn Tool) -> Self {
        let spec = tool.spec();
        let own_name = spec.name.rsplit("__").next().unwrap_or_default();
        let mut texts = vec![&*spec.description];
        // Without a label of its own, a tool answers with its name.
        texts.extend(Some(tool.label()).filter(|label| *label != &*spec.name));
        texts.extend(described(&spec.parameters));
        let mut text = HashMap::new();
        texts.into_iter().flat_map(words).for_each(|word| *text.entry(word).or_default() += 1);
        let server = tool.origin().map(|origin| {
            let about = [origin.server, origin.about.unwrap_or_default()];
            about.into_iter().chain(origin.keywords.iter().map(String::as_str)).flat_map(words).collect()
        });
        Document {
            full_name: normal_name(&spec.name),
            name: words(&spec.name).into_iter().collect(),
            own_name: words(own_name).into_iter().collect(),
            n_words: text.values().sum(),
            text,
            server: server.unwrap_or_default(),
        }
    }

    fn has(&self, word: &str) -> bool {
        self.name.contains(word) || self.text.contains_key(word) || self.server.contains(word)
    }
}

/// What is searched for.
struct Search {
    name: String,
    /// Each word with how rare it is among the tools, in the order of the query.
    words: Vec<(String, f64)>,
    mean_length: f64,
}

/// How well a tool fits.
struct Fit {
    is_named: bool,
    /// How many of the words it has.
    n_words: usize,
    score: f64,
}

impl Search {
    fn new(query: &str, documents: &[Document]) -> Self {
        let mut wanted = words(query);
        let mut seen = HashSet::new();
        wanted.retain(|word| seen.insert(word.clone()));
        let n_documents = documents.len() as f64;
        let with_rarity = |word: String| {
            let n_with = documents.iter().filter(|document| document.has(&word)).count() as f64;
            (word, ((n_documents - n_with + 0.5) / (n_with + 0.5)).ln_1p())
        };
        let n_words: usize = documents.iter().map(|document| document.n_words).sum();
        Search {
            name: normal_name(query),
            words: wanted.into_iter().map(with_rarity).collect(),
            mean_length: (n_words as f64 / n_documents.max(1.0)).max(1.0),
        }
    }

    fn fit(&self, document: &Document) -> Fit {
        let length = LENGTH_WEIGHT.mul_add(document.n_words as f64 / self.mean_length, 1.0 - LENGTH_WEIGHT);
        let weight = |word: &str| {
            let n_times = document.text.get(word).copied().unwrap_or(0) as f64;
            let mentions = n_times * (SATURATION + 1.0) / SATURATION.mul_add(length, n_times);
            let name = if document.name.contains(word) { NAME_WEIGHT } else { 0.0 };
            let server = if document.server.contains(word) { SERVER_WEIGHT } else { 0.0 };
            mentions + name + server
        };
        let mut score: f64 = self.words.iter().map(|(word, rarity)| rarity * weight(word)).sum();
        let is_wanted = |part: &String| self.words.iter().any(|(word, _)| word == part);
        if !document.own_name.is_empty() && document.own_name.iter().all(is_wanted) {
            // The tool itself is named among the words.
            score += self.words.iter().map(|(_, rarity)| rarity).sum::<f64>();
        }
        let before = document.full_name.strip_suffix(&self.name);
        Fit {
            is_named: before.is_some_and(|before| before.is_empty() || before.ends_with("__")),
            n_words: self.words.iter().filter(|(word, _)| document.has(word)).count(),
            score,
        }
    }
}

/// Returns descriptions and names of properties, also behind references; what several refer to, once.
fn described(schema: &Value) -> Vec<&str> {
    let references = References::of(schema);
    let mut texts = Vec::new();
    let mut targets = HashSet::from([std::ptr::from_ref(schema)]);
    let mut waiting = vec![schema];
    while let Some(part) = waiting.pop() {
        let Value::Object(keywords) = part else { continue };
        texts.extend(keywords.get("description").and_then(Value::as_str));
        for (name, property) in keywords.get("properties").and_then(Value::as_object).into_iter().flatten() {
            texts.push(name);
            waiting.push(property);
        }
        waiting.extend(keywords.get("items"));
        let variants = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| keywords.get(key)?.as_array());
        waiting.extend(variants.flatten());
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
            waiting.extend(references.targets(reference).into_iter().filter(|target| targets.insert(*target)));
        }
    }
    texts
}

/// Returns a name as programs write it: `dev-radius` and `Dev Radius` are `dev_radius`.
fn normal_name(name: &str) -> String {
    name.trim().nfc().flat_map(char::to_lowercase).map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
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
        // Unicode keeps `package.json` and `don't` together; a search for one of the parts finds them too.
        let is_part = letter.is_alphanumeric() || is_combining_mark(letter);
        spaced.extend(if is_part { letter } else { ' ' }.to_lowercase());
        before = letter;
    }
    spaced.unicode_words().filter(|word| !STOP_WORDS.contains(word)).map(singular).collect()
}

fn singular(word: &str) -> String {
    let n_extra = match word {
        _ if !word.is_ascii() || word.len() < 4 || word.ends_with("ss") => 0,
        _ if word.len() > 4 && word.ends_with("ies") => return format!("{}y", &word[..word.len() - 3]),
        _ if word.len() > 4 && ["ches", "shes", "sses", "xes", "zes"].iter().any(|end| word.ends_with(end)) => 2,
        _ => usize::from(word.ends_with('s')),
    };
    word[..word.len() - n_extra].to_owned()
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
        assert_eq!(words("Reads package.json, doesn't it?"), ["read", "package", "json", "doesn", "t"]);
        assert_eq!(words("caches dies yes bus"), ["cach", "die", "yes", "bus"]);
        assert_eq!(words("cafe\u{301}"), words("caf\u{e9}"));
        assert!(words("全文搜索工具").contains(&"搜".to_owned()));
    }
}
