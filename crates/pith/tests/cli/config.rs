//! `config check`, `auth`, `--list-models`: what scripts ask about a set-up.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pith_testkit::{Api, TempHome, Turn};
use serde_json::{Value, json};

use super::support::{finish, model, run, scene, start_in};

#[test]
fn config_check_passes_a_valid_set_up() {
    let (home, _server) = scene([]);
    home.write_settings(&json!({"defaultThinkingLevel": "low"}));
    let output = run(&home, ["config", "check"]).quiet();
    assert!(output.contains("settings.json: ok\n") && output.contains("models.json: ok\n"), "{output}");
    assert!(output.contains("auth.json: not there\n"), "{output}");
}

#[test]
fn servers_are_listed_and_not_started() {
    let (home, _server) = scene([]);
    let servers = json!({"git": {"command": "git-server"}, "far": {"url": "https://x/?key=hush", "enabled": false}});
    home.write_agent_file("mcp.json", json!({ "mcpServers": servers }).to_string());
    let output = run(&home, ["config", "check"]).quiet();
    assert!(
        output.contains("git: program git-server") && output.contains("far: at an address, switched off"),
        "{output}"
    );
    assert!(!output.contains("hush"), "{output}");
    home.write_agent_file("mcp.json", r#"{"mcpServers": {"bad": {"command": "x", "url": "https://x"}}}"#);
    let output = run(&home, ["config", "check"]);
    assert_eq!(output.code, 1);
    assert!(output.stdout.contains("server \"bad\": it has both \"command\" and \"url\""), "{}", output.stdout);
}

#[test]
fn every_problem_is_listed_with_file_and_key() {
    let home = TempHome::new();
    home.write_settings(&json!({"steeringMode": 7, "retry": {"maxRetries": "many"}}));
    let agent = home.agent();
    std::fs::write(agent.join("models.json"), "{ not json").expect("write");
    std::fs::write(agent.join("auth.json"), "[]").expect("write");
    std::fs::set_permissions(agent.join("auth.json"), Permissions::from_mode(0o644)).expect("chmod");
    std::fs::write(agent.join("trust.json"), "7").expect("write");
    home.write_file(".pi/skills/bad/SKILL.md", "---\nname: bad\n---\nNo description.");
    let output = run(&home, ["config", "check"]);
    assert_eq!(output.code, 1);
    for part in
        ["steeringMode", "maxRetries", "models.json:\n", "chmod 600", "trust.json:\n", "description is required"]
    {
        assert!(output.stdout.contains(part), "{part} is missing in {}", output.stdout);
    }
}

#[test]
fn addresses_proxies_and_certificates_that_cannot_be_right_are_found() {
    let home = TempHome::new();
    home.write_models("gateway.test", |models| {
        models["providers"]["fine"] =
            json!({"baseUrl": "https://{HOST}/v1", "api": "openai-completions", "models": []});
    });
    home.write_settings(&json!({"httpProxy": "gopher://user:secret@proxy.test"}));
    let variables = [("NODE_EXTRA_CA_CERTS", "/no/such/authority.pem")];
    let output = finish(start_in(&home, ["config", "check"], &variables));
    assert_eq!(output.code, 1);
    for part in [
        "models.json:\n",
        "Provider \"mock-openai\": baseUrl \"gateway.test/v1\": it must begin with http:// or https://",
        "the setting httpProxy names a proxy that cannot be used: gopher://proxy.test",
        "NODE_EXTRA_CA_CERTS names a certificate file that cannot be read: /no/such/authority.pem: No such file",
    ] {
        assert!(output.stdout.contains(part), "{part} is missing in {}", output.stdout);
    }
    assert!(!output.stdout.contains("secret") && !output.stdout.contains("\"fine\""), "{}", output.stdout);
}

#[test]
fn the_recipes_of_the_documentation_load_and_have_usable_models() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/models.md");
    let docs = std::fs::read_to_string(path).expect("docs/models.md");
    let recipes: Vec<&str> = docs.split("```json\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect();
    assert_eq!(recipes.len(), 7, "an example, five servers and a gateway");
    let keys = ["VLLM_API_KEY", "LITELLM_API_KEY", "OPENROUTER_API_KEY"].map(|name| (name, "key-123456"));
    for recipe in recipes {
        let home = TempHome::new();
        home.write_agent_file("models.json", recipe);
        let output = finish(start_in(&home, ["config", "check"], &keys));
        assert_eq!(output.code, 0, "{recipe}\n{}", output.stdout);
        let value: Value = serde_json::from_str(recipe).expect("JSON");
        for (provider, entry) in value["providers"].as_object().expect("providers") {
            let listed = finish(start_in(&home, ["--list-models"], &keys)).stdout;
            let overrides = entry["modelOverrides"].as_object().into_iter().flat_map(|models| models.keys().cloned());
            let own = entry["models"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|model| Some(model["id"].as_str()?.to_owned()));
            for id in own.chain(overrides) {
                let is_listed = |line: &str| line.starts_with(provider.as_str()) && line.contains(&id);
                assert!(listed.lines().any(is_listed), "{provider}/{id} is missing in {listed}");
            }
        }
    }
}

#[test]
fn unknown_names_are_listed_with_the_closest_known_one() {
    let (home, _server) = scene([]);
    home.write_settings(&json!({
        "defualtModel": "x", "retry": {"maxRetrys": 3}, "inheritSecrets": true, "frobnication": 1, "theme": "dark",
        "defaultProvider": "anthropc", "defaultModel": "x", "defaultTools": ["read", "gerp"],
    }));
    let auth = home.agent().join("auth.json");
    let entries = json!({"anthropic": {"key": "k"}, "opnai": {"type": "api_key", "key": "k"}});
    std::fs::write(&auth, entries.to_string()).expect("write");
    std::fs::set_permissions(&auth, Permissions::from_mode(0o600)).expect("chmod");
    std::fs::write(home.agent().join("oauth.json"), "{}").expect("write");
    for command in [&["config", "check"][..], &["doctor"]] {
        let output = run(&home, command);
        assert_eq!((output.code, output.stderr.as_str()), (1, ""));
        for part in [
            "problem: unknown key defualtModel; did you mean \"defaultModel\"?\n",
            "problem: unknown key retry.maxRetrys; did you mean \"retry.maxRetries\"?\n",
            "problem: unknown key inheritSecrets; did you mean \"bash.inheritSecrets\"?\n",
            "remark: pith does not use the key frobnication\n",
            "problem: defaultProvider \"anthropc\" is no provider; did you mean \"anthropic\"?\n",
            "problem: defaultTools: there is no tool \"gerp\"; did you mean \"grep\"?\n",
            "problem: the entry of anthropic is not used: missing \"type\"\n",
            "problem: \"opnai\" is no provider; did you mean \"openai\"?\n",
            "remark: not read, because auth.json is there\n",
        ] {
            assert!(output.stdout.contains(part), "{part} is missing in {}", output.stdout);
        }
        assert!(!output.stdout.contains("theme"), "{}", output.stdout);
    }
}

#[test]
fn an_unknown_default_model_is_a_problem() {
    let (home, _server) = scene([]);
    let (provider, model) = (Api::Anthropic.provider(), Api::Anthropic.model());
    let check = |settings: Value, code: i32, expected: &str| {
        home.write_settings(&settings);
        let output = run(&home, ["config", "check"]);
        assert_eq!(output.code, code, "{}", output.stdout);
        assert!(output.stdout.contains(expected), "{expected} is missing in {}", output.stdout);
    };
    check(json!({"defaultProvider": provider, "defaultModel": model}), 0, "settings.json: ok\n");
    let slip = format!("{model}x");
    let text = format!("defaultModel \"{slip}\" is no model of {provider}; did you mean \"{model}\"?\n");
    check(json!({"defaultProvider": provider, "defaultModel": slip}), 1, &text);
    check(json!({"defaultModel": model}), 1, "defaultModel has no effect without defaultProvider\n");
    let unusable = json!({"defaultProvider": "openai", "defaultModel": "gpt-5.4"});
    check(unusable, 0, "remark: the default model cannot be used: ");
}

#[test]
fn unknown_tools_are_refused() {
    let (home, _server) = scene([Turn::text("fine")]);
    let arguments = |tools: &'static str| [&["--tools", tools][..], &model(), &["-p", "go"]].concat();
    run(&home, arguments("read,raed")).refused("Error: --tools: there is no tool \"raed\"; did you mean \"read\"?\n");
    let known = "read, bash, edit, write, grep, find, ls, todo_write";
    run(&home, arguments("deploy"))
        .refused(&format!("Error: --tools: there is no tool \"deploy\". There are {known}\n"));
    assert_eq!(run(&home, arguments("read,grep")).quiet(), "fine\n");
    run(&home, [&["--exclude-tools", "bsah"][..], &model(), &["-p", "go"]].concat())
        .refused("Error: --exclude-tools: there is no tool \"bsah\"; did you mean \"bash\"?\n");
    let output = run(&home, ["config", "check", "--tools", "raed"]);
    assert!(output.code == 1 && output.stdout.contains("did you mean \"read\"?"), "{}", output.stdout);
}

#[test]
fn auth_tells_scripts_whether_a_provider_is_ready() {
    let (home, _server) = scene([]);
    let provider = Api::Anthropic.provider();
    assert_eq!(run(&home, ["auth", "check", "--provider", provider]).quiet(), "ready\n");
    assert_eq!(run(&home, ["auth", "print-api-key", "--provider", provider]).quiet(), "mock-key\n");
    assert_eq!(run(&home, ["auth", "check", "--credentials", "--provider", provider]).quiet(), "mock-key\n");
    run(&home, ["auth", "print-bearer-token", "--provider", provider])
        .refused(&format!("Error: Provider \"{provider}\" has an API key, not a bearer token\n"));
    let check = |name: &str, code: i32, expected: Value| {
        let output = run(&home, ["auth", "check", "--json", "--provider", name]);
        let status: Value = serde_json::from_str(&output.stdout).expect("JSON");
        assert_eq!((status, output.code), (expected, code));
    };
    check("openai", 1, json!({"status": "not_ready", "provider": "openai", "reason": "credentials_not_configured"}));
    check("nobody", 2, json!({"status": "invalid", "provider": "nobody", "reason": "provider_not_found"}));
    check(provider, 0, json!({"status": "ready", "provider": provider}));
}

#[test]
fn usable_models_are_listed_and_searched() {
    let (home, _server) = scene([]);
    let table = run(&home, ["--list-models"]).quiet();
    assert!(table.starts_with("provider ") && table.contains("plain-mock"), "{table}");
    let found = run(&home, ["--list-models", "plain"]).quiet();
    assert_eq!(found.lines().count(), 2, "{found}");
    assert_eq!(run(&home, ["--list-models", "xyzzy"]).quiet(), "No models matching \"xyzzy\"\n");
    std::fs::write(home.agent().join("models.json"), "{").expect("write");
    let broken = run(&home, ["--list-models"]);
    assert!(
        broken.code == 0 && broken.stderr.starts_with("Warning: errors loading models.json:\n"),
        "{}",
        broken.stderr
    );
}
