//! The screen thread: the only code that writes to the terminal while a session runs. Answers go to one stream,
//! activity to the other.
//!
//! While nothing arrives it draws a spinner, so that the user sees that pith is working.

use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pith_protocol::Usage;
use pith_visible::visible;

use super::markdown::Markdown;
use super::styled::Styled;
use super::terminal::{self, Abilities};

const TICK: Duration = Duration::from_millis(100);
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const DIM: &str = "\x1b[2m";
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const OFF: &str = "\x1b[0m";

/// Something to show.
pub enum Show {
    /// The request was sent; nothing has come yet.
    Asking,
    Thinking,
    /// A piece of the answer.
    Text(String),
    /// The model is writing a call of this tool.
    Calling(String),
    ToolStart {
        id: String,
        line: String,
    },
    ToolEnd {
        id: String,
        problem: Option<String>,
    },
    /// An answer is complete; its usage is added to the totals.
    Answered(Box<Usage>),
    /// A note about the activity.
    Note(String),
    /// A text of the client, shown on any stream.
    Say(String),
    /// Time, tokens and cost since the last totals.
    Totals,
    /// Nothing happens any more; no spinner.
    Idle,
}

/// The output streams.
pub struct Streams {
    pub answers: Box<dyn Write + Send>,
    pub answers_on: Abilities,
    /// Used only if it is a terminal.
    pub activity_on: Abilities,
    /// Called once if answers cannot be written any more.
    pub on_broken: Box<dyn Fn(&io::Error) + Send>,
}

/// Sends things to the thread, which ends when the last handle is dropped.
#[derive(Clone)]
pub struct Screen(Sender<Show>);

impl Screen {
    /// Starts the thread.
    pub fn start(streams: Streams) -> io::Result<(Screen, JoinHandle<()>)> {
        let (sender, shows) = mpsc::channel();
        let painter = Painter::new(streams);
        let thread = std::thread::Builder::new().name("screen".to_owned()).spawn(move || painter.run(&shows))?;
        Ok((Screen(sender), thread))
    }

    /// Shows something, asynchronously. Does nothing if the thread has died.
    pub fn show(&self, show: Show) {
        let _ = self.0.send(show);
    }
}

struct Painter {
    streams: Streams,
    is_broken: bool,
    markdown: Markdown,
    /// Whether the answer's last line is incomplete.
    is_mid_line: bool,
    /// The spinner's text; `None` draws no spinner.
    doing: Option<String>,
    since: Instant,
    /// The running calls: id, line, start.
    tools: Vec<(String, String, Instant)>,
    has_spinner: bool,
    frame: usize,
    totals: Totals,
}

#[derive(Default)]
struct Totals {
    began: Option<Instant>,
    n_answers: u64,
    input: u64,
    output: u64,
    cost: f64,
}

impl Painter {
    fn new(streams: Streams) -> Self {
        Painter {
            streams,
            is_broken: false,
            markdown: Markdown::default(),
            is_mid_line: false,
            doing: None,
            since: Instant::now(),
            tools: Vec::new(),
            has_spinner: false,
            frame: 0,
            totals: Totals::default(),
        }
    }

    fn run(mut self, shows: &Receiver<Show>) {
        loop {
            match shows.recv_timeout(TICK) {
                Ok(show) => self.take(show),
                Err(RecvTimeoutError::Timeout) => self.spin(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.end_answer();
        self.wipe();
    }

    fn take(&mut self, show: Show) {
        match show {
            Show::Asking => {
                self.totals.began.get_or_insert_with(Instant::now);
                self.set_doing("waiting for the model");
            }
            Show::Thinking => self.set_doing("thinking"),
            Show::Calling(tool) => {
                self.end_answer();
                self.set_doing(&format!("writing a call of {tool}"));
            }
            Show::Text(text) => self.text(&text),
            Show::ToolStart { id, line } => {
                self.end_answer();
                self.tools.push((id, line, Instant::now()));
            }
            Show::ToolEnd { id, problem } => self.tool_end(&id, problem.as_deref()),
            Show::Answered(usage) => {
                self.end_answer();
                self.totals.add(&usage);
            }
            Show::Note(text) => self.note(text.lines().next().unwrap_or_default()),
            Show::Say(text) => self.say(&text),
            Show::Totals => self.show_totals(),
            Show::Idle => {
                self.end_answer();
                self.doing = None;
                self.tools.clear();
                self.wipe();
            }
        }
    }

    fn set_doing(&mut self, doing: &str) {
        if self.doing.as_deref() != Some(doing) {
            self.doing = Some(doing.to_owned());
            self.since = Instant::now();
        }
    }

    fn text(&mut self, text: &str) {
        self.set_doing("answering");
        if !self.streams.answers_on.is_terminal {
            return;
        }
        self.wipe();
        let mut styled = self.for_answers();
        if self.streams.answers_on.has_colour {
            self.markdown.push(text, &mut styled);
        } else {
            styled.push(text);
        }
        if let Some(last) = text.chars().last() {
            self.is_mid_line = last != '\n';
        }
        self.write(&styled);
    }

    /// Completes the answer's last line before anything else is shown.
    fn end_answer(&mut self) {
        let mut styled = self.for_answers();
        self.markdown.finish(&mut styled);
        if std::mem::take(&mut self.is_mid_line) {
            styled.push_own("\n");
        }
        if !styled.as_str().is_empty() {
            self.write(&styled);
        }
    }

    fn tool_end(&mut self, id: &str, problem: Option<&str>) {
        let Some(at) = self.tools.iter().position(|(open, ..)| open == id) else { return };
        let (_, line, began) = self.tools.remove(at);
        let took = match began.elapsed() {
            elapsed if elapsed >= Duration::from_secs(1) => format!(" ({})", duration(elapsed)),
            _ => String::new(),
        };
        let problem = problem.map_or_else(String::new, |problem| format!(": {problem}"));
        let (mark, colour) = if problem.is_empty() { ("✓", GREEN) } else { ("✗", RED) };
        let text = format!("{line}{took}{problem}");
        let shown = Styled::new(true);
        self.activity(if self.streams.activity_on.has_colour {
            shown.own(colour).own(mark).own(OFF).own(" ").own(DIM).text(&text).own(OFF)
        } else {
            shown.own(mark).own(" ").text(&text)
        });
    }

    fn note(&mut self, text: &str) {
        let (dim, off) = if self.streams.activity_on.has_colour { (DIM, OFF) } else { ("", "") };
        self.activity(Styled::new(true).own(dim).own("· ").text(text).own(off));
    }

    fn show_totals(&mut self) {
        let totals = std::mem::take(&mut self.totals);
        if let Some(began) = totals.began {
            self.note(&totals.line(began.elapsed()));
        }
    }

    /// Shows a line about the activity, if there is a terminal.
    fn activity(&mut self, line: Styled) {
        if !self.streams.activity_on.is_terminal {
            return;
        }
        self.end_answer();
        self.wipe();
        self.draw(&line.own("\n"));
    }

    fn say(&mut self, text: &str) {
        self.end_answer();
        self.wipe();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let styled = self.for_answers().text(text).own(end);
        self.write(&styled);
    }

    fn spin(&mut self) {
        if !self.streams.activity_on.can_redraw || self.is_mid_line {
            return;
        }
        let (what, since) = match (self.tools.as_slice(), &self.doing) {
            ([], None) => return,
            ([], Some(doing)) => (doing.clone(), self.since),
            ([(_, line, began)], _) => (line.clone(), *began),
            ([.., (_, line, _)], _) => (format!("{line} and {} more", self.tools.len() - 1), self.tools[0].2),
        };
        self.frame = (self.frame + 1) % FRAMES.len();
        let room = terminal::width(io::stderr()).saturating_sub(12);
        // The visible form may be longer, and a line that wraps cannot be erased.
        let what: String = visible(&what).chars().take(room).collect();
        let took = duration(since.elapsed());
        self.has_spinner = true;
        let (dim, off) = if self.streams.activity_on.has_colour { (DIM, OFF) } else { ("", "") };
        let line = Styled::new(true).own("\r\x1b[K").own(FRAMES[self.frame]).own(" ").own(dim);
        self.draw(&line.text(&what).own(" ").text(&took).own(off));
    }

    fn wipe(&mut self) {
        if std::mem::take(&mut self.has_spinner) {
            self.draw(&Styled::new(true).own("\r\x1b[K"));
        }
    }

    /// Draws on stderr. A terminal that is gone is noticed elsewhere: by a signal, or when answers cannot be written.
    fn draw(&mut self, text: &Styled) {
        let text = pith_visible::for_stderr(text.as_str());
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }

    /// Starts a text for the stream of answers.
    fn for_answers(&self) -> Styled {
        Styled::new(self.streams.answers_on.is_terminal)
    }

    fn write(&mut self, text: &Styled) {
        let answers = &mut self.streams.answers;
        let written = answers.write_all(text.as_str().as_bytes()).and_then(|()| answers.flush());
        if let Err(error) = written
            && !std::mem::replace(&mut self.is_broken, true)
        {
            (self.streams.on_broken)(&error);
        }
    }
}

impl Totals {
    fn add(&mut self, usage: &Usage) {
        self.n_answers += 1;
        self.input += usage.input + usage.cache_read + usage.cache_write;
        self.output += usage.output;
        self.cost += usage.cost.total;
    }

    fn line(&self, elapsed: Duration) -> String {
        let requests =
            if self.n_answers == 1 { "1 request".to_owned() } else { format!("{} requests", self.n_answers) };
        let cost = if self.cost > 0.0 { format!(" · ${:.4}", self.cost) } else { String::new() };
        let tokens = format!("{} in, {} out", count(self.input), count(self.output));
        format!("{} · {requests} · {tokens}{cost}", duration(elapsed))
    }
}

/// `12s`, `3m 04s`, `0.4s`.
pub fn duration(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match seconds {
        0 => format!("{:.1}s", elapsed.as_secs_f64()),
        1..60 => format!("{seconds}s"),
        _ => format!("{}m {:02}s", seconds / 60, seconds % 60),
    }
}

/// `950`, `12.3k`, `1.2M`.
pub fn count(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{:.1}k", tokens as f64 / 1e3),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counts_are_formatted() {
        assert_eq!(duration(Duration::from_millis(420)), "0.4s");
        assert_eq!(duration(Duration::from_secs(12)), "12s");
        assert_eq!(duration(Duration::from_secs(184)), "3m 04s");
        assert_eq!([count(950), count(12_340), count(1_200_000)], ["950", "12.3k", "1.2M"]);
    }

    #[test]
    fn totals_leave_out_what_costs_nothing() {
        let mut totals = Totals::default();
        totals.add(&Usage { input: 1000, cache_read: 500, output: 20, ..Usage::default() });
        assert_eq!(totals.line(Duration::from_secs(3)), "3s · 1 request · 1.5k in, 20 out");
    }
}
