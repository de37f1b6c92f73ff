//! Where keys and headers come from.

use futures_util::future::BoxFuture;

use super::*;

#[test]
fn an_environment_key_makes_a_provider_available() {
    let registry = Setup::new().variable("ANTHROPIC_API_KEY", "sk-ant-12345").registry();
    let available = registry.available();
    assert_eq!(available.len(), 18);
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
    assert_eq!(registry.available().len(), 18);
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

#[test]
#[cfg(unix)]
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

#[test]
#[cfg(unix)]
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
            assert_eq!(credentials, Credentials::default());
        }
    };
    check("http://127.0.0.1:11434/v1", true);
    check("http://192.168.1.7:80/v1", true);
    check("https://example.com/v1", false);
}

#[test]
fn auth_none_needs_no_key_anywhere() {
    let provider =
        json!({"baseUrl": "https://far.example", "api": "openai-completions", "auth": "none", "models": [{"id": "m"}]});
    let registry = Setup::new().models(json!({"p": provider})).registry();
    assert_eq!(resolve(&registry, "p", "m"), Ok(Credentials::default()));
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
fn stored_credentials_are_picked_up_while_running() {
    let setup = Setup::new();
    let registry = setup.registry();
    assert!(registry.available().is_empty());
    let setup = setup.auth(json!({"openai": {"type": "api_key", "key": "k"}}));
    assert_eq!(registry.available().len(), 44);
    let _setup = setup.auth(json!({}));
    assert!(registry.available().is_empty());
}

#[test]
fn the_state_of_a_provider() {
    let key = |key: &str| json!({"type": "api_key", "key": key});
    let old = json!({"type": "oauth", "access": "a", "refresh": "r", "expires": 1});
    let setup = Setup::new().auth(json!({"openai": key("k"), "xai": key("$UNSET"), "anthropic": old}));
    let registry = setup.registry();
    let check = |provider, expected: (&str, Option<&str>)| {
        let status = registry.auth_status(provider);
        assert_eq!((status.as_str(), status.reason()), expected, "{provider}");
    };
    check("openai", ("ready", None));
    check("groq", ("not_ready", Some("credentials_not_configured")));
    check("xai", ("not_ready", Some("credential_not_available")));
    check("anthropic", ("not_ready", Some("credential_not_available")));
    check("nobody", ("invalid", Some("provider_not_found")));
    let broken = Setup::new().file("auth.json", "{ nope");
    assert_eq!(broken.registry().auth_status("openai").reason(), Some("invalid_state"));
}

#[test]
fn debug_output_has_no_secret() {
    let registry = Setup::new().models(custom(json!({"headers": {"X-Token": "token-98765"}}))).registry();
    let shown = format!("{:?}", resolve(&registry, "p", "m").expect("credentials"));
    assert!(shown.contains("X-Token") && !shown.contains("token-98765") && !shown.contains("key-12345"), "{shown}");
}

#[test]
fn variables_that_hold_credentials() {
    let extra = json!({"apiKey": "$MY_KEY", "headers": {"X": "${MY_HEADER}"}});
    let stored = json!({"anthropic": {"type": "api_key", "key": "$STORED_KEY"}});
    let names = Setup::new().models(custom(extra)).auth(stored).registry().credential_variables();
    for name in ["ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "MY_KEY", "MY_HEADER", "STORED_KEY"] {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
}

/// Logins of a made-up service: the key is the access token with a mark.
struct Known;

impl Logins for Known {
    fn key(&self, provider: &str, credentials: Value) -> BoxFuture<'static, Result<String, String>> {
        let key = format!("{provider}:{}", credentials["access"].as_str().unwrap_or_default());
        Box::pin(async move { Ok(key) })
    }

    fn refresh(&self, _: &str, credentials: Value) -> BoxFuture<'static, Result<Value, String>> {
        Box::pin(async move {
            match credentials["refresh"].as_str() {
                Some("good") => Ok(json!({"access": "new", "refresh": "next", "expires": 9e12, "team": "t"})),
                _ => Err("revoked".to_owned()),
            }
        })
    }
}

#[tokio::test]
async fn a_stored_login_is_used_and_renewed_by_the_extension_that_registered_the_provider() {
    let entry = |access: &str, refresh: &str, expires: f64| json!({"type": "oauth", "access": access, "refresh": refresh, "expires": expires});
    let setup = Setup::new().auth(json!({
        "live": entry("a", "r", 9e12), "old": entry("a", "good", 1.0), "dead": entry("a", "bad", 1.0),
        "keyed": {"type": "api_key", "key": "k"},
    }));
    let registry = setup.registry();
    let service = Service { logs_in: true, ..Service::default() };
    for id in ["live", "old", "dead", "keyed", "none"] {
        let config = json!({"baseUrl": "https://h/v1", "api": "openai-completions", "models": [{"id": "m"}]});
        registry.register_entry(id, &config, service.clone()).expect("registered");
    }
    let model = |id: &str| registry.find(id, "m").expect("model");
    assert!(registry.is_usable(&model("old")), "a login that ran out can be renewed");
    assert!(!registry.is_usable(&model("none")));
    assert!(registry.resolve_credentials(&model("live")).await.is_err(), "nobody understands it yet");
    registry.set_logins(Some(Arc::new(Known)));
    let mut keys = Vec::new();
    for id in ["live", "old", "old", "keyed"] {
        keys.push(registry.resolve_credentials(&model(id)).await.expect(id).api_key.expect("key"));
    }
    assert_eq!(keys, ["live:a", "old:new", "old:new", "k"]);
    let failure = registry.resolve_credentials(&model("dead")).await.expect_err("revoked");
    assert!(failure.starts_with("Authentication failed for \"dead\".") && failure.ends_with("(revoked)"), "{failure}");
    let stored = registry.auth_file().login("old").expect("stored");
    assert_eq!(stored, json!({"access": "new", "refresh": "next", "expires": 9e12, "team": "t", "type": "oauth"}));
}

#[tokio::test]
async fn having_no_credential_is_no_error_for_extensions() {
    let registry = Setup::new().registry();
    let config = json!({"baseUrl": "https://h/v1", "api": "mine", "headers": {"x-a": "1"}, "models": [{"id": "m"}]});
    registry.register_entry("p", &config, Service::default()).expect("registered");
    let model = registry.find("p", "m").expect("model");
    let found = registry.credentials_if_any(&model).await.expect("headers");
    assert_eq!((found.api_key, found.headers), (None, vec![("x-a".to_owned(), Some("1".to_owned()))]));
}
