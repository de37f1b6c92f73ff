//! The extensions in `examples/` do what their pages say.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::path::Path;

use pith_ext::{Loading, ToolCallVerdict};
use pith_protocol::Block;
use pith_protocol::host::UiAnswer;
use serde_json::{Value, json};
use support::Harness;
use tokio_util::sync::CancellationToken;

async fn example(name: &str) -> Harness {
    let harness = Harness::start();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/extensions").join(name);
    let report = harness.handle.load(&[harness.source(&path)], Loading::Add, &harness.surroundings).await;
    assert_eq!(report.errors, []);
    harness.bind().await;
    harness
}

#[tokio::test]
async fn the_hello_example_answers() {
    let harness = example("hello.ts").await;
    harness.command("hello", "Ann").await;
    assert_eq!(harness.notifications(), ["Hello Ann"]);
}

#[tokio::test]
async fn the_publishing_example_asks_first() {
    let harness = example("ask-before-push.ts").await;
    let call = |command: &'static str| {
        let input: Value = json!({ "command": command });
        harness.handle.tool_call("t", "bash", input.as_object().unwrap().clone())
    };
    assert!(matches!(call("git status").await, ToolCallVerdict::Allow(_)));
    harness.answer(UiAnswer::Confirmed(true));
    assert!(matches!(call("git push").await, ToolCallVerdict::Allow(_)));
    harness.answer(UiAnswer::Cancelled);
    assert!(
        matches!(call("npm publish").await, ToolCallVerdict::Block { reason, .. } if reason == "The user did not allow it")
    );
}

#[tokio::test]
async fn the_word_count_example_counts() {
    let harness = example("word-count.ts").await;
    harness.file("a.txt", "one two  three\n");
    let run = |arguments: Value| {
        let arguments = arguments.as_object().unwrap().clone();
        let handle = harness.handle.clone();
        async move { handle.run_tool("word_count", "t", arguments, &CancellationToken::new(), |_| {}).await }
    };
    assert_eq!(run(json!({ "paths": ["a.txt"] })).await.content, [Block::text("3 a.txt")]);
    assert!(run(json!({ "paths": ["gone.txt"] })).await.is_error);
}
