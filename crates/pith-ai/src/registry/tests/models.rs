//! Which models there are.

use super::*;
use crate::credentials::CredentialSource;

#[test]
fn without_keys_everything_is_known_and_nothing_available() {
    let registry = Setup::new().registry();
    assert_eq!(registry.models().len(), 1643);
    assert!(registry.available().is_empty());
    assert_eq!(registry.diagnostics(), []);
    assert_eq!(registry.find("anthropic", "claude-opus-5").expect("model").provider, "anthropic");
    assert!(registry.find("anthropic", "gpt-5.5").is_none());
    assert!(registry.find("nobody", "x").is_none());
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
    check("AZURE_OPENAI_API_KEY", "azure", "Azure OpenAI: resource addresses and deployment names");
    check("GOOGLE_CLOUD_API_KEY", "google-vertex", "Google Vertex AI: Google Cloud credentials and regional addresses");
    check("COPILOT_GITHUB_TOKEN", "github-copilot", "the GitHub Copilot login");
    check("RADIUS_API_KEY", "radius", "the Radius gateway of another agent");
    check("UNUSED", "openai-codex", "the ChatGPT subscription login");
}

#[test]
fn a_provider_is_found_by_its_former_id() {
    let (former, current) = ("azure-openai-responses", "azure");
    let config = json!({"api": "openai-responses", "baseUrl": "https://h/v1", "models": [{"id": "mine"}]});
    let auth = json!({former: {"type": "api_key", "key": "key-12345"}});
    let setup = Setup::new().models(json!({ former: config })).auth(auth);
    let registry = setup.registry();
    assert_eq!(registry.provider_named(former).as_deref(), Some(current));
    for id in [former, current] {
        let model = registry.select(id, "mine").expect("usable");
        assert_eq!((model.provider.as_str(), registry.is_usable(&model)), (current, true), "{id}");
    }
    assert!(!registry.provider_ids().iter().any(|id| id == former));
    let scope = crate::select::resolve_scope(&registry, &["azure-openai-responses/mine:high"]);
    assert_eq!((scope.models.len(), scope.warnings), (1, vec![]));
    registry.auth_file().store_key(current, "key-67890").expect("stored");
    assert_eq!(resolve(&registry, former, "mine").expect("a key").api_key.as_deref(), Some("key-67890"));
    registry.auth_file().remove(current).expect("removed");
    assert!(registry.auth_file().entries().is_empty());
}

#[test]
fn a_server_knows_its_window_better_than_an_entry() {
    let registry = Setup::new().registry();
    let model = registry.find("anthropic", "claude-opus-5").expect("model");
    assert_eq!(registry.context_window(&model), model.context_window);
    registry.on_window(&model, 8192);
    assert_eq!(registry.context_window(&model), 8192);
    registry.on_window(&model, u64::MAX);
    assert_eq!(registry.context_window(&model), model.context_window);
}

#[test]
fn mistral_speaks_completions() {
    let registry = Setup::new().variable("MISTRAL_API_KEY", "k").registry();
    let available = registry.available();
    assert_eq!(available.len(), 34);
    let model = &available[0];
    assert_eq!((model.api.as_str(), model.base_url.as_str()), ("openai-completions", "https://api.mistral.ai/v1"));
    assert_eq!(model.compat.as_ref().expect("compat")["supportsDeveloperRole"], false);
}

#[test]
fn mistral_is_told_not_to_think() {
    let registry = Setup::new().variable("MISTRAL_API_KEY", "k").registry();
    let model = registry.find("mistral", "mistral-medium-latest").expect("model");
    let effort = |level| {
        let mut call = crate::testing::call((*model).clone(), vec![crate::testing::user("hi")]);
        call.thinking = level;
        crate::testing::request(&crate::wire::completions::Completions, &call).2["reasoning_effort"].clone()
    };
    assert_eq!((effort(ThinkingLevel::Off), effort(ThinkingLevel::High)), (json!("none"), json!("high")));
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
    assert_eq!(registry.models().len(), 1644);
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
    assert_eq!(registry.find("opencode", "x").expect("x").base_url, "https://opencode.ai/inference/anthropic");
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
fn broken_files_leave_the_catalogue() {
    let registry = Setup::new().file("models.json", "{ nope").registry();
    assert_eq!(registry.models().len(), 1643);
    assert!(registry.models_error().expect("error").starts_with("Failed to parse models.json: "));
    let setup = Setup::new().models(json!({"openai": {"name": "nothing else"}, "p": custom(json!({}))["p"]}));
    let registry = setup.registry();
    assert!(registry.models_error().expect("error").starts_with("Provider \"openai\": "));
    assert_eq!(registry.models().len(), 1644);
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
    assert_eq!(registry.models().len(), 1643);
    assert!(registry.provider_named("Scripted").is_none());
    assert_eq!(registry.provider_named("scripted").as_deref(), Some("scripted"));
    assert!(registry.select("scripted", "tour").is_ok());
    assert!(!registry.provider_ids().contains(&"scripted".to_owned()));
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
fn only_the_tables_that_are_needed_are_read() {
    let asked = |registry: &Registry| {
        let tables = registry.tables();
        let asked = tables.providers.iter().filter(|provider| provider.was_asked());
        asked.map(|provider| provider.id.clone()).collect::<Vec<_>>()
    };
    let registry = Setup::new().registry();
    assert!(registry.available().is_empty() && registry.suggested().is_none());
    assert!(asked(&registry).is_empty());
    let registry = Setup::new().variable("OPENAI_API_KEY", "k").registry();
    assert!(registry.suggested().is_some());
    assert_eq!(asked(&registry), ["openai"]);
    registry.find("groq", "x");
    assert_eq!(asked(&registry), ["groq", "openai"]);
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

/// Registers for an extension that does nothing but describe the provider.
fn describe(registry: &Registry, id: &str, entry: Value) -> Result<Vec<String>, String> {
    registry.register_entry(id, &entry, Service::default())
}

#[test]
fn what_an_extension_says_is_laid_over_what_it_said_before() {
    let registry = Setup::new().registry();
    let models = json!([{"id": "a"}, {"id": "b"}]);
    let first = json!({"baseUrl": "http://one/v1", "api": "openai-completions", "apiKey": "k", "models": models});
    assert_eq!(describe(&registry, "ext", first), Ok(vec![]));
    assert_eq!(describe(&registry, "ext", json!({"baseUrl": "http://two/v1"})), Ok(vec![]));
    let shown: Vec<_> =
        registry.models_of("ext").iter().map(|model| (model.id.clone(), model.base_url.clone())).collect();
    assert_eq!(shown, [("a".into(), "http://two/v1".into()), ("b".into(), "http://two/v1".into())]);
    assert_eq!(
        describe(
            &registry,
            "ext",
            json!({"models": [{"id": "c", "contextWindow": "x"}], "api": "openai-responses", "baseUrl": "http://three"})
        )
        .map(|found| found.len()),
        Ok(1)
    );
    assert_eq!(registry.models_of("ext").iter().map(|model| model.id.clone()).collect::<Vec<_>>(), ["c"]);
    registry.unregister("ext");
    assert!(registry.models_of("ext").is_empty());
}

#[test]
fn an_extension_covers_a_built_in_provider_and_uncovers_it() {
    let registry = Setup::new().variable("OPENAI_API_KEY", "k").registry();
    let before = registry.models_of("openai");
    describe(&registry, "openai", json!({"baseUrl": "http://proxy/v1"})).expect("redirect");
    let redirected = registry.models_of("openai");
    assert_eq!(redirected.len(), before.len());
    assert!(redirected.iter().all(|model| model.base_url == "http://proxy/v1"));
    describe(&registry, "openai", json!({"models": []})).expect("none");
    assert!(registry.models_of("openai").is_empty(), "an empty list is a list");
    registry.unregister("openai");
    assert_eq!(registry.models_of("openai"), before);
}

#[test]
fn wrong_registrations_change_nothing() {
    let registry = Setup::new().registry();
    let check = |id: &str, entry: Value, expected: &str| {
        assert_eq!(describe(&registry, id, entry), Err(expected.to_owned()));
        assert!(registry.models_of(id).is_empty());
    };
    check("", json!({}), "Provider id must not be empty.");
    check("x", json!(7), "Provider x: expected an object");
    check(
        "x",
        json!({"baseUrl": "http://h", "models": [{"id": "m"}]}),
        "Provider x, model m: no \"api\" specified. Set at provider or model level.",
    );
    check(
        "x",
        json!({"api": "openai-completions", "models": [{"id": "m"}]}),
        "Provider x: \"baseUrl\" is required when defining custom models.",
    );
    check("x", json!({"models": [{"name": "m"}]}), "Provider x, model 0: missing \"id\"");
}

#[test]
fn an_api_an_extension_answers_for_is_supported() {
    let registry = Setup::new().registry();
    let entry = json!({"baseUrl": "https://h", "api": "mine", "models": [{"id": "m"}]});
    describe(&registry, "x", entry.clone()).expect("described");
    let model = registry.find("x", "m").expect("model");
    assert_eq!(registry.check(&model), Err("No API provider registered for api: mine".to_owned()));
    let service = Service { answers: Answers::Api("mine".into()), ..Service::default() };
    registry.register_entry("x", &entry, service.clone()).expect("served");
    assert_eq!(registry.check(&model), Ok(()));
    // Laid over, the service stays.
    describe(&registry, "x", json!({"baseUrl": "https://other"})).expect("laid over");
    assert_eq!(registry.service("x"), service);
}
