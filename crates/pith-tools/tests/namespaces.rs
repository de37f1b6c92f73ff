//! Commands in namespaces of their own: attempts that only these close, work that goes on in them, and the proxy that
//! leads out. Only addresses of this machine are contacted.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail anywhere, and prints a table")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use common::{Bench, enforced_by, enforced_with, eventually_async, run, supervisor, text};
use pith_agent::{BoxFuture, ToolOutput};
use pith_protocol::SandboxDenial;
use pith_sandbox::Support;
use pith_testkit::{eventually, has};
use pith_tools::Denied;
use pith_tools::hosts::{Host, HostRules, HostVerdict, SessionHosts};
use pith_tools::process::probe_namespaces;
use pith_tools::sandbox::Sandbox;
use serde_json::{Value, json};

/// Returns whether there are namespaces; says so if not.
fn is_ready() -> bool {
    let needed = Support::check_this_kernel().and_then(|()| probe_namespaces(&supervisor()));
    let is_required = std::env::var_os("PITH_TEST_SANDBOX").is_some_and(|value| value == "require");
    assert!(!is_required || needed.is_ok(), "PITH_TEST_SANDBOX=require: {needed:?}");
    has(needed)
}

fn workspace() -> Value {
    json!({"profile": "workspace-write"})
}

/// A repository, and a directory beside it; in namespaces if there are settings.
fn ground(settings: Option<&Value>) -> Bench {
    ground_with(settings, SessionHosts::default())
}

/// Like [`ground`], where a session has rules about hosts.
fn ground_with(settings: Option<&Value>, hosts: SessionHosts) -> Bench {
    Bench::with(|options| {
        let root = options.temp.canonicalize().unwrap();
        for name in ["outside", "home", "agent", "tmp", "work/.git/hooks", "work/.git/objects"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for (path, text) in
            [("outside/file", "before"), ("work/.git/hooks/sample", "as it was"), ("work/.git/config", "as it was")]
        {
            fs::write(root.join(path), text).unwrap();
        }
        options.sandbox =
            settings.map(|settings| Arc::new(Sandbox::Enforced(enforced_by(&root, settings, true, hosts))));
    })
}

fn root(bench: &Bench) -> PathBuf {
    bench.dir.path().canonicalize().unwrap()
}

/// Runs a command, in which `$ROOT` is the ground, and returns its output.
async fn bash(bench: &Bench, script: &str) -> String {
    let command = script.replace("$ROOT", &root(bench).display().to_string());
    text(&bench.call("bash", json!({ "command": command })).await)
}

/// Makes an attempt and returns whether a shell outside sees its effect.
async fn has_effect(bench: &Bench, script: &str, effect: &str) -> bool {
    bash(bench, script).await;
    let effect = effect.replace("$ROOT", &root(bench).display().to_string());
    let seen = Command::new("sh").args(["-c", &effect]).current_dir(bench.path("")).stderr(Stdio::null()).status();
    seen.unwrap().success()
}

/// Holds attempts against both: with an effect without a sandbox, without one in namespaces.
async fn closed(settings: &Value, attempts: &[(&str, &str, &str)]) {
    for (name, script, effect) in attempts {
        let free = has_effect(&ground(None), script, effect).await;
        let confined = has_effect(&ground(Some(settings)), script, effect).await;
        println!("{name:<56} {:<16} {:<5} {}", "namespaces", "any", if confined { "open" } else { "closed" });
        assert!(free, "{name} has no effect without the sandbox, so it proves nothing");
        assert!(!confined, "{name}: open");
    }
}

/// Waits until a placeholder is removed, which follows the end of the last process of a command.
async fn gone(path: &Path) {
    common::eventually_async(std::time::Duration::from_secs(60), "the placeholder is gone", || !path.exists()).await;
}

#[test]
fn metadata_outside_cannot_be_changed() {
    if !is_ready() {
        return;
    }
    run(closed(
        &workspace(),
        &[
            ("mode bits outside", "chmod 600 $ROOT/outside/file", "test $(stat -c %a $ROOT/outside/file) = 600"),
            ("mode bits of a directory", "chmod 700 $ROOT/outside", "test $(stat -c %a $ROOT/outside) = 700"),
            ("times outside", "touch -d @7 $ROOT/outside/file", "test $(stat -c %Y $ROOT/outside/file) = 7"),
            (
                "mode bits through the root of a process",
                "chmod 600 /proc/self/root$ROOT/outside/file",
                "test $(stat -c %a $ROOT/outside/file) = 600",
            ),
            (
                "mode bits through a link",
                "ln -s $ROOT/outside/file l; chmod 600 l",
                "test $(stat -c %a $ROOT/outside/file) = 600",
            ),
            ("a file outside", "echo x > $ROOT/outside/file", "grep -q x $ROOT/outside/file"),
        ],
    ));
}

#[test]
fn protected_paths_are_held_by_the_kernel() {
    if !is_ready() {
        return;
    }
    run(closed(
        &workspace(),
        &[
            ("held: a new hook", "echo x > .git/hooks/pre-commit", "test -e .git/hooks/pre-commit"),
            ("held: a changed hook", "echo x > .git/hooks/sample", "grep -q x .git/hooks/sample"),
            ("held: a hook that can be run", "chmod 755 .git/hooks/sample", "test -x .git/hooks/sample"),
            ("held: hooks that are a link", "mv .git/hooks .git/h; ln -s h .git/hooks", "test -L .git/hooks"),
            (
                "held: hooks in another .git",
                "mv .git x; cp -r x .git; echo x > .git/hooks/new",
                "test -e .git/hooks/new",
            ),
            ("held: hooks elsewhere", "echo hooksPath >> .git/config", "grep -q hooksPath .git/config"),
            ("held: configuration replaced", "echo x > c; mv -f c .git/config", "grep -qx x .git/config"),
            ("held: configuration by a hard link", "ln .git/config c; echo x >> c", "grep -q x .git/config"),
            ("held: no hooks at all", "rm -r .git/hooks", "test ! -e .git/hooks/sample"),
            ("held: settings of the project", "mkdir .pi; echo {} > .pi/settings.json", "test -e .pi/settings.json"),
            ("held: servers of the project", "rmdir .mcp.json; echo {} > .mcp.json", "test -f .mcp.json"),
            ("held: variables of a shell", "rmdir .envrc; mv .git/config .envrc", "test -f .envrc"),
        ],
    ));
}

#[test]
fn the_last_word_about_protected_paths_is_the_users() {
    if !is_ready() {
        return;
    }
    run(async {
        let bench = ground(Some(&workspace()));
        assert_eq!(
            bash(&bench, "echo x > .git/objects/new && echo y > file && cat .git/objects/new file").await,
            "x\ny\n"
        );
        gone(&bench.path(".envrc")).await;
        // Whoever is outside may change them between commands, also by putting another file in their place.
        fs::write(bench.path("new"), "mine").unwrap();
        fs::rename(bench.path("new"), bench.path(".git/config")).unwrap();
        fs::write(bench.path(".envrc"), "mine").unwrap();
        bash(&bench, "echo x >> .git/config; echo x >> .envrc; rm .envrc").await;
        assert_eq!((bench.contents(".git/config"), bench.contents(".envrc")), (b"mine".to_vec(), b"mine".to_vec()));
        // And while a command runs; what took their place is held for that command too.
        let task = tokio::spawn(bench.start(
            "bash",
            json!({"command": "touch up; until test -e go; do sleep 0.01; done; echo x >> .git/config; touch done"}),
        ));
        while !bench.path("up").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        fs::write(bench.path("new"), "again").unwrap();
        fs::rename(bench.path("new"), bench.path(".git/config")).unwrap();
        // The keeper needs a moment; another command is held from its first moment on.
        bash(&bench, "true").await;
        fs::write(bench.path("go"), "").unwrap();
        task.await.unwrap();
        assert!(bench.path("done").exists());
        assert_eq!(bench.contents(".git/config"), b"again");
    });
}

#[test]
fn a_protected_path_that_is_a_link_is_put_back_instead() {
    if !is_ready() {
        return;
    }
    run(async {
        let bench = Bench::with(|options| {
            let root = options.temp.canonicalize().unwrap();
            for name in ["home", "agent", "tmp", "work/real"] {
                fs::create_dir_all(root.join(name)).unwrap();
            }
            symlink("real", root.join("work/.claude")).unwrap();
            let enforced = enforced_with(&root, &workspace(), true);
            assert!(!enforced.holds_protected_paths());
            options.sandbox = Some(Arc::new(Sandbox::Enforced(enforced)));
        });
        let told = bash(&bench, "rm .claude; mkdir .claude; sleep 100").await;
        assert!(told.starts_with("Changed a protected path: .claude."), "{told}");
        assert!(bench.path(".claude").is_symlink());
        bash(&bench, "mkdir .pi; echo x > .pi/x").await;
        gone(&bench.path(".pi")).await;
    });
}

/// The keeper of a mount namespace.
fn keeper_of(namespace: &str) -> Option<String> {
    let is_keeper = |pid: &String| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let its = fs::read_link(format!("/proc/{pid}/ns/mnt")).unwrap_or_default();
        command.starts_with(b"pith-keeper") && its == Path::new(namespace)
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|entry| entry.file_name().into_string().ok()).find(is_keeper)
}

#[test]
fn a_keeper_is_out_of_reach_and_replaced_when_it_is_gone() {
    if !is_ready() {
        return;
    }
    run(async {
        let bench = ground(Some(&workspace()));
        let namespace = bash(&bench, "readlink /proc/self/ns/mnt").await;
        let keeper = keeper_of(namespace.trim()).unwrap();
        for attempt in [
            format!("kill -9 {keeper}"),
            format!("ls -l /proc/{keeper}/fd"),
            format!("nsenter -t {keeper} -U -m true"),
            "nsenter -t 1 -m true".to_owned(),
            "unshare -Ur true".to_owned(),
            "mount -t tmpfs none .".to_owned(),
            "umount .git".to_owned(),
            "mount -o remount,bind,rw /".to_owned(),
        ] {
            bench.fails("bash", json!({ "command": attempt })).await;
        }
        assert_eq!(bash(&bench, "readlink /proc/self/ns/mnt").await, namespace, "the keeper lives");
        Command::new("kill").args(["-9", &keeper]).status().unwrap();
        eventually("the keeper is gone", || !common::is_alive(keeper.parse().unwrap()));
        bash(&bench, "echo x > .git/hooks/new; chmod 600 $ROOT/outside/file").await;
        assert!(!bench.path(".git/hooks/new").exists());
        // The number of a namespace that is gone may be given again.
        let other = keeper_of(bash(&bench, "readlink /proc/self/ns/mnt").await.trim()).unwrap();
        assert_ne!(other, keeper);
    });
}

#[test]
fn there_is_no_network_but_their_own() {
    if !is_ready() {
        return;
    }
    run(async {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        datagrams.set_nonblocking(true).unwrap();
        let (tcp, udp) = (server.local_addr().unwrap().port(), datagrams.local_addr().unwrap().port());
        let listed = json!({"profile": "workspace-write", "network": {"mode": "domains", "allowLocalBinding": true}});
        let reach = format!("(exec 3<>/dev/tcp/127.0.0.1/{tcp}) && touch reached");
        let send = format!("echo x > /dev/udp/127.0.0.1/{udp}; true");
        let mut received = Vec::new();
        for settings in [None, Some(&listed)] {
            let bench = ground(settings);
            bash(&bench, &format!("{reach}; {send}")).await;
            let datagram = datagrams.recv(&mut [0; 8]).is_ok();
            received.push((bench.path("reached").exists(), datagram));
        }
        assert_eq!(received, [(true, true), (false, false)]);
        let bench = ground(Some(&listed));
        let devices = bash(&bench, "tail -n +3 /proc/net/dev | cut -d: -f1").await;
        assert_eq!(devices.trim(), "lo");
    });
}

#[test]
fn listening_is_for_those_who_may() {
    if !is_ready() || !has(Command::new("python3").arg("--version").output().map(drop).map_err(|_| "no python3".into()))
    {
        return;
    }
    const SERVE: &str = "python3 -c 'import socket; s=socket.create_server((\"127.0.0.1\", 0)); \
                         socket.create_connection(s.getsockname()); s.accept(); print(\"met\")'";
    run(async {
        let network = |network: Value| ground(Some(&json!({"profile": "workspace-write", "network": network})));
        for listening in [json!({"allowLocalBinding": true}), json!({"mode": "domains", "allowLocalBinding": true})] {
            assert_eq!(bash(&network(listening), SERVE).await, "met\n");
        }
        for silent in [json!({}), json!({"mode": "domains"})] {
            network(silent).fails("bash", json!({ "command": SERVE })).await;
        }
    });
}

/// A server of this machine that answers every request with the head it was sent.
fn echo_server(address: &str) -> std::io::Result<u16> {
    let listener = TcpListener::bind(address)?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
                    head.push(byte[0]);
                }
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", head.len());
                let _ = stream.write_all(&[answer.as_bytes(), &head].concat());
            });
        }
    });
    Ok(port)
}

/// Says something to the proxy and shows what it answers.
fn ask(words: &str) -> String {
    // In one piece: the shell's own printf writes line by line.
    format!("exec 3<>/dev/tcp/127.0.0.1/3128 && printf '{words}' >asked && cat asked >&3 && timeout 20 cat <&3")
}

#[test]
fn the_proxy_leads_to_listed_hosts_and_nowhere_else() {
    if !is_ready() {
        return;
    }
    run(async {
        let port = echo_server("127.0.0.1:0").unwrap();
        let other = echo_server("127.0.0.1:0").unwrap();
        let settings = json!({"profile": "workspace-write", "network": {
            "allowedDomains": [format!("127.0.0.1:{port}"), format!("localhost:{other}"), "*.example.org"],
            "deniedDomains": ["secret.example.org"],
        }});
        let bench = ground(Some(&settings));
        let tunnel = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\nGET /in HTTP/1.1\\r\\n\\r\\n");
        let answer = bash(&bench, &ask(&tunnel)).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("GET /in HTTP/1.1"), "{answer}");
        let plain = format!(
            "GET http://127.0.0.1:{port}/a?b HTTP/1.1\\r\\nHost: secret.example.org\\r\\nProxy-Authorization: x\\r\\n\
             Connection: close, X-Mine\\r\\nX-Mine: x\\r\\nX-Kept: y\\r\\n\\r\\n"
        );
        let answer = bash(&bench, &ask(&plain)).await.to_lowercase();
        assert!(
            answer.contains("get /a?b http/1.1") && answer.contains(&format!("host: 127.0.0.1:{port}")),
            "{answer}"
        );
        assert!(answer.contains("x-kept: y"), "{answer}");
        assert!(!answer.contains("secret") && !answer.contains("proxy-auth") && !answer.contains("x-mine"), "{answer}");
        for (host, code, body) in [
            (format!("127.0.0.1:{other}"), "blocked-by-allowlist", "pith: 127.0.0.1 is not in allowedDomains"),
            ("169.254.169.254:80".to_owned(), "blocked-by-allowlist", "pith: 169.254.169.254 is not in allowedDomains"),
            ("example.net:443".to_owned(), "blocked-by-allowlist", "pith: example.net is not in allowedDomains"),
            ("a.example.org:22".to_owned(), "blocked-by-allowlist", "pith: a.example.org is not in allowedDomains"),
            (
                "SECRET.example.org.:443".to_owned(),
                "blocked-by-denylist",
                "pith: secret.example.org is in deniedDomains",
            ),
            // The name is listed, the address it leads to is not.
            (
                format!("localhost:{other}"),
                "blocked-by-address",
                "pith: localhost leads to an address that is not in allowedDomains",
            ),
        ] {
            let words = format!("CONNECT {host} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n");
            let output = bench.call("bash", json!({ "command": ask(&words) })).await;
            let answer = text(&output);
            assert!(answer.starts_with("HTTP/1.1 403"), "{host}: {answer}");
            assert!(answer.contains(&format!("x-proxy-error: {code}")) && answer.ends_with(body), "{host}: {answer}");
            let [Denied { kind: SandboxDenial::Network, target: Some(target), count: 1, reason }] =
                &*Denied::of(&output)
            else {
                panic!("{output:?}")
            };
            assert!(body.contains(target.as_str()) && reason.as_deref() == Some(code), "{target}: {reason:?}");
        }
        for odd in
            ["GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n", "GET https://a.b/ HTTP/1.0\\r\\n\\r\\n"]
        {
            let answer = bash(&bench, &ask(odd)).await;
            assert!(answer.contains(" 400 "), "{answer}");
        }
        assert!(
            bash(&bench, "echo $HTTPS_PROXY $http_proxy $ALL_PROXY [$NO_PROXY] $NODE_USE_ENV_PROXY").await
                == "http://127.0.0.1:3128 http://127.0.0.1:3128 http://127.0.0.1:3128 [] 1\n"
        );
    });
}

#[test]
fn a_tunnel_for_tls_must_be_one_to_the_host_it_named() {
    if !is_ready() {
        return;
    }
    let Ok(_) = echo_server("127.0.0.1:443") else { return pith_testkit::skip("port 443 cannot be had here") };
    run(async {
        let listed = json!({"profile": "workspace-write", "network": {"allowedDomains": ["localhost", "127.0.0.1"]}});
        let bench = ground(Some(&listed));
        let is_denied = |output: &ToolOutput| {
            let denied: Vec<_> =
                Denied::of(output).into_iter().map(|denied| (denied.target.unwrap(), denied.reason.unwrap())).collect();
            assert_eq!(denied, [("localhost".to_owned(), "blocked-by-sni".to_owned())]);
        };
        let (tunnel, inside) =
            ("CONNECT localhost:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n", "GET /secret HTTP/1.1\\r\\n\\r\\n");
        // No TLS at all: the server must not hear of it. The tunnel is open, so the client is told in the words of TLS.
        let answered = r#"while IFS= read -r line <&3 && [ "$line" != $'\r' ]; do :; done"#;
        let later = format!(
            "exec 3<>/dev/tcp/127.0.0.1/3128 && printf '{tunnel}' >&3 && {answered} && printf '{inside}' >&3 && \
             timeout 20 cat <&3 | od -An -tu1"
        );
        let output = bench.call("bash", json!({ "command": later })).await;
        assert_eq!(text(&output).split_whitespace().collect::<Vec<_>>().join(" "), "21 3 3 0 2 2 112");
        is_denied(&output);
        // What comes with the request is looked at before it is answered.
        let output = bench.call("bash", json!({ "command": ask(&format!("{tunnel}{inside}")) })).await;
        let answer = text(&output);
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("x-proxy-error: blocked-by-sni"), "{answer}");
        assert!(answer.ends_with("pith: the first message to localhost is not TLS for that name"), "{answer}");
        is_denied(&output);
    });
}

/// Rules of a session: one host is allowed, another one is not.
struct SomeHosts;

impl HostRules for SomeHosts {
    fn judge(&self, host: &Host, _port: u16) -> BoxFuture<'static, HostVerdict> {
        let verdict = match host.to_string().as_str() {
            "localhost" => HostVerdict::Allowed,
            "refused.example" => HostVerdict::Refused("The user did not allow this.".to_owned()),
            "secret.example.org" | "127.0.0.1" => panic!("the lists have it"),
            _ => HostVerdict::NoRule,
        };
        // A decision may take a while.
        Box::pin(async move {
            tokio::task::yield_now().await;
            verdict
        })
    }
}

#[test]
fn rules_of_the_session_decide_about_hosts_that_no_list_has() {
    if !is_ready() {
        return;
    }
    run(async {
        let port = echo_server("127.0.0.1:0").unwrap();
        let other = echo_server("127.0.0.1:0").unwrap();
        let settings = json!({"profile": "workspace-write", "network": {"mode": "domains",
            "allowedDomains": [format!("127.0.0.1:{port}")], "deniedDomains": ["secret.example.org"]}});
        let hosts = SessionHosts::default();
        hosts.set(Arc::new(SomeHosts));
        let bench = ground_with(Some(&settings), hosts);
        for (host, port, status, said) in [
            ("127.0.0.1", port, "200", ""),
            ("localhost", port, "200", ""),
            // Rules are about names; where a name leads is another matter.
            ("localhost", other, "403", "pith: localhost leads to an address that is not in allowedDomains"),
            ("refused.example", 443, "403", "pith: refused.example: The user did not allow this."),
            ("secret.example.org", 443, "403", "pith: secret.example.org is in deniedDomains"),
            ("unknown.example", 443, "403", "pith: unknown.example is not in allowedDomains"),
        ] {
            let words = format!("GET http://{host}:{port}/ HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n");
            let answer = bash(&bench, &ask(&words)).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(said), "{host}: {answer}");
        }
    });
}

#[test]
fn nothing_is_left_behind() {
    if !is_ready() {
        return;
    }
    run(async {
        let bench = ground(Some(&workspace()));
        bash(&bench, "(sleep 1000 &) ; true").await;
        assert!(bench.path(".pi").is_dir(), "there while a process of the command lives");
        bench.workbench.jobs.shutdown_all(Duration::ZERO).await;
        assert!(bench.path(".pi").is_dir(), "there for the next command");
        // A command that comes in time finds them, and they go after it.
        bash(&bench, "true").await;
        eventually_async(Duration::from_secs(60), "no placeholder", || !bench.path(".pi").exists()).await;
        let mut left: Vec<_> = fs::read_dir(bench.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".git"]);
        eventually("the directory is free", || fs::remove_dir_all(bench.path(".git")).is_ok());
    });
}

#[test]
fn the_same_holds_for_a_user_without_rights() {
    const NOBODY: u32 = 65_534;
    if !is_ready() || !rustix::process::geteuid().is_root() {
        return;
    }
    let tests = std::env::current_exe().unwrap();
    let mut again = Command::new(&tests);
    again.args(["--skip", "the_same_holds"]).uid(NOBODY).gid(NOBODY).env_remove("PITH_SKIPPED");
    let is_reachable = |program: &Path| Command::new(program).arg("--help").uid(NOBODY).gid(NOBODY).output().is_ok();
    if !is_reachable(&tests) || !is_reachable(&supervisor().program) {
        return pith_testkit::skip("the programs of the tests are out of reach for other users");
    }
    let output = again.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
