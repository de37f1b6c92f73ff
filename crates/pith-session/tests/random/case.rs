//! Random cases: a session, what is done to it, and at which moments.

use std::fmt;
use std::time::Duration;

use pith_testkit::Dice;
use serde_json::{Value, json};

use crate::support::{MODELS, PROVIDER, Script, Turn};

/// One random session.
#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    pub has_extension: bool,
    pub is_saved: bool,
    /// Whether every write is flushed to the disk.
    pub is_synced: bool,
    /// Whether the host disconnects without warning.
    pub ends_abruptly: bool,
    /// The context window of its models.
    pub window: u64,
    /// Prompts that succeed before anything else happens.
    pub n_prompts_before: u64,
    pub steps: Vec<Step>,
}

/// An action, and how far the session gets before the next one.
#[derive(Clone, Debug)]
pub struct Step {
    pub act: Act,
    pub moment: Moment,
}

#[derive(Clone, Debug)]
pub enum Act {
    /// Sends a command. `$entry`, `$prompt` and `$session` are replaced by values the session has sent.
    Send(Value),
    /// Sends a command at the moment the next frame of a type leaves the session.
    SendAt(&'static str, Value),
    /// The host stops reading, or reads on.
    StopReading,
    Read,
    /// The session directory becomes unwritable, or writable again.
    BreakDisk,
    MendDisk,
    /// The host answers the oldest dialog, or the oldest call of one of its tools.
    AnswerDialog,
    AnswerTool,
    /// Releases a model that waits.
    Release,
}

#[derive(Clone, Debug)]
pub enum Moment {
    /// That many steps of the runtime, while no time passes.
    Polls(usize),
    Pass(Duration),
    /// Until nothing happens any more.
    Settle,
}

impl Case {
    /// Creates a case with a few kinds of commands and answers, so that commands that affect each other meet.
    pub fn new(seed: u64, has_extension: bool) -> Case {
        let mut dice = Dice::new(seed);
        let n_steps = 4 + dice.below(20);
        let (is_saved, is_synced, ends_abruptly) = (dice.one_in(2), dice.one_in(4), dice.one_in(4));
        let window = dice.pick(&[8000, 8000, 200_000]);
        let n_kinds = 2 + dice.below(6);
        let kinds: Vec<Maker> = (0..n_kinds).map(|_| dice.pick(&ACTS)).collect();
        let n_prompts_before = dice.pick(&[0, 2]);
        let mut steps = Vec::new();
        for _ in 0..n_steps {
            let maker = if dice.one_in(3) { dice.pick(&USUAL) } else { dice.pick(&kinds) };
            steps.push(Step { act: maker(&mut dice), moment: moment(&mut dice) });
        }
        Case { seed, has_extension, is_saved, is_synced, ends_abruptly, window, n_prompts_before, steps }
    }

    /// Whether the host runs shell commands in it.
    pub fn runs_commands(&self) -> bool {
        self.steps.iter().any(|step| match &step.act {
            Act::Send(command) | Act::SendAt(_, command) => command["type"] == "bash",
            _ => false,
        })
    }

    /// The model's answers: random ones while `is_wild` returns true, good ones afterwards.
    pub fn script(&self, is_wild: impl Fn() -> bool + Clone + Send + 'static) -> Script {
        let mut dice = Dice::new(self.seed ^ 0xa5a5);
        let n_kinds = 1 + dice.below(5);
        let kinds: Vec<u64> = (0..n_kinds).map(|_| dice.below(N_ANSWERS)).chain([0]).collect();
        let mut summaries = Dice::new(self.seed ^ 0x5a5a);
        let is_still_wild = is_wild.clone();
        Script::answering(move |_| if is_wild() { answer(dice.pick(&kinds)) } else { Turn::text("ok") })
            .summarising(move |_| if is_still_wild() { summary(summaries.below(8)) } else { Turn::text("a summary") })
    }
}

/// A text of about `n_tokens` tokens.
pub fn long(n_tokens: usize) -> String {
    "word ".repeat(n_tokens * 4 / 5)
}

const N_ANSWERS: u64 = 16;

fn answer(kind: u64) -> Turn {
    match kind {
        0 => Turn::text("fine"),
        1 => Turn::text(&long(2500)),
        2 => Turn::text("nearly full").usage(7000, 10),
        3 => Turn::thinking("hm").and_text("well"),
        4 => Turn::call("quick", json!({})),
        5 => Turn::call("slow", json!({})).and_call("quick", json!({})).usage(7000, 10),
        6 => Turn::call("stubborn", json!({})),
        7 => Turn::call("panics", json!({})),
        8 => Turn::call("hosted", json!({})),
        9 => Turn::overloaded("503 busy"),
        10 => Turn::refused("400 no"),
        11 => Turn::overflow(),
        12 => Turn::hang(),
        13 => Turn::text("half").and_gate().and_text("whole"),
        14 => Turn::die(),
        _ => Turn::panic(),
    }
}

fn summary(kind: u64) -> Turn {
    match kind {
        0..4 => Turn::text("a summary"),
        4 => Turn::overloaded("503 busy"),
        5 => Turn::refused("400 no"),
        6 => Turn::gated("a late summary"),
        _ => Turn::panic(),
    }
}

/// Makes an action of one kind.
type Maker = fn(&mut Dice) -> Act;

/// The actions that every case can have.
const USUAL: [Maker; 3] = [
    |dice| send(dice, json!({"type": "prompt", "message": "do something"})),
    |dice| send(dice, json!({"type": "get_state"})),
    |_| Act::AnswerDialog,
];

const ACTS: [Maker; 52] = [
    |_| Act::StopReading,
    |_| Act::Read,
    |_| Act::BreakDisk,
    |_| Act::MendDisk,
    |_| Act::AnswerTool,
    |_| Act::Release,
    |dice| send(dice, json!({"type": "prompt", "message": long(2500)})),
    |dice| send(dice, json!({"type": "prompt", "message": "and", "streamingBehavior": "steer"})),
    |dice| send(dice, json!({"type": "prompt", "message": "then", "streamingBehavior": "followUp"})),
    |dice| send(dice, json!({"type": "prompt", "message": "/ask"})),
    |dice| send(dice, json!({"type": "steer", "message": "steer"})),
    |dice| send(dice, json!({"type": "follow_up", "message": "follow"})),
    |dice| send(dice, json!({"type": "abort"})),
    |dice| send(dice, json!({"type": "abort"})),
    |dice| send(dice, json!({"type": "abort_and_prompt", "message": "instead"})),
    |dice| send(dice, json!({"type": "abort_retry"})),
    |dice| send(dice, json!({"type": "compact"})),
    |dice| send(dice, json!({"type": "compact"})),
    |dice| send(dice, json!({"type": "new_session"})),
    |dice| send(dice, json!({"type": "new_session"})),
    |dice| send(dice, json!({"type": "fork", "entryId": "$prompt"})),
    |dice| send(dice, json!({"type": "clone"})),
    |dice| send(dice, json!({"type": "switch_session", "sessionPath": "$session"})),
    |dice| send(dice, json!({"type": "navigate_tree", "targetId": "$entry"})),
    |dice| send(dice, json!({"type": "navigate_tree", "targetId": "$entry", "summarize": true})),
    |dice| send(dice, json!({"type": "set_model", "provider": PROVIDER, "modelId": MODELS[1]})),
    |dice| send(dice, json!({"type": "cycle_model"})),
    |dice| send(dice, json!({"type": "set_thinking_level", "level": "high"})),
    |dice| send(dice, json!({"type": "bash", "command": "echo hi"})),
    |dice| send(dice, json!({"type": "bash", "command": "sleep 60"})),
    |dice| send(dice, json!({"type": "abort_bash"})),
    |dice| send(dice, json!({"type": "set_todos", "phases": [{"name": "all", "tasks": [{"content": "this"}]}]})),
    |dice| send(dice, json!({"type": "clear_queue"})),
    |dice| send(dice, json!({"type": "reload"})),
    |dice| send(dice, json!({"type": "set_auto_compaction", "enabled": false})),
    |dice| send(dice, json!({"type": "set_auto_retry", "enabled": false})),
    |dice| send(dice, json!({"type": "get_session_stats"})),
    |dice| send(dice, json!({"type": "get_fork_messages"})),
    |dice| send(dice, json!({"type": "get_entries"})),
    |dice| send(dice, json!({"type": "get_permissions"})),
    |dice| send(dice, json!({"type": "get_audit"})),
    |dice| send(dice, json!({"type": "list_sessions"})),
    |dice| send(dice, json!({"type": "set_session_name", "name": "a name"})),
    |dice| send(dice, json!({"type": "get_commands"})),
    |dice| {
        send(
            dice,
            json!({"type": "set_host_tools", "tools": [{"name": "hosted", "description": "d", "parameters": {}}]}),
        )
    },
    |dice| send(dice, json!({"type": "set_steering_mode", "mode": "all"})),
    |dice| send(dice, json!({"type": "set_limits", "limits": {"turns": 3, "softPercent": 50}})),
    |dice| send(dice, json!({"type": "set_limits", "limits": {"wallSeconds": 1, "repeats": 2}})),
    |dice| send(dice, json!({"type": "set_limits", "limits": {"turns": null}})),
    |dice| send(dice, json!({"type": "pause"})),
    |dice| send(dice, json!({"type": "pause", "freeze": true})),
    |dice| send(dice, json!({"type": "resume"})),
];

/// Sends most commands at once, some between two frames.
fn send(dice: &mut Dice, command: Value) -> Act {
    const FRAMES: [&str; 12] = [
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
        "tool_execution_start",
        "tool_execution_end",
        "turn_end",
        "agent_end",
        "agent_settled",
        "auto_retry_start",
        "compaction_start",
        "compaction_end",
    ];
    if dice.one_in(2) { Act::SendAt(dice.pick(&FRAMES), command) } else { Act::Send(command) }
}

fn moment(dice: &mut Dice) -> Moment {
    match dice.below(10) {
        0..6 => Moment::Polls(dice.below(40) as usize),
        6..9 => Moment::Pass(Duration::from_millis(1 + dice.below(800))),
        _ => Moment::Settle,
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { seed, has_extension, is_saved, is_synced, ends_abruptly, window, n_prompts_before, steps } = self;
        writeln!(f, "seed {seed}: extension {has_extension}, saved {is_saved}, synced {is_synced}, window {window}")?;
        writeln!(f, "  {n_prompts_before} long prompts, answered")?;
        for Step { act, moment } in steps {
            let shown = |command: &Value| command.to_string().replace(&long(500), "…");
            let act: String = match act {
                Act::Send(command) => shown(command),
                Act::SendAt(frame, command) => format!("at {frame}: {}", shown(command)),
                act => format!("{act:?}"),
            };
            writeln!(f, "  {act}  then {moment:?}")?;
        }
        if *ends_abruptly {
            writeln!(f, "  the host is gone")?;
        }
        Ok(())
    }
}
