//! Which servers start although nobody has named them.

use pith_mcp::State;
use serde_json::{Value, json};

use crate::bench::{Bench, entry, text};

/// A server `s` whose entry has further members.
fn bench(behaviour: &str, more: &Value) -> Bench {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = entry(directory.path(), behaviour);
    for (key, value) in more.as_object().expect("an object") {
        server[key] = value.clone();
    }
    Bench::in_directory(directory, json!({ "s": server }))
}

#[tokio::test]
async fn work_starts_only_servers_whose_tools_may_be_declared() {
    let check = async |more: Value, is_started: bool| {
        let bench = bench("plain", &more);
        let wait = bench.servers.begin_work(Vec::new);
        assert_eq!(wait.is_some(), is_started, "{more}");
        if let Some(wait) = wait {
            wait.await;
        }
        assert_eq!(bench.state(), if is_started { State::Ready } else { State::Idle }, "{more}");
        assert_eq!(bench.log().is_empty(), !is_started, "{more}");
        bench.servers.close().await;
    };
    check(json!({}), true).await;
    check(json!({"exposure": "direct"}), true).await;
    check(json!({"exposure": "deferred"}), false).await;
    check(json!({"exposure": "hidden"}), false).await;
    check(json!({"exposure": "hidden", "toolExposure": {"echo": "deferred"}}), false).await;
    check(json!({"exposure": "deferred", "toolExposure": {"ec*": "direct"}}), true).await;
    check(json!({"exposure": "hidden", "toolExposure": {"echo": "auto"}}), true).await;
}

#[tokio::test]
async fn a_search_starts_the_servers_that_it_may_be_about() {
    let deferred = bench("plain", &json!({"exposure": "deferred", "description": "Echoes"}));
    assert!(deferred.servers.begin_work(Vec::new).is_none());
    let unlisted = deferred.servers.unlisted().remove(0);
    assert_eq!((&*unlisted.name, unlisted.about.as_deref()), ("s", Some("Echoes")));
    deferred.servers.begin_search().expect("its tools are not known").await;
    assert_eq!((deferred.state(), deferred.servers.unlisted()), (State::Ready, vec![]));
    assert_eq!(text(&deferred.call("echo", json!({})).await), "{}");
    assert!(deferred.servers.begin_search().is_none(), "its tools are known");
    deferred.servers.close().await;
    for exposure in ["hidden", "direct"] {
        let other = bench("plain", &json!({"exposure": exposure}));
        other.servers.load();
        assert!(other.servers.begin_search().is_none() && other.servers.unlisted().is_empty(), "{exposure}");
        assert_eq!(other.state(), State::Idle);
    }
}

#[tokio::test]
async fn a_search_says_why_the_tools_of_a_server_are_not_known() {
    let bench = bench("dies", &json!({"exposure": "deferred"}));
    bench.servers.load();
    assert_eq!(bench.servers.unlisted()[0].why, "it has not answered yet");
    bench.servers.begin_search().expect("its tools are not known").await;
    assert!(bench.servers.unlisted()[0].why.starts_with("ended with exit code 3"), "{:?}", bench.servers.unlisted());
    bench.servers.find("s").expect("configured").set_enabled(false).await;
    assert!(bench.servers.unlisted().is_empty(), "a server that is switched off has no tools");
    bench.servers.close().await;
}

#[tokio::test]
async fn work_waits_for_a_server_whose_tools_the_session_has_found_before() {
    let bench = bench("plain", &json!({"exposure": "deferred"}));
    assert!(bench.servers.begin_work(|| vec!["mcp__other__echo".to_owned()]).is_none());
    let wait = bench.servers.begin_work(|| vec!["mcp__s__echo".to_owned()]);
    wait.expect("a tool of it is declared").await;
    assert_eq!(bench.state(), State::Ready);
    bench.servers.close().await;
}

#[tokio::test]
async fn work_waits_once_for_a_server_that_starts_already() {
    // Longer than work waits.
    let bench = bench("silent", &json!({"lifecycle": "eager", "startupTimeoutMs": 3_600_000}));
    bench.servers.start_eager();
    assert_eq!(bench.state(), State::Starting);
    drop(bench.servers.begin_work(Vec::new).expect("its tools are not known"));
    let wait = bench.servers.begin_work(Vec::new).expect("nobody has waited yet");
    tokio::time::pause();
    wait.await;
    tokio::time::resume();
    assert_eq!(bench.state(), State::Starting);
    assert!(bench.servers.begin_work(Vec::new).is_none(), "it was waited for in vain");
    bench.servers.close().await;
}

#[tokio::test]
async fn work_waits_for_found_tools_of_a_server_that_starts_already() {
    let bench = bench("plain", &json!({"lifecycle": "eager", "exposure": "deferred"}));
    bench.servers.start_eager();
    let wait = bench.servers.begin_work(|| vec!["mcp__s__echo".to_owned()]);
    wait.expect("a tool of it is declared").await;
    assert_eq!(bench.state(), State::Ready);
    bench.servers.close().await;
}

#[tokio::test]
async fn eager_servers_start_whatever_the_model_sees_of_them() {
    for exposure in ["deferred", "hidden"] {
        let bench = bench("plain", &json!({"lifecycle": "eager", "exposure": exposure}));
        assert!(bench.servers.begin_work(Vec::new).is_none(), "nobody waits for it");
        assert_eq!(bench.state(), State::Starting, "{exposure}");
        bench.servers.close().await;
    }
}

#[tokio::test]
async fn what_the_system_prompt_says_of_a_server_stays_when_it_becomes_known() {
    let bench = bench("plain", &json!({"exposure": "deferred"}));
    bench.servers.load();
    assert_eq!(bench.servers.unlisted()[0].about, None);
    bench.connect().await;
    assert!(!bench.servers.instructions().is_empty(), "it says something about itself");
    assert_eq!(bench.tool("mcp__s__echo").origin().expect("of a server").about, None);
    bench.servers.close().await;
}

#[tokio::test]
async fn a_server_is_described_by_the_user_or_by_itself_if_it_is_heard() {
    let check = async |more: Value, about: Option<&str>| {
        let bench = bench("plain", &more);
        bench.connect().await;
        assert_eq!(bench.tool("mcp__s__echo").origin().expect("of a server").about, about, "{more}");
        bench.servers.close().await;
    };
    check(json!({}), Some("Be kind.")).await;
    check(json!({"description": "Echoes"}), Some("Echoes")).await;
    check(json!({"instructions": false}), None).await;
}

#[tokio::test]
async fn nothing_of_a_hidden_server_reaches_the_model_but_the_user_can_name_it() {
    let bench = bench("plain", &json!({"exposure": "hidden"}));
    bench.connect().await;
    assert_eq!(bench.state(), State::Ready);
    assert_eq!((bench.servers.tools().len(), bench.servers.instructions()), (0, vec![]));
    assert!(!bench.servers.prompts().is_empty());
    bench.servers.close().await;
}

/// Makes all lists that a session has kept two days old.
fn age_cache(bench: &Bench) {
    let directory = bench.directory.path().join("agent/pith-mcp");
    let files = std::fs::read_dir(directory).expect("kept").flatten().map(|file| file.path());
    let is_list = |path: &std::path::PathBuf| path.to_string_lossy().contains("/s-");
    for path in files.filter(is_list) {
        let mut kept: Value = serde_json::from_slice(&std::fs::read(&path).expect("there")).expect("JSON");
        kept["time"] = json!(kept["time"].as_u64().expect("seconds") - 2 * 24 * 3600);
        std::fs::write(path, kept.to_string()).expect("written");
    }
}

#[tokio::test]
async fn an_old_list_is_renewed_while_the_model_answers_if_it_was_declared() {
    for (exposure, state) in [("direct", State::Starting), ("deferred", State::Idle)] {
        let first = bench("plain", &json!({"exposure": exposure}));
        first.connect().await;
        first.servers.close().await;
        age_cache(&first);
        let mut server = entry(first.directory.path(), "plain");
        server["exposure"] = json!(exposure);
        let second = Bench::sharing(first.directory.clone(), json!({ "s": server }), None, None, None);
        assert!(second.servers.begin_work(Vec::new).is_none(), "nobody waits: the tools are known");
        assert_eq!(second.state(), state, "{exposure}");
        assert!(second.servers.begin_search().is_none(), "nobody waits: the tools are known");
        assert_eq!(second.state(), State::Starting, "a search renews them, too");
        second.servers.close().await;
    }
}
