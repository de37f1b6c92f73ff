use std::time::Duration;

use pith_protocol::ThinkingLevel;
use serde_json::json;

use super::super::*;
use super::*;
use crate::agent_dir::Layout;

/// Loads a user and a project document from temporary files.
fn loaded(user: &str, project: &str) -> LoadedSettings {
    let directory = tempfile::tempdir().expect("temp dir");
    let agent = AgentDir::at(directory.path().join("agent"), Layout::Pi);
    write(&agent.settings_file(), user);
    write(&agent.project_settings_file(directory.path()), project);
    load(&agent, directory.path(), true)
}

fn write(file: &Path, text: &str) {
    std::fs::create_dir_all(file.parent().expect("parent")).expect("create");
    std::fs::write(file, text).expect("write");
}

fn user(document: Value) -> Settings {
    let loaded = loaded(&document.to_string(), "{}");
    assert_eq!(loaded.diagnostics, [], "{document}");
    loaded.settings
}

/// The only warning about a user document.
fn complaint(document: Value) -> (Settings, String) {
    let loaded = loaded(&document.to_string(), "{}");
    assert_eq!(loaded.diagnostics.len(), 1, "{document}: {:?}", loaded.diagnostics);
    assert!(loaded.diagnostics[0].message.contains("settings.json"), "the file is named");
    (loaded.settings, loaded.diagnostics[0].message.clone())
}

#[test]
fn every_key_reaches_its_field() {
    // As text: it is too long for `json!`.
    let document = r#"{
        "defaultProvider": "p", "defaultModel": "m", "defaultThinkingLevel": "high",
        "modelThinkingLevels": {"p/m": "max"}, "thinkingBudgets": {"low": 7},
        "enabledModels": ["a*"], "steeringMode": "all", "followUpMode": "all",
        "interruptMode": "immediate", "defaultTools": [], "npmCommand": ["mise", "npm"], "sessionDir": "~/s", "session": {"fsync": "never"},
        "compaction": {"enabled": false, "reserveTokens": 1.0, "keepRecentTokens": 2, "modelOverrides": {"p/m": {"reserveTokens": 3}}},
        "branchSummary": {"reserveTokens": 4},
        "retry": {"enabled": false, "maxRetries": 5, "baseDelayMs": 6, "maxAgentDelayMs": 7,
                  "provider": {"timeoutMs": 8, "maxRetries": 9, "maxRetryDelayMs": 0}},
        "httpProxy": "http://proxy", "httpIdleTimeoutMs": "disabled",
        "images": {"autoResize": false, "blockImages": true}, "shellPath": "/bin/zsh", "shellCommandPrefix": "set -e",
        "bash": {"inheritSecrets": false, "keepBackground": false}, "acp": {"clientFs": false, "clientTerminal": true}, "tools": {"root": ["/w"]}, "maxTurns": 12,
        "limits": {"tokens": 7, "strict": true},
        "checkpoints": {"mode": "workspace", "maxFiles": 1, "maxFileMb": 2, "maxTotalMb": 3, "maxAgeDays": 4},
        "telemetry": {"enabled": true},
        "secrets": {"redact": "all", "enabled": true},
        "tasks": {"todoClearDelay": 0.5},
        "mcp": {"startupWait": 2.5, "share": true},
        "extensionLimits": {"executionMs": 11, "handlerMs": 12, "observerMs": 13, "factoryMs": 14, "shutdownMs": 15,
                            "abortMs": 16, "hangMs": 17, "memoryMb": 18},
        "defaultProjectTrust": "always", "enableInstallTelemetry": true,
        "handoff": {"thinking": "drop"}, "apiKeys": {"openai": "sk"},
        "skills": ["s"], "prompts": ["p"], "extensions": ["e"], "theme": "dark", "unknown": {"x": 1}
    }"#;
    let settings = user(serde_json::from_str(document).expect("JSON"));
    let milliseconds = Duration::from_millis;
    let expected = Settings {
        default_provider: Some("p".into()),
        default_model: Some("m".into()),
        default_thinking_level: Some(ThinkingLevel::High),
        model_thinking_levels: [("p/m".to_owned(), ThinkingLevel::Max)].into(),
        thinking_budgets: ThinkingBudgets { low: 7, ..ThinkingBudgets::default() },
        enabled_models: Some(vec!["a*".into()]),
        steering_mode: QueueMode::All,
        follow_up_mode: QueueMode::All,
        interrupt_mode: InterruptMode::Immediate,
        default_tools: Some(vec![]),
        npm_command: Some(vec!["mise".into(), "npm".into()]),
        session_dir: Some("~/s".into()),
        session: SessionFiles { fsync: Fsync::Never },
        compaction: Compaction {
            enabled: false,
            reserve_tokens: 1,
            keep_recent_tokens: 2,
            model_overrides: [(
                "p/m".to_owned(),
                CompactionOverride { reserve_tokens: Some(3), keep_recent_tokens: None },
            )]
            .into(),
        },
        branch_summary: BranchSummary { reserve_tokens: 4 },
        retry: Retry {
            enabled: false,
            max_retries: 5,
            base_delay: milliseconds(6),
            max_agent_delay: milliseconds(7),
            provider: ProviderRetry {
                timeout: Some(milliseconds(8)),
                max_retries: 9,
                max_retry_delay: milliseconds(0),
            },
        },
        http_proxy: Some("http://proxy".into()),
        http_idle_timeout: None,
        images: Images { auto_resize: false, block_images: true },
        shell_path: Some("/bin/zsh".into()),
        shell_command_prefix: Some("set -e".into()),
        bash: Bash { inherit_secrets: false, keep_background: false },
        acp: Acp { client_fs: false, client_terminal: true },
        mcp: Mcp { startup_wait: milliseconds(2500), share: true },
        sandbox: None,
        tools: Tools { root: vec!["/w".into()] },
        telemetry: Telemetry { enabled: true },
        secrets: SecretsSettings { redact: Redact::All, enabled: true },
        checkpoints: Checkpoints {
            mode: CheckpointMode::Workspace,
            max_files: 1,
            max_file_mb: 2,
            max_total_mb: 3,
            max_age_days: 4,
        },
        max_turns: Some(12),
        limits: Limits::read(&json!({"tokens": 7, "strict": true})),
        tasks: Tasks { todo_clear_delay: Some(milliseconds(500)) },
        default_project_trust: DefaultTrust::Always,
        extension_limits: ExtensionLimits {
            execution: Some(milliseconds(11)),
            handler: Some(milliseconds(12)),
            observer: Some(milliseconds(13)),
            factory: Some(milliseconds(14)),
            shutdown: Some(milliseconds(15)),
            abort: Some(milliseconds(16)),
            hang: Some(milliseconds(17)),
            memory_mb: Some(18),
        },
        enable_install_telemetry: true,
        handoff: Handoff { thinking: HandoffThinking::Drop },
        api_keys: [("openai".to_owned(), "sk".to_owned())].into(),
        user_resources: ResourceLists {
            skills: vec!["s".into()],
            prompts: vec!["p".into()],
            extensions: vec!["e".into()],
            packages: vec![],
        },
        project_resources: ResourceLists::default(),
    };
    assert_eq!(settings, expected);
    assert_eq!(settings.compaction.tokens_for("p", "m"), (3, 2));
    assert_eq!(settings.compaction.tokens_for("p", "other"), (1, 2));
}

#[test]
fn defaults_without_files() {
    let directory = tempfile::tempdir().expect("temp dir");
    let loaded = load(&AgentDir::at(directory.path(), Layout::Pi), directory.path(), true);
    assert_eq!(loaded.diagnostics, []);
    assert_eq!(loaded.settings, Settings::default());
    assert_eq!(loaded.settings.http_idle_timeout, Some(Duration::from_secs(300)));
    assert!(loaded.settings.bash.inherit_secrets);
    assert_eq!(loaded.settings.compaction.tokens_for("p", "m"), (16384, 20000));
}

#[test]
fn a_wrong_value_costs_one_key() {
    let check = |document: Value, expected: &str| {
        let (settings, message) = complaint(document);
        assert!(message.starts_with(expected), "{message}");
        settings
    };
    let settings = check(
        json!({"compaction": {"enabled": "yes", "reserveTokens": 5}}),
        "Invalid compaction.enabled setting: \"yes\". Expected true or false. Using the default. File: ",
    );
    assert!(settings.compaction.enabled);
    assert_eq!(settings.compaction.reserve_tokens, 5);
    check(
        json!({"compaction": {"reserveTokens": -1}}),
        "Invalid compaction.reserveTokens setting: -1. Expected a non-negative safe integer.",
    );
    check(
        json!({"compaction": {"keepRecentTokens": 1.5}}),
        "Invalid compaction.keepRecentTokens setting: 1.5. Expected",
    );
    check(json!({"compaction": {"keepRecentTokens": 9007199254740992u64}}), "Invalid compaction.keepRecentTokens");
    check(
        json!({"steeringMode": "bogus"}),
        "Invalid steeringMode setting: \"bogus\". Expected one of all, one-at-a-time.",
    );
    check(json!({"defaultThinkingLevel": 3}), "Invalid defaultThinkingLevel setting: 3. Expected one of off, minimal,");
    check(
        json!({"enabledModels": ["a", 1]}),
        "Invalid enabledModels setting: [\"a\",1]. Expected an array of strings.",
    );
    check(json!({"retry": {"provider": 7}}), "Invalid retry.provider setting: 7. Expected an object.");
    check(json!({"httpIdleTimeoutMs": "soon"}), "Invalid httpIdleTimeoutMs setting: \"soon\". Expected a number of");
    let settings = check(
        json!({"modelThinkingLevels": {"a/b": "high", "c/d": "loud"}}),
        "Invalid modelThinkingLevels[\"c/d\"] setting: \"loud\".",
    );
    assert_eq!(settings.model_thinking_levels.len(), 1);
    let settings = check(
        json!({"compaction": {"modelOverrides": {"a/b": {"reserveTokens": "x", "keepRecentTokens": 9}}}}),
        "Invalid compaction.modelOverrides[\"a/b\"].reserveTokens setting: \"x\".",
    );
    assert_eq!(settings.compaction.tokens_for("a", "b"), (16384, 9));
}

#[test]
fn null_means_unset() {
    assert_eq!(user(json!({"compaction": null, "shellPath": null, "retry": {"provider": null}})), Settings::default());
}

#[test]
fn idle_timeout_forms() {
    let check = |value: Value, expected: Option<u64>| {
        let settings = user(json!({"httpIdleTimeoutMs": value}));
        assert_eq!(settings.http_idle_timeout, expected.map(Duration::from_millis), "{value}");
    };
    check(json!(1000), Some(1000));
    check(json!("2000"), Some(2000));
    check(json!("disabled"), None);
    check(json!(0), None);
}

#[test]
fn old_shapes_are_understood() {
    assert_eq!(user(json!({"queueMode": "all"})).steering_mode, QueueMode::All);
    let both = user(json!({"queueMode": "all", "steeringMode": "one-at-a-time"}));
    assert_eq!(both.steering_mode, QueueMode::OneAtATime);
    let skills = user(json!({"skills": {"customDirectories": ["~/s"], "enableSkillCommands": false}}));
    assert_eq!(skills.user_resources.skills, ["~/s"]);
    let retry = user(json!({"retry": {"maxDelayMs": 1500}})).retry;
    assert_eq!(retry.provider.max_retry_delay, Duration::from_millis(1500));
}

#[test]
fn the_project_overrides_by_recursive_merge() {
    let loaded = loaded(
        r#"{"retry":{"maxRetries":1,"baseDelayMs":5},"enabledModels":["a","b"],"skills":["user"]}"#,
        r#"{"retry":{"maxRetries":2},"enabledModels":["c"],"skills":["project"]}"#,
    );
    assert_eq!(loaded.diagnostics, []);
    let settings = loaded.settings;
    assert_eq!((settings.retry.max_retries, settings.retry.base_delay), (2, Duration::from_millis(5)));
    assert_eq!(settings.enabled_models, Some(vec!["c".to_owned()]));
    assert_eq!(settings.user_resources.skills, ["user"]);
    assert_eq!(settings.project_resources.skills, ["project"]);
}

#[test]
fn a_project_that_only_changes_the_default_tools_changes_the_users() {
    let check = |user: &str, project: &str, expected: Option<&[&str]>| {
        let tools = loaded(user, project).settings.default_tools;
        let expected = expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(tools, expected, "{user} {project}");
    };
    let (users, changes) = (r#"{"defaultTools": ["read", "+ls"]}"#, r#"{"defaultTools": ["-read", "+grep"]}"#);
    check("{}", "{}", None);
    check(users, "{}", Some(&["read", "+ls"]));
    check(users, changes, Some(&["read", "+ls", "-read", "+grep"]));
    check("{}", changes, Some(&["-read", "+grep"]));
    check(users, r#"{"defaultTools": ["+grep", "ls"]}"#, Some(&["+grep", "ls"]));
    check(users, r#"{"defaultTools": []}"#, Some(&[]));
}

#[test]
fn a_wrong_project_value_leaves_the_users() {
    let loaded = loaded(r#"{"retry":{"maxRetries":1}}"#, r#"{"retry":{"maxRetries":"many"}}"#);
    assert_eq!(loaded.settings.retry.max_retries, 1);
    assert_eq!(loaded.diagnostics.len(), 1);
    assert!(loaded.diagnostics[0].path.as_ref().expect("path").ends_with(".pi/settings.json"));
}

#[test]
fn a_project_cannot_set_what_is_the_users() {
    let loaded = loaded("{}", r#"{"httpProxy":"http://evil","defaultProjectTrust":"always"}"#);
    assert_eq!(loaded.settings, Settings::default());
    assert_eq!(loaded.diagnostics.len(), 2);
}

#[test]
fn an_untrusted_project_is_not_read() {
    let directory = tempfile::tempdir().expect("temp dir");
    let agent = AgentDir::at(directory.path().join("agent"), Layout::Pi);
    write(&agent.project_settings_file(directory.path()), r#"{"maxTurns":3,"sessionDir":"s"}"#);
    let untrusted = load(&agent, directory.path(), false);
    assert_eq!(untrusted.settings, Settings::default());
    assert_eq!(load(&agent, directory.path(), true).settings.max_turns, Some(3));
    // The session directory has to be known before trust is decided.
    assert_eq!(session_dir(&agent, directory.path()).as_deref(), Some("s"));
}

#[test]
fn a_broken_file_contributes_nothing_and_is_named() {
    let loaded = loaded("{\"maxTurns\": 3", r#"{"maxTurns":4}"#);
    assert_eq!(loaded.settings.max_turns, Some(4));
    let message = &loaded.diagnostics[0].message;
    assert!(message.starts_with("Invalid settings file /"), "{message}");
    assert!(message.contains("settings.json: EOF"), "{message}");
    assert!(self::loaded("[]", "{}").diagnostics[0].message.ends_with("settings.json: expected an object"));
}

#[test]
fn keys_of_other_agents_are_valid_and_ignored() {
    let directory = tempfile::tempdir().expect("temp dir");
    let file = directory.path().join("settings.json");
    let document = json!({
        "cacheWarming": "idle", "transport": "sse", "websockets": true, "branchSummary": {"skipPrompt": true},
        "enableSkillCommands": false, "themes": ["t"], "theme": "dark", "branchSumary": {},
    });
    write(&file, &document.to_string());
    assert_eq!(user(document), Settings::default());
    let unknown: Vec<_> = unknown_keys(&file).into_iter().map(|key| key.path).collect();
    assert_eq!(unknown, ["branchSumary"]);
}

#[test]
fn packages_are_kept_as_they_are_written() {
    let settings = user(json!({"packages": ["npm:x", {"source": "y"}]}));
    assert_eq!(settings.user_resources.packages, [json!("npm:x"), json!({"source": "y"})]);
    assert_eq!(user(json!({"packages": []})), Settings::default());
}

#[test]
fn a_byte_order_mark_is_dropped() {
    assert_eq!(loaded("\u{feff}{\"maxTurns\":3}", "{}").settings.max_turns, Some(3));
}

#[test]
fn the_xcsh_layout_reads_yaml() {
    let directory = tempfile::tempdir().expect("temp dir");
    let agent = AgentDir::at(directory.path().join("agent"), Layout::Xcsh);
    write(&agent.path().join("config.yml"), "interruptMode: immediate\nretry:\n  maxRetries: 7\n");
    write(&directory.path().join(".xcsh/settings.json"), r#"{"maxTurns":3}"#);
    let loaded = load(&agent, directory.path(), true);
    assert_eq!(loaded.diagnostics, []);
    assert_eq!(loaded.settings.interrupt_mode, InterruptMode::Immediate);
    assert_eq!((loaded.settings.retry.max_retries, loaded.settings.max_turns), (7, Some(3)));
}

#[test]
fn a_limit_that_cannot_be_read_is_told_and_does_not_vanish() {
    let (settings, message) = complaint(json!({"limits": {"tokens": "many"}}));
    assert!(message.starts_with("limits.tokens: expected a whole number above 0. Prompts are refused."), "{message}");
    assert_eq!(settings.limits.problems, ["limits.tokens: expected a whole number above 0"]);
    let broken = loaded("{\"limits\": {\"tokens\": 5", "{}").settings.limits;
    assert!(broken.problems[0].ends_with("settings.json cannot be read"), "{:?}", broken.problems);
    assert_eq!(loaded("{\"maxTurns\": 5", "{}").settings.limits, Limits::default());
}

#[test]
fn a_project_only_lowers_limits() {
    let loaded = loaded(r#"{"limits":{"tokens":5,"turns":5}}"#, r#"{"limits":{"tokens":9,"turns":3}}"#);
    assert_eq!(loaded.settings.limits, Limits::read(&json!({"tokens": 5, "turns": 3})));
    let message = &loaded.diagnostics[0].message;
    assert!(message.starts_with("Ignored limits.tokens in ") && message.contains(".pi/settings.json"), "{message}");
}
