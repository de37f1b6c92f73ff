//! Rules and texts of choosing a model, against the real catalogue.

use pith_config::{AgentDir, Environment, Layout, Settings};
use pith_protocol::ThinkingLevel;
use serde_json::{Value, json};

use super::*;
use crate::registry::Registry;

/// A registry with these variables set and these providers in `models.json`.
fn registry(variables: &[&'static str], providers: Value) -> Registry {
    let directory = tempfile::tempdir().expect("temp dir");
    let document = json!({ "providers": providers }).to_string();
    std::fs::write(directory.path().join("models.json"), document).expect("write");
    let variables = variables.to_vec();
    let environment = Environment::new("/home/u", move |name| variables.contains(&name).then(|| "key".to_owned()));
    let registry = Registry::load(&AgentDir::at(directory.path(), Layout::Pi), environment, &Settings::default());
    assert_eq!(registry.diagnostics(), []);
    registry
}

fn with_keys(variables: &[&'static str]) -> Registry {
    registry(variables, json!({}))
}

fn name(model: &pith_protocol::Model, level: Option<ThinkingLevel>) -> String {
    let level = level.map(|level| format!(" {}", level.as_str())).unwrap_or_default();
    format!("{}/{}{level}", model.provider, model.id)
}

/// `provider/id level`, or the error.
fn named(registry: &Registry, provider: Option<&str>, model: &str) -> String {
    match by_name(registry, provider, Some(model)) {
        Ok(choice) => {
            let choice = choice.expect("a name was given");
            let mark = if choice.is_custom { "custom " } else { "" };
            format!("{mark}{}", name(&choice.model, choice.level))
        }
        Err(error) => error,
    }
}

#[test]
fn names_with_a_provider() {
    let registry = with_keys(&["ANTHROPIC_API_KEY", "ZAI_API_KEY"]);
    let check = |provider, model, expected: &str| assert_eq!(named(&registry, provider, model), expected, "{model}");
    check(Some("anthropic"), "claude-opus-5", "anthropic/claude-opus-5");
    check(Some("ANTHROPIC"), "anthropic/claude-opus-5", "anthropic/claude-opus-5");
    check(Some("anthropic"), "Claude-Opus-5:High", "anthropic/claude-opus-5 high");
    check(None, "anthropic/claude-opus-5", "anthropic/claude-opus-5");
    check(None, "ANTHROPIC/haiku-4-5:max", "anthropic/claude-haiku-4-5 max");
    // The provider wins over a gateway whose ids begin with its name.
    check(None, "zai/glm-5.3", "zai/glm-5.3");
    check(Some("vercel-ai-gateway"), "zai/glm-5.1", "vercel-ai-gateway/zai/glm-5.1");
    check(Some("nope"), "x", "Unknown provider \"nope\". Use --list-models to see available providers/models.");
}

#[test]
fn names_without_a_provider() {
    let check = |variables: &[&'static str], model, expected: &str| {
        assert_eq!(named(&with_keys(variables), None, model), expected, "{model}");
    };
    check(&["OPENAI_API_KEY"], "gpt-5.5", "openai/gpt-5.5");
    check(&["OPENAI_API_KEY"], "gpt-5.5:low", "openai/gpt-5.5 low");
    check(&[], "nope", "Model \"nope\" not found. Use --list-models to see available models.");
    check(&[], "nope/nope", "Model \"nope/nope\" not found. Use --list-models to see available models.");
    check(&[], "", "Model \"\" not found. Use --list-models to see available models.");
}

#[test]
fn loose_names_prefer_usable_providers() {
    let check = |variables: &[&'static str], model, provider: &str| {
        let found = named(&with_keys(variables), None, model);
        assert!(found.starts_with(&format!("{provider}/")), "{model}: {found}");
    };
    check(&["ANTHROPIC_API_KEY"], "sonnet", "anthropic");
    check(&["OPENROUTER_API_KEY"], "sonnet", "openrouter");
    check(&["ANTHROPIC_API_KEY"], "sonnet:high", "anthropic");
    // Nothing usable: at least something pith can talk to.
    let found = named(&with_keys(&[]), None, "sonnet");
    assert!(!found.starts_with("amazon-bedrock/") && found.contains("sonnet"), "{found}");
}

#[test]
fn ambiguous_names_are_refused_with_the_candidates() {
    let same = |key: &str| json!({"baseUrl": "https://h", "api": "openai-completions", "apiKey": key, "models": [{"id": "same"}]});
    let check = |a: &str, b: &str, expected: &str| {
        assert_eq!(named(&registry(&["A", "B"], json!({"a": same(a), "b": same(b)})), None, "same"), expected);
    };
    check("$A", "$UNSET", "a/same");
    check(
        "$UNSET",
        "$UNSET",
        "Model \"same\" is ambiguous across providers: a/same, b/same. No matching provider is authenticated. \
         Use --provider or provider/model.",
    );
    check(
        "$A",
        "$B",
        "Model \"same\" is ambiguous across providers: a/same, b/same. More than one matching provider is \
         authenticated. Use --provider or provider/model.",
    );
}

#[test]
fn a_gateway_stands_in_for_a_provider_without_a_key() {
    let check = |variables: &[&'static str], model, expected: &str| {
        assert_eq!(named(&with_keys(variables), None, model), expected, "{variables:?}");
    };
    check(&["OPENROUTER_API_KEY"], "openai/gpt-4o", "openrouter/openai/gpt-4o");
    check(&["OPENROUTER_API_KEY"], "openai/gpt-4o:low", "openrouter/openai/gpt-4o low");
    check(&["OPENROUTER_API_KEY", "OPENAI_API_KEY"], "openai/gpt-4o", "openai/gpt-4o");
    check(&[], "openai/gpt-4o", "openai/gpt-4o");
    // The provider exists but not its model; the whole text is the id of another provider's.
    check(&["OPENROUTER_API_KEY"], "deepseek/deepseek-r1-0528", "openrouter/deepseek/deepseek-r1-0528");
    check(&["DEEPSEEK_API_KEY"], "deepseek/deepseek-r1-0528:low", "openrouter/deepseek/deepseek-r1-0528 low");
}

#[test]
fn unknown_ids_of_a_known_provider_become_custom_models() {
    let registry = with_keys(&["ANTHROPIC_API_KEY"]);
    let choice = by_name(&registry, Some("anthropic"), Some("my-own:high")).expect("found").expect("choice");
    assert!(choice.is_custom);
    assert_eq!(name(&choice.model, choice.level), "anthropic/my-own high");
    assert_eq!((choice.model.name.as_str(), choice.model.api.as_str()), ("my-own", "anthropic-messages"));
    assert!(choice.model.reasoning);
    assert_eq!(
        choice.warning.as_deref(),
        Some("Model \"my-own\" not found for provider \"anthropic\". Using custom model id.")
    );
    assert_eq!(named(&registry, None, "anthropic/my-own"), "custom anthropic/my-own");
}

#[test]
fn an_unknown_level_is_an_error_not_a_model() {
    let levels = "Valid values: off, minimal, low, medium, high, xhigh, max";
    let registry = with_keys(&["ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"]);
    let check =
        |provider, model: &str, expected: &str| assert_eq!(named(&registry, provider, model), expected, "{model}");
    check(None, "sonnet:bogus", &format!("Invalid thinking level \"bogus\" in \"sonnet:bogus\". {levels}"));
    check(
        Some("anthropic"),
        "claude-opus-5:bogus",
        &format!("Invalid thinking level \"bogus\" in \"claude-opus-5:bogus\". {levels}"),
    );
    check(None, "anthropic/opus:bogus", &format!("Invalid thinking level \"bogus\" in \"opus:bogus\". {levels}"));
    // Ids of some providers have tags; there an unknown one is a new id.
    check(Some("openrouter"), "openai/gpt-4o:nitro", "custom openrouter/openai/gpt-4o:nitro");
}

#[test]
fn a_provider_alone_means_its_default_model() {
    let check = |provider, expected: &str| {
        let choice = by_name(&with_keys(&[]), Some(provider), None).expect("found").expect("choice");
        assert_eq!(name(&choice.model, choice.level), expected);
    };
    check("openai", "openai/gpt-6.1-sol");
    check("Anthropic", "anthropic/claude-opus-5-5");
    assert_eq!(by_name(&with_keys(&[]), None, None), Ok(None));
    let local = json!({"p": {"baseUrl": "http://localhost", "api": "openai-completions", "models": [{"id": "x"}]}});
    let choice = by_name(&registry(&[], local), Some("p"), None).expect("found").expect("choice");
    assert_eq!(choice.model.id, "x");
}

#[test]
fn models_pith_cannot_talk_to_are_refused_with_the_reason() {
    let registry = with_keys(&["AWS_PROFILE", "COPILOT_GITHUB_TOKEN"]);
    let check = |model, expected: &str| assert!(named(&registry, None, model).contains(expected), "{model}");
    check("amazon-bedrock/us.anthropic.claude-opus-4-6-v1", "pith does not support Amazon Bedrock");
    check("github-copilot/gpt-5.4", "pith does not support the GitHub Copilot login");
    check("openai-codex/gpt-5.5", "pith does not support the ChatGPT subscription login");
}

fn scope_of(registry: &Registry, patterns: &[&str]) -> (Vec<String>, Vec<String>) {
    let scope = resolve_scope(registry, patterns);
    let names = scope.models.iter().map(|scoped| name(&scoped.model, scoped.level)).collect();
    (names, scope.warnings)
}

#[test]
fn scopes() {
    let models = json!([{"id": "alpha-1"}, {"id": "alpha-2"}, {"id": "org/beta"}, {"id": "weird[1]"}]);
    let provider = json!({"baseUrl": "http://localhost", "api": "openai-completions", "models": models});
    let registry = registry(&[], json!({"p": provider}));
    let check = |patterns: &[&str], expected: &[&str], warnings: &[&str]| {
        assert_eq!(scope_of(&registry, patterns), (owned(expected), owned(warnings)), "{patterns:?}");
    };
    check(&["alpha-1", "P/ALPHA-2:High"], &["p/alpha-1", "p/alpha-2 high"], &[]);
    check(&["alpha*"], &["p/alpha-1", "p/alpha-2"], &[]);
    check(&["p/alpha-?:low"], &["p/alpha-1 low", "p/alpha-2 low"], &[]);
    check(&["*beta"], &[], &["No models match pattern \"*beta\""]);
    check(&["**/beta"], &["p/org/beta"], &[]);
    check(&["p/*"], &["p/alpha-1", "p/alpha-2", "p/org/beta", "p/weird[1]"], &[]);
    check(&["p/**"], &["p/alpha-1", "p/alpha-2", "p/org/beta", "p/weird[1]"], &[]);
    check(&["weird[1]:max"], &["p/weird[1] max"], &[]);
    check(&["alpha-[12]"], &["p/alpha-1", "p/alpha-2"], &[]);
    check(&["alpha-2", "alpha*:high"], &["p/alpha-2", "p/alpha-1 high"], &[]);
    check(&["zzz", " ", "beta"], &["p/org/beta"], &["No models match pattern \"zzz\""]);
    check(
        &["beta:zzz"],
        &["p/org/beta"],
        &["Invalid thinking level \"zzz\" in pattern \"beta:zzz\". Using default instead."],
    );
    check(&["["], &[], &["No models match pattern \"[\""]);
}

#[test]
fn a_pattern_without_a_provider_takes_every_provider_of_its_model() {
    let provider =
        |models: Value| json!({"baseUrl": "http://localhost", "api": "openai-completions", "models": models});
    let b = json!([{"id": "zeta"}, {"id": "x[1]"}, {"id": "only-b"}]);
    let registry = registry(&[], json!({"b": provider(b), "a": provider(json!([{"id": "Zeta"}, {"id": "x[1]"}]))}));
    let check = |pattern: &str, expected: &[&str], is_warned: bool| {
        let warning = format!("Pattern \"{pattern}\" matches several providers: a, b. Use provider/id to choose one.");
        let (names, warnings) = scope_of(&registry, &[pattern]);
        assert_eq!(
            (names, warnings),
            (owned(expected), is_warned.then_some(warning).into_iter().collect()),
            "{pattern}"
        );
    };
    check("zeta", &["b/zeta", "a/Zeta"], true);
    check("zet:high", &["b/zeta high", "a/Zeta high"], true);
    check("x[1]", &["b/x[1]", "a/x[1]"], true);
    check("x[1]:low", &["b/x[1] low", "a/x[1] low"], true);
    check("a/zeta", &["a/Zeta"], false);
    check("b/x[1]:low", &["b/x[1] low"], false);
    check("only-b", &["b/only-b"], false);
    // A glob that is no id asks for all that it matches.
    check("*eta", &["b/zeta", "a/Zeta"], false);
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn a_provider_glob_covers_ids_with_slashes() {
    let registry = with_keys(&["OPENROUTER_API_KEY"]);
    assert_eq!(scope_of(&registry, &["openrouter/*"]).0.len(), 403);
    assert_eq!(scope_of(&registry, &["openrouter/**"]).0.len(), 403);
    assert_eq!(scope_of(&registry, &["OpenRouter/openai/*"]).0.len(), scope_of(&registry, &["openai/*"]).0.len());
}

#[test]
fn only_usable_models_are_in_scope() {
    assert_eq!(scope_of(&with_keys(&[]), &["claude*"]).0, Vec::<String>::new());
    assert_eq!(scope_of(&with_keys(&["AWS_PROFILE"]), &["**/*claude*"]).0, Vec::<String>::new());
}

#[test]
fn cycling() {
    let models = json!([{"id": "a"}, {"id": "b"}, {"id": "c"}]);
    let provider = json!({"baseUrl": "http://localhost", "api": "openai-completions", "models": models});
    let registry = registry(&[], json!({"p": provider}));
    let model = |id: &str| registry.find("p", id).expect("model");
    let scope = resolve_scope(&registry, &["c:high", "a"]).models;
    let check = |scope: &[Scoped], current: Option<&str>, expected: Option<(&str, bool)>| {
        let current = current.map(model);
        let cycled = next_model(&registry, scope, current.as_deref());
        let shown = cycled.map(|cycled| (name(&cycled.model, cycled.level), cycled.is_scoped));
        assert_eq!(shown, expected.map(|(name, scoped)| (name.to_owned(), scoped)));
    };
    check(&[], Some("a"), Some(("p/b", false)));
    check(&[], Some("c"), Some(("p/a", false)));
    check(&[], None, Some(("p/b", false)));
    check(&scope, Some("a"), Some(("p/c high", true)));
    check(&scope, Some("c"), Some(("p/a", true)));
    check(&scope, Some("b"), Some(("p/a", true)));
    check(&scope[..1], Some("a"), None);
    assert_eq!(next_model(&with_keys(&[]), &[], None), None);
}

/// `provider/id level | warnings`, or the error.
fn started(registry: &Registry, wanted: Wanted<'_>, settings: &Settings, recorded: Option<Recorded<'_>>) -> String {
    match start(registry, &wanted, settings, recorded.as_ref()) {
        Ok(start) => {
            let model = start.model.as_ref().map_or("none".into(), |model| name(model, None));
            let warnings: String = start.warnings.iter().map(|warning| format!(" | {warning}")).collect();
            format!("{model} {}{warnings}", start.thinking.as_str())
        }
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn the_first_model_of_a_new_session() {
    let saved = Settings {
        default_provider: Some("openai".into()),
        default_model: Some("gpt-5.4".into()),
        ..Settings::default()
    };
    let plain = Settings::default();
    let check = |variables: &[&'static str], settings: &Settings, wanted: Wanted<'_>, expected: &str| {
        assert_eq!(started(&with_keys(variables), wanted, settings, None), expected);
    };
    let none = Wanted::default();
    check(&[], &plain, none, "none off");
    check(&[], &saved, none, "none off");
    check(&["OPENAI_API_KEY"], &saved, none, "openai/gpt-5.4 medium");
    check(&["OPENAI_API_KEY"], &plain, none, "openai/gpt-6.1-sol medium");
    check(&["OPENAI_API_KEY", "ANTHROPIC_API_KEY"], &plain, none, "anthropic/claude-opus-5-5 medium");
    // A provider pith cannot talk to is never a default, though it comes first.
    check(&["AWS_PROFILE", "OPENAI_API_KEY"], &plain, none, "openai/gpt-6.1-sol medium");
    check(&["AWS_PROFILE"], &plain, none, "none off");
    let model = Wanted { model: Some("openai/gpt-5.4:low"), ..none };
    check(&["ANTHROPIC_API_KEY"], &plain, model, "openai/gpt-5.4 low");
    let provider = Wanted { provider: Some("openai"), ..none };
    check(&["ANTHROPIC_API_KEY"], &saved, provider, "openai/gpt-6.1-sol medium");
    let patterns = ["gpt-5.5:high".to_owned(), "openai/gpt-5.4:low".to_owned(), "zzz".to_owned()];
    let scope = Wanted { scope: &patterns, ..none };
    check(&["OPENAI_API_KEY"], &plain, scope, "openai/gpt-5.5 high | No models match pattern \"zzz\"");
    check(&["OPENAI_API_KEY"], &saved, scope, "openai/gpt-5.4 low | No models match pattern \"zzz\"");
    let enabled = Settings { enabled_models: Some(vec!["gpt-5.5".into()]), ..saved.clone() };
    check(&["OPENAI_API_KEY"], &enabled, none, "openai/gpt-5.5 medium");
}

#[test]
fn only_custom_models_are_found_last() {
    let provider = json!({"baseUrl": "http://localhost", "api": "openai-completions", "models": [{"id": "m"}]});
    let registry = registry(&[], json!({"local": provider}));
    assert_eq!(started(&registry, Wanted::default(), &Settings::default(), None), "local/m off");
}

#[test]
fn a_session_gets_its_model_back() {
    let registry = with_keys(&["OPENAI_API_KEY"]);
    let settings = Settings { default_thinking_level: Some(ThinkingLevel::Low), ..Settings::default() };
    let check = |recorded: Recorded<'_>, expected: &str| {
        assert_eq!(started(&registry, Wanted::default(), &settings, Some(recorded)), expected);
    };
    let thinking = Some(ThinkingLevel::High);
    check(Recorded { model: Some(("openai", "gpt-5.4")), thinking }, "openai/gpt-5.4 high");
    check(Recorded { model: Some(("openai", "gpt-5.4")), thinking: None }, "openai/gpt-5.4 low");
    check(Recorded::default(), "openai/gpt-6.1-sol low");
    check(
        Recorded { model: Some(("anthropic", "claude-opus-5")), thinking },
        "openai/gpt-6.1-sol high | Could not restore model anthropic/claude-opus-5. Using openai/gpt-6.1-sol",
    );
    check(
        Recorded { model: Some(("openai", "gone")), thinking: None },
        "openai/gpt-6.1-sol low | Could not restore model openai/gone. Using openai/gpt-6.1-sol",
    );
    let nothing =
        started(&with_keys(&[]), Wanted::default(), &settings, Some(Recorded { model: Some(("a", "b")), thinking }));
    assert_eq!(nothing, "none off | Could not restore model a/b. No model is available");
    // A scope does not move a session off its model.
    let patterns = ["gpt-5.5".to_owned()];
    let wanted = Wanted { scope: &patterns, ..Wanted::default() };
    let recorded = Recorded { model: Some(("openai", "gpt-5.4")), thinking };
    assert_eq!(started(&registry, wanted, &settings, Some(recorded)), "openai/gpt-5.4 high");
}

#[test]
fn what_a_session_remembers_comes_before_defaults() {
    let registry = with_keys(&["OPENAI_API_KEY"]);
    let wanted = Wanted {
        model: Some("openai/gpt-5.5:minimal"),
        thinking: Some(ThinkingLevel::Low),
        defaults: Defaults { model: true, thinking: true },
        ..Wanted::default()
    };
    let check = |wanted: Wanted<'_>, model, thinking, expected: &str| {
        let recorded = Recorded { model, thinking };
        assert_eq!(started(&registry, wanted, &Settings::default(), Some(recorded)), expected);
    };
    let (last, high) = (Some(("openai", "gpt-5.4")), Some(ThinkingLevel::High));
    check(wanted, last, high, "openai/gpt-5.4 high");
    check(wanted, last, None, "openai/gpt-5.4 low");
    check(wanted, None, high, "openai/gpt-5.5 high");
    let gone = "openai/gpt-5.5 high | Could not restore model openai/gone. Using openai/gpt-5.5";
    check(wanted, Some(("openai", "gone")), high, gone);
    check(Wanted { defaults: Defaults { model: true, thinking: false }, ..wanted }, last, high, "openai/gpt-5.4 low");
    check(Wanted { defaults: Defaults { model: false, thinking: true }, ..wanted }, last, high, "openai/gpt-5.5 high");
    assert_eq!(started(&registry, wanted, &Settings::default(), None), "openai/gpt-5.5 low");
    // The key of the flag opens the other models of its provider, too.
    let (registry, wanted) = (with_keys(&[]), Wanted { api_key: Some("sk-given-1234"), ..wanted });
    let recorded = Recorded { model: last, thinking: high };
    assert_eq!(started(&registry, wanted, &Settings::default(), Some(recorded)), "openai/gpt-5.4 high");
}

#[test]
fn levels_at_the_start() {
    let registry = with_keys(&["OPENAI_API_KEY", "ZAI_API_KEY"]);
    let mut settings = Settings::default();
    let check = |settings: &Settings, model, thinking, expected: &str| {
        let wanted = Wanted { model: Some(model), thinking, ..Wanted::default() };
        assert_eq!(started(&registry, wanted, settings, None), expected);
    };
    check(&settings, "openai/gpt-5.4", None, "openai/gpt-5.4 medium");
    check(&settings, "openai/gpt-5.4:low", Some(ThinkingLevel::High), "openai/gpt-5.4 high");
    // Clamped to what the model has.
    check(&settings, "openai/gpt-4o", Some(ThinkingLevel::High), "openai/gpt-4o off");
    check(&settings, "zai/glm-5.3", Some(ThinkingLevel::Off), "zai/glm-5.3 low");
    settings.default_thinking_level = Some(ThinkingLevel::Low);
    check(&settings, "openai/gpt-5.4", None, "openai/gpt-5.4 low");
    settings.model_thinking_levels.insert("openai/gpt-5.4".into(), ThinkingLevel::High);
    check(&settings, "openai/gpt-5.4", None, "openai/gpt-5.4 high");
    // A custom model thinks when it is asked to.
    let wanted = Wanted { model: Some("openai/new"), thinking: Some(ThinkingLevel::High), ..Wanted::default() };
    assert!(start(&registry, &wanted, &settings, None).expect("start").model.expect("model").reasoning);
}

#[test]
fn a_key_on_the_command_line_goes_to_the_chosen_provider() {
    let registry = with_keys(&[]);
    let wanted = Wanted { model: Some("openai/gpt-5.5"), api_key: Some("sk-given-1234"), ..Wanted::default() };
    start(&registry, &wanted, &Settings::default(), None).expect("start");
    assert!(registry.select("openai", "gpt-5.4").is_ok());
    assert!(registry.select("anthropic", "claude-opus-5").is_err());
    let refused = "error: --api-key requires a model to be specified via --model, --provider/--model, or --models";
    let wanted = Wanted { api_key: Some("k"), ..Wanted::default() };
    assert_eq!(started(&with_keys(&["OPENAI_API_KEY"]), wanted, &Settings::default(), None), refused);
}

#[test]
fn a_provider_by_name_only_is_never_guessed() {
    let registry = with_keys(&[]);
    let config = crate::models_file::ProviderConfig {
        id: "scripted".into(),
        api: Some("scripted".into()),
        keyless: true,
        models: vec![crate::models_file::ModelConfig { id: "tour".into(), ..Default::default() }],
        ..Default::default()
    };
    registry.register(config, crate::registry::Visibility::ByNameOnly);
    registry.support_api("scripted");
    assert_eq!(started(&registry, Wanted::default(), &Settings::default(), None), "none off");
    assert_eq!(named(&registry, None, "scripted/tour"), "scripted/tour");
    assert_eq!(named(&registry, Some("scripted"), "tour"), "scripted/tour");
    assert!(named(&registry, None, "tour").contains("not found"));
    assert_eq!(
        named(&registry, None, "scripted/other"),
        "Model \"scripted/other\" not found. Use --list-models to see available models."
    );
}
