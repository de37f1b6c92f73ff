//! Rules about domains: what becomes of hosts that no list of the sandbox has.

use std::io::{Read, Write};
use std::net::TcpListener;

use pith_testkit::{Host, TempHome, Tmux, Turn, has};
use serde_json::{Value, json};

use super::super::support::{model, scene};
use super::{events, namespaces, result_of};

/// Answers every request with a page; returns its port.
fn page_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\npage");
        }
    });
    port
}

/// A command that asks for pages, one after the other, and shows the answers.
fn get(hosts: &[String]) -> String {
    let one = |host: &String| {
        let words = format!("GET http://{host}/ HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n");
        format!("exec 3<>/dev/tcp/127.0.0.1/3128; printf '{words}' >&3; cat <&3; exec 3>&-")
    };
    hosts.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Settings in which commands reach `localhost` if a rule or the user lets them: the address is listed, the name is not.
fn settings(port: u16, permissions: Value) -> Value {
    let network = json!({"mode": "domains", "allowedDomains": [format!("127.0.0.1:{port}")]});
    json!({"sandbox": {"profile": "workspace-write", "network": network}, "permissions": permissions})
}

#[test]
fn rules_decide_about_hosts_that_are_in_no_list() {
    if !has(namespaces()) {
        return;
    }
    let port = page_server();
    let (local, rule) = (format!("localhost:{port}"), format!("network(domain:localhost:{port})"));
    let (home, server) = scene([]);
    let result = |permissions: Value, host: &str| {
        home.write_settings(&settings(port, permissions));
        server.push(Turn::call("bash", json!({"command": get(&[host.to_owned()])})));
        server.push(Turn::text("done"));
        let events = events(&home, &[]);
        let denied = events.iter().find(|event| event["type"] == "sandbox_denied");
        (result_of(&events).to_owned(), denied.map_or(Value::Null, |denied| denied["reason"].clone()))
    };
    let (page, denied) = result(json!({"allow": [rule]}), &local);
    assert!(page.ends_with("page") && denied.is_null(), "{page}");
    // What is said of all tools, and the mode, say nothing of hosts.
    let (refused, denied) = result(json!({"allow": ["*"]}), &local);
    assert!(refused.contains("pith: localhost is not in allowedDomains"), "{refused}");
    assert_eq!(denied, "blocked-by-allowlist");
    let (refused, denied) =
        result(json!({"deny": ["network(domain:*.example.org)"], "allow": ["network"]}), "a.example.org");
    assert!(
        refused.contains("pith: a.example.org: Not allowed: network(domain:*.example.org) is denied by"),
        "{refused}"
    );
    assert_eq!(denied, "blocked-by-denylist");
    // Nobody is there to ask.
    let (refused, _) = result(json!({"ask": [rule]}), &local);
    assert!(refused.contains("Nobody could be asked"), "{refused}");
    let (page, _) = result(json!({"ask": [rule], "unattended": "allow"}), &local);
    assert!(page.ends_with("page"), "{page}");
}

#[test]
fn the_user_is_asked_about_a_host_while_the_connection_waits() {
    if !has(namespaces()) {
        return;
    }
    let port = page_server();
    let (local, rule) = (format!("localhost:{port}"), format!("network(domain:localhost:{port})"));
    let (home, server) = scene([]);
    home.write_settings(&settings(port, json!({"ask": [rule]})));
    let start = || {
        let arguments = [&model()[..], &["--mode", "rpc", "--no-session"]].concat();
        Host::builder(env!("CARGO_BIN_EXE_pith")).home(&home).args(arguments).spawn()
    };
    let mut host = start();
    // Two connections of one command: an answer holds for the command.
    let command = get(&[local.clone(), local.clone()]);
    let go = |host: &mut Host, answer: Option<&str>| {
        server.push(Turn::call("bash", json!({ "command": command })));
        server.push(Turn::text("done"));
        host.send(json!({"type": "prompt", "message": "go"}));
        if let Some(answer) = answer {
            let asked = host.wait(|frame| frame["type"] == "extension_ui_request");
            let title = asked["title"].as_str().expect("a title");
            let expected = format!("Allow network?\n\n  {local}\n  \n  Wanted by: {command}");
            assert!(title.starts_with(&expected) && title.ends_with(&format!("Rule: ask {rule}")), "{title}");
            host.send(json!({"type": "extension_ui_response", "id": asked["id"], "value": answer}));
        }
        let end = host.wait(|frame| match frame["type"].as_str() {
            Some("extension_ui_request") => panic!("asked once more: {frame}"),
            kind => kind == Some("tool_execution_end"),
        });
        host.wait(|frame| frame["type"] == "agent_settled");
        end["result"]["content"][0]["text"].as_str().expect("a text").to_owned()
    };
    let refused = go(&mut host, Some("Deny"));
    assert_eq!(refused.matches("pith: localhost: The user did not allow this.").count(), 2, "{refused}");
    for (answer, is_asked_again) in
        [("Allow once".to_owned(), true), (format!("Allow for this session: {rule}"), false)]
    {
        assert_eq!(go(&mut host, Some(&answer)).matches("page").count(), 2, "{answer}");
        if !is_asked_again {
            assert_eq!(go(&mut host, None).matches("page").count(), 2, "{answer}");
        }
    }
    let audit = host.data(json!({"type": "get_audit"}))["entries"].to_string();
    assert!(audit.contains(r#""tool":"network""#) && audit.contains(&rule), "{audit}");
    drop(host);
    // Another session, and one more: what was allowed in the project stays.
    assert_eq!(go(&mut start(), Some(&format!("Allow in this project: {rule}"))).matches("page").count(), 2);
    assert_eq!(go(&mut start(), None).matches("page").count(), 2);
}

#[test]
fn the_chat_asks_about_a_host() {
    if !has(namespaces()) {
        return;
    }
    let port = page_server();
    let (local, rule) = (format!("localhost:{port}"), format!("network(domain:localhost:{port})"));
    for size in [(100, 40), (60, 20)] {
        let call = || Turn::call("bash", json!({"command": get(std::slice::from_ref(&local))}));
        let (home, server) = scene([call(), call(), Turn::text("over")]);
        home.write_settings(&settings(port, json!({"ask": [rule]})));
        let program = [&[env!("CARGO_BIN_EXE_pith")][..], &model()].concat();
        let Some(tmux) = Tmux::open(&home, size, &program, &[]) else { return };
        tmux.wait("Enter sends");
        tmux.enter("go");
        let asked = || {
            tmux.wait(&format!("? connect to {local}"));
            tmux.wait("waiting for you");
            tmux.wait("wanted by: exec 3<>/dev/tcp");
        };
        asked();
        tmux.press(&["Enter", "n"]);
        // The end of the first call comes after its question has gone.
        tmux.wait("pith: localhost");
        asked();
        tmux.type_text("y");
        tmux.wait("over");
        let results = server.requests()[2].body["messages"].to_string();
        assert!(results.contains("localhost: The user did not allow this."), "{results}");
        assert!(results.contains("page"), "{results}");
    }
}

#[test]
fn a_rule_against_a_domain_says_where_it_holds_nothing_back() {
    if !has(namespaces()) {
        return;
    }
    let home = scene([]).0;
    let told = |home: &TempHome, network: Value| {
        let sandbox = json!({"profile": "workspace-write", "network": network});
        home.write_settings(&json!({"sandbox": sandbox, "permissions": {"deny": ["network(domain:example.org)"]}}));
        let arguments = [&model()[..], &["--mode", "rpc", "--no-session"]].concat();
        let mut host = Host::builder(env!("CARGO_BIN_EXE_pith")).home(home).args(arguments).spawn();
        let found = host.data(json!({"type": "get_diagnostics"}))["diagnostics"].clone();
        let found = found.as_array().expect("a list").iter().find(|found| found["code"] == "permission_unenforced");
        found.map(|found| found["message"].as_str().expect("a text").to_owned())
    };
    assert_eq!(told(&home, json!({"mode": "domains"})), None);
    let text = told(&home, json!({"mode": "on"})).expect("it is told");
    assert!(
        text.contains("is not enforced: pith sees domains only where sandbox.network.mode is \"domains\""),
        "{text}"
    );
}
