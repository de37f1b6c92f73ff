//! What a host written in Rust sends is what pith reads: every command and every reply survives the way there and back.

use pith_protocol::commands::Prompt;
use pith_protocol::host::UiAnswer;
use pith_protocol::inbound::decode;
use pith_protocol::json::to_string;
use pith_protocol::{Command, HostReply, Inbound};
use serde_json::Value;

/// Every command with as little and with as much as it can have.
const COMMANDS: &str = r#"
{"type":"hello"}
{"type":"hello","client":{},"accept":{}}
{"type":"hello","client":{"name":"host","version":"1"},"accept":{"settledWhenHandled":true,"streamUpdates":"delta"}}
{"type":"prompt","message":""}
{"type":"prompt","message":"a\u2028b","images":[{"type":"image","data":"aGk=","mimeType":"image/png"}],"streamingBehavior":"followUp","locale":"de"}
{"type":"steer","message":"x"}
{"type":"steer","message":"x","images":[{"type":"image","data":"aGk=","mimeType":"image/png"}]}
{"type":"follow_up","message":"x"}
{"type":"abort"}
{"type":"abort_and_prompt","message":"x"}
{"type":"clear_queue"}
{"type":"set_steering_mode","mode":"all"}
{"type":"set_follow_up_mode","mode":"one-at-a-time"}
{"type":"set_interrupt_mode","mode":"immediate"}
{"type":"set_stream_updates","mode":"full"}
{"type":"get_state"}
{"type":"get_messages"}
{"type":"get_last_assistant_text"}
{"type":"get_session_stats"}
{"type":"get_commands"}
{"type":"get_diagnostics"}
{"type":"reload"}
{"type":"set_model","provider":"a","modelId":"b"}
{"type":"cycle_model"}
{"type":"get_available_models"}
{"type":"set_thinking_level","level":"xhigh"}
{"type":"cycle_thinking_level"}
{"type":"get_available_thinking_levels"}
{"type":"compact"}
{"type":"compact","customInstructions":"short"}
{"type":"set_auto_compaction","enabled":false}
{"type":"set_auto_retry","enabled":true}
{"type":"abort_retry"}
{"type":"bash","command":"ls"}
{"type":"bash","command":"ls","excludeFromContext":true}
{"type":"abort_bash"}
{"type":"abort_bash","targetId":7}
{"type":"new_session"}
{"type":"new_session","parentSession":"/a.jsonl"}
{"type":"switch_session","sessionPath":"/a.jsonl"}
{"type":"fork","entryId":"a"}
{"type":"branch","entryId":"a"}
{"type":"clone"}
{"type":"get_fork_messages"}
{"type":"get_branch_messages"}
{"type":"get_entries"}
{"type":"get_entries","since":"a"}
{"type":"get_audit"}
{"type":"set_sandbox","profile":"read-only","network":{"mode":"off"},"filesystem":{"denyRead":["keys"]}}
{"type":"set_sandbox"}
{"type":"get_audit","since":"a"}
{"type":"get_tree"}
{"type":"get_tree","flat":true}
{"type":"list_sessions"}
{"type":"list_sessions","all":true}
{"type":"navigate_tree","targetId":"a"}
{"type":"navigate_tree","targetId":"a","summarize":true,"customInstructions":"b","replaceInstructions":false,"label":"c"}
{"type":"navigate_tree","targetId":"a","restoreFiles":true}
{"type":"fork","entryId":"a","restoreFiles":true}
{"type":"branch","entryId":"a","restoreFiles":true}
{"type":"get_permissions"}
{"type":"set_permissions","mode":"ask","deny":["bash(rm:*)"],"forget":["read"]}
{"type":"set_approval_mode","mode":"full"}
{"type":"set_limits","limits":{"tokens":5}}
{"type":"pause"}
{"type":"pause","freeze":true}
{"type":"resume"}
{"type":"list_checkpoints"}
{"type":"list_checkpoints","limit":3}
{"type":"restore_checkpoint","checkpointId":"a"}
{"type":"restore_checkpoint","checkpointId":"a","paths":["b"],"dryRun":true,"force":false}
{"type":"set_label","entryId":"a"}
{"type":"set_label","entryId":"a","label":"b"}
{"type":"set_session_name","name":"a"}
{"type":"export_html"}
{"type":"export_html","outputPath":"/a.html"}
{"type":"set_todos","phases":[{"name":"a","tasks":[{"content":"b"}]}]}
{"type":"set_todos","phases":[{"id":"a","name":"b","colour":1},{"name":"c","tasks":[{"id":"d","content":"e","status":"in_progress","notes":"f","details":"g","colour":2}]}]}
{"type":"set_host_tools","tools":[{"name":"a","description":"b","parameters":{"type":"object"}}]}
{"type":"set_host_tools","tools":[{"name":"a","description":"b","parameters":{},"label":"c","hidden":true}]}
{"type":"set_mcp_servers","servers":{"a":{"command":"b"}}}
{"type":"set_mcp_servers","servers":{},"wait":true}
{"type":"get_mcp_servers"}
{"type":"get_mcp_servers","connect":true}
{"type":"mcp_reconnect","name":"a"}
{"type":"mcp_login","name":"a"}
{"type":"set_mcp_enabled","name":"a","enabled":false}
{"type":"set_locale","locale":"de"}
{"type":"get_integrations"}
"#;

fn lines() -> impl Iterator<Item = &'static str> {
    COMMANDS.lines().filter(|line| !line.is_empty())
}

fn read(line: &str) -> Command {
    match decode(line.as_bytes()) {
        Some(Inbound::Command(_, command)) => command,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn a_command_that_was_written_is_read_as_the_same() {
    for line in lines() {
        let command = read(line);
        let written = to_string(&command);
        assert_eq!(read(&written), command, "{written}");
        let values = [line, &written].map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
        assert_eq!(values[0], values[1], "what is absent is left out");
    }
}

#[test]
fn every_command_is_written_at_least_once() {
    let written: Vec<_> = lines().map(|line| read(line).name()).collect();
    let missing: Vec<_> = Command::NAMES.iter().filter(|name| !written.contains(name)).collect();
    assert!(missing.is_empty(), "no line for {missing:?}");
}

#[test]
fn a_text_is_enough_for_a_prompt() {
    assert_eq!(to_string(&Prompt::from("hi")), r#"{"type":"prompt","message":"hi"}"#);
}

#[test]
fn a_reply_that_was_written_is_read_as_the_same() {
    let id = || Some("7".to_owned());
    let result = serde_json::json!({"content": []});
    for reply in [
        HostReply::Ui { id: id(), answer: "a".into() },
        HostReply::Ui { id: id(), answer: true.into() },
        HostReply::Ui { id: None, answer: UiAnswer::Cancelled },
        HostReply::ToolUpdate { id: id(), partial_result: Some(result.clone()) },
        HostReply::ToolResult { id: id(), result: Some(result), is_error: true },
        HostReply::ToolResult { id: id(), result: None, is_error: false },
    ] {
        let written = to_string(&reply);
        match decode(written.as_bytes()) {
            Some(Inbound::Reply(read)) => assert_eq!(read, reply, "{written}"),
            other => panic!("{written}: {other:?}"),
        }
    }
}
