//! Answers that contain terminal control sequences, in a pseudo-terminal and in tmux: they are shown, not obeyed.

use pith_testkit::{Fault, Terminal, Tmux, Turn, eventually};
use serde_json::json;

use super::support::{PITH, model, run, scene};

/// Sets the clipboard and the title, clears the screen, moves, hides, prints backwards, in seven and in eight bits.
const HOSTILE: &str = "begin \x1b]52;c;c3RvbGVu\x07 \x1b]0;stolen\x07 \x1b]2;stolen\x1b\\ \x1b[2J\x1b[1;1H\x1b[8m \
                       \u{9d}0;stolen\u{9c} \u{9b}2J \u{90}+q\u{9c} \u{202e}drawkcab\u{202c} \rover\x08\x08 end";
const SHOWN: &str = "begin ␛]52;c;c3RvbGVu␇ ␛]0;stolen␇ ␛]2;stolen␛\\ ␛[2J␛[1;1H␛[8m \
                     \\u{9d}0;stolen\\u{9c} \\u{9b}2J \\u{90}+q\\u{9c} \\u{202e}drawkcab\\u{202c} ␍over␈␈ end";

/// Fails if anything but colours, the spinner and the editor's own sequences was written.
fn check_sequences(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for order in ["\x1b]", "\x1b[2J", "\x1b[1;1H", "\x1b[8m", "\x1bP", "\x08", "\u{9b}", "\u{9d}", "\u{90}", "\u{202e}"]
    {
        assert!(!text.contains(order), "{order:?} reached the terminal: {text:?}");
    }
}

#[test]
fn a_hostile_answer_is_shown_in_the_chat() {
    let call = Turn::call("bash", json!({"command": "true \x1b]0;stolen\x07\u{9b}2J"}));
    let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": HOSTILE}});
    let refused = Turn::failing(Fault::Http { status: 400, body, headers: serde_json::Map::new() });
    let (home, _server) = scene([call, Turn::text(HOSTILE), refused]);
    // With colours, so that pith's own sequences are around it.
    let mut terminal = Terminal::spawn_with(PITH, &model(), &home, &[("NO_COLOR", "")]);
    terminal.wait("›");
    terminal.type_keys("go\r");
    terminal.wait("$ true ␛]0;stolen␇\\u{9b}2J");
    // Wrapped between words.
    SHOWN.split_whitespace().for_each(|word| terminal.wait(word));
    terminal.type_keys("go on\r");
    terminal.wait("✗ ");
    terminal.wait("stolen");
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.exit_code(), 0);
    check_sequences(&terminal.bytes());
}

#[test]
fn one_answer_is_visible_on_a_terminal_and_as_it_is_in_a_pipe() {
    let (home, _server) = scene([Turn::text(HOSTILE), Turn::text(HOSTILE)]);
    let arguments: Vec<&str> = model().into_iter().chain(["-p", "go"]).collect();
    let mut terminal = Terminal::spawn(PITH, &arguments, &home);
    terminal.wait(SHOWN);
    assert_eq!(terminal.exit_code(), 0);
    check_sequences(&terminal.bytes());
    assert_eq!(run(&home, arguments).quiet(), format!("{HOSTILE}\n"));
}

#[test]
fn titles_lists_and_errors_are_visible() {
    let (home, _server) = scene([Turn::text("fine")]);
    let named: Vec<&str> = model().into_iter().chain(["-p", "first \x1b]0;stolen\x07 message"]).collect();
    run(&home, named).quiet();
    let mut terminal = Terminal::spawn(PITH, &model(), &home);
    terminal.wait("Last session here: \"first ␛]0;stolen␇ message\"");
    terminal.wait("›");
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.exit_code(), 0);
    check_sequences(&terminal.bytes());
    let mut terminal = Terminal::spawn(PITH, &["--mode", "x\x1b]0;stolen\x07"], &home);
    terminal.wait("Error: Invalid mode \"x␛]0;stolen␇\"");
    assert_eq!(terminal.exit_code(), 1);
    check_sequences(&terminal.bytes());
}

#[test]
fn text_of_extensions_is_shown_not_obeyed() {
    const ASKS: &str = r"export default (pi) => {
      const bad = '\x1b]52;c;c3RvbGVu\x07\u009b2J\u202e';
      pi.registerCommand('ask', { description: bad, handler: async (_, ctx) => {
        ctx.ui.notify('told ' + bad);
        ctx.ui.setStatus('s', 'status ' + bad);
        ctx.ui.setTitle('title ' + bad + '\nline');
        console.log('printed ' + bad);
        await ctx.ui.select('which ' + bad, ['first ' + bad, 'second']);
        ctx.ui.setEditorText('draft ' + bad);
      } });
    };";
    const BAD: &str = "␛]52;c;c3RvbGVu␇\\u{9b}2J\\u{202e}";
    let (home, _server) = scene([]);
    home.write_agent_file("extensions/asks.ts", ASKS);
    let mut terminal = Terminal::spawn(PITH, &model(), &home);
    terminal.wait("›");
    terminal.type_keys("/ask\r");
    terminal.wait(&format!("told {BAD}"));
    terminal.wait(&format!("? which {BAD}"));
    terminal.wait(&format!("1  first {BAD}"));
    terminal.type_keys("\x1b[B\r");
    terminal.wait_all(&[&format!("status {BAD}"), &format!("draft {BAD}")]);
    terminal.type_keys("\x15/commands\r");
    terminal.wait(&format!("/ask                       {BAD}"));
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.exit_code(), 0);
    // The title is set by pith itself.
    let text = String::from_utf8_lossy(&terminal.bytes()).into_owned();
    let title = format!("\x1b]0;title {BAD} line\x07");
    assert!(text.contains(&title) && text.contains(&format!("printed {BAD}")), "{text:?}");
    check_sequences(text.replace(&title, "").as_bytes());
}

#[test]
fn a_hostile_answer_leaves_screen_title_and_clipboard_of_tmux_alone() {
    let (home, _server) = scene([Turn::text(HOSTILE)]);
    let Some(tmux) = Tmux::open(&home, (250, 40), &[&[PITH][..], &model()].concat(), &[]) else { return };
    tmux.wait("/help lists commands");
    let title = tmux.title();
    tmux.enter("go");
    tmux.wait("␍over␈␈ end");
    let screen = tmux.screen();
    for part in ["/help lists commands", "begin ␛]52;c;c3RvbGVu␇ ␛]0;stolen␇", "\\u{202e}drawkcab\\u{202c} ␍over␈␈ end"]
    {
        assert!(screen.contains(part), "{part} is missing in {screen}");
    }
    assert_eq!(tmux.title(), title);
    assert_eq!(tmux.clipboard(), "");
    tmux.enter("/quit");
    tmux.wait("exit=0");

    // The same bytes without pith: this tmux would have obeyed them.
    home.write_file("hostile.txt", HOSTILE);
    tmux.enter("cat hostile.txt");
    eventually("the title is taken", || tmux.title().contains("stolen"));
    eventually("the clipboard is taken", || tmux.clipboard().contains("stolen"));
}
