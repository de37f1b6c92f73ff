//! A login that is renewed while something ends: a server that replaces refresh tokens must never have replaced the one
//! that is stored.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use pith_testkit::{
    Dice, GuardedServer, Host, ModelServer, RenewalStep, Script, Signal, TempHome, Turn, eventually, timeout,
};
use rustix::process::{Pid, kill_process};
use serde_json::{Value, json};

use crate::support::builder;

/// Whose login is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Login {
    /// That of a provider that an extension has registered.
    Provider,
    /// The sign-in to an MCP server.
    Server,
}

/// What happens during the renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The host aborts the run that needs the login.
    Abort,
    /// The host closes stdin.
    ClosedInput,
    Signal(Signal),
    /// `SIGKILL`, after this pause.
    Kill(Duration),
}

/// When it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Step(RenewalStep),
    /// The new token was used.
    Used,
}

const EXTENSION: &str = r#"export default (pi) => {
    pi.registerProvider("club", {
        baseUrl: process.env.MODEL_URL, api: "anthropic-messages", models: [{ id: "member" }],
        oauth: {
            name: "Club", login: async () => ({}), getApiKey: (kept) => kept.access,
            refreshToken: async (kept) => {
                const body = new URLSearchParams({ grant_type: "refresh_token", refresh_token: kept.refresh });
                const answer = await fetch(process.env.TOKEN_URL, { method: "POST", body });
                const fresh = await answer.json();
                if (!answer.ok) throw new Error(fresh.error_description);
                return { access: fresh.access_token, refresh: fresh.refresh_token, expires: Date.now() + 3600000 };
            },
        },
    });
};"#;

/// A home where both logins have expired, and the servers they are for.
struct Stage {
    login: Login,
    guarded: GuardedServer,
    model: ModelServer,
    home: TempHome,
    /// Told when the renewal has come to the step.
    reached: Receiver<()>,
    /// Lets it go on; dropped to end the connection.
    go: Option<SyncSender<()>>,
}

impl Stage {
    fn new(login: Login, moment: Moment) -> Self {
        let (tell, reached) = sync_channel(1);
        let (go, may_go) = sync_channel::<()>(1);
        let may_go = Mutex::new(may_go);
        let guarded = GuardedServer::renewing(1, move |step| {
            // A later renewal finds nobody who listens, and goes on.
            if moment != Moment::Step(step) || tell.send(()).is_err() {
                return true;
            }
            may_go.lock().unwrap_or_else(PoisonError::into_inner).recv().is_ok()
        });
        let model = ModelServer::start(Script::new().fallback(Turn::text("hello")));
        let home = TempHome::for_server(&model);
        home.write_agent_file("extensions/club.ts", EXTENSION);
        let auth = json!({"club": {"type": "oauth", "access": "access-1", "refresh": "refresh-1", "expires": 1}});
        home.write_agent_file("auth.json", auth.to_string());
        if login == Login::Server {
            home.write_agent_file("mcp.json", json!({"mcpServers": {"far": {"url": guarded.url()}}}).to_string());
            let tokens = json!({"access_token": "access-0", "refresh_token": "refresh-1"});
            let entry = json!({"tokens": tokens, "tokensExpireAt": 1, "clientInformation": {"client_id": "client-1"}});
            let sign_ins = json!({ format!("mcp__far|{}", guarded.url()): entry });
            home.write_agent_file("mcp-auth.json", sign_ins.to_string());
        }
        Stage { login, guarded, model, home, reached, go: Some(go) }
    }

    fn start(&self) -> Host {
        let mut host = builder().home(&self.home).args(["--mode", "rpc"]);
        host = match self.login {
            Login::Provider => host.args(["--provider", "club", "--model", "member"]),
            Login::Server => host.args(["--provider", "mock-anthropic", "--model", "claude-mock"]),
        };
        host.env("MODEL_URL", &self.model.url()).env("TOKEN_URL", &self.guarded.token_url()).spawn()
    }

    /// The number of the refresh token that is stored.
    fn stored(&self) -> u32 {
        let (file, at) = match self.login {
            Login::Provider => ("auth.json", "/club/refresh".to_owned()),
            Login::Server => {
                let key = format!("mcp__far|{}", self.guarded.url());
                ("mcp-auth.json", format!("/{}/tokens/refresh_token", key.replace('/', "~1")))
            }
        };
        let text = fs::read_to_string(self.home.agent().join(file)).expect("there");
        let all: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}: {text}"));
        let token = all.pointer(&at).and_then(Value::as_str).unwrap_or_else(|| panic!("no token: {text}"));
        token.strip_prefix("refresh-").and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{token}"))
    }

    /// Waits until the login was renewed and used.
    fn wait_used(&self, host: &mut Host) {
        match self.login {
            Login::Provider => drop(self.model.wait_request(0)),
            Login::Server => {
                let servers = host.data(json!({"type": "get_mcp_servers", "connect": true}));
                assert_eq!(servers["servers"][0]["state"], "ready", "{servers}");
            }
        }
    }

    /// Starts pith again, which must have a login that works.
    fn check_next_start(&self) {
        // Locks of a process that was killed are taken over later than a test wants to wait.
        age_locks(&self.home.agent());
        let mut host = self.start();
        match self.login {
            Login::Provider => {
                assert_eq!(host.ask(json!({"type": "prompt", "message": "go"}))["success"], true);
                host.wait_type("agent_settled");
                let answer = host.data(json!({"type": "get_last_assistant_text"}));
                assert_eq!(answer["text"], "hello", "{}", host.describe());
            }
            Login::Server => self.wait_used(&mut host),
        }
        assert_eq!(host.finish().1, 0);
        assert_eq!(self.stored(), self.guarded.number());
    }
}

fn age_locks(directory: &Path) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        if entry.file_name().to_string_lossy().ends_with(".lock") {
            let old = SystemTime::now() - Duration::from_secs(60);
            fs::File::open(entry.path()).and_then(|lock| lock.set_modified(old)).expect("aged");
        }
    }
}

/// Lets a login be renewed, and something happen at one moment of that. Returns whether the login survived.
fn play(login: Login, moment: Moment, end: End) -> bool {
    let mut stage = Stage::new(login, moment);
    let mut host = stage.start();
    assert_eq!(host.ask(json!({"type": "prompt", "message": "go"}))["success"], true);
    match moment {
        Moment::Used => stage.wait_used(&mut host),
        Moment::Step(_) => stage.reached.recv_timeout(timeout()).unwrap_or_else(|_| panic!("{}", host.describe())),
    }
    let go = stage.go.take().expect("not used yet");
    match end {
        End::Kill(pause) => {
            let moment = Instant::now() + pause;
            while Instant::now() < moment {
                std::hint::spin_loop();
            }
            host.kill();
            drop(go);
        }
        End::Abort => {
            assert_eq!(host.ask(json!({"type": "abort"}))["success"], true);
            // Nobody receives it where the renewal is over.
            let _ = go.send(());
            eventually("the renewed login is stored", || {
                stage.stored() == stage.guarded.number() && stage.guarded.number() == 2
            });
            assert_eq!(host.finish().1, 0);
        }
        End::ClosedInput | End::Signal(_) => {
            match end {
                End::Signal(signal) => host.signal(signal),
                _ => host.close_stdin(),
            }
            // pith is ending by then.
            host.wait_type("agent_settled");
            let _ = go.send(());
            host.exit_code();
        }
    }
    let (stored, number) = (stage.stored(), stage.guarded.number());
    let case = format!("{login:?}, {moment:?}, {end:?}: {}", host.describe());
    drop(stage.reached);
    let (_, reached) = sync_channel(0);
    stage.reached = reached;
    if matches!(end, End::Kill(_)) {
        assert!((1..=number).contains(&stored), "{case}");
        // An answer that was still on its way is lost with the process that it was for.
        assert!(stored == number || matches!(moment, Moment::Step(_)), "{case}");
    } else {
        assert_eq!((stored, number), (2, 2), "{case}");
    }
    stage.guarded.accept(stored);
    stage.check_next_start();
    stored == number
}

const LOGINS: [Login; 2] = [Login::Provider, Login::Server];
const STEPS: [Moment; 4] = [
    Moment::Step(RenewalStep::Arrived),
    Moment::Step(RenewalStep::HalfSent),
    Moment::Step(RenewalStep::Sent),
    Moment::Used,
];

#[test]
fn an_aborted_run_does_not_abort_the_renewal_that_it_needs() {
    for login in LOGINS {
        play(login, Moment::Step(RenewalStep::Arrived), End::Abort);
    }
}

#[test]
fn the_end_of_input_waits_for_a_renewal() {
    for login in LOGINS {
        play(login, Moment::Step(RenewalStep::Arrived), End::ClosedInput);
    }
}

#[test]
fn a_signal_waits_for_a_renewal() {
    for login in LOGINS {
        play(login, Moment::Step(RenewalStep::HalfSent), End::Signal(Signal::TERM));
    }
}

#[test]
fn a_signal_to_a_subcommand_waits_for_a_renewal() {
    let mut stage = Stage::new(Login::Server, Moment::Step(RenewalStep::Arrived));
    let mut command = Command::new(env!("CARGO_BIN_EXE_pith"));
    command.args(["mcp", "list"]).env_clear().envs(stage.home.environment()).current_dir(stage.home.work());
    let mut pith = command.stdout(Stdio::null()).spawn().expect("pith starts");
    stage.reached.recv_timeout(timeout()).expect("a renewal");
    kill_process(Pid::from_child(&pith), Signal::TERM).expect("it runs");
    stage.go.take().expect("not used yet").send(()).expect("the server waits");
    assert_eq!(pith.wait().expect("it ends").code(), Some(143));
    assert_eq!((stage.stored(), stage.guarded.number()), (2, 2));
}

/// `PITH_TEST_RENEWALS=500` plays that many.
#[test]
fn no_login_is_lost_wherever_its_renewal_is_disturbed() {
    let n_plays = std::env::var("PITH_TEST_RENEWALS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let mut dice = Dice::new(32);
    let (mut n_kills, mut n_survived) = (0, 0);
    for _ in 0..n_plays {
        let pause = Duration::from_micros(dice.below(4000));
        let signals = [Signal::TERM, Signal::INT, Signal::HUP].map(End::Signal);
        let ends = [End::Abort, End::ClosedInput, dice.pick(&signals), End::Kill(Duration::ZERO), End::Kill(pause)];
        let (moment, end) = (dice.pick(&STEPS), dice.pick(&ends));
        let has_survived = play(dice.pick(&LOGINS), moment, end);
        if matches!(end, End::Kill(_)) {
            n_kills += 1;
            n_survived += u32::from(has_survived);
        }
    }
    eprintln!("{n_plays} played, {n_kills} killed, {n_survived} of these kept the login");
}

#[test]
fn a_server_that_never_answers_a_renewal_does_not_hold_the_end_up_for_long() {
    let stage = Stage::new(Login::Provider, Moment::Step(RenewalStep::Arrived));
    let mut host = stage.start();
    assert_eq!(host.ask(json!({"type": "prompt", "message": "go"}))["success"], true);
    stage.reached.recv_timeout(timeout()).expect("a renewal");
    host.signal(Signal::TERM);
    assert_eq!(host.exit_code(), 143);
    assert_eq!((stage.stored(), stage.guarded.number()), (1, 1));
}
