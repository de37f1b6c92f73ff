//! Rules over streams, without a session.

use std::path::PathBuf;

use pith_protocol::{AssistantEvent, AssistantMessage, StopReason};
use pith_resources::StreamRule;

use super::watch::Watch;
use super::*;

fn rule(name: &str, condition: &[&str], scope: &[&str]) -> StreamRule {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let path = PathBuf::from(format!("/rules/{name}.md"));
    StreamRule {
        name: name.to_owned(),
        path,
        content: "advice".to_owned(),
        condition: texts(condition),
        scope: texts(scope),
    }
}

fn compile(rules: Vec<StreamRule>) -> StreamRules {
    let (rules, problems) = StreamRules::compile(rules);
    assert!(problems.is_empty(), "{problems:?}");
    rules
}

/// The names of the rules that match a text, streamed in pieces of about `size` bytes.
fn hits_in(rules: &StreamRules, kind: &str, text: &str, size: usize) -> Vec<String> {
    let mut watch = Watch::default();
    let mut hits = Vec::new();
    let mut feed = |event: AssistantEvent| hits.extend(watch.feed(rules, &event));
    feed(match kind {
        "text" => AssistantEvent::TextStart { index: 0 },
        "thinking" => AssistantEvent::ThinkingStart { index: 0 },
        tool => AssistantEvent::ToolCallStart { index: 0, id: "c".into(), name: tool.into() },
    });
    let mut rest = text;
    while !rest.is_empty() {
        let end = (size..=rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
        feed(AssistantEvent::TextDelta { index: 0, delta: rest[..end].to_owned() });
        rest = &rest[end..];
    }
    feed(AssistantEvent::TextEnd { index: 0, content: String::new(), signature: None });
    let mut names: Vec<_> = hits.into_iter().map(|rule| rules.get(rule).name.clone()).collect();
    names.sort();
    names.dedup();
    names
}

#[track_caller]
fn check(patterns: &[&str], text: &str, is_hit: bool) {
    let rules = compile(vec![rule("r", patterns, &["text"])]);
    for size in [1, 2, 3, 7, 4096] {
        assert_eq!(!hits_in(&rules, "text", text, size).is_empty(), is_hit, "{patterns:?} in {text:?} by {size}");
    }
}

#[test]
fn matches_do_not_depend_on_how_the_text_is_cut() {
    check(&["unwrap\\(\\)"], "call x.unwrap() here", true);
    check(&["unwrap\\(\\)"], "call x.unwrap( ) here", false);
    check(&["\\bany\\b"], "let x: any", true); // only the end of the block decides
    check(&["\\bany\\b"], "let x: anything", false);
    check(&["\\bany\\b"], "let é: any;", true);
    check(&["größe"], "die größe", true);
    check(&["(?i)TODO"], "a todo here", true);
    check(&["end$"], "the end", true);
    check(&["end$"], "the end.", false);
    check(&["^start"], "start", true);
    check(&["^start"], "a start", false);
    check(&["(?m)^start"], "a\nstart", true);
    check(&["nothing", "else"], "or else", true);
    check(&["\\p{Greek}{2}"], "ab αβ", true);
}

#[test]
fn scopes_decide_what_is_watched() {
    let rules = compile(vec![
        rule("all", &["needle"], &["text", "thinking", "tool"]),
        rule("bash", &["needle"], &["tool:bash"]),
        rule("said", &["needle"], &["text"]),
    ]);
    assert_eq!(hits_in(&rules, "text", "a needle", 4), ["all", "said"]);
    assert_eq!(hits_in(&rules, "thinking", "a needle", 4), ["all"]);
    assert_eq!(hits_in(&rules, "bash", "a needle", 4), ["all", "bash"]);
    assert_eq!(hits_in(&rules, "edit", "a needle", 4), ["all"]);
}

#[test]
fn unusable_rules_are_named_and_cost_only_themselves() {
    let (rules, problems) = StreamRules::compile(vec![
        rule("empty", &["x*"], &["text"]),
        rule("broken", &["("], &["text"]),
        rule("huge", &["(?:a{1000}){1000}"], &["text"]),
        rule("where", &["x"], &["everywhere"]),
        rule("good", &["needle"], &["text"]),
    ]);
    assert_eq!(hits_in(&rules, "text", "needle", 3), ["good"]);
    let expect = ["/rules/empty.md", "/rules/broken.md", "/rules/huge.md", "/rules/where.md"];
    assert_eq!(problems.len(), expect.len(), "{problems:?}");
    assert!(problems.iter().zip(expect).all(|(problem, path)| problem.contains(path)), "{problems:?}");
}

#[test]
fn no_pattern_makes_watching_slow() {
    // Patterns that take exponential or quadratic time with backtracking, or many states in a full automaton.
    let nasty = ["(a+)+x", "(a|a)*c", "(?:a?){60}a{60}d", "[ab]*a[ab]{20}e"];
    let rules = compile(nasty.iter().map(|pattern| rule(pattern, &[pattern], &["text"])).collect());
    let text = "ab".repeat(100_000);
    // 200 000 deltas of one byte: a backtracking engine would not come to the end.
    assert_eq!(hits_in(&rules, "text", &text, 1), Vec::<String>::new());
}

#[test]
fn a_rule_speaks_once_per_conversation() {
    let mut book = RuleBook::new(compile(vec![rule("r", &["needle"], &["text"])]));
    let say = |book: &mut RuleBook| {
        let mut guard = book.guard().expect("there is a rule");
        guard.begin_answer();
        guard.take(&AssistantEvent::TextStart { index: 0 });
        book.pending = guard.take(&AssistantEvent::TextDelta { index: 0, delta: "a needle.".into() }).to_vec();
        book.pending.len()
    };
    assert_eq!(say(&mut book), 1);
    book.forget_pending(); // aborted by the host: the model has not read it
    assert_eq!(say(&mut book), 1);
    let message = book.injection().expect("a rule is pending");
    assert!(message.content.text().contains("advice") && !message.display);
    assert_eq!(say(&mut book), 0);
    // A conversation that has the message knows the rule; another one does not.
    let told = [Arc::new(Message::Custom(message))];
    book.resume(&[]);
    assert_eq!(say(&mut book), 1);
    book.resume(&told);
    assert_eq!(say(&mut book), 0);
}

#[test]
fn an_answer_ends_where_it_breaks_a_rule() {
    let book = RuleBook::new(compile(vec![rule("r", &["rm -rf"], &["tool"])]));
    let mut guard = book.guard().expect("there is a rule");
    guard.begin_answer();
    let mut say = |event| guard.take(&event).len();
    say(AssistantEvent::TextStart { index: 0 });
    say(AssistantEvent::TextDelta { index: 0, delta: "I clean ".into() });
    say(AssistantEvent::TextEnd { index: 0, content: "I clean up".into(), signature: None });
    say(AssistantEvent::ToolCallStart { index: 1, id: "c".into(), name: "bash".into() });
    assert_eq!(say(AssistantEvent::ToolCallDelta { index: 1, delta: r#"{"command":"rm -rf /","#.into() }), 1);
    say(AssistantEvent::ToolCallDelta { index: 1, delta: r#""more":1}"#.into() });
    let ends = guard.close();
    let [AssistantEvent::ToolCallEnd { index: 1, call }] = &ends[..] else { panic!("{ends:?}") };
    assert_eq!(serde_json::Value::from(call.arguments.clone()), serde_json::json!({"command": "rm -rf /"}));
    assert_eq!(call.arguments_truncated, Some(true));
    // The provider had sent the whole answer long before.
    let finished = AssistantMessage { content: vec![Block::text("all of it")], ..AssistantMessage::default() };
    let left = guard.conclude(Arc::new(Message::Assistant(finished)));
    let left = left.as_assistant().expect("an answer");
    assert_eq!(left.content[..], [Block::text("I clean up"), Block::ToolCall(call.clone())]);
    assert_eq!((left.stop_reason, left.error_message.as_deref()), (StopReason::Aborted, Some("TTSR matched rule: r")));
    assert_eq!(guard.close(), []);
}
