//! The chat, in a real pseudo-terminal.

use pith_testkit::{TempHome, Terminal, Turn, eventually};
use serde_json::json;

use super::support::{PITH, PIXEL, model, run, scene};

fn open(home: &TempHome, arguments: &[&str]) -> Terminal {
    Terminal::chat(PITH, arguments, home)
}

#[test]
fn a_message_is_answered_and_the_next_one_waited_for() {
    let turns = [Turn::call("bash", json!({"command": "echo one; echo two"})), Turn::text("**Both** lines are there.")];
    let (home, _server) = scene(turns);
    let mut terminal = open(&home, &model());
    terminal.type_keys("count them\r");
    terminal.wait("✓ $ echo one; echo two");
    terminal.wait("Both lines are there.");
    terminal.type_keys("/stats\r");
    terminal.wait(".jsonl");
    terminal.type_keys("\x04");
    terminal.wait("pith --session ");
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(home.sessions().len(), 1);
}

#[test]
fn ctrl_c_stops_the_turn_and_not_the_chat() {
    let (home, server) = scene([Turn::silent(), Turn::text("still here")]);
    let mut terminal = open(&home, &model());
    terminal.type_keys("hang\r");
    terminal.wait("waiting for the model");
    // The silent turn is for this request; if it were stopped before it is sent, the next request would get it.
    server.wait_request(0);
    terminal.type_keys("\x03");
    terminal.wait("✗ stopped");
    terminal.type_keys("again\r");
    terminal.wait("still here");
    // The footer counts the tokens when the work is over.
    terminal.wait(" out");
    terminal.type_keys("\x03");
    terminal.wait("Ctrl-C again");
    terminal.type_keys("\x03");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn a_message_may_have_several_lines_and_is_remembered() {
    let (home, server) = scene([Turn::text("first"), Turn::text("second")]);
    let mut terminal = open(&home, &model());
    terminal.type_keys("one \\\rtwo\x1b\rthree\r");
    terminal.wait("first");
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.exit_code(), 0);
    let sent = server.requests()[0].body["messages"][0]["content"].clone();
    let text = sent.as_str().or_else(|| sent[0]["text"].as_str()).expect("text");
    assert_eq!(text, "one \ntwo\nthree");

    let mut terminal = open(&home, &model());
    eventually("the last session is named", || terminal.screen().contains("Last session here: "));
    // Two lines up: the last command, then the message.
    terminal.type_keys("\x1b[A\x1b[A\r");
    terminal.wait("second");
    terminal.leave();
}

#[test]
fn unknown_slash_commands_are_reported_and_known_ones_run() {
    let (home, _server) = scene([]);
    home.write_file(".keep", "");
    std::fs::create_dir_all(home.agent().join("prompts")).expect("directory");
    std::fs::write(home.agent().join("prompts/greet.md"), "Say hello to $1.").expect("written");
    let mut terminal = open(&home, &model());
    terminal.type_keys("/modle\r");
    terminal.wait("there is no /modle");
    terminal.type_keys("/commands\r");
    terminal.wait("/greet ");
    terminal.type_keys("!echo out; exit 3\r");
    terminal.wait("exit code 3");
    terminal.type_keys("/rpc {\"type\":\"get_last_assistant_text\"}\r");
    terminal.wait("\"text\": null");
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn a_project_is_trusted_after_a_yes() {
    let (home, _server) = scene([]);
    home.write_file(".pi/prompts/local.md", "Do it.");
    let mut terminal = Terminal::spawn(PITH, &model(), &home);
    terminal.wait("Trust this project?");
    terminal.wait("[y/n] ");
    terminal.type_keys("y\r");
    terminal.wait("›");
    terminal.type_keys("/commands\r");
    terminal.wait("/local");
    terminal.leave();
    let trust = std::fs::read_to_string(home.agent().join("trust.json")).expect("saved");
    assert!(trust.contains("true"), "{trust}");
}

#[test]
fn earlier_sessions_are_listed_and_resumed() {
    let (home, server) = scene([Turn::text("the first answer"), Turn::text("the second answer")]);
    let mut terminal = open(&home, &model());
    terminal.type_keys("the first question\r");
    terminal.wait("the first answer");
    terminal.type_keys("/name my errand\r");
    terminal.wait("Named.");
    terminal.leave();

    let mut terminal = Terminal::spawn(PITH, &[&model()[..], &["--resume"]].concat(), &home);
    terminal.wait("1  my errand");
    terminal.type_keys("\r");
    terminal.wait("the first question");
    terminal.wait("the first answer");
    terminal.type_keys("and the next one\r");
    terminal.wait("the second answer");
    terminal.leave();
    assert_eq!(server.requests()[1].body["messages"].as_array().map(Vec::len), Some(3));

    let mut terminal = open(&home, &[&model()[..], &["-c"]].concat());
    terminal.wait("and the next one");
    terminal.wait("the second answer");
    terminal.leave();
}

#[test]
fn a_message_typed_while_the_agent_works_joins_the_run() {
    let turns =
        [Turn::call("bash", json!({"command": "echo ran"})).hold_after(1), Turn::text("two"), Turn::text("three")];
    let (home, server) = scene(turns);
    let mut terminal = open(&home, &model());
    terminal.type_keys("first\r");
    server.wait_held(0);
    terminal.type_keys("second\r");
    terminal.wait("joins next: second");
    terminal.type_keys("third\x1b\r");
    terminal.wait("follows: third");
    server.release(0);
    terminal.wait("three");
    terminal.leave();
    let requests = server.requests();
    let texts = |at: usize| requests[at].body["messages"].to_string();
    assert!(texts(1).contains("second") && !texts(1).contains("third"), "{}", texts(1));
    assert!(texts(2).contains("third"), "{}", texts(2));
}

#[test]
fn a_terminal_that_cannot_redraw_has_a_chat_of_lines() {
    let turns = [Turn::call("bash", json!({"command": "echo ran"})), Turn::text("**Both** \u{1b}[2J")];
    let (home, _server) = scene(turns);
    let mut terminal = Terminal::spawn_with(PITH, &model(), &home, &[("TERM", "dumb")]);
    terminal.wait("/help lists commands");
    terminal.type_keys("go\r");
    terminal.wait("✓ $ echo ran");
    terminal.wait("Both ␛[2J");
    terminal.type_keys("/thinking\r");
    terminal.wait("  1  off");
    terminal.type_keys("1\r");
    terminal.wait("Thinking: off.");
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.exit_code(), 0);
    assert!(!terminal.bytes().contains(&0x1b));
}

#[test]
fn without_colours_no_colour_is_written() {
    let (home, _server) = scene([Turn::text("some `code` and **bold**")]);
    let mut terminal = Terminal::spawn_with(PITH, &model(), &home, &[("NO_COLOR", "1")]);
    terminal.wait("/help lists commands");
    terminal.type_keys("go\r");
    terminal.wait("some code and bold");
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.exit_code(), 0);
    let text = String::from_utf8_lossy(&terminal.bytes()).into_owned();
    assert!(text.contains("\x1b[0;1mbold") && !text.contains(";36m") && !text.contains(";31m"), "{text:?}");
}

#[test]
fn a_signal_puts_the_terminal_back() {
    let (home, _server) = scene([Turn::silent()]);
    let mut terminal = open(&home, &model());
    terminal.type_keys("hang\r");
    terminal.wait("waiting for the model");
    let pid = std::fs::read_dir("/proc").expect("proc").flatten().find_map(|entry| {
        let command = std::fs::read(entry.path().join("cmdline")).ok()?;
        let environment = std::fs::read(entry.path().join("environ")).ok()?;
        let is_in = |data: &[u8], word: &str| String::from_utf8_lossy(data).contains(word);
        let is_ours = is_in(&environment, &home.work().parent()?.display().to_string());
        // The supervisor of its commands is another process of the same program.
        (command.starts_with(PITH.as_bytes()) && is_in(&command, "--provider") && is_ours)
            .then(|| entry.file_name().to_string_lossy().into_owned())
    });
    let killed = std::process::Command::new("kill").arg(pid.expect("pith runs")).status().expect("kill");
    assert!(killed.success());
    assert_eq!(terminal.exit_code(), 143);
    let text = || String::from_utf8_lossy(&terminal.bytes()).into_owned();
    eventually("paste mode is off", || text().contains("\x1b[?2004l"));
    let text = text();
    let end = &text[text.rfind("\x1b[?2004l").expect("it was waited for")..];
    assert!(end.contains("\x1b[?25h") && !end.contains("\x1b[?25l"), "{end:?}");
}

/// A closed window hangs up several times: the kernel on the group in the foreground, the shell on its jobs.
#[test]
fn a_window_that_is_closed_leaves_the_output_so_far_in_the_session() {
    let call = Turn::call("bash", json!({"command": "echo so far; exec sleep 1000"}));
    let (home, _server) = scene([call, Turn::text("never")]);
    let mut terminal = open(&home, &model());
    terminal.type_keys("go\r");
    terminal.wait("  so far");
    let pid = terminal.pid().to_string();
    let hang_up = || std::process::Command::new("kill").args(["-HUP", &pid]).status();
    while hang_up().expect("kill").success() && !terminal.has_ended() {}
    assert_eq!(terminal.exit_code(), 129);
    let sessions = home.sessions();
    let results = sessions[0].messages().into_iter().filter(|message| message["role"] == "toolResult");
    let results: Vec<String> = results.map(ToString::to_string).collect();
    assert!(results.len() == 1 && results[0].contains("so far"), "{results:?}");
}

#[test]
fn the_tour_on_a_terminal_is_a_chat_that_plays_itself() {
    let (home, _server) = scene([]);
    let mut terminal = Terminal::spawn(PITH, &["tour"], &home);
    terminal.wait("Show me what you can do.");
    terminal.wait("joins the conversation");
    terminal.wait("Keep it short, please.");
    terminal.wait("That was the tour");
    assert_eq!(terminal.exit_code(), 0);
    let mut raw = Terminal::spawn(PITH, &["tour", "--raw"], &home);
    raw.wait("> {\"id\":\"1\",\"type\":\"prompt\"");
    raw.wait("< {\"type\":\"agent_settled\"");
    assert_eq!(raw.exit_code(), 0);
}

#[test]
fn the_tour_without_a_terminal_shows_the_session_as_a_person_sees_it() {
    let (home, _server) = scene([]);
    let output = run(&home, ["tour"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let parts = [
        "> Show me what you can do.\n",
        "\n· write pith-tour.txt\n",
        "> Keep it short, please.\n",
        "That was the tour",
    ];
    let places = parts.map(|part| output.stdout.find(part).unwrap_or_else(|| panic!("{part}: {}", output.stdout)));
    assert!(places.is_sorted(), "{}", output.stdout);
    assert!(!output.stdout.contains("\"type\":"), "{}", output.stdout);
    let raw = run(&home, ["tour", "--raw"]);
    assert!(raw.stdout.starts_with("> {\"id\":\"1\",\"type\":\"prompt\""), "{}", raw.stdout);
    assert!(raw.stdout.contains("\n< {\"type\":\"agent_settled\""), "{}", raw.stdout);
}

#[test]
fn ctrl_j_begins_a_new_line() {
    let (home, server) = scene([Turn::text("both read")]);
    let mut terminal = open(&home, &model());
    terminal.type_keys("one\ntwo");
    terminal.wait("two");
    assert!(server.requests().is_empty());
    terminal.type_keys("\r");
    terminal.wait("both read");
    assert!(server.requests()[0].body.to_string().contains("one\\ntwo"));
    terminal.leave();
}

#[test]
fn a_picture_is_drawn_where_the_terminal_can_and_named_everywhere() {
    let (home, _server) = scene([Turn::text("a pixel"), Turn::text("a pixel")]);
    home.write_file("pixel.png", PIXEL);
    for (term, is_drawn) in [("xterm-kitty", true), ("xterm", false)] {
        let mut terminal = Terminal::spawn_with(PITH, &model(), &home, &[("TERM", term)]);
        terminal.wait("/help lists commands");
        terminal.type_keys("what is @pixel.png ?\r");
        terminal.wait("[picture image/png, 1 kB]");
        terminal.wait("a pixel");
        terminal.type_keys("/quit\r");
        assert_eq!(terminal.exit_code(), 0);
        let text = String::from_utf8_lossy(&terminal.bytes()).into_owned();
        assert_eq!(text.contains("\x1b_Ga=T,f=100,r=1,C=1,q=2,m=0;iVBOR"), is_drawn, "{text:?}");
    }
}
