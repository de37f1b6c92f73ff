//! Namespaces: what they add, and what there is without them.

use pith_testkit::{TempHome, Turn, eventually, has};
use serde_json::{Value, json};

use super::super::support::{finish, model, run, scene, start_in};
use super::{events, namespaces, result_of, state};

#[test]
fn namespaces_close_what_is_missing_and_are_told() {
    if !has(namespaces()) {
        return;
    }
    let home = scene([]).0;
    let told = |state: &Value| [&state["namespaces"], &state["protectedPaths"], &state["missing"]].map(Value::clone);
    let kernel = [json!(true), json!("kernel"), json!([])];
    assert_eq!(told(&state(&home, &["--sandbox", "workspace-write"])), kernel);
    home.write_settings(&json!({"sandbox": {"namespaces": "require", "require": "strict"}}));
    let strict = state(&home, &["--sandbox", "workspace-write"]);
    assert_eq!((told(&strict), &strict["require"]), (kernel, &json!("strict")));
    home.write_settings(&json!({"sandbox": {"namespaces": "never"}}));
    let without = state(&home, &["--sandbox", "workspace-write"]);
    let gaps = json!([
        "metadata of files outside the writable roots",
        "files of other processes in /dev/shm",
        "other terminals of the same user"
    ]);
    assert_eq!(told(&without), [json!(false), json!("restored"), gaps]);
    home.write_settings(&json!({"sandbox": {"network": {"allowedDomains": ["*.example.org"]}}}));
    assert_eq!(state(&home, &["--sandbox", "workspace-write"])["network"], "domains");
}

#[test]
fn a_home_needs_namespaces_to_be_written() {
    if !has(namespaces()) {
        return;
    }
    let home = scene([]).0;
    let directory = home.environment().into_iter().find(|(name, _)| *name == "HOME").expect("a home").1;
    let run = |profile: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pith"));
        command.args(["sandbox", "run", "--profile", profile, "--", "sh", "-c", "echo it ran"]);
        command.env_clear().envs(home.environment()).current_dir(&directory).stdin(std::process::Stdio::null());
        let output = command.output().expect("it runs");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    assert_eq!(run("workspace-write"), "it ran\n");
    home.write_settings(&json!({"sandbox": {"namespaces": "never"}}));
    let refused = run("workspace-write");
    let text = "Start pith in a directory below it, let it use namespaces, or use the profile \"read-only\"";
    assert!(refused.contains(text) && !refused.contains("it ran"), "{refused}");
    assert_eq!(run("read-only"), "it ran\n");
}

#[test]
fn a_sandbox_in_a_sandbox_works() {
    if !has(namespaces()) {
        return;
    }
    let home = scene([]).0;
    let pith = env!("CARGO_BIN_EXE_pith");
    for namespaces in ["auto", "never"] {
        // The inner one reads its settings, which are closed like all of `~/.pi`.
        let opened = json!({"allowRead": ["~/.pi/agent/settings.json"]});
        home.write_settings(&json!({"sandbox": {"namespaces": namespaces, "filesystem": opened}}));
        let inner = ["sandbox", "run", "--", pith, "sandbox", "run", "--", "sh", "-c", "echo x > a && cat a"];
        let done = run(&home, inner);
        assert_eq!(done.stdout, "x\n", "{namespaces}: {}", done.stderr);
    }
}

#[test]
fn a_command_is_refused_a_host_and_the_host_of_the_session_is_told() {
    if !has(namespaces()) {
        return;
    }
    let (home, server) = scene([]);
    home.write_settings(&json!({"sandbox": {"network": {"allowedDomains": ["*.example.org"]}}}));
    let ask = "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT example.net:443 HTTP/1.1\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3";
    server.push(Turn::call("bash", json!({"command": format!("{ask}; exec 3>&-; {ask}")})));
    server.push(Turn::text("done"));
    let events = events(&home, &["--sandbox", "workspace-write"]);
    assert!(result_of(&events).contains("pith: example.net is not in allowedDomains"), "{}", result_of(&events));
    let denied: Vec<&Value> = events.iter().filter(|event| event["type"] == "sandbox_denied").collect();
    let [denied] = &*denied else { panic!("{denied:?}") };
    assert_eq!(
        [&denied["kind"], &denied["target"], &denied["count"]],
        [&json!("network"), &json!("example.net"), &json!(2)]
    );
    let prompt = server.requests()[0].body["system"].to_string();
    assert!(prompt.contains("network is limited to *.example.org, through the proxy"), "{prompt}");
}

#[test]
fn a_system_without_namespaces_has_the_rest() {
    // In a user namespace of its own a process can rule out further ones.
    const WITHOUT: &str = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let home = scene([]).0;
    let without = |arguments: &[&str], input: &[u8]| {
        let pith = env!("CARGO_BIN_EXE_pith");
        let words = [&["-Ur", "sh", "-c", WITHOUT, "sh", pith], arguments].concat();
        finish_with(&home, "unshare", &words, input)
    };
    let check = without(&["sandbox", "check"], b"");
    if !has(namespaces()) || !has(check.as_ref().map(drop).map_err(Clone::clone)) {
        return;
    }
    let check = check.expect("it ran");
    assert!(check.contains("namespaces: no (unshare: No space left on device"), "{check}");
    let gaps = "Gaps that stay open:\n  metadata of files outside the writable roots\n  files of other processes in /dev/shm\n  \
                other terminals of the same user\n  locks (flock, fcntl) on files outside that can be read\n";
    assert!(check.contains(gaps), "{check}");
    let check = run(&home, ["sandbox", "check"]).stdout;
    let gaps = "Gaps that stay open:\n  locks (flock, fcntl) on files outside that can be read\nWithout namespaces, as \
                sandbox.namespaces \"never\" wants it, also:\n  metadata of files";
    assert!(check.contains(gaps), "{check}");
    let serve = [&model()[..], &["--mode", "rpc", "--no-session", "--sandbox", "workspace-write"]].concat();
    let answer = without(&serve, b"{\"type\":\"get_state\"}\n").expect("it ran");
    assert!(answer.contains("\"namespaces\":false") && answer.contains("\"protectedPaths\":\"restored\""), "{answer}");
    home.write_settings(&json!({"sandbox": {"namespaces": "require"}}));
    let refused = without(&serve, b"").expect("it ran");
    assert!(
        refused.contains("sandbox.namespaces \"require\" cannot be had: this system allows no namespaces"),
        "{refused}"
    );
    home.write_settings(&json!({"sandbox": {"network": {"mode": "domains"}}}));
    let refused = without(&serve, b"").expect("it ran");
    let text = "needs network namespaces, which this system does not allow; use \"off\" or \"on\"";
    assert!(refused.contains(text), "{refused}");
}

/// Runs a program in the session's directory and returns what it printed; the error says that it cannot be run.
fn finish_with(home: &TempHome, program: &str, arguments: &[&str], input: &[u8]) -> Result<String, String> {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(home.environment()).current_dir(home.work());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
    // A pith that does not read its input may have ended already.
    let _ = child.stdin.take().expect("stdin is piped").write_all(input);
    let output = child.wait_with_output().expect("it ended");
    Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn a_pith_that_is_killed_leaves_no_placeholders() {
    if !has(namespaces()) {
        return;
    }
    let home = TempHome::new();
    let mut pith = start_in(&home, ["sandbox", "run", "--", "sleep", "1000"], &[]);
    let placeholder = home.work().join(".pi");
    eventually("a placeholder", || placeholder.is_dir());
    pith.kill().expect("it runs");
    pith.wait().expect("it ended");
    eventually("no placeholder", || !placeholder.exists());
    eventually("nothing", || std::fs::read_dir(home.work()).is_ok_and(|mut entries| entries.next().is_none()));
}

#[test]
fn a_pith_that_ends_leaves_no_placeholders() {
    if !has(namespaces()) {
        return;
    }
    let is_empty = |home: &TempHome| std::fs::read_dir(home.work()).is_ok_and(|mut entries| entries.next().is_none());
    let home = TempHome::new();
    let seen = run(&home, ["sandbox", "run", "--", "ls", "-A"]);
    assert!(seen.stdout.lines().any(|name| name == ".pi"), "the command has them: {}", seen.stdout);
    assert!(is_empty(&home), "they go with pith, not a moment later");
    let (home, server) = scene([]);
    server.push(Turn::call("bash", json!({"command": "ls -A"})));
    server.push(Turn::text("done"));
    assert!(result_of(&events(&home, &["--sandbox", "workspace-write"])).lines().any(|name| name == ".pi"));
    eventually("nothing", || is_empty(&home));
}

#[test]
fn sockets_of_the_users_daemons_are_covered() {
    if !has(namespaces()) {
        return;
    }
    let home = TempHome::new();
    let runtime = home.work().with_file_name("runtime");
    std::fs::create_dir_all(&runtime).expect("made");
    std::fs::write(runtime.join("bus"), "").expect("written");
    let seen = || {
        let directory = runtime.to_str().expect("a text");
        let listing = start_in(&home, ["sandbox", "run", "--", "ls", directory], &[("XDG_RUNTIME_DIR", directory)]);
        finish(listing).stdout
    };
    assert_eq!(seen(), "");
    // Whoever allows all sockets wants to reach daemons, so the same command sees them then.
    home.write_settings(&json!({"sandbox": {"network": {"allowAllUnixSockets": true}}}));
    assert_eq!(seen(), "bus\n");
}
