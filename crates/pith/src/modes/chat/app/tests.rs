//! The state, driven with frames and keys; what the user sees is the scrollback and the rows drawn below it.

use std::path::Path;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use pith_protocol::ImageBlock;
use pith_protocol::host::{UiAnswer, UiMethod, UiRequest};
use pith_tools::image::{Limits, Rules};
use serde_json::{Map, Value, json};

use super::{Action, App, Opening, Setup};
use crate::modes::chat::editor::Editor;
use crate::modes::chat::frames::Frame;
use crate::modes::chat::history::History;
use crate::modes::chat::text::Row;
use crate::modes::chat::view;
use crate::modes::client::Failure;

pub(super) struct Screen {
    pub app: App,
    scrollback: Vec<String>,
}

impl Screen {
    pub fn new() -> Self {
        Screen::sized(60, 24)
    }

    pub fn sized(columns: u16, rows: u16) -> Self {
        let limits = Limits { width: 2000, height: 2000, base64_bytes: 1 << 20 };
        let app = App::new(Setup {
            cwd: Path::new("/nowhere/project").to_owned(),
            home: Path::new("/nowhere").to_owned(),
            rules: Rules { auto_resize: true, limits },
            editor: Editor::new(History::default()),
            size: (columns, rows),
            has_keys: true,
            has_editor: false,
            pictures: None,
            opening: Opening::default(),
        });
        let mut screen = Screen { app, scrollback: Vec::new() };
        let sent = screen.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        screen
    }

    pub fn frame(&mut self, frame: Frame) -> &mut Self {
        self.app.frame(frame);
        self
    }

    pub fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) -> &mut Self {
        self.app.input(Event::Key(KeyEvent::new(code, modifiers)));
        self
    }

    pub fn type_text(&mut self, text: &str) -> &mut Self {
        for char in text.chars() {
            let code = if char == '\n' { KeyCode::Enter } else { KeyCode::Char(char) };
            self.press(code, KeyModifiers::NONE);
        }
        self
    }

    /// The commands since the last call, without their ids.
    fn sent(&mut self) -> Vec<Value> {
        let command = |action| match action {
            Action::Send(mut command) => {
                command.as_object_mut().expect("an object").remove("id");
                Some(command)
            }
            _ => None,
        };
        self.app.take_actions().into_iter().filter_map(command).collect()
    }

    fn answer(&mut self, id: u64, data: Value) -> &mut Self {
        self.frame(Frame::Answer { id, result: Ok(data) })
    }

    /// Scrollback and live rows, without blanks at the ends of lines.
    pub fn text(&mut self) -> String {
        let rows = self.app.take_rows();
        self.scrollback.extend(rows.iter().map(Row::text));
        let buffer = view::draw(&self.app).buffer;
        let cell = |column, row| buffer.cell((column, row)).map_or(" ", |cell| cell.symbol());
        let line = |row| (0..buffer.area.width).map(|column| cell(column, row)).collect::<String>();
        let lines = self.scrollback.iter().cloned().chain((0..buffer.area.height).map(line));
        lines.map(|line| line.trim_end().to_owned() + "\n").collect()
    }

    #[track_caller]
    pub fn check(&mut self, parts: &[&str]) -> &mut Self {
        let text = self.text();
        for part in parts {
            assert!(text.contains(part), "{part:?} is missing in:\n{text}");
        }
        self
    }
}

pub(super) fn arguments(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn question(method: UiMethod) -> Frame {
    Frame::Ui(UiRequest::new("u1", method))
}

#[test]
fn a_message_joins_the_run_and_what_is_queued_comes_back() {
    let mut screen = Screen::new();
    screen.type_text("first\n");
    assert_eq!(
        screen.sent(),
        [json!({"type": "prompt", "message": "first", "images": [], "streamingBehavior": "steer"})]
    );
    screen.frame(Frame::WorkStarted).check(&["waiting for the model"]);
    screen.type_text("second\n").type_text("third").press(KeyCode::Enter, KeyModifiers::ALT);
    let sent = screen.sent();
    assert_eq!([&sent[0]["streamingBehavior"], &sent[1]["streamingBehavior"]], ["steer", "followUp"]);
    screen.frame(Frame::Queue { steering: vec!["second".to_owned()], follow_up: vec!["third".to_owned()] });
    screen.check(&["↳ joins next: second", "↳ follows: third", "2 queued"]);
    screen.type_text("draft").press(KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(screen.sent(), [json!({"type": "clear_queue"}), json!({"type": "abort"})]);
    screen.answer(5, json!({"steering": ["second"], "followUp": ["third"]}));
    assert_eq!(screen.app.editor.text(), "second\nthird\ndraft");
    screen.frame(Frame::Queue { steering: vec![], follow_up: vec![] }).frame(Frame::Settled { aborted: true });
    screen.check(&["✗ stopped"]);
}

#[test]
fn an_answer_is_shown_while_it_is_written_and_stays_as_it_was() {
    let mut screen = Screen::new();
    screen.frame(Frame::WorkStarted).frame(Frame::Thinking("Let me see.\n\x1b[2J".to_owned()));
    screen.check(&["  Let me see.", "  ␛[2J", "thinking"]);
    screen.frame(Frame::Text("Some **bold".to_owned())).check(&["Some **bold", "answering"]);
    screen.frame(Frame::Text("** words.\n\n- one\n".to_owned())).check(&["Some bold words.\n\n• one\n"]);
    screen.frame(Frame::Answered(None)).frame(Frame::Settled { aborted: false });
    assert_eq!(screen.app.stream.live(60), []);
    screen.check(&["Some bold words.\n\n• one\n"]);
}

#[test]
fn tool_calls_show_their_last_lines_and_can_be_shown_in_full() {
    let mut screen = Screen::new();
    let output: String = (1..=30).map(|number| format!("line {number}\n")).collect();
    screen.frame(Frame::WorkStarted);
    screen.frame(Frame::ToolStarted {
        id: "a".to_owned(),
        name: "bash".to_owned(),
        arguments: arguments(json!({"command": "make"})),
    });
    screen.frame(Frame::ToolProgress { id: "a".to_owned(), tail: output.clone() });
    screen.check(&["⋯ $ make", "  line 26\n  line 27", "line 30"]);
    let text = format!("{output}\nCommand exited with code 2");
    screen.frame(Frame::ToolEnded { id: "a".to_owned(), text, difference: None, pictures: Vec::new(), is_error: true });
    screen.check(&["✗ $ make", "+22 lines, /show 1", "Command exited with code 2"]);
    assert!(!screen.text().contains("  line 3\n"));
    screen.press(KeyCode::Char('o'), KeyModifiers::CONTROL).check(&["command: make\nline 1\nline 2\nline 3\n"]);
    screen.frame(Frame::ToolStarted {
        id: "b".to_owned(),
        name: "edit".to_owned(),
        arguments: arguments(json!({"path": "a.rs"})),
    });
    let difference = Some("-3 old\n+3 new".to_owned());
    screen.frame(Frame::ToolEnded {
        id: "b".to_owned(),
        text: "done".to_owned(),
        difference,
        pictures: Vec::new(),
        is_error: false,
    });
    screen.check(&["✓ edit a.rs\n  -3 old\n  +3 new\n"]);
}

#[test]
fn many_calls_and_long_lines_leave_room() {
    let mut screen = Screen::sized(40, 20);
    screen.frame(Frame::WorkStarted);
    for number in 0..200 {
        let (id, name) = (number.to_string(), "bash".to_owned());
        screen.frame(Frame::ToolStarted {
            id: id.clone(),
            name,
            arguments: arguments(json!({"command": "x".repeat(500)})),
        });
        screen.frame(Frame::ToolProgress { id, tail: "日本\u{301}".repeat(1000) });
    }
    let height = view::draw(&screen.app).buffer.area.height;
    assert!(height < 20, "{height}");
    screen.check(&["and 196 more calls", "\n›\n"]);
    for number in 0..200 {
        screen.frame(Frame::ToolEnded {
            id: number.to_string(),
            text: "y".repeat(1 << 20),
            difference: None,
            pictures: Vec::new(),
            is_error: false,
        });
    }
    let rows = screen.app.take_rows();
    assert!(rows.len() < 200 * 16 && rows.iter().all(|row| row.width() <= 40), "{}", rows.len());
}

#[test]
fn a_failure_is_told_once_the_work_is_over() {
    let mut screen = Screen::new();
    screen.frame(Frame::WorkStarted);
    screen.frame(Frame::Answered(Some(Failure::failed("overloaded"))));
    let delay = Duration::from_secs(4);
    screen.frame(Frame::Retrying { attempt: 1, max_attempts: 3, delay, error: "overloaded".to_owned() });
    screen.check(&["overloaded, trying again in 4 s (1/3)"]);
    assert!(!screen.text().contains("✗"));
    screen.frame(Frame::Retrying { attempt: 2, max_attempts: 3, delay, error: "overloaded".to_owned() });
    screen.check(&["overloaded, trying again in 4 s (2/3)"]);
    screen.frame(Frame::RetryOver);
    assert_eq!(screen.check(&["· overloaded, tried again 2 times"]).text().matches("overloaded").count(), 1);
    screen.frame(Frame::Answered(Some(Failure::failed("no"))));
    screen.frame(Frame::Settled { aborted: false }).check(&["✗ no"]);
}

#[test]
fn a_question_takes_the_place_of_the_editor() {
    let mut screen = Screen::new();
    screen.type_text("a dra");
    let options = vec!["Allow".to_owned(), "Block \x1b]0;x\x07".to_owned()];
    screen.frame(question(UiMethod::Select { title: "Run it?".to_owned(), options, timeout: None }));
    screen.check(&["Run it?", "2  Block ␛]0;x␇"]);
    // The Enter of the draft chooses nothing.
    screen.type_text("\n");
    assert_eq!(screen.app.take_actions(), []);
    screen.press(KeyCode::Down, KeyModifiers::NONE).type_text("\n");
    let answer = UiAnswer::Value("Allow".to_owned());
    assert_eq!(screen.app.take_actions(), [Action::Answer { id: "u1".to_owned(), answer }]);
    screen.check(&["› a dra"]);
    screen.frame(question(UiMethod::Confirm {
        title: "Sure?".to_owned(),
        message: "Really.".to_owned(),
        timeout: None,
        page: None,
    }));
    screen.check(&["? Sure?\nReally.\n[y/n]"]);
    screen.frame(question(UiMethod::Cancel { target_id: "u1".to_owned() })).check(&["withdrawn", "› a dra"]);
}

#[test]
fn extensions_have_a_place_for_status_widgets_and_texts() {
    let mut screen = Screen::new();
    let status =
        |text: Option<&str>| UiMethod::SetStatus { status_key: "k".to_owned(), status_text: text.map(str::to_owned) };
    screen.frame(question(status(Some("3 todos\u{9b}2J"))));
    let widget_lines = Some(vec!["one".to_owned(), "two".to_owned()]);
    screen.frame(question(UiMethod::SetWidget { widget_key: "w".to_owned(), widget_lines, widget_placement: None }));
    screen.frame(question(UiMethod::SetWidget {
        widget_key: "b".to_owned(),
        widget_lines: Some(vec!["three".to_owned()]),
        widget_placement: Some("belowEditor".to_owned()),
    }));
    screen.frame(question(UiMethod::SetEditorText { text: "draft\x1b".to_owned() }));
    screen.frame(question(UiMethod::Notify { message: "told".to_owned(), notify_type: Some("error".to_owned()) }));
    screen.check(&["one\ntwo\n", "› draft␛\nthree\n", "3 todos\\u{9b}2J", "✗ told"]);
    screen.frame(question(status(None)));
    assert!(!screen.text().contains("todos"));
}

#[test]
fn a_model_is_searched_for_and_chosen() {
    let mut screen = Screen::new();
    screen.type_text("/model\n");
    assert_eq!(screen.sent(), [json!({"type": "get_available_models"})]);
    let model = |id: &str| json!({"provider": "p", "id": id, "name": id});
    screen.answer(2, json!({"models": [model("small"), model("large"), model("larger")]}));
    screen.check(&["Model", "❯ 1  p/small", "3 of 3"]);
    screen.type_text("large").check(&["search: large", "2 of 3"]).type_text("\n");
    assert_eq!(screen.sent(), [json!({"type": "set_model", "provider": "p", "modelId": "large"})]);
    // A search that fits one model needs no list.
    screen.type_text("/model small\n");
    screen.sent();
    screen.answer(4, json!({"models": [model("small"), model("large")]}));
    assert_eq!(screen.sent(), [json!({"type": "set_model", "provider": "p", "modelId": "small"})]);
}

#[test]
fn lists_begin_where_the_session_is() {
    let mut screen = Screen::new();
    screen.answer(1, json!({"model": {"provider": "p", "id": "b"}, "thinkingLevel": "medium", "sessionId": "s"}));
    screen.sent();
    screen.type_text("/thinking\n");
    let id = screen.app.n_sent;
    screen.answer(id, json!({"levels": ["off", "low", "medium", "high"]})).check(&["❯ 3  medium"]);
    screen.sent();
    screen.type_text("\n");
    assert_eq!(screen.sent(), [json!({"type": "set_thinking_level", "level": "medium"})]);
    screen.type_text("/model\n");
    let id = screen.app.n_sent;
    let model = |id: &str| json!({"provider": "p", "id": id, "name": id});
    screen.answer(id, json!({"models": [model("a"), model("b")]})).check(&["❯ 2  p/b"]);
}

#[test]
fn a_message_shows_the_words_and_names_its_files() {
    let mut screen = Screen::new();
    let file = format!("<file name=\"/nowhere/project/notes.txt\">\n{}</file>\n", "a line\n".repeat(60));
    let text = format!("{file}explain @notes.txt briefly");
    screen.frame(Frame::Queue { steering: vec![text.clone()], follow_up: vec![] });
    screen.check(&["↳ joins next: explain @notes.txt briefly"]);
    screen.frame(Frame::Said { text, pictures: Vec::new(), is_user: true });
    screen.check(&["› explain @notes.txt briefly\n  + notes.txt, 60 lines, /show 1\n"]);
    assert!(!screen.text().contains("a line"));
}

#[test]
fn files_are_put_back() {
    let mut screen = Screen::new();
    screen.type_text("/undo src\n");
    let call = |id: &str, path: &str| json!({"id": id, "tool": "edit", "timestamp": "t", "files": [{"path": path}]});
    screen.answer(2, json!({"checkpoints": [call("c2", "a"), call("c1", "src/b")]}));
    assert_eq!(screen.sent().last(), Some(&json!({"type": "restore_checkpoint", "checkpointId": "c1"})));
    screen.answer(3, json!({"restored": ["src/b"], "skipped": [{"path": "a\x1b", "reason": "changed"}]}));
    screen.check(&["Put back: src/b. /undo 1", "a␛ stays as it is: changed"]);
}

#[test]
fn the_end_of_an_earlier_session_is_shown() {
    let mut screen = Screen::new();
    screen.answer(1, json!({"messageCount": 6, "model": null}));
    let user = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}]});
    let answer = |text: &str| {
        json!({"role": "assistant", "content": [{"type": "text", "text": text},
        {"type": "toolCall", "name": "read", "arguments": {"path": "x"}}]})
    };
    let messages = json!([user("one"), answer("1"), user("two"), answer("2"), user("three"), answer("**3**")]);
    screen.answer(3, json!({"messages": messages}));
    screen.check(&["2 earlier messages", "› two", "2\n", "› three", "3\n", "· read x"]);
    assert!(!screen.text().contains("› one"));
}

#[test]
fn a_long_message_is_shown_in_part_and_a_picture_is_named() {
    let mut screen = Screen::new();
    let picture = ImageBlock { data: "AAAA".repeat(1000), mime_type: "image/png\x1b".to_owned() };
    screen.frame(Frame::Said { text: "a line\n".repeat(5000), pictures: vec![picture], is_user: true });
    screen.check(&["› a line", "5000 lines in all, /show 1", "[picture image/png␛, 3 kB]"]);
    assert_eq!(screen.text().matches("a line").count(), 20);
    screen.type_text("/show 1\n");
    assert_eq!(screen.text().matches("a line").count(), 5020);
}

#[test]
fn finished_rows_are_taken_in_their_order() {
    let mut screen = Screen::new();
    screen.app.take_rows();
    screen.frame(Frame::Note("one".to_owned())).frame(Frame::Note("two".to_owned()));
    let texts = |rows: Vec<Row>| rows.iter().map(Row::text).collect::<Vec<_>>();
    assert_eq!((texts(screen.app.take_first_rows(1)), screen.app.n_rows()), (vec!["· one".to_owned()], 1));
    assert_eq!((texts(screen.app.take_first_rows(9)), screen.app.n_rows()), (vec!["· two".to_owned()], 0));
}

#[test]
fn shell_commands_run_beside_the_conversation() {
    let mut screen = Screen::new();
    screen.type_text("!ls\n").check(&["⋯ $ ls"]);
    assert_eq!(screen.sent(), [json!({"type": "bash", "command": "ls"})]);
    screen.frame(Frame::ShellOutput("a\nb\n".to_owned())).check(&["  a\n  b\n"]);
    screen.press(KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(screen.sent(), [json!({"type": "abort_bash"})]);
    screen.answer(2, json!({"output": "a\nb\n", "exitCode": 3})).check(&["✗ $ ls", "exit code 3"]);
}

#[test]
fn a_narrow_screen_shows_the_editor_and_the_footer() {
    let mut screen = Screen::sized(40, 8);
    screen.answer(
        1,
        json!({"model": {"provider": "provider", "id": "a-model"}, "thinkingLevel": "high", "sessionId": "s"}),
    );
    screen.type_text(&"word ".repeat(40));
    let text = screen.text();
    assert!(text.lines().rev().take(8).all(|line| line.chars().count() <= 40), "{text}");
    screen.check(&["~/project", "provider/a-model · high"]);
    // As small as a terminal can be.
    for (columns, rows) in [(1, 1), (2, 3), (5, 2), (0, 0)] {
        screen.app.setup.size = (columns, rows);
        view::draw(&screen.app);
    }
}

#[test]
fn ctrl_c_clears_the_text_then_hints_then_leaves() {
    let mut screen = Screen::new();
    let interrupt = |screen: &mut Screen| {
        screen.press(KeyCode::Char('c'), KeyModifiers::CONTROL);
    };
    screen.type_text("text");
    interrupt(&mut screen);
    assert!(screen.app.editor.is_empty());
    interrupt(&mut screen);
    screen.check(&["Ctrl-C again"]);
    interrupt(&mut screen);
    assert_eq!(screen.app.take_actions(), [Action::Leave]);
}

#[test]
fn commands_are_completed_and_mistyped_ones_reported() {
    let mut screen = Screen::new();
    screen.type_text("/sta").check(&["/stats", "messages, tokens and cost so far"]);
    screen.press(KeyCode::Tab, KeyModifiers::NONE);
    assert_eq!(screen.app.editor.text(), "/stats ");
    screen.type_text("\n");
    assert_eq!(screen.sent(), [json!({"type": "get_session_stats"})]);
    screen.type_text("/modle\n");
    assert_eq!(screen.sent(), [json!({"type": "get_commands"})]);
    screen.answer(3, json!({"commands": [{"name": "greet"}]})).check(&["there is no /modle (/model?)"]);
    screen.type_text("/greet you\n");
    assert_eq!(screen.sent()[0]["message"], "/greet you");
    screen.type_text("/rpc {}x\n").check(&["not a command object"]);
    screen.type_text("/show x\n").check(&["/show takes a number"]).type_text("/show 9\n").check(&["no such output"]);
}

#[test]
fn a_long_answer_is_drawn_in_time_that_does_not_grow() {
    let mut screen = Screen::sized(80, 24);
    screen.frame(Frame::WorkStarted);
    let piece = "word ".repeat(2000);
    let mut widest = 0;
    for _ in 0..100 {
        screen.frame(Frame::Text(piece.clone()));
        widest = widest.max(screen.app.take_rows().iter().map(Row::width).max().unwrap_or(0));
        assert!(view::draw(&screen.app).buffer.area.height < 24);
    }
    assert!(widest <= 80, "{widest}");
}
