//! Questions whether tool calls may run: what is seen of them, and that only a key that says so allows one.

use std::path::Path;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use pith_protocol::permissions::{OptionId, PermissionOption};
use serde_json::{Value, json};

use super::tests::{Screen, arguments};
use super::{Action, App};
use crate::modes::chat::approval::Asked;
use crate::modes::chat::frames::Frame;

const RULE: &str = "bash(cargo fmt)";
const SIMILAR: &str = "bash(git status:*)";

fn options(ids: &[(OptionId, Option<&str>)]) -> Vec<PermissionOption> {
    let one = |(id, rule): &(OptionId, Option<&str>)| PermissionOption {
        id: *id,
        kind: id.kind(),
        rule: rule.map(str::to_owned),
    };
    ids.iter().map(one).collect()
}

fn all_options() -> Vec<PermissionOption> {
    options(&[
        (OptionId::Once, None),
        (OptionId::Session, Some(RULE)),
        (OptionId::Project, Some(RULE)),
        (OptionId::Similar, Some(SIMILAR)),
        (OptionId::Deny, None),
        (OptionId::Stop, None),
    ])
}

fn asked(id: &str, tool: &str, with: Value) -> Asked {
    Asked {
        id: id.to_owned(),
        tool_call_id: format!("call-{id}"),
        tool: tool.to_owned(),
        arguments: arguments(with),
        cwd: "/nowhere/project".to_owned(),
        reason: "Mode: ask".to_owned(),
        options: all_options(),
    }
}

fn ask(screen: &mut Screen, asked: Asked) {
    screen.frame(Frame::Asked(Box::new(asked)));
    screen.app.question_seen();
}

fn decisions(app: &mut App) -> Vec<(String, OptionId, Option<String>)> {
    let one = |action| match action {
        Action::Decide { id, option, message } => Some((id, option, message)),
        _ => None,
    };
    app.take_actions().into_iter().filter_map(one).collect()
}

fn after(key: KeyCode, modifiers: KeyModifiers) -> Vec<(String, OptionId, Option<String>)> {
    let mut screen = Screen::sized(100, 40);
    ask(&mut screen, asked("q", "bash", json!({"command": "cargo fmt"})));
    screen.press(key, modifiers);
    decisions(&mut screen.app)
}

#[test]
fn a_key_means_what_it_says() {
    let letter = |letter| after(KeyCode::Char(letter), KeyModifiers::NONE);
    for (key, option) in [
        ('y', OptionId::Once),
        ('s', OptionId::Session),
        ('p', OptionId::Project),
        ('a', OptionId::Similar),
        ('n', OptionId::Deny),
        ('x', OptionId::Stop),
    ] {
        assert_eq!(letter(key), [("q".to_owned(), option, None)], "{key}");
    }
    for key in "bcdefghijklmoqrtuvwzYNSPAX1234567890 ".chars() {
        assert_eq!(letter(key), [], "{key}");
    }
    assert_eq!(after(KeyCode::Esc, KeyModifiers::NONE), [("q".to_owned(), OptionId::Deny, None)]);
    assert_eq!(after(KeyCode::Char('c'), KeyModifiers::CONTROL), [("q".to_owned(), OptionId::Stop, None)]);
    for key in [KeyCode::Enter, KeyCode::Tab, KeyCode::Down, KeyCode::Up, KeyCode::Backspace] {
        assert_eq!(after(key, KeyModifiers::NONE), [], "{key:?}");
    }
    for modifiers in [KeyModifiers::ALT, KeyModifiers::CONTROL, KeyModifiers::SUPER] {
        assert_eq!(after(KeyCode::Char('y'), modifiers), [], "{modifiers:?}");
    }
}

#[test]
fn a_reason_is_told_and_escape_goes_back() {
    let mut screen = Screen::sized(100, 40);
    ask(&mut screen, asked("q", "bash", json!({"command": "cargo fmt"})));
    screen.type_text("e").check(&["no, because", "›\n"]);
    screen.press(KeyCode::Esc, KeyModifiers::NONE).check(&["y once"]);
    screen.type_text("eyes, use yarn\n");
    assert_eq!(decisions(&mut screen.app), [("q".to_owned(), OptionId::Deny, Some("yes, use yarn".to_owned()))]);
    ask(&mut screen, asked("r", "bash", json!({"command": "cargo fmt"})));
    screen.type_text("e\n");
    assert_eq!(decisions(&mut screen.app), [("r".to_owned(), OptionId::Deny, None)]);
}

#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    let mut screen = Screen::sized(100, 40);
    screen.type_text("ver");
    screen.frame(Frame::Asked(Box::new(asked("q", "bash", json!({"command": "cargo fmt"})))));
    // Not drawn yet, then drawn, but in the middle of a word.
    screen.type_text("y");
    screen.app.question_seen();
    screen.type_text(" slowly");
    screen.app.input(Event::Paste("y".to_owned()));
    assert_eq!(decisions(&mut screen.app), []);
    assert_eq!(screen.app.editor.text(), "very slowlyy");
    screen.app.now += Duration::from_secs(1);
    screen.app.input(Event::Paste("y".to_owned()));
    assert_eq!(decisions(&mut screen.app), []);
    screen.type_text("y");
    assert_eq!(decisions(&mut screen.app), [("q".to_owned(), OptionId::Once, None)]);
    screen.check(&["› very slowlyyy"]);
}

#[test]
fn a_list_that_comes_late_does_not_take_the_place_of_a_question() {
    let mut screen = Screen::sized(100, 40);
    screen.type_text("/thinking\n");
    ask(&mut screen, asked("q", "bash", json!({"command": "cargo fmt"})));
    screen.frame(Frame::Answer { id: 2, result: Ok(json!({"levels": ["off", "low"]})) });
    screen.check(&["? bash", "waiting for you"]).type_text("n");
    assert_eq!(decisions(&mut screen.app), [("q".to_owned(), OptionId::Deny, None)]);
}

#[test]
fn a_line_answers_where_there_are_no_keys() {
    let line = |line: &str| {
        let mut screen = Screen::sized(100, 40);
        screen.app.setup.has_keys = false;
        ask(&mut screen, asked("q", "bash", json!({"command": "cargo fmt"})));
        screen.check(&["cargo fmt", RULE, SIMILAR, "x no and stop"]);
        screen.app.line(Some(line.to_owned()));
        decisions(&mut screen.app).pop().map(|(_, option, message)| (option, message))
    };
    assert_eq!(line("y"), Some((OptionId::Once, None)));
    assert_eq!(line(" s "), Some((OptionId::Session, None)));
    assert_eq!(line("e not now"), Some((OptionId::Deny, Some("not now".to_owned()))));
    for other in ["", "yes", "e", "v", "1", "Y"] {
        assert_eq!(line(other), None, "{other:?}");
    }
}

#[test]
fn the_users_time_is_not_that_of_the_call() {
    let mut screen = Screen::sized(100, 40);
    screen.frame(Frame::WorkStarted);
    let command = json!({"command": "cargo fmt"});
    let start = |id: &str| Frame::ToolStarted {
        id: format!("call-{id}"),
        name: "bash".to_owned(),
        arguments: arguments(command.clone()),
    };
    screen.frame(start("q"));
    ask(&mut screen, asked("q", "bash", command.clone()));
    screen.app.now += Duration::from_secs(900);
    let text = screen.check(&["? bash", "waiting for you"]).text();
    assert!(!text.contains("⋯ $ cargo fmt") && !text.contains("working") && !text.contains("15m"), "{text}");
    screen.type_text("y");
    screen.check(&["⋯ $ cargo fmt 0.0s", "working 0.0s"]);
    screen.app.now += Duration::from_secs(2);
    screen.frame(Frame::ToolEnded {
        id: "call-q".to_owned(),
        text: "done".to_owned(),
        difference: None,
        pictures: Vec::new(),
        is_error: false,
    });
    screen.check(&["✓ $ cargo fmt (2s)"]);
}

/// A question in a real directory with a file to change.
fn in_directory(directory: &Path, mut asked: Asked) -> Asked {
    asked.cwd = directory.display().to_string();
    asked
}

fn shown(size: (u16, u16), asked: Asked) -> String {
    let mut screen = Screen::sized(size.0, size.1);
    ask(&mut screen, asked);
    let text = screen.text();
    assert!(text.lines().count() < usize::from(size.1), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= usize::from(size.0), "{line}");
    }
    text
}

#[test]
fn an_edit_shows_its_difference() {
    let directory = tempfile::tempdir().expect("temp dir");
    std::fs::write(directory.path().join("lib.rs"), "pub fn area() {\n    w + h\n}\n").expect("written");
    let edits = json!({"path": "lib.rs", "edits": [{"oldText": "w + h", "newText": "w * h"}]});
    let mut question = in_directory(directory.path(), asked("q", "edit", edits));
    question.options = options(&[
        (OptionId::Once, None),
        (OptionId::Session, Some("edit(src/**)")),
        (OptionId::Project, Some("edit(src/**)")),
        (OptionId::Deny, None),
        (OptionId::Stop, None),
    ]);
    let text = shown((70, 20), question);
    let expected = "\
? edit lib.rs   +1 -1                                  waiting for you
  -2     w + h
  +2     w * h
  Mode: ask
  y once · s edits in src/, this session · p always edit(src/**)
  n no · e no, because … · x no and stop · v everything
";
    assert!(text.contains(expected), "{text}");
    // An edit that will fail shows what the model has written.
    let edits = json!({"path": "lib.rs", "edits": [{"oldText": "missing", "newText": "more"}]});
    let text = shown((60, 20), in_directory(directory.path(), asked("q", "edit", edits)));
    assert!(text.contains("  - missing\n  + more\n"), "{text}");
}

#[test]
fn a_write_shows_the_new_file_or_what_changes() {
    let directory = tempfile::tempdir().expect("temp dir");
    std::fs::write(directory.path().join("old.txt"), "one\ntwo\n").expect("written");
    let write = |path: &str, content: &str| {
        let with = json!({"path": path, "content": content});
        shown((60, 20), in_directory(directory.path(), asked("q", "write", with)))
    };
    let text = write("new.txt", "a\nb\n");
    assert!(text.contains("? write new.txt   new, 2 lines") && text.contains("  +1 a\n  +2 b\n"), "{text}");
    let text = write("old.txt", "one\n2\n");
    assert!(text.contains("? write old.txt   +1 -1") && text.contains("  -2 two\n  +2 2\n"), "{text}");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc", directory.path().join("link")).expect("a link");
        let text = write("link/new", "x");
        assert!(text.contains("leads to /etc/new"), "{text}");
    }
}

#[test]
fn a_command_a_host_and_arguments_are_shown_whole() {
    for size in [(100, 40), (60, 20)] {
        let text = shown(size, asked("q", "bash", json!({"command": "cargo fmt\ncargo test", "timeout": 5})));
        assert!(text.contains("? bash   in ~/project") && text.contains("  cargo fmt\n  cargo test\n"), "{text}");
        assert!(text.contains("timeout: 5") && text.contains(RULE) && text.contains(SIMILAR), "{text}");
        let host = json!({"host": "example.org", "port": 443, "command": "curl example.org"});
        let text = shown(size, asked("q", "network", host));
        assert!(
            text.contains("? connect to example.org:443") && text.contains("wanted by: curl example.org"),
            "{text}"
        );
        let with = json!({"title": "x", "labels": ["a", "b"]});
        let text = shown(size, asked("q", "mcp__tracker__open", with));
        assert!(text.contains("? mcp__tracker__open") && text.contains("title: x") && text.contains("\"b\""), "{text}");
        let text = shown(size, asked("q", "read", json!({"path": "/etc/passwd"})));
        assert!(text.contains("? read /etc/passwd"), "{text}");
    }
}

#[test]
fn what_does_not_fit_shows_its_beginning_and_its_end() {
    let command = (1..=60).map(|n| format!("echo {n}\n")).collect::<String>() + "rm -rf ~/everything";
    let long = || asked("q", "bash", json!({"command": command}));
    for size in [(100, 40), (60, 20), (40, 8)] {
        let text = shown(size, long());
        assert!(text.contains("  echo 1\n") && text.contains("  rm -rf ~/everything\n"), "{text}");
        assert!(text.contains("more lines, v"), "{text}");
        let n_shown = text.lines().filter(|line| line.starts_with("  echo") || line.starts_with("  rm")).count();
        assert!(text.contains(&format!("… {} more lines", 61 - n_shown)), "{text}");
    }
    // Where the rules have no room their keys mean nothing, until all of it has been printed.
    let mut screen = Screen::sized(40, 8);
    ask(&mut screen, long());
    screen.type_text("spa");
    assert_eq!(decisions(&mut screen.app), []);
    screen.type_text("v").check(&["  echo 30\n", RULE, SIMILAR]);
    screen.type_text("s");
    assert_eq!(decisions(&mut screen.app), [("q".to_owned(), OptionId::Session, None)]);
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % n as u64).expect("small")
    }

    fn key(&mut self) -> KeyEvent {
        let letters: Vec<char> = "yyyYsssppaanxevqo1 /".chars().collect();
        let others = [KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::Up, KeyCode::Down, KeyCode::Backspace];
        let code = match self.below(4) {
            0 => others[self.below(others.len())],
            _ => KeyCode::Char(letters[self.below(letters.len())]),
        };
        let modifiers = match self.below(8) {
            0 => KeyModifiers::ALT,
            1 => KeyModifiers::SHIFT,
            _ => KeyModifiers::NONE,
        };
        KeyEvent::new(code, modifiers)
    }

    fn asked(&mut self, id: usize) -> Asked {
        let (tool, with) = match self.below(5) {
            0 => ("write", json!({"path": "a.txt", "content": "x\n".repeat(self.below(80))})),
            1 => ("edit", json!({"path": "a.txt", "edits": [{"oldText": "a", "newText": "b"}]})),
            2 => ("network", json!({"host": "example.org", "port": 443})),
            3 => ("mcp__a__b", json!({"x": [1, 2, 3]})),
            _ => ("bash", json!({"command": "echo x\n".repeat(1 + self.below(80))})),
        };
        let mut asked = asked(&id.to_string(), tool, with);
        asked.options.retain(|option| match option.id {
            OptionId::Session | OptionId::Project | OptionId::Similar => self.below(3) > 0,
            OptionId::Once | OptionId::Deny | OptionId::Stop => true,
        });
        asked
    }
}

/// Keys, pastes, questions and windows in any order. Whatever allows a call is one key, on its own, that the screen has
/// shown with what it allows.
#[test]
fn nothing_runs_that_no_key_has_allowed() {
    const N_SEQUENCES: usize = 10_000;
    let sizes = [(100, 40), (60, 20), (40, 8), (20, 4)];
    let (mut n_allowed, mut n_refused) = (0, 0);
    let mut dice = Dice(0x5eed_1e55);
    for sequence in 0..N_SEQUENCES {
        let size = sizes[dice.below(sizes.len())];
        let mut screen = Screen::sized(size.0, size.1);
        let mut n_asked = 0;
        for _ in 0..16 {
            match dice.below(10) {
                0 | 1 => {
                    n_asked += 1;
                    screen.frame(Frame::Asked(Box::new(dice.asked(n_asked))));
                }
                2 | 3 => screen.app.question_seen(),
                4 => screen.app.now += Duration::from_millis(500),
                5 => screen.app.input(Event::Paste("y\n".to_owned())),
                6 if n_asked > 0 => {
                    let id = (1 + dice.below(n_asked)).to_string();
                    screen.frame(Frame::AskedNoMore(id));
                }
                _ => {
                    let key = dice.key();
                    let open = screen.app.approval().map(|approval| approval.id().to_owned());
                    let was_seen = open.is_some() && !screen.app.has_new_question();
                    let is_apart =
                        screen.app.wrote_at.is_none_or(|at| screen.app.now - at >= Duration::from_millis(400));
                    let before = if was_seen { screen.text() } else { String::new() };
                    screen.app.input(Event::Key(key));
                    for (id, option, _) in decisions(&mut screen.app) {
                        assert_eq!(Some(&id), open.as_ref(), "{sequence}: another question");
                        let said = match option {
                            OptionId::Once => 'y',
                            OptionId::Session => 's',
                            OptionId::Project => 'p',
                            OptionId::Similar => 'a',
                            OptionId::Deny | OptionId::Stop => {
                                n_refused += 1;
                                continue;
                            }
                        };
                        n_allowed += 1;
                        assert_eq!(key, KeyEvent::new(KeyCode::Char(said), KeyModifiers::NONE), "{sequence}");
                        assert!(was_seen && is_apart, "{sequence}: {key:?}");
                        assert!(before.contains(&format!("{said} ")), "{sequence}: {before}");
                        assert!(
                            said == 'y' || before.contains("always ") || before.contains("this session"),
                            "{before}"
                        );
                    }
                    continue;
                }
            }
            assert_eq!(decisions(&mut screen.app), [], "{sequence}: without a key");
        }
    }
    assert!(n_allowed > 500 && n_refused > 500, "{n_allowed} {n_refused}");
}
