//! What stands in a page, read as text.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod support;

use std::io::Read as _;

use base64::Engine;
use pith_export::Page;
use pith_protocol::ToolSpec;
use serde_json::{Value, json};
use support::hostile::hostile_session;
use support::*;

/// The section of an entry.
fn section<'p>(page: &'p str, id: &str) -> &'p str {
    between(page, &format!("id=\"e-{id}\" data-n="), "</section>")
}

fn check(entry: Value, expected: &[&str]) {
    let page = page_of_entries(&[user("root", None, "hi"), entry]);
    let section = section(&page, "x");
    for part in expected {
        assert!(section.contains(part), "no {part} in {section}");
    }
}

fn answer(content: Value) -> Value {
    json!({"role":"assistant","content":content,"provider":"p","model":"m","api":"a","stopReason":"stop","timestamp":1,
        "usage":{"input":1200,"output":34,"cacheRead":0,"cacheWrite":0,"totalTokens":1234,"cost":{"total":0.5}}})
}

/// A call and its result.
fn tool(name: &str, arguments: Value, result: Value) -> [Value; 3] {
    let mut body = json!({"role":"toolResult","toolCallId":"c","toolName":name,"isError":false,"timestamp":1});
    body.as_object_mut().unwrap().extend(result.as_object().unwrap().clone());
    let call = json!([{"type":"toolCall","id":"c","name":name,"arguments":arguments}]);
    [user("root", None, "hi"), message("a", Some("root"), answer(call)), message("x", Some("a"), body)]
}

fn check_tool(name: &str, arguments: Value, result: Value, expected: &[&str]) {
    let page = page_of_entries(&tool(name, arguments, result));
    let section = section(&page, "x");
    for part in expected {
        assert!(section.contains(part), "no {part} in {section}");
    }
    assert!(!page.contains("data-call=\""), "the result stands for its call");
}

fn text(text: &str) -> Value {
    json!({"content":[{"type":"text","text":text}]})
}

#[test]
fn every_string_of_a_session_stays_in_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = write_session(directory.path(), &hostile_session("http://127.0.0.1:9"));
    let tree = open(&path);
    let x = "</script><script>\"'`<!--".to_owned();
    let tools = [ToolSpec {
        name: x.as_str().into(),
        description: x.as_str().into(),
        parameters: json!({&x: x}).into(),
        prefer_strict: false,
    }];
    let page = Page { system_prompt: Some(&x), tools: &tools, ..Page::of_file(&tree, &x).unwrap() };
    let page = to_string(&page);
    assert_harmless(&page);
    assert_well_nested(&page);
    assert!(!page.contains('\0') && !page.contains('\u{1b}'));
    // Everything was there to be escaped: all entries have their section and their line.
    let tags = tags(&page);
    let count = |name: &str| tags.iter().filter(|tag| tag.name == name).count();
    assert_eq!((count("section"), tree.len()), (tree.len(), hostile_session("").len() - 1));
    assert_eq!(tags.iter().filter(|tag| tag.name == "a" && tag.get("data-n").is_some()).count(), tree.len());
}

/// Pieces that mean something to one of the formats a page is made from.
const PIECES: &str = "a b \n \n\n \r \t < > & \" ' ` ``` ~~~ * ** _ ~~ # - 1. > | |-| [ ] ( ) ! ![ ]( \\ $ // /* */ <!-- --> <b> </p> </pre> \
    </section> </details> <script> </script> &lt; &#60; javascript: http://x.org data:image/png;base64,AAAA \u{1b}[31m \u{1b}[ \u{1b}] \u{7} \
    \u{9b} \0 \u{2028} é 😀 +++ --- @@ + : ; = { } [x] https://x <me@x.org> [1]: \u{20} \u{20}";

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    #[test]
    fn whatever_stands_in_a_session_pages_are_sound(picks in proptest::collection::vec(0usize..1000, 0..40)) {
        let pieces: Vec<_> = PIECES.split(' ').collect();
        let text: String = picks.iter().map(|pick| pieces[pick % pieces.len()]).collect();
        let content = json!([{"type":"text","text":text},{"type":"thinking","thinking":text},
            {"type":"toolCall","id":"c","name":"bash","arguments":{"command":text}},
            {"type":"toolCall","id":"d","name":"read","arguments":{"path":"a.html"}},
            {"type":"toolCall","id":"e","name":"edit","arguments":{"path":text}}]);
        let result = |id: &str, tool: &str| json!({"role":"toolResult","toolCallId":id,"toolName":tool,"timestamp":1,"isError":false,
            "content":[{"type":"text","text":text}],"details":{"patch":text}});
        let page = page_of_entries(&[
            user("1", None, &text),
            message("2", Some("1"), answer(content)),
            message("3", Some("2"), result("c", "bash")),
            message("4", Some("3"), result("d", "read")),
            message("5", Some("4"), result("e", "edit")),
            entry("compaction", "6", Some("5"), json!({"summary":text,"firstKeptEntryId":text})),
        ]);
        assert_harmless(&page);
        assert_well_nested(&page);
    }
}

#[test]
fn ids_and_links_agree() {
    let directory = tempfile::tempdir().unwrap();
    let page = page_of(&write_session(directory.path(), &hostile_session("http://127.0.0.1:9")));
    let tags = tags(&page);
    let ids: std::collections::HashSet<_> = tags.iter().filter_map(|tag| tag.get("id")).collect();
    assert_eq!(ids.len(), tags.iter().filter(|tag| tag.get("id").is_some()).count(), "ids are unique");
    for tag in &tags {
        if let Some(target) =
            tag.get("href").and_then(|href| href.strip_prefix('#')).filter(|target| !target.is_empty())
        {
            assert!(ids.contains(target), "{tag:?}");
        }
    }
}

#[test]
fn the_policy_allows_one_script_and_nothing_else() {
    let page = page_of(&ledger());
    let policy = between(&page, "http-equiv=\"Content-Security-Policy\" content=\"", "\"").replace("&#39;", "'");
    let hash = between(&policy, "script-src 'sha256-", "'");
    assert_eq!(hash.len(), 44);
    assert_eq!(
        policy.replace(hash, "…"),
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-…'; base-uri 'none'; form-action 'none'"
    );
    let head = page.find("Content-Security-Policy").unwrap();
    assert!(head < page.find("<style").unwrap() && head < page.find("<script").unwrap());
}

#[test]
fn the_session_file_can_be_had_back_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    for path in [ledger(), write_session(directory.path(), &hostile_session("http://127.0.0.1:9"))] {
        let page = page_of(&path);
        let raw = between(&page, "id=raw>", "</script>");
        let packed = base64::engine::general_purpose::STANDARD.decode(raw).unwrap();
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
        assert!(bytes == std::fs::read(&path).unwrap(), "{}", path.display());
    }
}

#[test]
fn the_top_names_the_session_and_its_totals() {
    let page = page_of(&ledger());
    let top = between(&page, "<header class=top>", "<div class=bar>");
    for part in [
        "<h1>Ledger: totals off by a cent</h1>",
        "<dd>01a1ddfa-f8d7-76a9-a3c8-c75ac8adcc1e</dd>",
        "<dd>/home/ada/projects/ledger</dd>",
        "<dd>2026-11-15 06:52 UTC</dd>",
        "<dd>anthropic/claude-sonnet-4-5</dd>",
        "<dd>3</dd><dt>prompts</dt>",
        "<dd>9</dd><dt>tool calls</dt>",
        "<dd>$0.1034</dd><dt>cost</dt>",
    ] {
        assert!(top.contains(part), "no {part} in {top}");
    }
    assert!(page.contains("<title>Ledger: totals off by a cent</title>"));
}

#[test]
fn the_current_prompt_and_tools_are_folded_away() {
    let tree = open(&ledger());
    let tools = [ToolSpec {
        name: "bash".into(),
        description: "Runs a command".into(),
        parameters: json!({"type":"object"}).into(),
        prefer_strict: false,
    }];
    let bare = Page::of_file(&tree, "0.1.0").unwrap();
    let page = to_string(&Page { system_prompt: Some("You are <careful>"), tools: &tools, ..bare });
    assert!(page.contains("<pre class=text>You are &lt;careful&gt;</pre></details>"));
    assert!(page.contains("<summary>Tools <span class=note>bash</span></summary>"));
    assert!(!to_string(&bare).contains("<summary>Tools"));
}

#[test]
fn a_session_without_name_is_called_by_its_first_prompt() {
    let page = page_of_entries(&[user("a", None, "Fix the <parser>\nplease"), user("b", Some("a"), "more")]);
    assert!(page.contains("<title>Fix the &lt;parser&gt; please</title>"));
    let page = page_of_entries(&[entry("custom", "a", None, json!({"customType":"x"}))]);
    assert!(page.contains("<title>Session s-1</title>"));
}

#[test]
fn only_the_active_branch_is_shown() {
    let page = page_of(&ledger());
    let stream = between(&page, "<main id=stream>", "</main>");
    let elsewhere = between(&page, "<template id=elsewhere>", "</template>");
    assert!(stream.contains("id=\"e-b5f773b5\"") && !stream.contains("id=\"e-a7f773ad\""));
    assert!(elsewhere.contains("id=\"e-a7f773ad\"") && !elsewhere.contains("id=\"e-b5f773b5\""));
    // The common beginning is written once.
    assert_eq!(page.matches("id=\"e-902fc257\"").count(), 1);
}

#[test]
fn the_navigator_shows_branches_side_by_side() {
    let page = page_of(&ledger());
    let rows = between(&page, "<div id=rows>", "</div>");
    let class = |id: &str| {
        let at = rows.find(&format!("#e-{id}\"")).unwrap();
        let start = rows[..at].rfind("<a class=\"").unwrap() + 10;
        rows[start..].split_once('"').unwrap().0.to_owned()
    };
    assert_eq!(class("902fc257"), "u on");
    assert_eq!(class("94f773a9"), "a on l");
    assert_eq!(class("04f773a0"), "t on");
    assert_eq!(class("34f773a3"), "c on");
    assert_eq!(class("a4f773aa"), "u d1");
    assert_eq!(class("b0f773b0"), "u on d1");
    assert_eq!(class("8b73ce37"), "s on");
    assert!(rows.contains("<mark>fixed</mark> The totals are exact now."));
    assert!(rows.contains(">bash cargo test --workspace --quiet</a>"));
}

#[test]
fn prompts_and_answers() {
    check(
        user("x", Some("root"), "a *b* <c>"),
        &["<h2>You</h2>", "<div class=md><p>a <em>b</em> &lt;c&gt;</p></div>", ">06:52</a>"],
    );
    check(message("x", Some("root"), json!({"role":"user","content":"old style","timestamp":1})), &["old style"]);
    check(
        message(
            "x",
            Some("root"),
            answer(json!([{"type":"thinking","thinking":"hm"},{"type":"text","text":"**yes**"}])),
        ),
        &["<h2>m</h2>", "1.2k in · 34 out · $0.5000", "<details class=thinking>", "<strong>yes</strong>"],
    );
    check(
        message(
            "x",
            Some("root"),
            json!({"role":"user","timestamp":1,"content":[{"type":"image","mimeType":"image/png","data":"AAAA"}]}),
        ),
        &["src=\"data:image/png;base64,AAAA\""],
    );
}

#[test]
fn failures_of_the_model() {
    let failed = |reason: &str, error: Value| {
        message(
            "x",
            Some("root"),
            json!({"role":"assistant","content":[],"stopReason":reason,"errorMessage":error,"timestamp":1}),
        )
    };
    check(failed("error", json!("529: <busy>")), &["<p class=fault>529: &lt;busy&gt;</p>"]);
    check(failed("aborted", json!(null)), &["<p class=fault>Aborted</p>"]);
    check(failed("length", json!(null)), &["Cut off by the output limit."]);
}

#[test]
fn tools_have_the_shape_of_what_they_do() {
    check_tool(
        "bash",
        json!({"command":"ls"}),
        text("\u{1b}[34mdir\u{1b}[0m\n"),
        &["<b>bash</b> <code class=gist>ls</code>", "<i class=\"f4\">dir</i>", "1 line<"],
    );
    check_tool("bash", json!({"command":"a\nb"}), text("x"), &["<pre class=cmd><code>a\nb</code></pre>"]);
    check_tool(
        "bash",
        json!({"command":"make"}),
        json!({"content":[{"type":"text","text":"no rule\n\nCommand exited with code 2"}],"isError":true}),
        &["<span class=bad>exit 2</span>", "no rule"],
    );
    check_tool("read", json!({"path":"a.rs"}), text("fn x"), &["<code class=gist>a.rs</code>", "<i class=k>fn</i> x"]);
    check_tool(
        "write",
        json!({"path":"a.py","content":"def f"}),
        text("Successfully wrote"),
        &["<i class=k>def</i> f", "Successfully wrote"],
    );
    check_tool(
        "edit",
        json!({"path":"a.rs","edits":[]}),
        json!({"content":[],"details":{"diff":"-1 a\n+1 b"}}),
        &["<i class=de>-1 a\n</i><i class=in>+1 b\n</i>", "+1 −1"],
    );
    check_tool(
        "edit",
        json!({"path":"a.rs","edits":[{"oldText":"old","newText":"new"}]}),
        json!({"content":[{"type":"text","text":"Could not find"}],"isError":true}),
        &["<span class=bad>failed</span>", "<i class=de>- old\n</i><i class=in>+ new\n</i>", "Could not find"],
    );
    check_tool(
        "patch_all",
        json!({"deep":{"a":[1]}}),
        json!({"content":[{"type":"text","text":"done"}],"details":{"patch":"--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y"}}),
        &["<i class=p>&quot;deep&quot;</i>", "done", "<i class=hd>--- a\n</i>", "+1 −1"],
    );
    check_tool(
        "web",
        json!({"q":"?"}),
        json!({"content":[],"details":{"hits":3}}),
        &["Details</summary>", "<i class=n>3</i>"],
    );
    check_tool(
        "read",
        json!({"path":"a.png"}),
        json!({"content":[{"type":"text","text":"Read image file [image/png]"},{"type":"image","mimeType":"image/png","data":"AAAA"}]}),
        &["<details class=card open>", "<img "],
    );
}

#[test]
fn a_call_without_result_is_shown_where_it_was_made() {
    let call = json!([{"type":"toolCall","id":"c","name":"bash","arguments":{"command":"sleep 9"}}]);
    check(message("x", Some("root"), answer(call)), &["data-call=\"1.0\">", "sleep 9", "no result"]);
}

#[test]
fn a_result_on_another_branch_does_not_hide_the_call() {
    let [root, call, result] = tool("bash", json!({"command":"ls"}), text("x"));
    let page = page_of_entries(&[root, call, result, user("y", Some("a"), "never mind")]);
    assert!(!between(&page, "data-call=\"1.0\"", ">").contains("hidden"));
}

#[test]
fn results_of_repeated_call_ids_belong_to_the_nearest_answer() {
    let call =
        |command: &str| answer(json!([{"type":"toolCall","id":"c","name":"bash","arguments":{"command":command}}]));
    let result =
        json!({"role":"toolResult","toolCallId":"c","toolName":"bash","content":[],"isError":false,"timestamp":1});
    let page = page_of_entries(&[
        message("a", None, call("first")),
        message("b", Some("a"), result.clone()),
        message("c", Some("b"), call("second")),
        entry("custom", "d", Some("c"), json!({"customType":"between"})),
        message("x", Some("d"), result),
    ]);
    assert!(section(&page, "b").contains("first") && section(&page, "x").contains("second"));
}

#[test]
fn the_rest_of_a_conversation() {
    let run = json!({"role":"bashExecution","command":"make","output":"no rule\n","exitCode":2,"cancelled":false,"truncated":true,
        "fullOutputPath":"/tmp/full.log","excludeFromContext":true,"timestamp":1});
    check(
        message("x", Some("root"), run),
        &["<b>$</b> <code class=gist>make</code>", "exit 2", "not shown to the model", "no rule", "/tmp/full.log"],
    );
    check(entry("model_change", "x", Some("root"), json!({"provider":"p","modelId":"m"})), &["Model <b>p/m</b>"]);
    check(
        entry("thinking_level_change", "x", Some("root"), json!({"thinkingLevel":"high"})),
        &["Thinking <b>high</b>"],
    );
    check(
        entry("compaction", "x", Some("root"), json!({"summary":"# Goal","firstKeptEntryId":"x","tokensBefore":24120})),
        &["Context compacted", "24.1k tokens before", "<h3 class=h1>Goal</h3>"],
    );
    check(
        entry("branch_summary", "x", Some("root"), json!({"fromId":"y","summary":"tried *that*"})),
        &["branch that was left", "<em>that</em>"],
    );
    check(
        entry("custom_message", "x", Some("root"), json!({"customType":"lint","content":"2 warnings","display":true})),
        &["<h2>lint</h2>", "2 warnings"],
    );
    check(
        message("x", Some("root"), json!({"role":"system","content":"You are"})),
        &["System prompt", "<pre class=text>You are</pre>"],
    );
}

#[test]
fn bookkeeping_is_kept_out_of_sight() {
    for (kind, payload, expected) in [
        ("label", json!({"targetId":"root","label":"here"}), "Label <b>here</b>"),
        ("session_info", json!({"name":"n"}), "Name <b>n</b>"),
        ("custom", json!({"customType":"ext","data":{"a":1}}), "Data of <b>ext</b>"),
        ("context_edit", json!({"targetId":"root","replacement":null}), "Context edit of <b>root</b>"),
        ("usage", json!({"kind":"title"}), "Usage <b>title</b>"),
        ("hologram", json!({"x":1}), "Entry <b>hologram</b>"),
        ("message", json!({"message":{"role":"fileMention","files":["a"]}}), "Message <b>fileMention</b>"),
    ] {
        let page = page_of_entries(&[user("root", None, "hi"), entry(kind, "x", Some("root"), payload)]);
        assert!(section(&page, "x").contains(expected), "{kind}");
        assert!(page.contains("<section class=\"entry minor\" id=\"e-x\""), "{kind}");
    }
}

#[test]
fn damaged_and_old_files_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("old.jsonl");
    let lines = [
        r#"{"type":"session","id":"old","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/gone","provider":"p","modelId":"m"}"#,
        r#"{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"first words","timestamp":1}}"#,
        r#"{"broken"#,
        r#"{"type":"message","timestamp":"2025-01-01T00:00:02.000Z","message":{"role":"user","content":"cut \ud83d","timestamp":"x"}}"#,
    ];
    std::fs::write(&path, lines.join("\n")).unwrap();
    let page = page_of(&path);
    let stream = between(&page, "<main id=stream>", "</main>");
    assert!(stream.contains("first words") && stream.contains("cut \u{fffd}"));
    assert_harmless(&page);
}

#[test]
fn entries_that_vanish_under_the_reader_are_reported_in_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = write_session(directory.path(), &[header(), user("a", None, "kept"), user("b", Some("a"), "lost")]);
    let tree = open(&path);
    let len = std::fs::metadata(&path).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(len - 20).unwrap();
    let page = to_string(&Page::of_file(&tree, "0.1.0").unwrap());
    assert!(section(&page, "a").contains("kept"));
    assert!(section(&page, "b").contains("This entry cannot be read: "));
}
