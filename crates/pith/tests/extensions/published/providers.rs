//! Examples that register models, or call one.

use serde_json::{Value, json};

use super::{Exercise, any, exercise};

pub const ALL: &[Exercise] = &[
    exercise("custom-provider-anthropic", "its models can be listed and chosen", |lab| {
        let mut stage = lab.start_in(
            "custom-provider-anthropic",
            [],
            |_, _| {},
            |builder| builder.env("CUSTOM_ANTHROPIC_API_KEY", "k"),
        );
        choose(&mut stage, "custom-anthropic", "claude-sonnet-4-5");
        stage.finish("custom-provider-anthropic");
    }),
    exercise("custom-provider-gitlab-duo", "its models can be listed and chosen", |lab| {
        let mut stage =
            lab.start_in("custom-provider-gitlab-duo", [], |_, _| {}, |builder| builder.env("GITLAB_TOKEN", "k"));
        let models = stage.ask(json!({"type": "get_available_models"}));
        let model =
            models["data"]["models"].as_array().into_iter().flatten().find(|model| model["provider"] == "gitlab-duo");
        let id = model.unwrap_or_else(|| panic!("{models}"))["id"].as_str().expect("an id").to_owned();
        choose(&mut stage, "gitlab-duo", &id);
        stage.finish("custom-provider-gitlab-duo");
    }),
    exercise("summarize", "asks a model of its own", |lab| {
        let mut stage = lab.start_in(
            "summarize",
            [any(), pith_testkit::Turn::text("SUMMARY")],
            |home, server| {
                home.write_models(&server.url(), |models| {
                    models["providers"]["openai"] = json!({"baseUrl": format!("{}/v1", server.url()), "apiKey": "k"});
                });
            },
            |builder| builder,
        );
        stage.run("hello there");
        stage.prompt("/summarize");
        stage.notified(0, "Preparing summary...");
        let sent = stage.sent(1);
        assert!(sent.contains("Summarize this conversation") && sent.contains("hello there"), "{sent}");
        assert!(sent.contains("gpt-5.2"), "{sent}");
        let frames = stage.finish("summarize");
        assert!(!frames.iter().any(|frame| frame["type"] == "extension_error"), "{frames:?}");
    }),
];

fn choose(stage: &mut crate::stage::Stage, provider: &str, id: &str) {
    let models = stage.ask(json!({"type": "get_available_models"}));
    let is_it = |model: &&Value| model["provider"] == provider && model["id"] == id;
    assert!(models["data"]["models"].as_array().into_iter().flatten().find(is_it).is_some(), "{models}");
    let response = stage.ask(json!({"type": "set_model", "provider": provider, "modelId": id}));
    assert_eq!(response["success"], true, "{response}");
    assert_eq!(stage.poll_state()["model"]["provider"], provider);
}
