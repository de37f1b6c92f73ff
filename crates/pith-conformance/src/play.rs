//! Plays a scenario against a program.

use std::time::Duration;

use serde_json::{Value, json};

use crate::home::TempHome;
use crate::matching::{self, Placeholders};
use crate::peer::Peer;
use crate::rules::{Answers, violation};
use crate::scenario::{Scenario, Step};
use crate::server::{Api, ModelServer, Script};

/// How many characters of a frame an explanation shows.
const SHOWN: usize = 240;

/// A program under test.
pub struct Target {
    command: Vec<String>,
    dialect: String,
    patience: Duration,
    /// What `hello` announced; nothing if the program does not know the command.
    announced: Option<Announced>,
}

/// Capabilities of a greeting.
struct Announced {
    commands: Vec<String>,
    events: Vec<String>,
}

/// How a scenario went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Held,
    Failed(String),
    /// It is not for this dialect, or about an addition this program does not have.
    Skipped(String),
}

impl Target {
    /// Asks a program what it can do. Fails if it cannot be started, or does not answer at all.
    pub fn new(command: Vec<String>, dialect: &str, patience: Duration) -> Result<Target, String> {
        let home = home(&ModelServer::start(Script::new()), &json!({}));
        let mut peer = Peer::start(&command, dialect, &home, patience)?;
        peer.write(b"{\"id\":\"hello\",\"type\":\"hello\"}\n")?;
        let answer = peer.find(0, |frame| frame["type"] == "response");
        let answer = answer.ok_or_else(|| format!("no answer to a first command{}", peer.last_words()))?;
        let greeting = &peer.frames()[answer];
        let names = |list: &str| -> Vec<String> {
            let list = greeting["data"]["capabilities"][list].as_array().into_iter().flatten();
            list.filter_map(|name| name.as_str().map(str::to_owned)).collect()
        };
        let announced = Announced { commands: names("commands"), events: names("events") };
        let announced = (greeting["success"] == true).then_some(announced);
        Ok(Target { command, dialect: dialect.to_owned(), patience, announced })
    }

    /// Plays a scenario from the start to the end of the program.
    pub fn play(&self, scenario: &Scenario) -> Outcome {
        if !scenario.dialects.contains(&self.dialect) {
            return Outcome::Skipped(format!("not in dialect {}", self.dialect));
        }
        let missing = scenario.needs.iter().find(|name| !self.announces(name));
        if let Some(missing) = missing {
            return Outcome::Skipped(format!("an addition of pith, and {missing} is not announced here"));
        }
        match self.attempt(scenario) {
            Ok(()) => Outcome::Held,
            Err(why) => Outcome::Failed(why),
        }
    }

    fn announces(&self, command: &str) -> bool {
        self.announced.as_ref().is_some_and(|announced| announced.commands.iter().any(|name| name == command))
    }

    fn attempt(&self, scenario: &Scenario) -> Result<(), String> {
        let script = Script::of(scenario.model.iter().cloned());
        let script =
            scenario.routes.iter().fold(script, |script, (pattern, turn)| script.route(pattern, [turn.clone()]));
        let server = ModelServer::start(script);
        let home = home(&server, &Value::Object(scenario.settings.clone()));
        for (path, text) in &scenario.files {
            match path.strip_prefix("agent/") {
                Some(path) => home.write_agent_file(path, text),
                None => home.write_file(path, text),
            }
        }
        let peer = Peer::start(&self.command, &self.dialect, &home, self.patience)?;
        let placeholders = Placeholders::new(&home);
        let mut exchange = Exchange { target: self, peer, server, placeholders, next: 0, sent: Vec::new() };
        for (index, step) in scenario.steps.iter().enumerate() {
            exchange.step(step).map_err(|why| format!("step {}: {why}", index + 1))?;
        }
        exchange.end(scenario.is_cut)
    }
}

/// Returns a home whose only model is the scripted one.
fn home(server: &ModelServer, settings: &Value) -> TempHome {
    let home = TempHome::for_server(server);
    let mut all = json!({"defaultProvider": Api::Anthropic.provider(), "defaultModel": Api::Anthropic.model()});
    for (name, value) in settings.as_object().into_iter().flatten() {
        all[name] = value.clone();
    }
    home.write_settings(&all);
    home
}

/// One play.
struct Exchange<'a> {
    target: &'a Target,
    peer: Peer,
    server: ModelServer,
    placeholders: Placeholders,
    /// The first frame behind the one that was expected last.
    next: usize,
    sent: Vec<Value>,
}

impl Exchange<'_> {
    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Send(frame) => self.send(std::slice::from_ref(frame)),
            Step::SendTogether(frames) => self.send(frames),
            Step::Write(text) => self.peer.write(self.placeholders.fill(text).as_bytes()),
            Step::Expect(pattern) => self.expect(self.next, pattern).map(|found| self.next = found + 1),
            Step::Somewhere(pattern) => self.expect(0, pattern).map(|_| ()),
            Step::Settled => self.settled(),
            Step::Order(patterns) => self.order(patterns),
            Step::Absent(pattern) => self.count(pattern, 0),
            Step::Count { frame, is } => self.count(frame, *is),
            Step::Deltas(text) => self.deltas(text),
            Step::Held(index) => self.server.try_wait_held(*index, self.target.patience),
            Step::Release(index) => {
                self.server.release(*index);
                Ok(())
            }
            Step::Request { index, contains, lacks } => self.request(*index, contains, lacks),
            Step::SessionFile { path, has } => self.session_file(path, has),
            Step::Close => {
                self.peer.close();
                Ok(())
            }
        }
    }

    fn send(&mut self, frames: &[Value]) -> Result<(), String> {
        let mut lines = String::new();
        for frame in frames {
            let line = self.placeholders.fill(&frame.to_string());
            self.sent.push(serde_json::from_str(&line).map_err(|error| error.to_string())?);
            lines.push_str(&line);
            lines.push('\n');
        }
        self.peer.write(lines.as_bytes())
    }

    fn expect(&mut self, start: usize, pattern: &Value) -> Result<usize, String> {
        let placeholders = self.placeholders.clone();
        let fits = |frame: &Value| matching::matches(pattern, frame, &placeholders).is_ok();
        let Some(found) = self.peer.find(start, fits) else { return Err(self.explain(start, pattern)) };
        let frame = &self.peer.frames()[found];
        self.placeholders.remember(pattern, frame);
        Ok(found)
    }

    /// Says what came instead: the last frame of the kind that was wanted, or the last one at all.
    fn explain(&self, start: usize, pattern: &Value) -> String {
        let frames = self.peer.frames();
        let is_alike = |frame: &&Value| {
            ["type", "command", "id"].iter().all(|name| pattern.get(name).is_none_or(|wanted| frame[name] == *wanted))
        };
        let words = self.peer.last_words();
        let behind = frames.get(start..).unwrap_or_default();
        if let Some(frame) = behind.iter().rfind(is_alike)
            && let Err(difference) = matching::matches(pattern, frame, &self.placeholders)
        {
            return format!("{}: {difference}{words}", frame["type"].as_str().unwrap_or_default());
        }
        let last =
            frames.last().map_or_else(|| "nothing came".to_owned(), |frame| format!("last came {}", short(frame)));
        format!("no {}; {last}{words}", short(pattern))
    }

    /// The event that ends work: programs that do not announce it in dialect xcsh end with the last pass.
    fn settled(&mut self) -> Result<(), String> {
        let announced = self.target.announced.as_ref();
        let has_event = announced.is_some_and(|announced| announced.events.iter().any(|name| name == "agent_settled"));
        let is_last = |frame: &Value| {
            if self.target.dialect == "pi" || has_event {
                frame["type"] == "agent_settled"
            } else {
                frame["type"] == "agent_end" && frame["willRetry"] != true
            }
        };
        let found = self.peer.find(self.next, is_last);
        let found = found.ok_or_else(|| self.explain(self.next, &json!({"type": "agent_settled"})))?;
        self.next = found + 1;
        Ok(())
    }

    fn order(&mut self, patterns: &[Value]) -> Result<(), String> {
        let (frames, mut from) = (self.peer.frames(), 0);
        for pattern in patterns {
            let fits = |frame: &Value| matching::matches(pattern, frame, &self.placeholders).is_ok();
            let found = frames.iter().skip(from).position(fits);
            let found = found.ok_or_else(|| format!("not in this order: {}", self.explain(from, pattern)))?;
            self.placeholders.remember(pattern, &frames[from + found]);
            from += found + 1;
        }
        Ok(())
    }

    fn count(&self, pattern: &Value, wanted: usize) -> Result<(), String> {
        let frames = self.peer.frames();
        let found = frames.iter().filter(|frame| matching::matches(pattern, frame, &self.placeholders).is_ok()).count();
        if found == wanted { Ok(()) } else { Err(format!("{found} frames like {}, not {wanted}", short(pattern))) }
    }

    fn deltas(&self, wanted: &str) -> Result<(), String> {
        let frames = self.peer.frames();
        let steps = frames.iter().filter(|frame| frame["type"] == "message_update");
        let steps = steps.map(|frame| &frame["assistantMessageEvent"]).filter(|step| step["type"] == "text_delta");
        let text: String = steps.filter_map(|step| step["delta"].as_str()).collect();
        if text == wanted { Ok(()) } else { Err(format!("the deltas are {text:?}, not {wanted:?}")) }
    }

    fn request(&self, index: usize, contains: &[String], lacks: &[String]) -> Result<(), String> {
        let body = self.server.try_wait_request(index, self.target.patience)?.body.to_string();
        // Texts stand in the body as JSON writes them.
        let has = |text: &String| body.contains(Value::from(text.as_str()).to_string().trim_matches('"'));
        if let Some(missing) = contains.iter().find(|text| !has(text)) {
            return Err(format!("request {index} does not contain {missing:?}"));
        }
        match lacks.iter().find(|text| has(text)) {
            Some(present) => Err(format!("request {index} contains {present:?}")),
            None => Ok(()),
        }
    }

    fn session_file(&self, path: &str, has: &[Value]) -> Result<(), String> {
        let path = self.placeholders.fill(path);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let entries: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
        let mut rest = entries.iter();
        for pattern in has {
            rest.find(|entry| matching::matches(pattern, entry, &self.placeholders).is_ok())
                .ok_or_else(|| format!("the session file has no {} here", short(pattern)))?;
        }
        Ok(())
    }

    /// Closes stdin, waits for the end, and holds the whole exchange against the rules.
    fn end(mut self, is_cut: bool) -> Result<(), String> {
        self.peer.close();
        let status = self.peer.wait()?;
        if status.code() != Some(0) {
            return Err(format!("after stdin was closed: {status}, not exit status 0{}", self.peer.last_words()));
        }
        let answers = if self.target.dialect == "pi" { Answers::One } else { Answers::OneOrMore };
        violation(&self.sent, &self.peer.frames(), answers, is_cut).map_or(Ok(()), Err)
    }
}

/// A frame as far as a line of a table can show it.
fn short(frame: &Value) -> String {
    let text = frame.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
