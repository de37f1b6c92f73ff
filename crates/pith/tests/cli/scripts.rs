//! What scripts and CI jobs need of one answer: a result, a file, a schema, limits, an exit code that tells the truth.

use std::fs::File;
use std::process::{Command, Stdio};

use pith_protocol::{Frame, ResultRecord};
use pith_testkit::schema::{self, Dialect};
use pith_testkit::server::TurnUsage;
use pith_testkit::{Api, Output, TempHome, Terminal, Turn};
use serde_json::{Value, json};

use super::support::{PITH, finish, model, run, run_with, scene};

fn with<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    [&model()[..], flags].concat()
}

/// The last line of `--mode json`, which has to be the only result.
fn result(output: &Output) -> Value {
    let lines: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.iter().filter(|line| line["type"] == "result").count(), 1, "{}", output.stdout);
    let last = lines.last().expect("a line");
    assert_eq!(last["type"], "result");
    assert_eq!(Frame::problem(&last.to_string()).or_else(|| schema::problem(last, Dialect::Pi)), None);
    last.clone()
}

fn endless() -> Turn {
    Turn::call("bash", json!({"command": "true"}))
}

// The result.

#[test]
fn the_result_sums_up_all_messages() {
    let usage = TurnUsage { input: 100, output: 10, cache_read: 0, cache_write: 0 };
    let (home, _server) =
        scene([endless().usage(usage), Turn::text("done").usage(usage), Turn::text("again").usage(usage)]);
    let output = run(&home, with(&["--mode", "json", "-p", "first", "second"]));
    assert_eq!((output.stderr.as_str(), output.code), ("", 0));
    let result = result(&output);
    assert_eq!(
        (&result["text"], &result["stopReason"], &result["turns"]),
        (&json!("again"), &json!("stop"), &json!(3))
    );
    assert_eq!((&result["usage"]["input"], &result["usage"]["output"]), (&json!(300), &json!(30)));
    assert_eq!(result["cost"], result["usage"]["cost"]["total"]);
    let session = home.sessions().remove(0);
    assert_eq!(result["sessionFile"], json!(session.path));
    assert_eq!(result["sessionId"], session.entries[0]["id"]);
    assert_eq!((result.get("error"), result.get("output")), (None, None));
    serde_json::from_value::<ResultRecord>(result).expect("its type holds it");
}

#[test]
fn the_result_says_what_failed() {
    let (home, _server) = scene([Turn::status(401)]);
    let output = run(&home, with(&["--mode", "json", "hi"]));
    assert_eq!(output.code, 1);
    let failed = result(&output);
    assert_eq!((&failed["error"]["kind"], &failed["error"]["status"]), (&json!("auth"), &json!(401)));
    assert!(failed["error"]["message"].as_str().is_some_and(|text| text.contains("401")), "{failed}");
    assert_eq!((&failed["stopReason"], &failed["text"], &failed["turns"]), (&json!("error"), &json!(""), &json!(0)));

    let refused = run(&TempHome::new(), ["--mode", "json", "--no-session", "hi"]);
    assert_eq!(refused.code, 1);
    let refused = result(&refused);
    assert!(refused["error"]["message"].as_str().is_some_and(|text| text.starts_with("No API key found")), "{refused}");
    assert_eq!((refused.get("stopReason"), refused.get("sessionFile")), (None, None));
}

#[test]
fn json_is_short_for_print_and_mode_json() {
    let (home, server) = scene([Turn::text("one"), Turn::text("two")]);
    let output = run(&home, with(&["--json", "---\nfront: matter\n---"]));
    assert_eq!((output.stderr.as_str(), output.code, &result(&output)["text"]), ("", 0, &json!("one")));
    assert_eq!(result(&run_with(&home, with(&["--json"]), b"piped"))["text"], "two");
    assert_eq!(server.requests().len(), 2);
    run(&home, ["--json", "--mode", "text", "hi"]).refused("Error: --json cannot be combined with --mode text\n");
}

// Exit codes.

#[test]
fn print_fails_if_any_message_failed() {
    let (home, _server) = scene([Turn::status(400), Turn::text("fine")]);
    let output = run(&home, with(&["-p", "first", "second"]));
    assert_eq!((output.stdout.as_str(), output.code), ("fine\n", 1));
    assert!(output.stderr.starts_with("message 1: ") && output.stderr.contains("400"), "{}", output.stderr);
    let (home, _server) = scene([Turn::status(400), Turn::text("fine")]);
    assert_eq!(run(&home, with(&["--json", "first", "second"])).code, 1);
}

#[test]
fn print_fails_if_the_answer_was_cut_off() {
    let (home, _server) = scene([Turn::text("as far as it").stop("length"), Turn::text("as far as it").stop("length")]);
    let output = run(&home, with(&["-p", "hi"]));
    assert_eq!((output.stdout.as_str(), output.code), ("as far as it\n", 1));
    let text = "Error: the answer was cut off at the model's limit of output tokens (stop reason length)\n";
    assert_eq!(output.stderr, text);
    let output = run(&home, with(&["--json", "hi"]));
    assert_eq!((output.stderr.as_str(), output.code, &result(&output)["stopReason"]), ("", 0, &json!("length")));
}

// A file.

#[test]
fn the_answer_goes_to_a_file() {
    let (home, _server) =
        scene([Turn::text("written"), Turn::text("records"), Turn::status(400), Turn::text("nothing")]);
    assert_eq!(run(&home, with(&["--output", "answer.txt", "-p", "hi"])).quiet(), "");
    assert_eq!(home.read_file("answer.txt").as_deref(), Some("written\n"));

    assert_eq!(run(&home, with(&["--output", "events.jsonl", "--json", "hi"])).quiet(), "");
    let lines = home.read_file("events.jsonl").expect("there");
    assert!(lines.starts_with("{\"type\":\"session\"") && lines.ends_with("}\n"), "{lines}");
    assert!(lines.lines().last().is_some_and(|line| line.contains("\"type\":\"result\"")), "{lines}");

    assert_eq!(run(&home, with(&["--output", "answer.txt", "-p", "hi"])).code, 1);
    assert_eq!(home.read_file("answer.txt").as_deref(), Some("written\n"), "a failure leaves the file as it was");
    assert_eq!(run(&home, with(&["--output", "/dev/null", "-p", "hi"])).quiet(), "");
}

#[test]
fn a_file_that_cannot_be_written_is_named_before_the_model_is_asked() {
    let (home, server) = scene([]);
    let refused = |flags: &[&str], error: &str| run(&home, with(flags)).refused(error);
    refused(
        &["--output", "no/where.txt", "-p", "hi"],
        "Error: cannot write no/where.txt: No such file or directory (os error 2)\n",
    );
    refused(&["--output", ".", "--json", "hi"], "Error: cannot write .: it is a directory\n");
    refused(&["--output"], "Error: --output requires a file\n");
    assert!(server.requests().is_empty());
}

#[test]
fn a_full_disk_is_named() {
    let (home, _server) = scene([Turn::text("one"), Turn::text("two")]);
    let print = run(&home, with(&["--output", "/dev/full", "-p", "hi"]));
    let text = "Error: cannot write /dev/full: No space left on device (os error 28)\n";
    assert_eq!((print.stderr.as_str(), print.code), (text, 1));
    let json = run(&home, with(&["--output", "/dev/full", "--json", "hi"]));
    assert_eq!((json.stderr.as_str(), json.code), (text, 1));
}

// A schema.

const PERSON: &str =
    r#"{"type":"object","required":["name","age"],"properties":{"name":{"type":"string"},"age":{"type":"integer"}}}"#;

#[test]
fn an_answer_that_fits_the_schema_is_printed_as_it_is() {
    let (home, server) = scene([Turn::text("```json\n{\"name\": \"Ada\", \"age\": 36}\n```")]);
    home.write_file("person.json", PERSON);
    let output = run(&home, with(&["--output-schema", "person.json", "-p", "who?"])).quiet();
    assert_eq!(output, "{\"name\": \"Ada\", \"age\": 36}\n");
    let request = server.requests().remove(0).body;
    assert!(request["system"].to_string().contains("\\\"age\\\""), "the model knows the schema: {}", request["system"]);
}

#[test]
fn the_model_mends_an_answer_that_does_not_fit() {
    let (home, server) = scene([
        Turn::text("Ada"),
        Turn::text("{\"name\": \"Ada\", \"age\": \"old\"}"),
        Turn::text("{\"name\": \"Ada\", \"age\": 36}"),
    ]);
    home.write_file("person.json", PERSON);
    let output = run(&home, with(&["--output-schema", "person.json", "--json", "who?"]));
    assert_eq!((output.stderr.as_str(), output.code), ("", 0));
    let result = result(&output);
    assert_eq!((&result["output"], &result["turns"]), (&json!({"name": "Ada", "age": 36}), &json!(3)));
    let requests = server.requests();
    let told =
        |at: usize| requests[at].body["messages"].as_array().and_then(|all| all.last()).expect("a message").to_string();
    assert!(told(1).contains("it is not JSON"), "{}", told(1));
    assert!(told(2).contains("at /age: "), "{}", told(2));
}

#[test]
fn an_answer_that_never_fits_is_a_failure() {
    let (home, server) = scene((0..6).map(|_| Turn::text("{\"name\": 1}")).collect::<Vec<_>>());
    home.write_file("person.json", PERSON);
    let output = run(&home, with(&["--output-schema", "person.json", "-p", "who?"]));
    assert_eq!((output.stdout.as_str(), output.code, server.requests().len()), ("", 1, 4));
    let begin = "Error: the answer does not fit the schema person.json, also after 3 tries to mend it:\n";
    assert!(output.stderr.starts_with(begin), "{}", output.stderr);
    assert!(output.stderr.ends_with("The last answer was:\n{\"name\": 1}\n"), "{}", output.stderr);

    let output = run(&home, with(&["--output-schema", "person.json", "--output-tries", "1", "--json", "who?"]));
    assert_eq!((output.code, server.requests().len()), (1, 6));
    let result = result(&output);
    assert_eq!((&result["text"], result.get("output")), (&json!("{\"name\": 1}"), None));
    assert!(result["error"]["message"].as_str().is_some_and(|text| text.contains("after 1 tries")), "{result}");
}

#[test]
fn a_schema_that_cannot_be_used_is_refused_before_the_model_is_asked() {
    let (home, server) = scene([]);
    home.write_file("broken.json", "{");
    home.write_file("wrong.json", r#"{"type": "objekt"}"#);
    let check = |file: &str, flags: &[&str], error: &str| {
        let output = run(&home, with(&[&["--output-schema", file], flags].concat()));
        assert_eq!((output.stdout.as_str(), output.code), ("", 1));
        assert!(output.stderr.starts_with(error), "{}", output.stderr);
    };
    check("none.json", &["-p", "hi"], "Error: cannot read the output schema none.json: No such file");
    check("broken.json", &["--json", "hi"], "Error: the output schema broken.json is not JSON: EOF");
    check("wrong.json", &["-p", "hi"], "Error: the output schema wrong.json is not a valid JSON Schema at /type: ");
    check(
        "wrong.json",
        &["--mode", "rpc"],
        "Error: --output-schema has no meaning in rpc mode; use it with -p or --json\n",
    );
    assert!(server.requests().is_empty());
    let mut chat = Terminal::spawn(PITH, &with(&["--output-schema", "wrong.json"]), &home);
    chat.wait("--output-schema has no meaning in the chat; use it with -p or --json");
    assert_eq!(chat.exit_code(), 1);
}

// Limits.

#[test]
fn turns_are_limited_for_all_messages_together() {
    let (home, server) = scene((0..8).map(|_| endless()).collect::<Vec<_>>());
    home.write_settings(&json!({"maxTurns": 7}));
    let output = run(&home, with(&["--max-turns", "2", "-p", "first", "second"]));
    assert_eq!((output.stdout.as_str(), output.code), ("", 1));
    assert_eq!(output.stderr, "message 1: The run was stopped: it reached the limit of 2 turns (maxTurns).\n");
    assert_eq!(server.requests().len(), 2);
    let output = run(&home, with(&["--max-turns", "2", "--json", "again"]));
    let result = result(&output);
    assert_eq!((output.code, &result["error"]["kind"], &result["turns"]), (0, &json!("limit"), &json!(2)));
}

#[test]
fn money_is_limited() {
    let usage = TurnUsage { input: 1_000_000, output: 0, cache_read: 0, cache_write: 0 };
    let (home, server) = scene((0..4).map(|_| endless().usage(usage)).collect::<Vec<_>>());
    home.write_models(&server.url(), |models| {
        for provider in models["providers"].as_object_mut().expect("providers").values_mut() {
            for model in provider["models"].as_array_mut().into_iter().flatten() {
                model["cost"] = json!({"input": 3, "output": 15, "cacheRead": 0, "cacheWrite": 0});
            }
        }
    });
    let output = run(&home, with(&["--max-cost", "$5", "-p", "go"]));
    let text = "The run was stopped: it has cost $6.0000, and the limit is $5 (--max-cost).\n";
    assert_eq!((output.stderr.as_str(), output.code, server.requests().len()), (text, 1, 2));
}

#[test]
fn a_model_without_known_prices_is_named_before_it_is_asked() {
    let usage = TurnUsage { input: 1_000_000, output: 9, cache_read: 0, cache_write: 0 };
    for price in [-1_000_000, 0] {
        let (home, server) = scene([Turn::text("done").usage(usage)]);
        home.write_models(&server.url(), |models| {
            for provider in models["providers"].as_object_mut().expect("providers").values_mut() {
                for model in provider["models"].as_array_mut().into_iter().flatten() {
                    model["cost"] = json!({"input": price, "output": price, "cacheRead": 0, "cacheWrite": 0});
                }
            }
        });
        let why =
            |limit: &str| format!("Warning: {limit} cannot be watched: no price for {}\n", Api::Anthropic.model());
        home.write_settings(&json!({"limits": {"costUsd": 5, "strict": true}}));
        let output = run(&home, with(&["-p", "go"]));
        assert!(output.stderr.starts_with(&why("limits.costUsd")), "{}", output.stderr);
        assert_eq!((output.code, server.requests().len()), (1, 0), "strict limits refuse it: {}", output.stderr);
        home.write_settings(&json!({}));
        let output = run(&home, with(&["--max-cost", "5", "--json", "go"]));
        assert_eq!((output.stderr, output.code), (why("--max-cost"), 0));
        let cost = output.stdout.lines().last().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        assert_eq!(cost.expect("a result")["usage"]["cost"]["total"], 0);
    }
}

#[test]
fn time_is_limited_also_while_a_command_runs() {
    let (home, _server) = scene([Turn::call("bash", json!({"command": "sleep 4200"})), Turn::silent()]);
    let output = run(&home, with(&["--timeout", "300ms", "-p", "go"]));
    let text = "The run was stopped: it reached the time limit of 300ms (--timeout).\n";
    assert_eq!((output.stderr.as_str(), output.code), (text, 1));
    let output = run(&home, with(&["--timeout", "0.3", "--json", "-c", "go on"]));
    assert_eq!((output.code, &result(&output)["error"]["kind"]), (0, &json!("limit")));
}

#[test]
fn a_limit_of_the_session_ends_with_its_own_code() {
    let (home, server) = scene((0..4).map(|_| endless()).collect::<Vec<_>>());
    let output = run(&home, with(&["--limit", "turns=2", "-p", "go"]));
    let text =
        "Limit reached: 2 turns in this session (limits.turns). Raise it with set_limits or start a new session.\n";
    assert_eq!((output.stderr.as_str(), output.code, server.requests().len()), (text, 4, 2));
    let output = run(&home, with(&["--limit", "turns=2", "-c", "-p", "go on"]));
    assert_eq!((output.code, server.requests().len()), (4, 2), "it counts on where it was");
    let output = run(&home, with(&["--limit", "turns=3", "-c", "--json", "go on"]));
    assert_eq!((output.code, &result(&output)["error"]["kind"]), (4, &json!("limit")));
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    let home = TempHome::new();
    let check = |flags: &[&str], error: &str| run(&home, [flags, &["-p", "hi"]].concat()).refused(error);
    check(&["--max-turns", "0"], "Error: Invalid --max-turns \"0\": expected a whole number above 0\n");
    check(&["--max-cost", "free"], "Error: Invalid --max-cost \"free\": expected US dollars above 0, such as 0.50\n");
    check(&["--max-cost", "NaN"], "Error: Invalid --max-cost \"NaN\": expected US dollars above 0, such as 0.50\n");
    let tokens = "Error: Invalid --limit \"tokens=-1\": limits.tokens: expected a whole number above 0\n";
    check(&["--limit", "tokens=-1"], tokens);
    check(&["--timeout", "soon"], "Error: Invalid --timeout \"soon\": expected a duration such as 90s, 30m or 2h\n");
    check(&["--timeout", "-1s"], "Error: Invalid --timeout \"-1s\": expected a duration such as 90s, 30m or 2h\n");
    check(&["--timeout", "0"], "Error: Invalid --timeout \"0\": expected a duration above 0, such as 90s\n");
}

#[test]
fn records_that_cannot_be_written_are_a_failure_with_a_reason() {
    let (home, _server) = scene([Turn::text("fine")]);
    let mut command = Command::new(PITH);
    command.args(with(&["--json", "hi"])).env_clear().envs(home.environment()).current_dir(home.work());
    let full = File::options().write(true).open("/dev/full").expect("Linux has it");
    command.stdin(Stdio::null()).stdout(full).stderr(Stdio::piped());
    let output = finish(command.spawn().expect("pith starts"));
    assert_eq!(output.stderr, "Error: cannot write stdout: No space left on device (os error 28)\n");
    assert_eq!(output.code, 1);
}
