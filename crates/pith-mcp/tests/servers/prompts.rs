//! Prompts and resources of servers, and their instructions.

use pith_mcp::{Expanded, State};
use serde_json::{Value, json};

use crate::bench::{Bench, entry, text};

async fn expanded(bench: &Bench, text: &str) -> Result<Expanded, String> {
    bench.servers.expand(text).expect("names something of a server").await
}

#[tokio::test]
async fn a_prompt_is_a_slash_command() {
    let bench = Bench::with("plain");
    bench.connect().await;
    let commands: Vec<_> =
        bench.servers.prompts().into_iter().map(|prompt| (prompt.name, prompt.description)).collect();
    assert_eq!(commands, [("mcp:s:weather".to_owned(), Some("Asks for the weather".to_owned()))]);
    let said = expanded(&bench, "/mcp:s:weather Oslo and the rest").await.expect("filled");
    let text = "How is the weather in \"Oslo\"? \"and the rest\"\n\n> one\n> two\n\n\
                <resource uri=\"test://a\">\ninside\n</resource>";
    assert_eq!((said.text.as_str(), said.images.len()), (text, 1));
    let why = expanded(&bench, "/mcp:s:weather").await.expect_err("refused");
    assert_eq!(why, "the prompt \"weather\" needs city (NAME=VALUE, or in this order)");
    assert_eq!(expanded(&bench, "/mcp:s:none").await, Err("s has no prompt \"none\"".to_owned()));
    assert!(bench.servers.expand("/mcp:other:weather").is_none(), "a text like any other");
    bench.servers.close().await;
}

#[tokio::test]
async fn changed_prompts_are_asked_for_again() {
    let bench = Bench::with("plain");
    bench.connect().await;
    let version = bench.servers.version();
    bench.call("grow", json!({"text": "prompts"})).await;
    while bench.servers.version() == version {
        tokio::task::yield_now().await;
    }
    let names: Vec<_> = bench.servers.prompts().into_iter().map(|prompt| prompt.name).collect();
    assert_eq!(names, ["mcp:s:weather", "mcp:s:news"]);
    bench.servers.close().await;
}

#[tokio::test]
async fn a_prompt_starts_its_server_and_says_why_that_fails() {
    let bench = Bench::with("plain");
    assert!(expanded(&bench, "/mcp:s:weather Oslo").await.is_ok());
    assert_eq!(bench.state(), State::Ready);
    bench.servers.close().await;
    let bench = Bench::with("dies");
    let why = expanded(&bench, "/mcp:s:weather Oslo").await.expect_err("refused");
    assert!(why.starts_with("s: ended with exit code 3"), "{why}");
    bench.servers.close().await;
}

#[tokio::test]
async fn a_server_that_cannot_list_its_prompts_keeps_its_tools() {
    let bench = Bench::with("odd");
    bench.connect().await;
    assert_eq!((bench.state(), bench.servers.prompts().len()), (State::Ready, 0));
    let problems = bench.servers.find("s").expect("configured").snapshot().problems;
    assert!(problems.iter().any(|problem| problem == "its prompts cannot be listed: not today"), "{problems:?}");
    bench.servers.close().await;
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let bench = Bench::with("plain");
    bench.connect().await;
    let listed = bench.run("list_mcp_resources", json!({})).await;
    let listed: Value = serde_json::from_str(text(&listed)).expect("JSON");
    let a = json!({"server": "s", "uri": "test://a", "name": "a", "mimeType": "text/plain"});
    assert_eq!(listed, json!({"resources": [a], "nextCursors": {"s": "2"}}));
    let more = bench.run("list_mcp_resources", json!({"server": "s", "cursor": "2"})).await;
    assert_eq!(text(&more), r#"{"resources":[{"server":"s","uri":"test://b","name":"b"}]}"#);
    let templates = bench.run("list_mcp_resource_templates", json!({})).await;
    assert_eq!(text(&templates), r#"{"resourceTemplates":[{"server":"s","uriTemplate":"test://{id}","name":"t"}]}"#);
    let read = async |uri: &str| bench.run("read_mcp_resource", json!({"server": "s", "uri": uri})).await;
    assert_eq!(text(&read("test://a").await), "the text of a");
    let kept = read("test://b").await;
    assert!(text(&kept).starts_with("[test://b: application/zip, 3"), "{}", text(&kept));
    let check = async |arguments: Value, why: &str| {
        let output = bench.run("read_mcp_resource", arguments).await;
        assert_eq!((text(&output), output.is_error), (why, true));
    };
    check(json!({"server": "s", "uri": "test://none"}), "s: no such resource (-32002)").await;
    check(json!({"server": "x", "uri": "test://a"}), "no server \"x\" has resources; those that have: s").await;
    bench.servers.close().await;
}

#[tokio::test]
async fn a_mentioned_resource_follows_the_text() {
    // Nobody has started the server.
    let bench = Bench::with("plain");
    let said = expanded(&bench, "look at @s:test://a, and @s:test://none").await.expect("sent");
    let text = "look at @s:test://a, and @s:test://none\n\n<resource uri=\"test://a\">\nthe text of a\n</resource>\n\n\
                [@s:test://none could not be read: s: no such resource (-32002)]";
    assert_eq!(said.text, text);
    assert!(bench.servers.expand("mail to @someone:else").is_none());
    assert!(bench.servers.expand("nothing").is_none());
    bench.servers.close().await;
}

#[tokio::test]
async fn instructions_are_heard_unless_the_user_says_no() {
    let bench = Bench::with("plain");
    bench.connect().await;
    assert_eq!(bench.servers.instructions(), [("s".to_owned(), "Be kind.".to_owned())]);
    let mut unheard = entry(bench.directory.path(), "plain");
    unheard["instructions"] = json!(false);
    bench.servers.set_host(json!({ "s": unheard }).as_object().expect("an object")).expect("usable");
    bench.connect().await;
    assert_eq!(bench.servers.instructions(), []);
    bench.servers.close().await;
}
