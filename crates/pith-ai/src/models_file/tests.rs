use std::path::PathBuf;

use serde_json::json;

use super::*;

fn parse(document: &str) -> (ModelsFile, PathBuf) {
    let directory = tempfile::tempdir().expect("temp dir");
    let file = directory.path().join("models.json");
    std::fs::write(&file, document).expect("write");
    (load(&file, |id| id == "anthropic"), file)
}

fn one(provider: Value) -> ProviderConfig {
    let (read, _) = parse(&json!({"providers": {"p": provider}}).to_string());
    assert_eq!(read.diagnostics, []);
    read.providers.into_iter().next().expect("one provider")
}

fn messages(document: Value) -> Vec<String> {
    parse(&document.to_string()).0.diagnostics.into_iter().map(|found| found.message).collect()
}

#[test]
fn a_missing_file_means_no_providers() {
    let read = load(Path::new("/nonexistent/models.json"), |_| false);
    assert!(read.providers.is_empty() && read.diagnostics.is_empty());
}

#[test]
fn all_fields_are_read() {
    let provider = one(json!({
        "name": "Local", "baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions", "apiKey": "$KEY",
        "authHeader": true, "auth": "none", "headers": {"X-A": "$A", "X-B": null}, "compat": {"supportsStore": false},
        "keyCommandTtlMs": 5000, "discovery": {"type": "llama.cpp"},
        "models": [{
            "id": "m", "name": "M", "api": "openai-responses", "baseUrl": "http://h", "reasoning": true,
            "thinkingLevelMap": {"off": null, "max": "ultra"}, "input": ["text", "image"],
            "inputLimits": {"maxRequestBytes": 10, "images": {"maxPerMessage": 2, "resize": {"maxWidth": 100}}},
            "cost": {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0.2,
                     "tiers": [{"inputTokensAbove": 200000, "input": 2, "output": 4, "cacheRead": 0, "cacheWrite": 0}]},
            "promptCache": {"short": 300}, "contextWindow": 1000.0, "maxTokens": 100,
            "samplingParams": {"top_k": 1}, "headers": {"X-M": "1"}, "compat": {"a": 1},
        }],
        "modelOverrides": {"other": {"contextWindow": 5}},
    }));
    let model = &provider.models[0];
    let expected = ProviderConfig {
        id: "p".into(),
        name: Some("Local".into()),
        base_url: Some("http://127.0.0.1:1/v1".into()),
        api: Some("openai-completions".into()),
        api_key: Some("$KEY".into()),
        auth_header: true,
        keyless: true,
        headers: vec![("X-A".into(), Some("$A".into())), ("X-B".into(), None)],
        compat: json!({"supportsStore": false}).as_object().cloned(),
        models: provider.models.clone(),
        overrides: vec![("other".into(), ModelFields { context_window: Some(5), ..ModelFields::default() })],
        discovery: Some(Discovery::LlamaCpp),
        key_command_ttl: Some(Duration::from_secs(5)),
    };
    assert_eq!(provider, expected);
    assert_eq!((model.api.as_deref(), model.base_url.as_deref()), (Some("openai-responses"), Some("http://h")));
    let fields = &model.fields;
    assert_eq!(fields.thinking_level_map[&ThinkingLevel::Max].as_deref(), Some("ultra"));
    assert_eq!(fields.thinking_level_map[&ThinkingLevel::Off], None);
    assert_eq!((fields.context_window, fields.max_tokens), (Some(1000), Some(100)));
    assert_eq!(fields.prompt_cache, Some(PromptCache { short: Some(300), long: None }));
    assert_eq!(fields.cost.tiers.as_ref().expect("tiers")[0].input_tokens_above, 200000);
    assert_eq!(fields.headers, [("X-M".to_owned(), Some("1".to_owned()))]);
}

#[test]
fn comments_and_trailing_commas() {
    let (read, _) = parse(
        "{ // mine\n \"providers\": { \"p\": { \"baseUrl\": \"http://x\", \"api\": \"a\", \"models\": [ {\"id\":\"m\"}, ], }, }, }",
    );
    assert_eq!(read.diagnostics, []);
    assert_eq!(read.providers[0].models[0].id, "m");
}

#[test]
fn unreadable_files_are_ignored_as_a_whole() {
    let check = |text: &str, head: &str| {
        let (read, file) = parse(text);
        assert!(read.providers.is_empty());
        let message = &read.diagnostics[0].message;
        assert!(message.starts_with(head), "{message}");
        assert!(message.ends_with(&format!("\n\nFile: {}", file.display())), "{message}");
    };
    check("{ nope", "Failed to parse models.json: key must be a string at line 1");
    check("[]", "Invalid models.json schema:\n  - root: expected an object\n");
    check("{}", "Invalid models.json schema:\n  - /providers: required\n");
    check("{\"providers\":[]}", "Invalid models.json schema:\n  - /providers: expected an object\n");
}

#[test]
fn a_wrong_provider_costs_only_itself() {
    let check = |bad: Value, expected: &str| {
        let good = json!({"baseUrl": "http://x", "api": "a", "models": [{"id": "m"}]});
        let (read, _) = parse(&json!({"providers": {"bad": bad, "good": good}}).to_string());
        assert_eq!(read.providers.len(), 1);
        assert_eq!(read.providers[0].id, "good");
        assert_eq!(read.diagnostics[0].message, expected);
    };
    check(
        json!({"api": "a", "models": [{"id": "m"}]}),
        r#"Provider "bad": Provider bad: "baseUrl" is required when defining custom models."#,
    );
    check(
        json!({"baseUrl": "http://x", "models": [{"id": "m", "api": "a"}, {"id": "n"}]}),
        r#"Provider "bad": Provider bad, model n: no "api" specified. Set at provider or model level."#,
    );
    check(
        json!({"name": "x"}),
        r#"Provider "bad": Provider bad: must specify at least one of baseUrl, headers, compat, modelOverrides, models, apiKey, authHeader, auth, discovery"#,
    );
    check(
        json!({"baseUrl": "x", "api": "a", "models": [{}]}),
        r#"Provider "bad": Provider bad, model 0: missing "id""#,
    );
    check(json!(7), r#"Provider "bad": Provider bad: expected an object"#);
}

#[test]
fn built_in_providers_need_no_address() {
    assert!(messages(json!({"providers": {"anthropic": {"models": [{"id": "new"}]}}})).is_empty());
    assert!(messages(json!({"providers": {"anthropic": {"baseUrl": "http://x"}}})).is_empty());
}

#[test]
fn a_wrong_value_costs_one_key() {
    let document = json!({"providers": {"p": {"baseUrl": "http://x", "api": "a", "authHeader": "yes",
        "headers": {"A": 1, "B": "b"}, "models": [{"id": "m", "contextWindow": "128k", "maxTokens": 5, "input": ["video"]}]}}});
    let (read, file) = parse(&document.to_string());
    let provider = &read.providers[0];
    assert_eq!(provider.headers, [("B".to_owned(), Some("b".to_owned()))]);
    assert_eq!((provider.models[0].fields.context_window, provider.models[0].fields.max_tokens), (None, Some(5)));
    let found: Vec<_> = read.diagnostics.iter().map(|found| found.message.as_str()).collect();
    assert_eq!(found.len(), 4);
    let expected = "/providers/p/models/0/contextWindow: expected a number above 0, got \"128k\"";
    assert!(found.iter().any(|message| message.contains(expected)), "{found:?}");
    assert!(found.iter().all(|message| message.ends_with(&format!("File: {}", file.display()))));
}

#[test]
fn a_hundred_models_are_read() {
    let models: Vec<Value> = (0..100)
        .map(|n| json!({"id": format!("m{n}"), "name": "x", "contextWindow": 1000, "cost": {"input": 1, "output": 2}}))
        .collect();
    let document = json!({"providers": {"p": {"baseUrl": "http://x", "api": "a", "models": models}}}).to_string();
    let (read, _) = parse(&document);
    assert_eq!(read.providers[0].models.len(), 100);
}
