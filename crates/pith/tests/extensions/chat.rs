//! Extensions in the chat, in a real pseudo-terminal, and without a user.

use pith_testkit::{TempHome, Terminal, Turn};
use serde_json::json;

use super::cli::{PITH, once, run, scene};

fn open(home: &TempHome, arguments: &[&str]) -> Terminal {
    Terminal::chat(PITH, &once(arguments), home)
}

const ASKS: &str = "export default (pi) => {
  const command = (name, handler) => pi.registerCommand(name, { description: `Tries ${name}`, handler });
  const tell = (ctx, value) => ctx.ui.notify(`got ${JSON.stringify(value)}`);
  command('pick', async (_, ctx) => tell(ctx, await ctx.ui.select('Which one?', ['First', 'Second'])));
  command('sure', async (_, ctx) => tell(ctx, await ctx.ui.confirm('Really?', 'It cannot be undone.')));
  command('who', async (_, ctx) => tell(ctx, await ctx.ui.input('Who', 'somebody')));
  command('write', async (_, ctx) => tell(ctx, await ctx.ui.editor('Write', 'prefilled')));
  command('brief', async (_, ctx) => tell(ctx, await ctx.ui.confirm('Quick?', '', { timeout: 300 })));
  command('later', async (_, ctx) => { setTimeout(async () => tell(ctx, await ctx.ui.confirm('Still there?', '')), 50); });
  command('draft', async (_, ctx) => { ctx.ui.setEditorText('/sure'); ctx.ui.setStatus('a', 'all is well'); ctx.ui.setTitle('T'); });
  command('go', async () => pi.sendUserMessage('do it'));
  command('bad', async () => { throw new Error('it broke'); });
  command('bye', async (_, ctx) => ctx.shutdown());
};";

#[test]
fn dialogs_of_extensions_are_answered_at_the_terminal() {
    let (home, _server) = scene([]);
    home.write_agent_file("extensions/asks.ts", ASKS);
    let mut terminal = open(&home, &[]);
    terminal.type_keys("/pick\r");
    terminal.wait("? Which one?");
    terminal.wait("2  Second");
    terminal.type_keys("2\r");
    terminal.wait("got \"Second\"");
    terminal.type_keys("/sure\r");
    terminal.wait("It cannot be undone.");
    terminal.wait("[y/n] ");
    terminal.type_keys("maybe\ry\r");
    terminal.wait("got true");
    terminal.type_keys("/who\r");
    terminal.wait("? Who");
    terminal.wait("somebody");
    terminal.type_keys("me myself\r");
    terminal.wait("got \"me myself\"");
    terminal.type_keys("/who\r");
    terminal.wait("? Who");
    terminal.type_keys("\x03");
    terminal.wait("no answer");
    terminal.wait("got undefined");
    // No answer comes in time.
    terminal.type_keys("/brief\r");
    terminal.wait("? Quick?");
    terminal.wait("the question was withdrawn");
    terminal.wait("got false");
    terminal.leave();
}

#[test]
fn a_question_that_comes_later_takes_the_place_of_the_editor() {
    let (home, _server) = scene([]);
    home.write_agent_file("extensions/asks.ts", ASKS);
    let mut terminal = open(&home, &[]);
    terminal.type_keys("/later\r");
    terminal.wait("? Still there?");
    terminal.type_keys("y\r");
    terminal.wait("got true");
    terminal.type_keys("/draft\r");
    terminal.wait("› /sure");
    terminal.wait("all is well");
    terminal.type_keys("\r");
    terminal.wait("? Really?");
    terminal.wait("[y/n] ");
    terminal.type_keys("n\r");
    terminal.wait("got false");
    terminal.leave();
}

#[test]
fn commands_of_extensions_are_listed_completed_and_run() {
    let (home, server) = scene([Turn::text("as you wish")]);
    home.write_agent_file("extensions/asks.ts", ASKS);
    let mut terminal = open(&home, &[]);
    terminal.type_keys("/commands\r");
    terminal.wait("Tries pick");
    // Completed to the only name that begins so.
    terminal.type_keys("/g\t\r");
    terminal.wait("as you wish");
    assert_eq!(server.requests().len(), 1);
    terminal.type_keys("/bad\r");
    terminal.wait("it broke");
    terminal.type_keys("/bye\r");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn a_longer_text_is_written_in_the_users_editor() {
    let (home, _server) = scene([]);
    home.write_agent_file("extensions/asks.ts", ASKS);
    home.write_file("edit.sh", "sed -i 's/prefilled/edited/' \"$1\"\n");
    let editor = format!("sh {}", home.work().join("edit.sh").display());
    let arguments = once(&[]);
    let mut terminal = Terminal::spawn_with(PITH, &arguments, &home, &[("EDITOR", &editor)]);
    terminal.wait("/help lists commands");
    terminal.wait("›");
    terminal.type_keys("/write\r");
    terminal.wait("got \"edited\"");
    terminal.leave();
}

#[test]
fn a_gate_asks_while_the_agent_works() {
    let turns = [Turn::call("bash", json!({"command": "echo let through"})), Turn::text("done")];
    let (home, _server) = scene(turns);
    home.write_agent_file(
        "extensions/gate.ts",
        "export default (pi) => pi.on('tool_call', async (event, ctx) => \
           (await ctx.ui.confirm('Run it?', event.input.command)) ? undefined : { block: true, reason: 'no' });",
    );
    let mut terminal = open(&home, &[]);
    terminal.type_keys("go on\r");
    terminal.wait("? Run it?");
    terminal.wait("[y/n] ");
    terminal.type_keys("y\r");
    terminal.wait("✓ $ echo let through");
    terminal.wait("done");
    terminal.leave();
}

#[test]
fn trust_handlers_ask_before_the_chat_begins() {
    let (home, _server) = scene([]);
    home.write_file(".pi/extensions/own.ts", ASKS);
    home.write_agent_file(
        "extensions/trust.ts",
        "export default (pi) => pi.on('project_trust', async (event, ctx) => \
           ({ trusted: (await ctx.ui.select('This directory?', ['No', 'Yes'])) === 'Yes' ? 'yes' : 'no' }));",
    );
    let mut terminal = Terminal::spawn(PITH, &once(&[]), &home);
    terminal.wait("? This directory?");
    terminal.wait("for none: ");
    terminal.type_keys("yes\r");
    terminal.wait("›");
    terminal.type_keys("/sure\r");
    terminal.wait("[y/n] ");
    terminal.type_keys("y\r");
    terminal.wait("got true");
    terminal.leave();
}

#[test]
fn without_a_user_dialogs_have_no_answer_and_nothing_hangs() {
    let (home, server) = scene([Turn::text("an answer"), Turn::text("another")]);
    home.write_agent_file(
        "extensions/asks.ts",
        "export default (pi) => { \
           pi.registerCommand('try', { handler: async (_, ctx) => console.error('<', ctx.hasUI, ctx.mode, \
             await ctx.ui.select('a', ['b']), await ctx.ui.confirm('a', 'b'), await ctx.ui.input('a'), \
             await ctx.ui.editor('a'), '>') }); \
           pi.registerCommand('go', { handler: async () => pi.sendUserMessage('do it') }); };",
    );
    let tried = run(&home, once(&["-p", "/try"]));
    assert_eq!((tried.stdout.as_str(), tried.code), ("", 0), "{}", tried.stderr);
    assert!(tried.stderr.contains("< false print undefined false undefined undefined >"), "{}", tried.stderr);
    let tried = run(&home, once(&["--mode", "json", "-p", "/try"]));
    assert!(tried.code == 0 && tried.stderr.contains("< false json "), "{}", tried.stderr);
    assert_eq!(server.requests().len(), 0);
    let answered = run(&home, once(&["-p", "/go"]));
    assert_eq!((answered.stdout.as_str(), answered.code), ("an answer\n", 0), "{}", answered.stderr);
}
