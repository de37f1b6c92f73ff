//! The chat in tmux, a terminal that really draws: what stands on the screen, at any size, after everything.

use pith_testkit::{TempHome, Tmux, Turn, eventually};
use serde_json::json;

use super::support::{PITH, model, scene};

/// Opens the chat in a terminal; `None` where there is no tmux.
fn open<'a>(home: &'a TempHome, size: (u16, u16), arguments: &[&str]) -> Option<Tmux<'a>> {
    let tmux = Tmux::open(home, size, &[&[PITH][..], &model(), arguments].concat(), &[])?;
    tmux.wait("/help lists");
    Some(tmux)
}

/// How often a text stands on the screen.
fn count(screen: &str, text: &str) -> usize {
    screen.matches(text).count()
}

#[test]
fn steering_joins_at_the_next_pause_and_the_queue_is_shown() {
    let call = Turn::call("bash", json!({"command": "echo ran"})).hold_after(1);
    let (home, server) = scene([call, Turn::text("steered"), Turn::text("followed")]);
    let Some(tmux) = open(&home, (80, 24), &[]) else { return };
    tmux.enter("begin");
    server.wait_held(0);
    tmux.enter("and this");
    tmux.wait("↳ joins next: and this");
    tmux.type_text("then that");
    tmux.press(&["M-Enter"]);
    tmux.wait("↳ follows: then that");
    tmux.wait("2 queued");
    server.release(0);
    tmux.wait("followed");
    tmux.wait_gone("queued");
    let screen = tmux.history();
    let places: Vec<_> = ["› begin", "✓ $ echo ran", "› and this", "steered", "› then that", "followed"]
        .map(|text| screen.find(text).unwrap_or_else(|| panic!("{text} is missing in:\n{screen}")))
        .to_vec();
    assert!(places.is_sorted(), "{screen}");
}

#[test]
fn escape_stops_and_gives_back_what_was_queued() {
    let (home, server) = scene([Turn::silent(), Turn::text("again")]);
    let Some(tmux) = open(&home, (80, 24), &[]) else { return };
    tmux.enter("hang");
    server.wait_request(0);
    tmux.wait("waiting for the model");
    tmux.enter("queued words");
    tmux.wait("joins next: queued words");
    tmux.press(&["Escape"]);
    tmux.wait("✗ stopped");
    tmux.wait("› queued words");
    tmux.wait_gone("joins next");
    tmux.press(&["Enter"]);
    tmux.wait("again");
}

#[test]
fn a_picker_searches_earlier_sessions() {
    let (home, _server) = scene([Turn::text("about apples"), Turn::text("about pears")]);
    let Some(tmux) = open(&home, (80, 24), &[]) else { return };
    tmux.enter("tell me of apples");
    tmux.wait("about apples");
    tmux.enter("/new");
    tmux.wait("A new session.");
    tmux.enter("tell me of pears");
    tmux.wait("about pears");
    tmux.enter("/new");
    tmux.wait_until("two new sessions", |screen| count(screen, "A new session.") == 2);
    tmux.enter("/resume");
    tmux.wait("2 of 2");
    tmux.type_text("apples");
    tmux.wait("1 of 2");
    tmux.press(&["Enter"]);
    tmux.wait_until("the answer is shown again", |screen| count(screen, "about apples") == 2);
    tmux.wait_gone("1 of 2");
}

#[test]
fn a_dialog_of_an_extension_is_answered_with_keys() {
    let turns = [Turn::call("bash", json!({"command": "echo let through"})), Turn::text("done")];
    let (home, _server) = scene(turns);
    home.write_agent_file(
        "extensions/gate.ts",
        "export default (pi) => pi.on('tool_call', async (event, ctx) => \
           (await ctx.ui.select('Run ' + event.input.command + '?', ['Block', 'Allow'])) === 'Allow' ? undefined \
             : { block: true, reason: 'no' });",
    );
    let Some(tmux) = open(&home, (80, 24), &[]) else { return };
    tmux.enter("go on");
    tmux.wait("? Run echo let through?");
    tmux.wait("❯ 1  Block");
    tmux.press(&["Down"]);
    tmux.wait("❯ 2  Allow");
    tmux.press(&["Enter"]);
    tmux.wait("✓ $ echo let through");
    tmux.wait("done");
    tmux.wait_gone("❯");
}

#[test]
fn forty_columns_are_enough() {
    let table = "| name | what it is for |\n|---|---|\n| a | a text that is longer than the cell it stands in |\n\nThat was a table with words around it.";
    let (home, _server) = scene([Turn::text("before the window became narrow"), Turn::text(table)]);
    let Some(tmux) = open(&home, (100, 30), &[]) else { return };
    tmux.enter("first");
    tmux.wait("before the window became narrow");
    // What is written while the window changes is drawn for the one and shown in the other.
    tmux.wait_gone(" · Esc stops");
    tmux.type_text("x");
    tmux.wait("› x");
    tmux.press(&["BSpace"]);
    tmux.wait_gone("› x");
    tmux.resize(40, 20);
    tmux.type_text("a line that is longer than the window is wide");
    tmux.wait_until("the text is wrapped", |screen| screen.contains("wide") && !screen.contains("window is wide\n"));
    tmux.press(&["Enter"]);
    tmux.wait("That was a table with words around it.");
    tmux.wait_gone(" · Esc stops");
    let screen = tmux.screen();
    assert!(screen.lines().all(|line| line.chars().count() <= 40), "{screen}");
    assert!(screen.contains("name │ what it is for"), "{screen}");
    // Nothing of the old window is left: one rule above the input line.
    assert_eq!(count(&screen, &"─".repeat(40)), 1, "{screen}");
    tmux.resize(100, 30);
    tmux.type_text("wide again");
    tmux.wait("› wide again");
    eventually("the rule is as wide as the window", || count(&tmux.screen(), &"─".repeat(100)) == 1);
    let rules = tmux.screen().lines().filter(|line| line.starts_with("─") && !line.contains('┼')).count();
    assert_eq!(rules, 1, "{}", tmux.screen());
}

#[test]
fn a_window_of_tmux_that_is_closed_leaves_the_output_so_far_in_the_session() {
    for _ in 0..3 {
        let call = Turn::call("bash", json!({"command": "echo so far; exec sleep 1000"}));
        let (home, _server) = scene([call, Turn::text("never")]);
        let Some(tmux) = open(&home, (80, 24), &[]) else { return };
        tmux.enter("go");
        tmux.wait("  so far");
        tmux.close();
        let results = || -> Vec<String> {
            let sessions = home.sessions();
            let messages = sessions.iter().flat_map(|session| session.messages());
            messages.filter(|message| message["role"] == "toolResult").map(ToString::to_string).collect()
        };
        eventually("the call has a result", || !results().is_empty());
        assert!(results()[0].contains("so far"), "{:?}", results());
    }
}

/// The numbers of the lines of an answer that stand on the screen or above it.
fn numbers(history: &str) -> Vec<usize> {
    history.lines().filter_map(|line| line.strip_prefix("line ")?.split(' ').next()?.parse().ok()).collect()
}

#[test]
fn what_was_printed_is_there_after_every_change_of_the_size() {
    let text =
        |from: usize, to: usize| (from..to).map(|n| format!("line {n} of a long answer\n\n")).collect::<String>();
    let (home, _server) = scene([Turn::text(text(0, 40)), Turn::text(text(40, 60))]);
    let Some(tmux) = open(&home, (100, 30), &[]) else { return };
    tmux.enter("go");
    tmux.wait("line 39 ");
    tmux.wait_gone(" · Esc stops");
    for _ in 0..3 {
        for (columns, rows) in [(60, 15), (100, 30), (40, 30), (100, 12)] {
            tmux.resize(columns, rows);
            let rule = "─".repeat(usize::from(columns));
            eventually("the window is drawn", || count(&tmux.screen(), &rule) == 1);
            let found = numbers(&tmux.history());
            assert!((0..40).all(|n| found.contains(&n)), "{columns}x{rows}: {found:?}\n{}", tmux.history());
        }
    }
    tmux.enter("more");
    tmux.wait("line 59 ");
    let found = numbers(&tmux.history());
    assert!((0..60).all(|n| found.contains(&n)), "{found:?}");
}

#[test]
fn a_long_paste_is_folded_and_sent_whole() {
    let (home, server) = scene([Turn::text("read it all")]);
    let Some(tmux) = open(&home, (80, 24), &[]) else { return };
    tmux.type_text("look: ");
    tmux.wait("› look:");
    tmux.paste(&"a pasted line\n".repeat(5000));
    tmux.wait("› look: [paste +5000 lines]");
    tmux.press(&["Enter"]);
    tmux.wait("read it all");
    let sent = server.requests()[0].body["messages"].to_string();
    assert_eq!(count(&sent, "a pasted line"), 5000);
}

#[test]
fn the_shell_can_stop_and_continue_it() {
    let (home, server) = scene([Turn::text("one by one").chunk(3).hold_after(1)]);
    let Some(tmux) = open(&home, (80, 24), &[]) else { return };
    tmux.enter("go");
    server.wait_held(0);
    tmux.type_text("a draft");
    tmux.wait("› a draft");
    tmux.press(&["C-z"]);
    tmux.wait("Stopped");
    // The terminal is the shell's again.
    tmux.enter("echo $((40 + 2)) from the shell");
    tmux.wait("42 from the shell");
    server.release(0);
    tmux.enter("fg");
    tmux.wait("one by one");
    tmux.wait("› a draft");
    tmux.wait_gone(" · Esc stops");
    tmux.press(&["C-c"]);
    tmux.wait_gone("› a draft");
    tmux.enter("/quit");
    // The shell reads what is typed only after its prompt.
    tmux.wait_until("the prompt of the shell", |screen| {
        screen.contains("goes on with this session") && screen.trim_end().ends_with("\n$")
    });
    tmux.enter("stty -a | grep -c ' icanon'");
    tmux.wait("\n1\n");
}

#[test]
fn a_killed_program_leaves_a_terminal_one_can_use() {
    let (home, _server) = scene([]);
    let Some(tmux) = open(&home, (80, 24), &[]) else { return };
    tmux.enter("!kill -TERM $(ps -o ppid= -p $(ps -o ppid= -p $$))");
    eventually("it has ended", || tmux.history().contains("exit=143") || tmux.history().contains("✗ $"));
    if !tmux.history().contains("exit=143") {
        tmux.enter("/quit");
    }
    tmux.wait("exit=");
    tmux.enter("echo typed and seen");
    tmux.wait("\ntyped and seen");
}

#[test]
fn tool_output_is_live_folded_and_shown_on_request() {
    let command = "for i in $(seq 30); do echo line $i; done; exit 3";
    let (home, _server) = scene([Turn::call("bash", json!({"command": command})), Turn::text("it failed")]);
    let Some(tmux) = open(&home, (80, 24), &[]) else { return };
    tmux.enter("run it");
    tmux.wait("it failed");
    tmux.wait("Command exited with code 3");
    assert!(!tmux.history().contains("line 2\n"));
    tmux.press(&["C-o"]);
    tmux.wait("line 2\n");
}
