//! Streams that lose, double, reorder and mix events, on all four wires.
//!
//! A call of such an answer is run with exactly what belongs to its id and name, or not at all. Responses and Gemini
//! say all of a call in one event, so "exactly" is meant to the letter there. The other two send pieces without any
//! number, so a piece that is lost or doubled cannot be noticed as long as what remains is JSON; what must hold there
//! is that a call has all the pieces that arrived for it, in their order, and none of another's.

use std::sync::Arc;

use pith_protocol::{AssistantEvent, AssistantMessage, Model, PartialArguments, StopReason};
use serde_json::{Map, Value, json};

use super::Wire;
use super::anthropic::Anthropic;
use super::completions::Completions;
use super::google::Google;
use super::responses::Responses;
use crate::assemble::MessageBuilder;
use crate::sse::SseEvent;

/// How many answers each run makes, unless `PITH_STREAMS` says otherwise.
const ANSWERS: u64 = 2500;

/// Numbers that are the same in every run with the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// A call as the model meant it.
#[derive(Clone, Debug)]
struct Call {
    id: String,
    name: &'static str,
    arguments: String,
}

/// One event, and which call and which piece of its arguments it has.
#[derive(Clone, Debug)]
struct Event {
    data: Value,
    /// The position of a call, and the text that this event adds to its arguments.
    piece: Option<(usize, String)>,
}

fn plain(data: Value) -> Event {
    Event { data, piece: None }
}

/// How a server says which call an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    Full,
    /// Without the number of the item (`output_index`, `index`).
    NoNumber,
    /// Without the id of the item (`item_id`), or with one of its own in every event.
    NoId,
    OtherIds,
    /// Neither.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Api {
    Anthropic,
    Completions,
    Responses,
    Google,
}

impl Api {
    const ALL: [Api; 4] = [Api::Anthropic, Api::Completions, Api::Responses, Api::Google];

    fn wire(self) -> &'static dyn Wire {
        match self {
            Api::Anthropic => &Anthropic,
            Api::Completions => &Completions,
            Api::Responses => &Responses,
            Api::Google => &Google,
        }
    }

    /// Whether one event has all of a call, so that lost pieces do not matter.
    fn is_exact(self) -> bool {
        matches!(self, Api::Responses | Api::Google)
    }
}

/// An answer with its calls: what comes before and after them, and the events of each.
struct Answer {
    head: Vec<Event>,
    calls: Vec<Vec<Event>>,
    tail: Vec<Event>,
}

fn calls(random: &mut Random) -> Vec<Call> {
    let names = ["bash", "write", "read"];
    (0..1 + random.below(4))
        .map(|at| {
            let id = format!("call_{at}");
            let value = match random.below(4) {
                0 => json!({"command": format!("rm -rf {id}"), "of": id}),
                1 => json!({"of": id, "nested": {"list": [at, {"x": format!("{{\"{id}\"}}")}]}, "n": at}),
                2 => json!({"of": id}),
                _ => json!({"path": format!("a\\b\n\"{id}\" äö"), "content": id.repeat(random.below(5)), "of": id}),
            };
            Call { id, name: names[random.below(names.len())], arguments: value.to_string() }
        })
        .collect()
}

/// Cuts a text into pieces at any character.
fn pieces(text: &str, random: &mut Random) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let most = 1 + random.below(12);
    for character in text.chars() {
        if random.one_in(most) {
            pieces.push(String::new());
        }
        pieces.last_mut().expect("there is one").push(character);
    }
    pieces
}

fn answer(api: Api, calls: &[Call], naming: Naming, random: &mut Random) -> Answer {
    match api {
        Api::Anthropic => anthropic(calls, naming, random),
        Api::Completions => completions(calls, naming, random),
        Api::Responses => responses(calls, naming, random),
        Api::Google => google(calls, naming, random),
    }
}

/// Removes the members that this naming does not have.
fn named(mut data: Value, number: &str, naming: Naming) -> Value {
    if matches!(naming, Naming::NoNumber | Naming::Nothing) {
        data.as_object_mut().expect("events are objects").shift_remove(number);
    }
    data
}

fn anthropic(calls: &[Call], naming: Naming, random: &mut Random) -> Answer {
    let events = |(at, call): (usize, &Call)| {
        let block = json!({"type":"tool_use","id":call.id,"name":call.name,"input":{}});
        let mut events = vec![plain(json!({"type":"content_block_start","index":at + 1,"content_block":block}))];
        for piece in pieces(&call.arguments, random) {
            let delta = json!({"type":"input_json_delta","partial_json":piece});
            let data = json!({"type":"content_block_delta","index":at + 1,"delta":delta});
            events.push(Event { data, piece: Some((at, piece)) });
        }
        events.push(plain(json!({"type":"content_block_stop","index":at + 1})));
        events.into_iter().map(|event| Event { data: named(event.data, "index", naming), ..event }).collect()
    };
    Answer {
        head: vec![
            plain(json!({"type":"message_start","message":{"id":"m","usage":{"input_tokens":5}}})),
            plain(json!({"type":"content_block_start","index":0,"content_block":{"type":"text","text":"So."}})),
            plain(json!({"type":"content_block_stop","index":0})),
        ],
        calls: calls.iter().enumerate().map(events).collect(),
        tail: vec![
            plain(json!({"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}})),
            plain(json!({"type":"message_stop"})),
        ],
    }
}

fn completions(calls: &[Call], naming: Naming, random: &mut Random) -> Answer {
    let chunk = |delta: Value| json!({"id":"c","choices":[{"index":0,"delta":delta}]});
    let events = |(at, call): (usize, &Call)| {
        let mut events = Vec::new();
        for (n, piece) in pieces(&call.arguments, random).into_iter().enumerate() {
            let mut fragment = json!({"index":at,"function":{"arguments":piece}});
            if n == 0 {
                fragment["function"]["name"] = json!(call.name);
            }
            if n == 0 || matches!(naming, Naming::NoNumber) {
                fragment["id"] = json!(call.id);
            } else if naming == Naming::OtherIds {
                fragment["id"] = json!(format!("{}_{n}", call.id));
            }
            let data = chunk(json!({"tool_calls":[named(fragment, "index", naming)]}));
            events.push(Event { data, piece: Some((at, piece)) });
        }
        events
    };
    Answer {
        head: vec![plain(chunk(json!({"role":"assistant","content":"So."})))],
        calls: calls.iter().enumerate().map(events).collect(),
        tail: vec![plain(json!({"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}))],
    }
}

fn responses(calls: &[Call], naming: Naming, random: &mut Random) -> Answer {
    let mut n_ids = 0;
    let mut id = |at: usize| {
        n_ids += 1;
        if naming == Naming::OtherIds { format!("fc_{at}_{n_ids}") } else { format!("fc_{at}") }
    };
    let mut events = |(at, call): (usize, &Call)| {
        let has_id = !matches!(naming, Naming::NoId | Naming::Nothing);
        let item = |id: String, arguments: &str| {
            let mut item = json!({"type":"function_call","call_id":call.id,"name":call.name,"arguments":arguments});
            if has_id {
                item["id"] = json!(id);
            }
            item
        };
        let event = |kind: &str, id: String, more: (&str, &str)| {
            let mut event = json!({"type":kind,"output_index":at});
            if has_id {
                event["item_id"] = json!(id);
            }
            event[more.0] = json!(more.1);
            event
        };
        let mut events =
            vec![plain(json!({"type":"response.output_item.added","output_index":at,"item":item(id(at), "")}))];
        for piece in pieces(&call.arguments, random) {
            let data = event("response.function_call_arguments.delta", id(at), ("delta", &piece));
            events.push(Event { data, piece: Some((at, piece)) });
        }
        let done = event("response.function_call_arguments.done", id(at), ("arguments", &call.arguments));
        events.push(plain(done));
        events.push(plain(
            json!({"type":"response.output_item.done","output_index":at,"item":item(id(at), &call.arguments)}),
        ));
        events.into_iter().map(|event| Event { data: named(event.data, "output_index", naming), ..event }).collect()
    };
    let calls = calls.iter().enumerate().map(&mut events).collect();
    Answer {
        head: vec![plain(json!({"type":"response.created","response":{"id":"r"}}))],
        calls,
        tail: vec![plain(json!({"type":"response.completed","response":{"id":"r","status":"completed"}}))],
    }
}

fn google(calls: &[Call], naming: Naming, random: &mut Random) -> Answer {
    let chunk = |part: Value| json!({"candidates":[{"content":{"parts":[part]}}]});
    let events = |(at, call): (usize, &Call)| {
        let arguments: Value = serde_json::from_str(&call.arguments).expect("arguments are JSON");
        let mut part = json!({"functionCall":{"id":call.id,"name":call.name,"args":arguments}});
        if matches!(naming, Naming::NoId | Naming::Nothing) {
            part["functionCall"].as_object_mut().expect("an object").shift_remove("id");
        }
        vec![Event { data: chunk(part), piece: Some((at, call.arguments.clone())) }]
    };
    let head = if random.one_in(2) { vec![plain(chunk(json!({"text":"So."})))] } else { Vec::new() };
    Answer {
        head,
        calls: calls.iter().enumerate().map(events).collect(),
        tail: vec![plain(json!({"candidates":[{"finishReason":"STOP"}]}))],
    }
}

impl Answer {
    /// Returns the events with those of the calls one after the other, or mixed, each call's in their order.
    fn events(mut self, is_mixed: bool, random: &mut Random) -> Vec<Event> {
        let mut events = self.head;
        if is_mixed {
            self.calls.iter_mut().for_each(|call| call.reverse());
            while !self.calls.is_empty() {
                let at = random.below(self.calls.len());
                match self.calls[at].pop() {
                    Some(event) => events.push(event),
                    None => _ = self.calls.remove(at),
                }
            }
        } else {
            events.extend(self.calls.into_iter().flatten());
        }
        events.extend(self.tail);
        events
    }
}

/// Loses, doubles and moves some events.
fn garble(events: &mut Vec<Event>, random: &mut Random) {
    for _ in 0..random.below(5) {
        if events.is_empty() {
            return;
        }
        let at = random.below(events.len());
        let to = random.below(events.len());
        match random.below(4) {
            0 => _ = events.remove(at),
            1 => events.insert(at, events[at].clone()),
            2 => events.insert(to, events[at].clone()),
            _ => {
                let event = events.remove(at);
                events.insert(to.min(events.len()), event);
            }
        }
    }
}

/// Returns the message that a stream of these events makes, and how many of them were read.
fn decode(api: Api, events: &[Event]) -> (AssistantMessage, usize) {
    let mut message = MessageBuilder::new(Arc::new(Model { id: "m".into(), ..Model::default() }), 5);
    let mut decoder = api.wire().decoder();
    let mut n_read = 0;
    for event in events {
        let data = event.data.to_string();
        let name = event.data["type"].as_str().unwrap_or_default();
        decoder.event(SseEvent { name, data: &data }, &mut message);
        n_read += 1;
        if message.is_finished() {
            break;
        }
    }
    if !message.is_finished() {
        decoder.end(None, &mut message);
    }
    let last = std::iter::from_fn(|| message.next_event()).last();
    let Some(AssistantEvent::End(message)) = last else { panic!("no end") };
    (*message, n_read)
}

/// The calls that the agent would run: id, name and arguments.
fn run(message: &AssistantMessage) -> Vec<(String, String, Map<String, Value>)> {
    if matches!(message.stop_reason, StopReason::Error | StopReason::Aborted) {
        return Vec::new();
    }
    let is_run = |call: &&pith_protocol::ToolCall| call.arguments_truncated != Some(true) && !call.name.is_empty();
    message
        .tool_calls()
        .filter(is_run)
        .map(|call| (call.id.clone(), call.name.clone(), call.arguments.clone()))
        .collect()
}

fn object(text: &str) -> Option<Map<String, Value>> {
    let mut arguments = PartialArguments::new();
    arguments.push(text);
    arguments.finish().ok()
}

/// Checks what is run of `events` against the calls that were meant. Returns how many are run.
fn check(api: Api, calls: &[Call], naming: Naming, events: &[Event]) -> usize {
    let (message, n_read) = decode(api, events);
    let ran = run(&message);
    let mut is_taken = vec![false; calls.len()];
    for (id, name, arguments) in &ran {
        let id = id.split('|').next().unwrap_or_default();
        let shown = || format!("{api:?} {naming:?}: {id} {name} {arguments:?}\nmeant: {calls:#?}\nevents: {events:#?}");
        let has_id = !(api == Api::Google && matches!(naming, Naming::NoId | Naming::Nothing));
        let is_meant = |at: &usize| {
            let call = &calls[*at];
            let arrived: String = events[..n_read]
                .iter()
                .filter_map(|event| event.piece.as_ref())
                .filter(|(of, _)| of == at)
                .map(|(_, piece)| piece.as_str())
                .collect();
            let is_exact = object(&call.arguments).as_ref() == Some(arguments);
            let is_literal = !api.is_exact() && object(&arrived).as_ref() == Some(arguments);
            (!has_id || call.id == id) && call.name == name && (is_exact || is_literal)
        };
        let at =
            (0..calls.len()).find(is_meant).unwrap_or_else(|| panic!("a call with foreign arguments: {}", shown()));
        assert!(!has_id || !std::mem::replace(&mut is_taken[at], true), "a call is run twice: {}", shown());
    }
    ran.len()
}

#[test]
fn a_call_runs_with_its_own_arguments_or_not_at_all() {
    let answers = std::env::var("PITH_STREAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(ANSWERS);
    let (mut n_calls, mut n_run, mut n_garbled) = (0, 0, 0);
    for seed in 0..answers {
        let mut random = Random(seed);
        let api = Api::ALL[random.below(4)];
        let calls = calls(&mut random);
        let naming = [Naming::Full, Naming::NoNumber, Naming::NoId, Naming::OtherIds, Naming::Nothing][random.below(5)];
        // Where a fragment may say nothing about its call, only what comes one after the other can be told apart.
        let is_nameless = api == Api::Completions && naming == Naming::Nothing;
        let is_mixed = random.one_in(2);
        let mut events = answer(api, &calls, naming, &mut random).events(is_mixed, &mut random);
        if !is_nameless && random.below(4) > 0 {
            garble(&mut events, &mut random);
            n_garbled += 1;
        }
        n_run += check(api, &calls, naming, &events);
        n_calls += calls.len();
    }
    println!(
        "{answers} answers, {n_garbled} of them garbled: {n_run} of {n_calls} calls run, none with foreign arguments"
    );
    assert!(n_run * 4 > n_calls, "almost nothing is run: the test says little");
}

/// What a server may do runs: calls one after the other or mixed, as long as the events say which call they mean.
#[test]
fn calls_that_can_be_told_apart_all_run() {
    for seed in 0..120 {
        let mut random = Random(seed);
        for api in Api::ALL {
            let calls = calls(&mut random);
            for naming in [Naming::Full, Naming::NoId, Naming::OtherIds, Naming::NoNumber] {
                if api == Api::Anthropic && naming == Naming::NoNumber {
                    continue;
                }
                for is_mixed in [false, true] {
                    let events = answer(api, &calls, naming, &mut random).events(is_mixed, &mut random);
                    let n_run = check(api, &calls, naming, &events);
                    assert_eq!(n_run, calls.len(), "{api:?} {naming:?} mixed: {is_mixed}\n{events:#?}");
                }
            }
        }
    }
}
