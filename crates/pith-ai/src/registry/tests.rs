use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pith_protocol::ThinkingLevel;
use serde_json::{Value, json};

use super::*;
use crate::agent_dir::Layout;
use crate::models_file;

/// A registry over a temporary agent directory. Credentials are read lazily, so keep it alive.
struct Setup {
    directory: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

impl Setup {
    fn new() -> Setup {
        Setup { directory: tempfile::tempdir().expect("temp dir"), variables: vec![] }
    }

    fn variable(mut self, name: &str, value: &str) -> Setup {
        self.variables.push((name.into(), value.into()));
        self
    }

    fn models(self, providers: Value) -> Setup {
        self.file("models.json", &json!({ "providers": providers }).to_string())
    }

    fn auth(self, entries: Value) -> Setup {
        self.file("auth.json", &entries.to_string())
    }

    fn file(self, name: &str, text: &str) -> Setup {
        fs::write(self.path(name), text).expect("write");
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn registry(&self) -> Registry {
        let variables = self.variables.clone();
        let environment = Environment::new(self.directory.path(), move |name| {
            variables.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        });
        Registry::load(&AgentDir::at(self.directory.path(), Layout::Pi), environment, &Settings::default())
    }
}

fn custom(extra: Value) -> Value {
    let mut provider = json!({"baseUrl": "https://host/v1", "api": "openai-completions", "apiKey": "key-12345", "models": [{"id": "m"}]});
    provider.as_object_mut().expect("object").extend(extra.as_object().expect("object").clone());
    json!({ "p": provider })
}

fn resolve(registry: &Registry, provider: &str, id: &str) -> Result<ResolvedCredentials, String> {
    let model = registry.find(provider, id).expect("model");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    runtime.block_on(registry.resolve_credentials(&model))
}

fn ids(models: &[Arc<Model>]) -> Vec<String> {
    models.iter().map(|model| format!("{}/{}", model.provider, model.id)).collect()
}

fn header(credentials: &ResolvedCredentials, name: &str) -> Option<Option<String>> {
    credentials.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
}

#[test]
fn without_keys_everything_is_known_and_nothing_available() {
    let registry = Setup::new().registry();
    assert_eq!(registry.models().len(), 1495);
    assert!(registry.available().is_empty());
    assert_eq!(registry.diagnostics(), []);
    assert_eq!(registry.find("anthropic", "claude-opus-5").expect("model").provider, "anthropic");
    assert!(registry.find("anthropic", "gpt-5.5").is_none());
    assert!(registry.find("nobody", "x").is_none());
}

#[test]
fn an_environment_key_makes_a_provider_available() {
    let registry = Setup::new().variable("ANTHROPIC_API_KEY", "sk-ant-12345").registry();
    let available = registry.available();
    assert_eq!(available.len(), 15);
    assert!(available.iter().all(|model| model.provider == "anthropic"));
    let credentials = resolve(&registry, "anthropic", "claude-opus-5").expect("credentials");
    assert_eq!((credentials.api_key.as_deref(), credentials.bearer), (Some("sk-ant-12345"), false));
}

#[test]
fn anthropic_tokens_are_sent_as_bearer_and_win_over_the_key() {
    let setup = Setup::new().variable("ANTHROPIC_API_KEY", "key").variable("ANTHROPIC_OAUTH_TOKEN", "oauth");
    let credentials = resolve(&setup.registry(), "anthropic", "claude-opus-5").expect("credentials");
    assert_eq!((credentials.api_key.as_deref(), credentials.bearer), (Some("oauth"), true));
    let setup = setup.variable("ANTHROPIC_AUTH_TOKEN", "token");
    let credentials = resolve(&setup.registry(), "anthropic", "claude-opus-5").expect("credentials");
    assert_eq!((credentials.api_key.as_deref(), credentials.bearer), (Some("token"), true));
}

#[test]
fn the_order_of_sources() {
    let setup = Setup::new().variable("OPENAI_API_KEY", "environment");
    let key = |registry: &Registry| resolve(registry, "openai", "gpt-5.5").expect("credentials").api_key.expect("key");
    assert_eq!(key(&setup.registry()), "environment");
    let setup = setup.models(json!({"openai": {"apiKey": "models"}}));
    assert_eq!(key(&setup.registry()), "models");
    let setup = setup.auth(json!({"openai": {"type": "api_key", "key": "stored"}}));
    assert_eq!(key(&setup.registry()), "stored");
    let registry = setup.registry();
    registry.give_key("openai", "given");
    assert_eq!(key(&registry), "given");
}

#[test]
fn a_stored_entry_owns_its_provider() {
    let check = |entry: Value, expected: &str| {
        let setup = Setup::new().variable("OPENAI_API_KEY", "environment").auth(json!({"openai": entry}));
        let registry = setup.registry();
        assert!(registry.available().is_empty());
        assert_eq!(resolve(&registry, "openai", "gpt-5.5"), Err(expected.to_owned()));
        assert_eq!(registry.select("openai", "gpt-5.5").err().as_deref(), Some(expected));
    };
    check(
        json!({"type": "api_key", "key": "$UNSET"}),
        "Failed to resolve API key for provider \"openai\" from environment variable: UNSET",
    );
    check(
        json!({"type": "oauth", "access": "a", "refresh": "r", "expires": 1}),
        "Authentication failed for \"openai\". Credentials may have expired or network is unavailable. \
         Run '/login openai' to re-authenticate.",
    );
    check(json!({"type": "magic"}), "The auth.json entry of \"openai\" cannot be used: unknown type \"magic\"");
}

#[test]
fn a_login_is_used_while_it_lasts() {
    let soon = SystemTime::now().duration_since(UNIX_EPOCH).expect("clock") + Duration::from_secs(600);
    let entry = json!({"type": "oauth", "access": "access-token", "refresh": "r", "expires": soon.as_millis() as u64});
    let setup = Setup::new().auth(json!({"anthropic": entry}));
    let registry = setup.registry();
    let credentials = resolve(&registry, "anthropic", "claude-opus-5").expect("credentials");
    assert_eq!((credentials.api_key.as_deref(), credentials.bearer), (Some("access-token"), true));
    assert_eq!(registry.available().len(), 15);
}

#[test]
fn stored_variables_win_and_fill_addresses() {
    let env = json!({"CLOUDFLARE_ACCOUNT_ID": "acc"});
    let entry = json!({"type": "api_key", "key": "$CF", "env": env});
    let setup = Setup::new().variable("CF", "cf-key-1234").variable("CLOUDFLARE_ACCOUNT_ID", "other");
    let setup = setup.auth(json!({"cloudflare-workers-ai": entry}));
    let registry = setup.registry();
    let model = registry.available().into_iter().next().expect("model");
    assert_eq!(model.base_url, "https://api.cloudflare.com/client/v4/accounts/acc/ai/v1");
    assert_eq!(
        resolve(&registry, &model.provider, &model.id).expect("credentials").api_key.as_deref(),
        Some("cf-key-1234")
    );
}

#[test]
fn an_address_with_an_open_placeholder_is_an_error_naming_it() {
    let registry = Setup::new().variable("CLOUDFLARE_API_KEY", "k").registry();
    let model =
        registry.available().into_iter().find(|model| model.provider == "cloudflare-workers-ai").expect("model");
    let error = resolve(&registry, &model.provider, &model.id).expect_err("no account");
    assert!(error.contains("CLOUDFLARE_ACCOUNT_ID"), "{error}");
}

#[test]
fn missing_credentials_are_explained() {
    let registry = Setup::new().registry();
    let error = resolve(&registry, "anthropic", "claude-opus-5").expect_err("no key");
    assert!(error.starts_with("No API key found for anthropic.\n\nSet ANTHROPIC_API_KEY, "), "{error}");
    let model = registry.find("anthropic", "claude-opus-5").expect("model");
    assert_eq!(registry.check(&model), Err(error));
    let refused = registry.select("anthropic", "claude-opus-5").err();
    assert_eq!(refused.as_deref(), Some("Model not found: anthropic/claude-opus-5"));
    assert_eq!(registry.select("x", "y").err().as_deref(), Some("Model not found: x/y"));
}

#[test]
fn models_out_of_scope_are_known_but_refused_with_the_reason() {
    let check = |variable: &str, provider: &str, what: &str| {
        let registry = Setup::new().variable(variable, "value-12345").registry();
        assert!(registry.available().iter().all(|model| model.provider != provider), "{provider}");
        let model = registry.models_of(provider).into_iter().next().expect("model");
        let expected = format!("Model {provider}/{} cannot be used: pith does not support {what}", model.id);
        assert_eq!(registry.select(provider, &model.id).err(), Some(expected.clone()));
        assert_eq!(registry.check(&model), Err(expected.clone()));
        assert_eq!(resolve(&registry, provider, &model.id), Err(expected));
    };
    check("AWS_PROFILE", "amazon-bedrock", "Amazon Bedrock: AWS request signing and its binary event stream");
    check("AZURE_OPENAI_API_KEY", "azure-openai-responses", "Azure OpenAI: resource addresses and deployment names");
    check("GOOGLE_CLOUD_API_KEY", "google-vertex", "Google Vertex AI: Google Cloud credentials and regional addresses");
    check("COPILOT_GITHUB_TOKEN", "github-copilot", "the GitHub Copilot login");
    check("RADIUS_API_KEY", "radius", "the Radius gateway of another agent");
    check("UNUSED", "openai-codex", "the ChatGPT subscription login");
}

#[test]
fn mistral_speaks_completions() {
    let registry = Setup::new().variable("MISTRAL_API_KEY", "k").registry();
    let available = registry.available();
    assert_eq!(available.len(), 33);
    let model = &available[0];
    assert_eq!((model.api.as_str(), model.base_url.as_str()), ("openai-completions", "https://api.mistral.ai/v1"));
    assert_eq!(model.compat.as_ref().expect("compat")["supportsDeveloperRole"], false);
}

#[test]
fn custom_models_get_defaults() {
    let registry = Setup::new().models(custom(json!({"compat": {"a": 1}}))).registry();
    let model = registry.find("p", "m").expect("model");
    let expected = Model {
        id: "m".into(),
        name: "m".into(),
        api: "openai-completions".into(),
        provider: "p".into(),
        base_url: "https://host/v1".into(),
        input: vec!["text".into()],
        context_window: 128000,
        max_tokens: 16384,
        compat: json!({"a": 1}).as_object().cloned(),
        ..Model::default()
    };
    assert_eq!(*model, expected);
    assert_eq!(ids(&registry.available()), ["p/m"]);
    assert_eq!(registry.models().len(), 1496);
}

#[test]
fn built_in_models_can_be_redirected_replaced_extended_and_patched() {
    let registry = Setup::new()
        .models(json!({"anthropic": {
            "baseUrl": "https://proxy", "compat": {"supportsStrictTools": false},
            "models": [{"id": "claude-opus-5", "contextWindow": 7}, {"id": "claude-new", "reasoning": true}],
            "modelOverrides": {
                "claude-haiku-4-5": {"name": "Mine", "cost": {"input": 99}, "thinkingLevelMap": {"max": "max"},
                                     "inputLimits": {"images": {"resize": {"maxWidth": 100}}}, "promptCache": {"long": 9}},
                "claude-new": {"maxTokens": 5}, "unknown": {"name": "ignored"}},
        }}))
        .registry();
    let find = |id| registry.find("anthropic", id).expect(id);
    assert!(registry.models_of("anthropic").iter().all(|model| model.base_url == "https://proxy"));
    let replaced = find("claude-opus-5");
    assert_eq!((replaced.context_window, replaced.name.as_str(), replaced.reasoning), (7, "claude-opus-5", false));
    assert_eq!(replaced.api, "anthropic-messages");
    let new = find("claude-new");
    assert_eq!((new.api.as_str(), new.max_tokens), ("anthropic-messages", 5));
    assert_eq!(registry.models_of("anthropic").last().expect("last").id, "claude-new");
    let patched = find("claude-haiku-4-5");
    assert_eq!((patched.name.as_str(), patched.cost.input, patched.cost.output), ("Mine", 99.0, 5.0));
    assert!(patched.thinking_levels().contains(&ThinkingLevel::Max));
    let images = patched.input_limits.as_ref().and_then(|limits| limits.images.as_ref()).expect("images");
    let resize = images.resize.as_ref().expect("resize");
    assert_eq!((resize.max_width, resize.max_height, images.max_per_request), (100, 2000, Some(100)));
    let cache = patched.prompt_cache.expect("cache");
    assert_eq!((cache.short, cache.long), (Some(300), Some(9)));
    assert_eq!(patched.compat.as_ref().expect("compat")["supportsStrictTools"], false);
}

#[test]
fn api_and_address_come_from_siblings() {
    let registry = Setup::new()
        .models(json!({"opencode": {"models": [{"id": "x", "api": "anthropic-messages"}, {"id": "y"}]}}))
        .registry();
    assert_eq!(registry.find("opencode", "x").expect("x").base_url, "https://opencode.ai/zen");
    let first = &registry.models_of("opencode")[0];
    let any = registry.find("opencode", "y").expect("y");
    assert_eq!((&any.api, &any.base_url), (&first.api, &first.base_url));
}

#[test]
fn compat_merges_shallowly_except_for_routing() {
    let registry = Setup::new()
        .models(custom(json!({
            "compat": {"a": {"x": 1}, "openRouterRouting": {"order": ["a"], "only": 1}, "keep": 1},
            "models": [{"id": "m", "compat": {"a": {"y": 2}, "openRouterRouting": {"only": 2}}}],
        })))
        .registry();
    let compat = registry.find("p", "m").expect("model").compat.clone().expect("compat");
    assert_eq!(
        Value::Object(compat),
        json!({"a": {"y": 2}, "openRouterRouting": {"order": ["a"], "only": 2}, "keep": 1})
    );
}

#[test]
fn headers_follow_their_precedence() {
    let registry = Setup::new()
        .variable("TEAM", "red-team-1")
        .models(custom(json!({
            "headers": {"X-Team": "$TEAM", "X-A": "provider", "X-B": "provider", "X-Gone": null},
            "models": [{"id": "m", "headers": {"x-a": "model"}}],
            "modelOverrides": {"m": {"headers": {"X-A": "override", "X-B": "override"}}},
            "authHeader": true,
        })))
        .registry();
    let credentials = resolve(&registry, "p", "m").expect("credentials");
    assert!(credentials.auth_header);
    assert_eq!(header(&credentials, "X-Team"), Some(Some("red-team-1".into())));
    assert_eq!(header(&credentials, "x-a"), Some(Some("model".into())));
    assert_eq!(header(&credentials, "X-A"), None, "names compare without case");
    assert_eq!(header(&credentials, "X-B"), Some(Some("override".into())));
    assert_eq!(header(&credentials, "X-Gone"), Some(None));
    assert_eq!(registry.secrets().redact("team red-team-1"), "team [redacted]");
}

#[test]
fn catalogue_headers_are_sent_unless_overridden() {
    let setup = Setup::new().variable("NVIDIA_API_KEY", "k");
    let first = |registry: &Registry| registry.models_of("nvidia")[0].id.clone();
    let registry = setup.registry();
    let credentials = resolve(&registry, "nvidia", &first(&registry)).expect("credentials");
    assert_eq!(header(&credentials, "NVCF-POLL-SECONDS"), Some(Some("3600".into())));
    let registry = setup.models(json!({"nvidia": {"headers": {"nvcf-poll-seconds": null}}})).registry();
    let credentials = resolve(&registry, "nvidia", &first(&registry)).expect("credentials");
    assert_eq!(credentials.headers, [("nvcf-poll-seconds".to_owned(), None)]);
}

#[test]
fn header_errors_name_header_and_owner() {
    let check = |extra: Value, expected: &str| {
        let registry = Setup::new().models(custom(extra)).registry();
        assert_eq!(resolve(&registry, "p", "m"), Err(expected.to_owned()));
    };
    check(
        json!({"headers": {"H": "$A$B"}}),
        "Failed to resolve provider \"p\" header \"H\" from environment variables: A, B",
    );
    check(
        json!({"models": [{"id": "m", "headers": {"H": "$A"}}]}),
        "Failed to resolve model \"p/m\" header \"H\" from environment variable: A",
    );
}

#[cfg(unix)]
#[test]
fn commands_run_for_requests_only() {
    let setup = Setup::new();
    let count = setup.path("count");
    let command = format!("!echo x >> {0}; wc -l < {0}", count.display());
    let setup = setup.models(custom(json!({"apiKey": command})));
    let registry = setup.registry();
    assert_eq!(registry.available().len(), 1);
    assert!(!count.exists(), "looking does not run the command");
    let key = |registry: &Registry| resolve(registry, "p", "m").expect("credentials").api_key.expect("key");
    assert_eq!((key(&registry), key(&registry)), ("1".into(), "2".into()));
    // A stored command runs once in the life of the process, and a limit may be set on the others.
    let setup = setup.auth(json!({"p": {"type": "api_key", "key": command}}));
    let registry = setup.registry();
    assert_eq!((key(&registry), key(&registry)), ("3".into(), "3".into()));
    let setup = Setup::new().models(custom(json!({"apiKey": command, "keyCommandTtlMs": 3_600_000})));
    let registry = setup.registry();
    assert_eq!((key(&registry), key(&registry)), ("4".into(), "4".into()));
}

#[cfg(unix)]
#[test]
fn a_failing_command_is_explained() {
    let registry = Setup::new().models(custom(json!({"apiKey": "!echo locked >&2; exit 2"}))).registry();
    assert_eq!(
        resolve(&registry, "p", "m"),
        Err("Failed to resolve API key for provider \"p\" from shell command: echo locked >&2; exit 2 (exit code 2: locked)".into())
    );
}

#[test]
fn local_servers_need_no_key() {
    let check = |base_url: &str, expected: bool| {
        let provider = json!({"p": {"baseUrl": base_url, "api": "openai-completions", "models": [{"id": "m"}]}});
        let registry = Setup::new().models(provider).registry();
        assert_eq!(registry.available().len() == 1, expected, "{base_url}");
        if expected {
            let credentials = resolve(&registry, "p", "m").expect("credentials");
            assert_eq!(credentials, ResolvedCredentials::default());
        }
    };
    check("http://127.0.0.1:11434/v1", true);
    check("http://localhost:8080", true);
    check("http://box.localhost/v1", true);
    check("http://[::1]:8080/v1", true);
    check("http://user@192.168.1.7:80/v1", true);
    check("http://10.0.0.1", true);
    check("http://172.16.0.1/v1", true);
    check("http://[fd00::1]/v1", true);
    check("https://example.com/v1", false);
    check("https://localhost.example.com/v1", false);
    check("http://8.8.8.8/v1", false);
    check("https://127.0.0.1.example.com", false);
}

#[test]
fn auth_none_needs_no_key_anywhere() {
    let provider =
        json!({"baseUrl": "https://far.example", "api": "openai-completions", "auth": "none", "models": [{"id": "m"}]});
    let registry = Setup::new().models(json!({"p": provider})).registry();
    assert_eq!(resolve(&registry, "p", "m"), Ok(ResolvedCredentials::default()));
}

#[test]
fn a_header_may_be_the_credential() {
    let provider = json!({"baseUrl": "https://far.example", "api": "openai-completions",
        "headers": {"Authorization": "Bearer abc-secret-123"}, "models": [{"id": "m"}]});
    let registry = Setup::new().models(json!({"p": provider})).registry();
    assert_eq!(registry.available().len(), 1);
    let credentials = resolve(&registry, "p", "m").expect("credentials");
    assert_eq!(credentials.api_key, None);
    assert_eq!(registry.secrets().redact("got abc-secret-123"), "got [redacted]");
}

#[test]
fn resolved_keys_are_secrets() {
    let registry = Setup::new().models(custom(json!({}))).registry();
    resolve(&registry, "p", "m").expect("credentials");
    assert_eq!(registry.secrets().redact("401 Bearer key-12345"), "401 Bearer [redacted]");
}

#[test]
fn broken_files_leave_the_catalogue() {
    let registry = Setup::new().file("models.json", "{ nope").registry();
    assert_eq!(registry.models().len(), 1495);
    assert!(registry.models_error().expect("error").starts_with("Failed to parse models.json: "));
    let setup = Setup::new().models(json!({"openai": {"name": "nothing else"}, "p": custom(json!({}))["p"]}));
    let registry = setup.registry();
    assert!(registry.models_error().expect("error").starts_with("Provider \"openai\": "));
    assert_eq!(registry.models().len(), 1496);
}

#[test]
fn an_api_nobody_speaks_is_reported_at_once() {
    let registry = Setup::new().models(custom(json!({"api": "telepathy"}))).registry();
    assert!(registry.diagnostics()[0].message.starts_with("Provider \"p\": unknown api \"telepathy\""));
    assert!(registry.available().is_empty());
    let expected = "No API provider registered for api: telepathy";
    assert_eq!(registry.select("p", "m").err().as_deref(), Some(expected));
    registry.support_api("telepathy");
    assert!(registry.select("p", "m").is_ok());
}

#[test]
fn registrations_cover_and_uncover() {
    let registry = Setup::new().variable("OPENAI_API_KEY", "k").registry();
    let built_in = registry.available().len();
    let redirect = ProviderConfig { id: "openai".into(), base_url: Some("https://proxy".into()), ..Default::default() };
    registry.register(redirect, Visibility::Listed);
    assert_eq!(registry.find("openai", "gpt-5.5").expect("model").base_url, "https://proxy");
    let model = models_file::ModelConfig { id: "only".into(), ..Default::default() };
    let replace = ProviderConfig { id: "openai".into(), models: vec![model.clone()], ..Default::default() };
    registry.register(replace, Visibility::Listed);
    assert_eq!(ids(&registry.available()), ["openai/only"]);
    assert_eq!(registry.find("openai", "only").expect("model").api, "openai-responses");
    registry.unregister("openai");
    assert_eq!(registry.available().len(), built_in);
    let new = ProviderConfig {
        id: "ext".into(),
        base_url: Some("https://ext".into()),
        api: Some("openai-completions".into()),
        api_key: Some("k".into()),
        models: vec![model],
        ..Default::default()
    };
    registry.register(new, Visibility::Listed);
    assert!(registry.select("ext", "only").is_ok());
    registry.unregister("ext");
    assert!(registry.provider_named("ext").is_none());
}

#[test]
fn a_provider_by_name_only_never_appears() {
    let registry = Setup::new().registry();
    let model = models_file::ModelConfig { id: "tour".into(), ..Default::default() };
    let scripted = ProviderConfig {
        id: "scripted".into(),
        api: Some("scripted".into()),
        keyless: true,
        models: vec![model],
        ..Default::default()
    };
    registry.register(scripted, Visibility::ByNameOnly);
    registry.support_api("scripted");
    assert!(registry.available().is_empty());
    assert_eq!(registry.models().len(), 1495);
    assert!(registry.provider_named("Scripted").is_none());
    assert_eq!(registry.provider_named("scripted").as_deref(), Some("scripted"));
    assert!(registry.select("scripted", "tour").is_ok());
    assert!(!registry.provider_ids().contains(&"scripted".to_owned()));
}

#[test]
fn stored_credentials_are_picked_up_while_running() {
    let setup = Setup::new();
    let registry = setup.registry();
    assert!(registry.available().is_empty());
    let setup = setup.auth(json!({"openai": {"type": "api_key", "key": "k"}}));
    assert_eq!(registry.available().len(), 41);
    let _setup = setup.auth(json!({}));
    assert!(registry.available().is_empty());
}

#[test]
fn variables_that_hold_credentials() {
    let extra = json!({"apiKey": "$MY_KEY", "headers": {"X": "${MY_HEADER}"}});
    let names = Setup::new().models(custom(extra)).registry().credential_variables();
    for name in ["ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "MY_KEY", "MY_HEADER"] {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
}

#[test]
fn the_table_of_models() {
    let models = json!([
        {"id": "beta", "contextWindow": 1_000_000, "maxTokens": 65_536, "reasoning": true, "input": ["text", "image"]},
        {"id": "alpha"}
    ]);
    let registry = Setup::new().models(custom(json!({"models": models}))).registry();
    assert_eq!(
        model_table(&registry, None),
        "provider  model  context  max-out  thinking  images\n\
         p         alpha  128K     16.4K    no        no\n\
         p         beta   1M       65.5K    yes       yes"
    );
    assert!(model_table(&registry, Some("P/BT")).ends_with("yes"));
    assert_eq!(model_table(&registry, Some("zzz")), "No models matching \"zzz\"");
}

#[test]
fn loading_touches_no_table() {
    let setup = Setup::new();
    let start = Instant::now();
    let registry = setup.registry();
    assert!(registry.available().is_empty());
    // A debug build needs tens of milliseconds to parse the tables, and microseconds not to.
    assert!(start.elapsed() < Duration::from_millis(20), "{:?}", start.elapsed());
}

#[test]
fn reloading_keeps_what_is_not_in_the_file() {
    let setup = Setup::new().models(custom(json!({})));
    let registry = setup.registry();
    registry.give_key("openai", "given");
    let extra = ProviderConfig { id: "p".into(), base_url: Some("https://over".into()), ..Default::default() };
    registry.register(extra, Visibility::Listed);
    let setup = setup.models(json!({"q": custom(json!({"models": [{"id": "n"}]}))["p"]}));
    registry.reload();
    assert!(registry.select("q", "n").is_ok());
    assert!(registry.find("p", "m").is_none());
    assert!(registry.select("openai", "gpt-5.5").is_ok());
    registry.unregister("p");
    assert!(registry.provider_named("p").is_none());
    let _setup = setup.file("models.json", "{ nope");
    registry.reload();
    assert!(registry.models_error().is_some() && registry.provider_named("q").is_none());
}

#[test]
fn local_servers_are_asked_for_their_models() {
    use crate::discovery::{Fetch, Question};
    let provider = json!({"baseUrl": "http://127.0.0.1:9/v1", "apiKey": "local-key", "discovery": {"type": "openai"},
        "models": [{"id": "known", "contextWindow": 5}], "api": "openai-completions",
        "modelOverrides": {"found": {"name": "Found"}}});
    let silent = json!({"baseUrl": "http://127.0.0.1:10/v1", "discovery": {"type": "ollama"}});
    let registry = Setup::new().models(json!({"p": provider, "silent": silent})).registry();
    assert!(registry.has_discovery());
    assert_eq!(ids(&registry.available()), ["p/known"]);
    let fetch: Fetch = Arc::new(|question: Question| {
        Box::pin(async move {
            let authorised = question.headers.contains(&("Authorization".into(), Some("Bearer local-key".into())));
            match question.url.as_str() {
                "http://127.0.0.1:9/v1/models" if authorised => {
                    Ok(json!({"data": [{"id": "known", "context_length": 7}, {"id": "found", "context_length": 4096}]}))
                }
                other => Err(format!("cannot reach {other}")),
            }
        })
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    let diagnostics = runtime.block_on(registry.discover(&fetch));
    assert_eq!(ids(&registry.available()), ["p/known", "p/found"]);
    let found = registry.find("p", "found").expect("found");
    assert_eq!((found.context_window, found.name.as_str()), (4096, "Found"));
    assert_eq!(registry.find("p", "known").expect("known").context_window, 5, "the file knows better");
    assert_eq!(diagnostics.len(), 1);
    assert!(diagnostics[0].message.starts_with("Provider \"silent\": no models discovered: cannot reach"));
}

#[test]
fn an_undescribed_model_at_a_configured_address() {
    let provider = json!({"baseUrl": "http://localhost:1/v1", "discovery": {"type": "ollama"}});
    let registry = Setup::new().models(json!({"ollama": provider})).registry();
    let model = registry.blank_model("ollama", "qwen:7b").expect("model");
    assert_eq!((model.api.as_str(), model.base_url.as_str()), ("openai-completions", "http://localhost:1/v1"));
    let choice = crate::select::by_name(&registry, None, Some("ollama/qwen:7b")).expect("found").expect("choice");
    assert!(choice.is_custom && registry.check(&choice.model).is_ok());
}
