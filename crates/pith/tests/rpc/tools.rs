//! Tool calls as a host sees them, and as the model gets them back.

use std::time::Duration;

use pith_testkit::{Block, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, assert_like, assert_order, kinds, of_type, texts};

/// The tool results of a run whose first answer has these calls.
fn results_of(calls: impl IntoIterator<Item = Block>) -> (Scene, Vec<Value>) {
    let mut scene = Scene::new([Turn::blocks(calls), Turn::text("done")]);
    scene.run("go");
    let results = scene.tool_results();
    (scene, results)
}

#[test]
fn one_call_frame_by_frame() {
    let call = Block::call("bash", json!({"command": "echo hi; until [ -e go ]; do sleep 0.01; done; echo there"}));
    let mut scene = Scene::new([Turn::blocks([Block::text("Running."), call]), Turn::text("ok")]);
    scene.prompt("go");
    scene.wait_output("hi\n");
    scene.home.write_file("go", "");
    scene.wait_type("agent_settled");
    let messages = scene.messages();
    assert_eq!(messages.len(), 4);
    let frames = scene.finish();
    let names = kinds(&frames);
    let start = names.iter().position(|name| name.starts_with("tool_execution_start")).expect("a call");
    assert_eq!(
        names[start - 1..start + 13],
        [
            "message_end:assistant",
            "tool_execution_start:toolu_t0b1",
            "tool_execution_update:toolu_t0b1",
            "tool_execution_end:toolu_t0b1",
            "message_start:toolResult",
            "message_end:toolResult",
            "turn_end",
            "turn_start",
            "message_start:assistant",
            "message_update:text_start",
            "message_update:text_delta",
            "message_update:text_end",
            "message_end:assistant",
            "turn_end",
        ]
    );
    let args = json!({"command": "echo hi; until [ -e go ]; do sleep 0.01; done; echo there"});
    let updates = of_type(&frames, "tool_execution_update");
    assert_like(updates[0], &json!({"toolName": "bash", "args": args, "partialResult": {"content": []}}));
    // Each update contains all of the output so far.
    let shown: Vec<_> = updates.iter().map(|update| texts(&update["partialResult"]["content"])).collect();
    assert!(shown.windows(2).all(|pair| pair[1].starts_with(&pair[0])), "{shown:?}");
    let end = of_type(&frames, "tool_execution_end")[0];
    assert_like(end, &json!({"isError": false, "result": {"content": [{"type": "text", "text": "hi\nthere\n"}]}}));
    let result = json!({"role": "toolResult", "toolCallId": "toolu_t0b1", "toolName": "bash", "isError": false});
    assert_like(
        of_type(&frames, "turn_end")[0],
        &json!({"message": {"stopReason": "toolUse"}, "toolResults": [result]}),
    );
}

#[test]
fn parallel_calls_end_as_they_finish_and_are_recorded_in_call_order() {
    let slow =
        Block::call("bash", json!({"command": "until [ -e quick-done ]; do sleep 0.01; done; sleep 0.5; echo A"}));
    let quick = Block::call("bash", json!({"command": "echo B; touch quick-done"}));
    let (scene, results) = results_of([slow, quick]);
    assert_eq!(results.iter().map(|result| texts(&result["content"])).collect::<Vec<_>>(), ["A\n", "B\n"]);
    let (a, b) = (json!("toolu_t0b0"), json!("toolu_t0b1"));
    assert_order(
        &scene.finish(),
        &[
            json!({"type": "tool_execution_start", "toolCallId": a}),
            json!({"type": "tool_execution_start", "toolCallId": b}),
            json!({"type": "tool_execution_end", "toolCallId": b}),
            json!({"type": "tool_execution_end", "toolCallId": a}),
            json!({"type": "message_end", "message": {"toolCallId": a}}),
            json!({"type": "message_end", "message": {"toolCallId": b}}),
            json!({"type": "turn_end", "toolResults": [{"toolCallId": a}, {"toolCallId": b}]}),
        ],
    );
}

#[test]
fn calls_that_cannot_be_run_are_answered() {
    let validation = "Validation failed for tool \"bash\":\n  - command: must have required properties command\n\n\
        Received arguments:\n{\n  \"cmd\": 1\n}";
    let cases = [
        ("no_such_tool", json!({}), "Tool no_such_tool not found"),
        ("bash", json!({"cmd": 1}), validation),
        ("bash", json!({"command": "exit 3"}), "(no output)\n\nCommand exited with code 3"),
        ("bash", json!({"command": "echo out; echo err >&2; exit 1"}), "out\nerr\n\n\nCommand exited with code 1"),
        ("bash", json!({"command": "kill -9 $$"}), "(no output)\n\nCommand exited with code 137"),
    ];
    for (tool, arguments, text) in cases {
        let (scene, results) = results_of([Block::call(tool, arguments.clone())]);
        assert_eq!(texts(&results[0]["content"]), text, "{tool} {arguments}");
        assert_like(&results[0], &json!({"isError": true, "toolName": tool, "details": {}}));
        let frames = scene.finish();
        assert_like(of_type(&frames, "tool_execution_start")[0], &json!({"toolName": tool, "args": arguments}));
        assert_like(of_type(&frames, "tool_execution_end")[0], &json!({"isError": true, "result": {"details": {}}}));
    }
}

#[test]
fn wrong_argument_types_are_corrected_and_recorded_as_sent() {
    let sent = json!({"command": "echo ok", "timeout": "20"});
    let (mut scene, results) = results_of([Block::call("bash", sent.clone())]);
    assert_like(&results[0], &json!({"isError": false, "content": [{"text": "ok\n"}]}));
    assert_eq!(scene.messages()[1]["content"][0]["arguments"], sent);
    let (scene, results) = results_of([Block::call("bash", json!({"command": "echo ok", "timeout": null}))]);
    assert_eq!(results[0]["isError"], false);
    scene.finish();
}

#[test]
fn a_refusal_of_broken_json_quotes_it() {
    let long = format!("{{\"command\":\"{}ü\", oops", "ä".repeat(2000));
    let (scene, results) =
        results_of([Block::raw_call("bash", "{\"command\":\"echo hi\", oops"), Block::raw_call("bash", &long)]);
    let text = texts(&results[0]["content"]);
    let (problem, received) = text.split_once("\n\nReceived arguments:\n").expect("a quotation");
    assert!(problem.contains("its arguments are not valid JSON ("), "{problem}");
    assert_eq!((received, &results[0]["isError"]), ("{\"command\":\"echo hi\", oops", &json!(true)));
    let text = texts(&results[1]["content"]);
    let (start, end) = text
        .split_once("\n[")
        .and_then(|(start, rest)| Some((start, rest.split_once("left out]\n")?.1)))
        .expect("a cut");
    assert!(start.ends_with('ä') && end.ends_with("ü\", oops") && text.len() < 3000, "{text}");
    scene.finish();
}

#[test]
fn arguments_that_are_no_object_are_refused_with_their_type() {
    let calls = [("[1]", "array"), (r#""x""#, "string"), ("5", "number"), ("null", "null")];
    let (scene, results) = results_of(calls.map(|(raw, _)| Block::raw_call("bash", raw)));
    for ((raw, kind), result) in calls.into_iter().zip(&results) {
        let text = "Tool call \"bash\" was not executed: its arguments must be a JSON object, got";
        let expected = format!("{text} {kind}. Issue the call again with an object.\n\nReceived arguments:\n{raw}");
        assert_eq!(texts(&result["content"]), expected);
        assert_eq!(result["isError"], true);
    }
    scene.finish();
}

#[test]
fn broken_json_is_never_executed() {
    let broken = [
        r#"{"command": "touch evidence"#,
        r#"{"command": "touch evidence", }"#,
        r#"{"command": "touch evidence"}}"#,
        r#"["touch evidence"]"#,
        r#""touch evidence""#,
        "touch evidence",
    ];
    for raw in broken {
        let (mut scene, results) = results_of([Block::raw_call("bash", raw)]);
        assert_eq!(results[0]["isError"], true, "{raw}");
        assert_eq!(scene.home.read_file("evidence"), None, "{raw} was run");
        assert_eq!(scene.messages()[1]["content"][0]["arguments"], json!({}), "{raw}");
        // The model is told and goes on.
        assert_eq!(texts(&scene.messages()[3]["content"]), "done");
        scene.finish();
    }
}

#[test]
fn raw_control_characters_in_arguments_are_understood() {
    let (scene, results) = results_of([Block::raw_call("bash", "{\"command\": \"echo a\necho b\"}")]);
    assert_like(&results[0], &json!({"isError": false, "content": [{"text": "a\nb\n"}]}));
    scene.finish();
}

#[test]
fn a_call_without_arguments_is_executed() {
    let script = Script::of([Turn::blocks([Block::raw_call("ls", "")]), Turn::text("done")]);
    let mut scene = Scene::with(script, |builder| builder.args(["--tools", "ls"]));
    scene.home.write_file("visible.txt", "");
    scene.run("go");
    assert_like(&scene.messages()[2], &json!({"isError": false, "content": [{"text": "visible.txt"}]}));
    scene.finish();
}

#[test]
fn calls_cut_off_by_the_output_limit_are_not_executed() {
    let cut = Turn::call("bash", json!({"command": "touch evidence"})).stop("length");
    let mut scene = Scene::new([cut, Turn::text("shorter now")]);
    scene.run("go");
    let messages = scene.messages();
    assert_like(&messages[2], &json!({"role": "toolResult", "isError": true}));
    assert_eq!(scene.home.read_file("evidence"), None);
    assert_eq!(texts(&messages[3]["content"]), "shorter now");
    assert_eq!(scene.server.requests().len(), 2);
    scene.finish();
}

#[test]
fn a_command_that_never_ends_is_stopped_by_its_timeout() {
    let (scene, results) =
        results_of([Block::call("bash", json!({"command": "echo began; sleep 1000", "timeout": 1}))]);
    assert_eq!(texts(&results[0]["content"]), "began\n\n\nCommand timed out after 1 seconds");
    assert_eq!(results[0]["isError"], true);
    scene.finish();
}

#[test]
fn commands_have_an_empty_stdin_and_background_children_do_not_hold_the_call() {
    let (scene, results) = results_of([
        Block::call("bash", json!({"command": "cat; echo end"})),
        Block::call("bash", json!({"command": "sleep 1000 & echo bg"})),
    ]);
    let shown: Vec<_> = results.iter().map(|result| texts(&result["content"])).collect();
    assert_eq!(shown, ["end\n", "bg\n"]);
    scene.finish();
}

#[test]
fn a_gigabyte_of_output_costs_neither_memory_nor_traffic() {
    let command =
        "yes 'a line of output that goes on for quite a while, over and over' | head -c 1000000000; echo; echo last";
    let script = Script::of([Turn::call("bash", json!({"command": command})), Turn::text("done")]);
    let mut scene = Scene::with(script, |builder| builder.timeout(Duration::from_secs(300)));
    scene.state();
    let before = scene.memory();
    scene.run("go");
    let growth = scene.peak_memory().saturating_sub(before);
    assert!(growth < 64 << 20, "grew by {growth} bytes");
    assert!(scene.n_bytes() < 8 << 20, "{} bytes of frames", scene.n_bytes());
    let result = &scene.messages()[2];
    let text = texts(&result["content"]);
    assert!(text.len() < 52_000 && text.contains("last\n"), "{} bytes", text.len());
    assert_like(result, &json!({"isError": false, "details": {"truncation": {"truncated": true}}}));
    let path = result["details"]["fullOutputPath"].as_str().expect("the full output is kept");
    let size = std::fs::metadata(path).expect("the file exists").len();
    assert!(size <= 65 << 20, "the file has {size} bytes");
    scene.finish();
}

#[test]
fn the_model_is_offered_the_chosen_tools_only() {
    let names = |arguments: &[&str]| {
        let mut scene = Scene::with(Script::of([Turn::text("hi")]), |builder| builder.args(arguments));
        scene.run("go");
        let request = scene.server.wait_request(0).body;
        scene.finish();
        let tools = request["tools"].as_array().cloned().unwrap_or_default();
        let mut names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&[]), ["bash", "edit", "read", "write"]);
    assert_eq!(names(&["--tools", "read,ls"]), ["ls", "read"]);
    assert_eq!(names(&["--no-tools"]), [""; 0]);
}
