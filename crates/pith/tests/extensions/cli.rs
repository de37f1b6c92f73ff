//! From the command line to loaded extensions: where they are found, what is refused, what users are shown.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use pith_testkit::{Api, Host, ModelServer, Output, Script, TempHome, Turn};
use serde_json::{Value, json};

pub const PITH: &str = env!("CARGO_BIN_EXE_pith");

/// Runs pith in a home with an empty stdin, until it ends.
pub fn run(home: &TempHome, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    let mut command = Command::new(PITH);
    command.args(arguments).env_clear().envs(home.environment()).current_dir(home.work()).stdin(Stdio::null());
    Output::of(&mut command)
}

/// A home with a model that gives these answers.
pub fn scene(turns: impl IntoIterator<Item = Turn>) -> (TempHome, ModelServer) {
    let server = ModelServer::start(Script::of(turns));
    (TempHome::for_server(&server), server)
}

fn host(home: &TempHome, arguments: &[&str]) -> Host {
    let agent = home.agent().display().to_string();
    Host::builder(PITH).rpc(Api::Anthropic).home(home).env("PITH_AGENT_DIR", &agent).args(arguments).spawn()
}

/// Arguments for one answer of the model of [`scene`].
pub fn once<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let model = ["--provider", Api::Anthropic.provider(), "--model", Api::Anthropic.model()];
    [&model[..], arguments].concat()
}

/// An extension with a command of this name.
fn command(name: &str) -> String {
    format!("export default (pi) => pi.registerCommand('{name}', {{ handler: async () => {{}} }});")
}

fn broken(path: &std::path::Path) -> String {
    format!("Failed to load extension \"{}\": out of order", path.display())
}

const BROKEN: &str = "export default () => { throw new Error('out of order'); };";

#[test]
fn an_extension_of_the_command_line_must_load() {
    let (home, _server) = scene([]);
    home.write_file("bad.ts", BROKEN);
    let hint = "Hint: Start without extensions using \"pith -ne\".\n";
    let text = broken(&home.work().join("bad.ts"));
    for mode in [&["--mode", "rpc"][..], &["-p", "x"], &["--mode", "json", "-p", "x"]] {
        let arguments = [mode, &["-e", "bad.ts"]].concat();
        let output = run(&home, once(&arguments));
        // The place in the extension, without the engine's own lines.
        let place = format!("({}:1:", home.work().join("bad.ts").display());
        assert!(output.stderr.starts_with(&format!("Error: {text}\n    at ")), "{}", output.stderr);
        assert!(output.stderr.contains(&place) && !output.stderr.contains("pith:"), "{}", output.stderr);
        output.refused_in_the_end(hint);
    }
    let gone = home.work().join("gone.ts");
    run(&home, once(&["-p", "x", "-e", "gone.ts"])).refused_in_the_end(&format!(
        "Error: Failed to load extension \"{}\": no such file or directory\n{hint}",
        gone.display()
    ));
    let place = home.agent().join("npm/node_modules/@me/tools");
    run(&home, once(&["-p", "x", "-e", "npm:@me/tools@1"])).refused_in_the_end(&format!(
        "Error: Failed to load extension \"npm:@me/tools@1\": it is not installed at {}; run pith install \
         npm:@me/tools@1\n{hint}",
        place.display()
    ));
}

#[test]
fn a_discovered_extension_that_fails_is_reported_and_skipped() {
    let (home, _server) = scene([]);
    home.write_agent_file("extensions/bad.ts", BROKEN);
    home.write_agent_file("extensions/good.ts", command("good"));
    let mut started = host(&home, &[]);
    let error = started.wait_type("extension_error");
    let path = home.agent().join("extensions/bad.ts");
    let expected = json!({"extensionPath": path, "event": "load", "error": broken(&path)});
    for (key, value) in expected.as_object().expect("an object") {
        assert_eq!(&error[key], value);
    }
    assert_eq!(started.ask(json!({"type": "prompt", "message": "/good"}))["success"], true);

    let fatal = run(&home, once(&["-p", "x", "--extension-errors", "fatal"]));
    assert!(fatal.stderr.starts_with(&format!("Error: {}\n", broken(&path))), "{}", fatal.stderr);
    fatal.refused_in_the_end("Hint: Start without extensions using \"pith -ne\".\n");
    home.write_file("bad.ts", BROKEN);
    let mut warned = host(&home, &["-e", "bad.ts", "--extension-errors=warn"]);
    assert_eq!(warned.ask(json!({"type": "prompt", "message": "/good"}))["success"], true);
    let mut without = host(&home, &["-ne"]);
    without.data(json!({"type": "get_state"}));
    assert!(without.frames().iter().all(|frame| frame["type"] != "extension_error"));
}

/// An extension that prints its name to stderr when the session starts.
fn says(name: &str) -> String {
    format!("export default (pi) => pi.on('session_start', () => console.error('<{name}>'));")
}

/// Checks the names printed by [`says`], in the order of handlers.
#[track_caller]
fn order(home: &TempHome, arguments: &[&str], expected: &[&str]) {
    let mut host = host(home, arguments);
    host.data(json!({"type": "get_state"}));
    assert_eq!(host.finish().1, 0, "{}", host.stderr());
    let stderr = host.stderr();
    let said: Vec<&str> = stderr.lines().filter_map(|line| line.strip_prefix('<')?.strip_suffix('>')).collect();
    assert_eq!(said, expected, "{stderr}");
}

#[test]
fn extensions_are_found_everywhere_and_called_in_order() {
    let (home, _server) = scene([]);
    home.write_file("named.ts", says("named"));
    home.write_file(".pi/extensions/auto.ts", says("project"));
    home.write_file("extra/listed.ts", says("project list"));
    home.write_file(".pi/settings.json", r#"{"extensions": ["../extra/listed.ts"], "packages": ["npm:local"]}"#);
    home.write_file(".pi/npm/node_modules/local/extensions/x.ts", says("project package"));
    home.write_agent_file("extensions/auto.ts", says("user"));
    home.write_agent_file("listed.ts", says("user list"));
    home.write_agent_file("npm/node_modules/@me/tools/package.json", r#"{"pi": {"extensions": ["./main.ts"]}}"#);
    home.write_agent_file("npm/node_modules/@me/tools/main.ts", says("npm"));
    home.write_agent_file("git/github.com/me/more/extensions/one.ts", says("git one"));
    home.write_agent_file("git/github.com/me/more/extensions/two.ts", says("git two"));
    home.write_settings(&json!({
        "extensions": ["listed.ts"],
        "packages": ["npm:@me/tools@1.0", {"source": "https://github.com/me/more", "extensions": ["two.ts"]}],
    }));
    let user = ["user list", "user", "npm", "git two"];
    order(&home, &["--no-approve", "-e", "named.ts"], &["named", "user list", "user", "npm", "git two"]);
    order(&home, &[], &user);
    let all = ["named", "project list", "project", "user list", "user", "project package", "npm", "git two"];
    order(&home, &["--approve", "-e", "named.ts"], &all);
    order(&home, &["--approve", "-ne", "-e", "named.ts"], &["named"]);
    order(&home, &["-ne", "-e", "npm:@me/tools", "-e", "git:github.com/me/more"], &["npm", "git one", "git two"]);
    order(&home, &["-ne"], &[]);
}

#[test]
fn the_xcsh_layout_has_its_own_directories() {
    let server = ModelServer::start(Script::of([]));
    let home = TempHome::with_layout(".xcsh");
    home.write_models(&server.url(), |_| {});
    home.write_file(".xcsh/extensions/p.ts", says("project"));
    home.write_file(".pi/extensions/no.ts", says("no"));
    home.write_agent_file("extensions/u.ts", says("user"));
    order(&home, &["--dialect", "xcsh", "--approve"], &["project", "user"]);
}

#[test]
fn a_package_can_contain_skills_and_templates() {
    let (home, _server) = scene([]);
    home.write_agent_file("npm/node_modules/tools/skills/dig/SKILL.md", "---\nname: dig\ndescription: Digs\n---\nDig.");
    home.write_agent_file("npm/node_modules/tools/prompts/greet.md", "Say hello.");
    home.write_agent_file("npm/node_modules/tools/prompts/leave.md", "Say goodbye.");
    home.write_settings(&json!({"packages": [{"source": "npm:tools", "prompts": ["greet.md"]}, "npm:absent"]}));
    let mut host = host(&home, &[]);
    let data = host.data(json!({"type": "get_commands"}));
    let names: Vec<&Value> = data["commands"].as_array().expect("a list").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["greet", "skill:dig"]);
    assert_eq!(data["commands"][0]["sourceInfo"]["origin"], "package");
    assert_eq!(data["commands"][0]["sourceInfo"]["source"], "npm:tools");
    let found = host.data(json!({"type": "get_diagnostics"}))["diagnostics"].clone();
    let message = found[0]["message"].as_str().expect("a diagnostic");
    assert!(message.starts_with("Package npm:absent of ") && message.contains("is not installed at"), "{found}");
}

const TRUSTS: &str = "export default (pi) => pi.on('project_trust', async (event, ctx) => { \
    console.error('<asked>', ctx.hasUI, await ctx.ui.confirm('a', 'b')); return DECISION; });";

#[test]
fn handlers_decide_about_trust_before_anything_saved() {
    let (home, _server) = scene([]);
    home.write_file(".pi/extensions/own.ts", says("own"));
    let decide = |decision: &str| home.write_agent_file("extensions/trust.ts", TRUSTS.replace("DECISION", decision));
    decide("{ trusted: 'yes' }");
    order(&home, &[], &["own"]);
    assert!(home.agent().join("trust.json").metadata().is_err(), "not remembered");
    decide("{ trusted: 'yes', remember: true }");
    order(&home, &[], &["own"]);
    let saved = std::fs::read_to_string(home.agent().join("trust.json")).expect("remembered");
    assert!(saved.contains("true"), "{saved}");
    decide("{ trusted: 'undecided' }");
    order(&home, &[], &["own"]);
    decide("{ trusted: 'no' }");
    order(&home, &[], &[]);
    // The flag is stronger, so no handler is asked.
    order(&home, &["--approve"], &["own"]);
    decide("(() => { throw new Error('unsure'); })()");
    order(&home, &[], &["own"]);
}

#[test]
fn an_extension_loaded_for_trust_is_not_loaded_twice() {
    let (home, _server) = scene([]);
    home.write_file(".pi/extensions/own.ts", says("own"));
    let once = "console.error('<factory>'); ";
    home.write_agent_file("extensions/trust.ts", format!("{once}{}", says("user")));
    home.write_agent_file("extensions/zbad.ts", format!("console.error('<bad>'); {BROKEN}"));
    // Evaluated before the project's extension, called after it.
    order(&home, &["--no-approve"], &["factory", "bad", "user"]);
    home.write_settings(&json!({"defaultProjectTrust": "always"}));
    order(&home, &[], &["factory", "bad", "own", "user"]);
}

const FLAGS: &str = "export default (pi) => { \
    pi.registerFlag('loud', { type: 'boolean', description: 'Speak up' }); \
    pi.registerFlag('preset', { type: 'string', default: 'usual' }); \
    pi.on('session_start', () => console.error(`<${pi.getFlag('loud')} ${pi.getFlag('preset')}>`)); };";

#[test]
fn flags_reach_the_extension_that_registered_them() {
    let (home, _server) = scene([]);
    home.write_agent_file("extensions/flags.ts", FLAGS);
    order(&home, &[], &["undefined usual"]);
    order(&home, &["--loud", "--preset", "quick"], &["true quick"]);
    order(&home, &["--preset=a b", "--loud=false"], &["true a b"]);
    run(&home, once(&["-p", "--preset"])).refused_in_the_end("Error: Extension flag \"--preset\" requires a value\n");
    run(&home, once(&["-p", "--loudd", "x"])).refused_in_the_end("Error: Unknown option: --loudd\n");
    run(&home, once(&["-p", "--one", "--two=3"])).refused_in_the_end("Error: Unknown options: --one, --two\n");
    let host = host(&home, &["--one", "--loud"]);
    host.wait_stderr(|text| {
        text.contains("Warning: ignoring unknown options: --one\n") && text.contains("<true usual>")
    });
}

#[test]
fn help_shows_flags_of_extensions_and_survives_broken_ones() {
    let (home, _server) = scene([]);
    home.write_agent_file("extensions/flags.ts", FLAGS);
    let help = run(&home, ["--help"]);
    assert_eq!((help.stderr.as_str(), help.code), ("", 0));
    let section = "\nFlags of extensions:\n  --loud                             Speak up\n  --preset <VALUE>";
    assert!(help.stdout.contains(section), "{}", help.stdout);
    assert!(!help.stdout.contains("could be loaded"), "{}", help.stdout);
    home.write_agent_file("extensions/bad.ts", BROKEN);
    let help = run(&home, ["--help", "-e", "gone.ts"]);
    assert_eq!(help.code, 0, "{}", help.stderr);
    assert!(help.stdout.contains(section) && help.stdout.contains("pith config check` tells why"), "{}", help.stdout);
}

const PROVIDER: &str = "export default async (pi) => { \
    pi.registerProvider('ours', { baseUrl: 'BASE', apiKey: 'k', api: 'anthropic-messages', models: [ \
      { id: 'small-one', name: 'Small', reasoning: false, input: ['text'], \
        cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 1000, maxTokens: 100 } ] }); };";

#[test]
fn models_of_extensions_can_be_chosen_and_listed() {
    let (home, server) = scene([Turn::text("from the extension's model")]);
    home.write_agent_file("extensions/provider.ts", PROVIDER.replace("BASE", &server.url()));
    let table = run(&home, ["--list-models", "small-one"]);
    assert_eq!((table.stderr.as_str(), table.code), ("", 0));
    assert!(
        table.stdout.lines().any(|line| line.starts_with("ours ") && line.contains("small-one")),
        "{}",
        table.stdout
    );
    let answer = run(&home, ["--model", "ours/small-one", "-p", "hello"]);
    assert_eq!((answer.stdout.as_str(), answer.code), ("from the extension's model\n", 0), "{}", answer.stderr);
    home.write_settings(&json!({"defaultProvider": "ours", "defaultModel": "small-one"}));
    let agent = home.agent().display().to_string();
    let mut host = Host::builder(PITH).args(["--mode", "rpc"]).home(&home).env("PITH_AGENT_DIR", &agent).spawn();
    assert_eq!(host.data(json!({"type": "get_state"}))["model"]["id"], "small-one");
}

#[test]
fn config_check_lists_what_extensions_register() {
    let (home, _server) = scene([]);
    home.write_agent_file("extensions/good.ts", FLAGS);
    home.write_file(".pi/extensions/own.ts", says("own"));
    let output = run(&home, ["config", "check"]);
    let good = home.agent().join("extensions/good.ts").display().to_string();
    let section = format!("{good}:\n  extension: flags: --loud, --preset; listens for: session_start\n");
    assert!(output.code == 0 && output.stdout.contains(&section), "{}", output.stdout);
    assert!(
        output.stdout.contains("own.ts:\n  extension: not loaded: the project is not trusted"),
        "{}",
        output.stdout
    );
    assert!(!output.stderr.contains("<own>") && output.stdout.contains("1 extensions, "), "{}", output.stdout);
    home.write_agent_file("extensions/bad.ts", BROKEN);
    let output = run(&home, ["config", "check"]);
    let bad = home.agent().join("extensions/bad.ts");
    let section = format!("{}:\n  problem: {}\n", bad.display(), broken(&bad));
    assert!(output.code == 1 && output.stdout.contains(&section), "{}", output.stdout);
}

/// Answers one HTTP request with this text.
fn serve_once(body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it has an address"));
    std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("somebody asks");
        let mut request = [0; 4096];
        let _ = connection.read(&mut request);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        connection.write_all(format!("{head}{body}").as_bytes()).expect("answered");
    });
    url
}

#[test]
fn a_factory_may_fetch_the_models_it_registers() {
    let (home, _server) = scene([]);
    let url = serve_once(json!(["fetched-one", "fetched-two"]).to_string());
    home.write_agent_file(
        "extensions/provider.ts",
        format!(
            "export default async (pi) => {{ \
               const names = await (await fetch('{url}/models')).json(); \
               const cost = {{ input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }}; \
               const models = names.map((id) => ({{ id, name: id, reasoning: false, input: ['text'], cost, contextWindow: 9, maxTokens: 9 }})); \
               pi.registerProvider('far', {{ baseUrl: '{url}', apiKey: 'k', api: 'openai-completions', models }}); }};"
        ),
    );
    let table = run(&home, ["--list-models", "fetched"]);
    assert_eq!(table.stdout.lines().count(), 3, "{}{}", table.stdout, table.stderr);
}

#[test]
fn an_extension_can_run_pith_itself() {
    let (home, server) = scene([Turn::text("from below")]);
    let arguments = json!(once(&["--mode", "json", "-p", "--no-session", "-ne", "hello"]));
    home.write_file(
        "sub.ts",
        format!(
            "import {{ basename }} from 'node:path'; \
             export default (pi) => pi.registerCommand('sub', {{ handler: async () => {{ \
               const ran = await pi.exec(process.execPath, [process.argv[1], ...{arguments}]); \
               const types = ran.stdout.trim().split('\\n').map((line) => JSON.parse(line).type); \
               console.error('<' + [basename(process.execPath), process.argv[2], ran.code, types[0], types.at(-1)].join(' ') + '>'); \
             }} }});"
        ),
    );
    let ran = run(&home, once(&["-p", "/sub", "-e", "sub.ts"]));
    assert!(ran.code == 0 && ran.stderr.contains("<pith --provider 0 session result>"), "{}", ran.stderr);
    assert_eq!(server.requests().len(), 1);
    assert_eq!(home.sessions().len(), 0);
}

#[test]
fn a_session_uses_the_extensions_of_its_own_directory() {
    let (home, _server) = scene([Turn::text("begun")]);
    home.write_file(".pi/extensions/own.ts", says("own"));
    let begun = run(&home, once(&["-p", "begin", "--no-approve"]));
    assert_eq!(begun.code, 0, "{}", begun.stderr);
    let session = home.sessions()[0].path.display().to_string();
    let elsewhere = home.work().join("elsewhere");
    std::fs::create_dir_all(elsewhere.join(".pi/extensions")).expect("created");
    std::fs::write(elsewhere.join(".pi/extensions/other.ts"), says("other")).expect("written");
    let agent = home.agent().display().to_string();
    let mut host = Host::builder(PITH)
        .rpc(Api::Anthropic)
        .home(&home)
        .env("PITH_AGENT_DIR", &agent)
        .directory(&elsewhere)
        .args(["--approve", "--session", &session])
        .spawn();
    host.wait_stderr(|text| text.contains("<own>"));
    host.data(json!({"type": "get_state"}));
    assert!(!host.stderr().contains("<other>"), "{}", host.stderr());
}

#[test]
fn nothing_an_extension_writes_reaches_standard_output() {
    let (home, _server) = scene([Turn::text("the answer")]);
    home.write_agent_file(
        "extensions/loud.ts",
        "import { execSync } from 'node:child_process'; \
         export default () => { console.log('one'); process.stdout.write('two\\n'); execSync('echo three', { stdio: 'inherit' }); };",
    );
    let answer = run(&home, once(&["-p", "hello"]));
    assert_eq!((answer.stdout.as_str(), answer.code), ("the answer\n", 0), "{}", answer.stderr);
    for word in ["one\n", "two\n", "three\n"] {
        assert!(answer.stderr.contains(word), "{word} is missing in {}", answer.stderr);
    }
}

#[test]
fn extensions_may_ask_about_models_and_keys_while_they_are_loaded() {
    let text = |name: &str| {
        format!(
            "import {{ getModel, getModels, getProviders }} from '@earendil-works/pi-ai'; \
             import {{ AuthStorage, ModelRegistry, readStoredCredential }} from '@earendil-works/pi-coding-agent'; \
             const provider = '{provider}', early = getModels(provider).some(({{ id }}) => id === '{model}'); \
             export default async (pi) => {{ \
               const registry = ModelRegistry.create(AuthStorage.create()), model = getModel(provider, '{model}'); \
               const {{ ok }} = await registry.getApiKeyAndHeaders(model); \
               const offered = registry.getAvailable().some(({{ id }}) => id === model.id); \
               const stored = readStoredCredential('stored')?.key; \
               console.error('<{name} ' + [early, getProviders().includes(provider), ok, offered, stored].join(' ') + '>'); }};",
            provider = Api::Anthropic.provider(),
            model = Api::Anthropic.model(),
        )
    };
    let (home, _server) = scene([Turn::text("one"), Turn::text("two")]);
    home.write_file("named.ts", text("named"));
    let write = |path: &str, text: String| {
        let path = home.agent().join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("created");
        std::fs::write(path, text).expect("written");
    };
    write("extensions/own.ts", text("own"));
    write("npm/node_modules/bundle/package.json", r#"{"pi":{"extensions":["./index.ts"]}}"#.to_owned());
    write("npm/node_modules/bundle/index.ts", text("bundle"));
    write("settings.json", json!({ "packages": ["npm:bundle"] }).to_string());
    write("auth.json", json!({ "stored": { "type": "api_key", "key": "k1" } }).to_string());
    let ran = run(&home, once(&["-p", "hello", "-e", "named.ts"]));
    for name in ["named", "own", "bundle"] {
        assert!(ran.stderr.contains(&format!("<{name} true true true true k1>")), "{name}: {}", ran.stderr);
    }
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}
