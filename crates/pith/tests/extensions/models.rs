//! Providers, models and model calls of extensions.

use std::fs;

use pith_testkit::{HostBuilder, ModelServer, Script, TempHome, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, assert_like, of_type, sent_texts, texts};

/// pith with one extension, which finds the model server at `MOCK_URL`. Failures are not retried.
pub fn with_extension(source: &str, turns: impl IntoIterator<Item = Turn>) -> Scene {
    prepared(source, turns, |_, _| {}, |builder| builder)
}

/// Like [`with_extension`], for a home with further files.
pub fn prepared_home(source: &str, prepare: impl FnOnce(&TempHome)) -> Scene {
    prepared(source, [], |home, _| prepare(home), |builder| builder)
}

fn prepared(
    source: &str,
    turns: impl IntoIterator<Item = Turn>,
    prepare: impl FnOnce(&TempHome, &ModelServer),
    configure: impl FnOnce(HostBuilder) -> HostBuilder,
) -> Scene {
    let server = ModelServer::start(Script::of(turns));
    let home = TempHome::for_server(&server);
    home.write_settings(&json!({"retry": {"enabled": false}}));
    home.write_agent_file("extensions/test.ts", source);
    prepare(&home, &server);
    let url = server.url();
    Scene::in_home(server, home, |builder| configure(builder.env("MOCK_URL", &url)))
}

/// Runs a slash command and parses what it notifies as JSON.
#[track_caller]
pub fn told(scene: &mut Scene, command: &str) -> Value {
    scene.host.catch_up();
    scene.host.send(json!({"type": "prompt", "message": command}));
    let frame = scene.host.wait(|frame| frame["method"] == "notify" || frame["type"] == "extension_error");
    let text = frame["message"].as_str().unwrap_or_else(|| panic!("{frame}"));
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

fn use_model(scene: &mut Scene, provider: &str, id: &str) {
    let model = scene.data(json!({"type": "set_model", "provider": provider, "modelId": id}));
    assert_eq!((&model["provider"], &model["id"]), (&json!(provider), &json!(id)));
}

fn answer(frames: &[Value]) -> Value {
    let ends = of_type(frames, "message_end");
    let last = ends.iter().rev().find(|frame| frame["message"]["role"] == "assistant").expect("an answer");
    last["message"].clone()
}

#[test]
fn a_start_waits_for_the_provider_of_its_model() {
    let slow = r#"export default async (pi) => {
        await new Promise((resolve) => setTimeout(resolve, 400));
        pi.registerProvider("slow", { baseUrl: process.env.MOCK_URL, apiKey: "k", api: "anthropic-messages", models: [{ id: "one" }] });
    };"#;
    let named = |builder: HostBuilder| builder.args(["--provider", "slow", "--model", "one"]);
    let mut scene = prepared(slow, [Turn::text("here")], |_, _| {}, named);
    assert_like(&scene.data(json!({"type": "get_state"}))["model"], &json!({"provider": "slow", "id": "one"}));
    // A start with another model need not wait for it, and gets it in the end.
    let mut scene = with_extension(slow, []);
    assert_like(&scene.data(json!({"type": "get_state"}))["model"], &json!({"provider": "mock-anthropic"}));
    use_model(&mut scene, "slow", "one");
}

/// One extension for everything that needs no special set-up.
const PROVIDERS: &str = r#"
export default (pi) => {
    const url = process.env.MOCK_URL;
    const show = (ctx, value) => ctx.ui.notify(JSON.stringify(value ?? null));
    pi.registerProvider("corp", {
        name: "Corp", baseUrl: url, apiKey: "$CORP_KEY", api: "anthropic-messages", authHeader: true,
        headers: { "x-team": "blue" },
        models: [{ id: "corp-1", name: "Corp One", reasoning: true, input: ["text"], contextWindow: 50000, maxTokens: 4000,
            cost: { input: 1, output: 2, cacheRead: 0, cacheWrite: 0 }, headers: { "x-model": "one" },
            thinkingLevelMap: { minimal: null, high: "hard" } }],
    });
    pi.registerProvider("nokey", { baseUrl: "https://example.invalid", apiKey: "$NOT_THERE", api: "anthropic-messages", models: [{ id: "m" }] });
    const commands = {
        redirect: () => pi.registerProvider("mock-anthropic", { baseUrl: url + "/elsewhere" }),
        restore: () => pi.unregisterProvider("mock-anthropic"),
        broken: () => pi.registerProvider("broken", { baseUrl: url, models: [{ id: "m" }] }),
        odd: () => pi.registerProvider("odd", { baseUrl: url, api: "anthropic-messages", models: [{ id: "m", contextWindow: "huge" }] }),
        silent: () => pi.registerProvider("silent", { streamSimple: () => {} }),
        choose: async (args) => {
            const [provider, id] = args.split("/");
            return pi.setModel({ provider, id });
        },
        level: (args) => pi.setThinkingLevel(args),
        ask: async (args, ctx) => {
            const context = { systemPrompt: "be brief", messages: [{ role: "user", content: args, timestamp: 1 }],
                tools: [{ name: "t", description: "d", parameters: { type: "object", properties: {} } }] };
            const options = { maxTokens: 77, temperature: 0.5, apiKey: "given-key", headers: { "x-own": "yes" } };
            const message = await ctx.modelRegistry.complete({ provider: "mock-anthropic", id: "claude-mock" }, context, options);
            return { text: message.content.map((block) => block.text).join(""), reason: message.stopReason, error: message.errorMessage };
        },
        stream: async (args, ctx) => {
            const stop = new AbortController();
            const stream = ctx.modelRegistry.streamSimple({ provider: "mock-anthropic", id: "claude-mock" },
                { messages: [{ role: "system", content: "from a message" }, { role: "user", content: "go" }] }, { signal: stop.signal });
            const seen = [];
            for await (const event of stream) {
                if (seen.at(-1) !== event.type) seen.push(event.type);
                if (args === "stop" && event.type === "text_delta") stop.abort();
            }
            return { seen, reason: (await stream.result()).stopReason };
        },
        wrong: async (args, ctx) => (await ctx.modelRegistry.complete({ provider: "mock-anthropic", id: "claude-mock" }, { messages: 7 })).errorMessage,
        auth: (args, ctx) => ctx.modelRegistry.getApiKeyAndHeaders({ provider: args, id: "corp-1" }),
        key: async (args, ctx) => [await ctx.modelRegistry.getApiKeyForProvider(args)],
        models: (args, ctx) => {
            const found = ctx.modelRegistry.find("corp", "corp-1");
            return [found?.name, ctx.modelRegistry.getAvailable().some((model) => model.provider === "corp"),
                ctx.modelRegistry.getAvailable().some((model) => model.provider === "nokey"), ctx.modelRegistry.find("corp", "none") ?? "none"];
        },
    };
    for (const [name, handler] of Object.entries(commands)) {
        pi.registerCommand(name, { handler: async (args, ctx) => show(ctx, await handler(args, ctx)) });
    }
};"#;

fn providers(turns: impl IntoIterator<Item = Turn>) -> Scene {
    prepared(PROVIDERS, turns, |_, _| {}, |builder| builder.env("CORP_KEY", "corp-secret"))
}

#[test]
fn a_registered_provider_serves_prompts() {
    let mut scene = providers([Turn::text("from corp")]);
    let models = scene.data(json!({"type": "get_available_models"}));
    let own = models["models"].as_array().expect("a list").iter().find(|model| model["provider"] == "corp");
    let expected = json!({"id": "corp-1", "name": "Corp One", "reasoning": true, "contextWindow": 50000, "maxTokens": 4000,
        "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}});
    assert_like(own.expect("the model is listed"), &expected);
    use_model(&mut scene, "corp", "corp-1");
    scene.data(json!({"type": "set_thinking_level", "level": "minimal"}));
    assert_eq!(scene.state()["thinkingLevel"], "low", "the level map has no minimal");
    let frames = scene.run("hello");
    assert_eq!(texts(&answer(&frames)["content"]), "from corp");
    let request = scene.server.wait_request(0);
    let seen = ["x-api-key", "authorization", "x-team", "x-model"].map(|name| request.header(name).unwrap_or("absent"));
    assert_eq!(seen, ["corp-secret", "Bearer corp-secret", "blue", "one"]);
    scene.finish();
}

#[test]
fn pith_starts_with_a_model_of_an_extension() {
    let configure =
        |builder: HostBuilder| builder.env("CORP_KEY", "k").args(["--provider", "corp", "--model", "corp-1"]);
    let mut scene = prepared(PROVIDERS, [Turn::text("at once")], |_, _| {}, configure);
    assert_eq!(scene.state()["model"]["provider"], "corp");
    let frames = scene.run("hello");
    assert_eq!(texts(&answer(&frames)["content"]), "at once");
    scene.finish();
}

#[test]
fn providers_are_removed_with_their_extensions() {
    let mut scene = providers([]);
    let listed = |scene: &mut Scene| {
        let models = scene.data(json!({"type": "get_available_models"}));
        models["models"].as_array().expect("a list").iter().any(|model| model["provider"] == "corp")
    };
    assert!(listed(&mut scene));
    let file = scene.home.agent().join("extensions/test.ts");
    fs::write(&file, PROVIDERS.replace("\"corp\", {", "\"firm\", {")).expect("written");
    scene.command(json!({"type": "reload"}));
    assert!(!listed(&mut scene), "the extension has another provider now");
    fs::write(&file, PROVIDERS).expect("written");
    scene.command(json!({"type": "reload"}));
    assert!(listed(&mut scene));
    scene.command(json!({"type": "new_session"}));
    assert!(listed(&mut scene), "the next session has it too");
    fs::remove_file(&file).expect("removed");
    scene.command(json!({"type": "reload"}));
    assert!(!listed(&mut scene), "there is no extension any more");
    scene.finish();
}

#[test]
fn a_known_provider_is_redirected_and_restored() {
    let mut scene = providers([Turn::text("one"), Turn::text("two")]);
    told(&mut scene, "/redirect");
    scene.run("first");
    assert_eq!(scene.server.wait_request(0).path, "/elsewhere/v1/messages", "the model in use follows");
    told(&mut scene, "/restore");
    scene.run("second");
    assert_eq!(scene.server.wait_request(1).path, "/v1/messages");
    scene.finish();
}

#[test]
fn invalid_registrations_are_reported() {
    let mut scene = providers([]);
    let check = |scene: &mut Scene, command: &str, expected: &str| {
        scene.host.catch_up();
        scene.host.send(json!({"type": "prompt", "message": command}));
        let error = scene.host.wait_type("extension_error");
        assert_eq!((&error["event"], &error["error"]), (&json!("register_provider"), &json!(expected)), "{error}");
        assert!(error["extensionPath"].as_str().expect("a path").ends_with("extensions/test.ts"));
        scene.host.wait(|frame| frame["method"] == "notify");
    };
    check(&mut scene, "/broken", "Provider broken, model m: no \"api\" specified. Set at provider or model level.");
    check(&mut scene, "/silent", "Provider silent: \"api\" is required when registering streamSimple.");
    check(
        &mut scene,
        "/odd",
        "Provider odd: some values were ignored: /providers/odd/models/0/contextWindow: expected a number above 0, got \"huge\"",
    );
    let refusal = scene.refusal(json!({"type": "set_model", "provider": "broken", "modelId": "m"}));
    assert_eq!(refusal, "Model not found: broken/m");
    use_model(&mut scene, "odd", "m");
    scene.finish();
}

#[test]
fn extensions_select_models_and_levels() {
    let mut scene = providers([]);
    assert_eq!(told(&mut scene, "/choose corp/corp-1"), true);
    assert_eq!(scene.state()["model"]["id"], "corp-1");
    assert_eq!(told(&mut scene, "/choose nokey/m"), false);
    assert_eq!(told(&mut scene, "/choose nobody/m"), false);
    assert_eq!(scene.state()["model"]["id"], "corp-1", "nothing changed");
    scene.host.catch_up();
    told(&mut scene, "/level high");
    assert_eq!(scene.state()["thinkingLevel"], "high");
    told(&mut scene, "/level minimal");
    assert_eq!(scene.state()["thinkingLevel"], "low", "clamped to what the model has");
    assert!(!fs::read_to_string(scene.home.agent().join("settings.json")).expect("settings").contains("corp"));
    scene.finish();
}

#[test]
fn extensions_call_models() {
    let mut scene = providers([Turn::text("short answer")]);
    let expected = json!({"text": "short answer", "reason": "stop"});
    assert_eq!(told(&mut scene, "/ask how many"), expected);
    let request = scene.server.wait_request(0);
    let seen = ["x-api-key", "x-own"].map(|name| request.header(name).unwrap_or("absent"));
    assert_eq!(seen, ["given-key", "yes"]);
    assert_eq!((&request.body["max_tokens"], &request.body["temperature"]), (&json!(77), &json!(0.5)));
    assert_eq!(sent_texts(&request.body), "how many");
    assert!(request.body["system"].to_string().contains("be brief"), "{}", request.body);
    assert_eq!(request.body["tools"][0]["name"], "t");
    assert_eq!(scene.state()["messageCount"], 0, "the session has nothing to do with it");
    assert_eq!(told(&mut scene, "/wrong"), "context.messages: expected an array");
    scene.finish();
}

#[test]
fn answers_to_extensions_stream_and_can_be_stopped() {
    let mut scene = providers([Turn::text("a b c"), Turn::text("never to its end").chunk(2).hold_after(2)]);
    let kinds = json!(["start", "text_start", "text_delta", "text_end", "done"]);
    assert_eq!(told(&mut scene, "/stream all"), json!({"seen": kinds, "reason": "stop"}));
    assert!(scene.server.wait_request(0).body["system"].to_string().contains("from a message"));
    let stopped = told(&mut scene, "/stream stop");
    assert_eq!(stopped["reason"], "aborted", "{stopped}");
    scene.finish();
}

#[test]
fn extensions_can_read_keys_and_headers() {
    let mut scene = providers([]);
    let headers = json!({"x-team": "blue", "x-model": "one", "Authorization": "Bearer corp-secret"});
    assert_eq!(told(&mut scene, "/auth corp"), json!({"ok": true, "apiKey": "corp-secret", "headers": headers}));
    let missing = told(&mut scene, "/auth nobody");
    assert_eq!(missing["ok"], false, "{missing}");
    assert_eq!(told(&mut scene, "/key corp"), json!(["corp-secret"]));
    assert_eq!(told(&mut scene, "/key nokey"), json!([null]));
    scene.finish();
}

#[test]
fn extensions_see_their_models_among_the_others() {
    let mut scene = providers([]);
    assert_eq!(told(&mut scene, "/models"), json!(["Corp One", true, false, "none"]));
    scene.finish();
}

/// A provider that answers by itself: a tool call first, then text; `wait` never ends by itself.
const STREAMING: &str = r#"
import { createAssistantMessageEventStream } from "@earendil-works/pi-ai";
export default (pi) => {
    pi.registerProvider("own", {
        baseUrl: "https://own.invalid", apiKey: "$OWN_KEY", api: "own-api", headers: { "x-h": "1" },
        models: [{ id: "m", name: "M", reasoning: false, input: ["text"], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 9000, maxTokens: 900 }],
        streamSimple: (model, context, options) => {
            const stream = createAssistantMessageEventStream();
            const output = { role: "assistant", content: [], api: model.api, provider: model.provider, model: model.id, stopReason: "stop", timestamp: Date.now(),
                usage: { input: 3, output: 4, cacheRead: 0, cacheWrite: 0, totalTokens: 7, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } } };
            const say = (text) => {
                const at = output.content.push({ type: "text", text: "" }) - 1;
                stream.push({ type: "text_start", contentIndex: at, partial: output });
                output.content[at].text = text;
                stream.push({ type: "text_delta", contentIndex: at, delta: text, partial: output });
                stream.push({ type: "text_end", contentIndex: at, content: text, partial: output });
            };
            const finish = (reason) => { output.stopReason = reason; stream.push({ type: "done", reason, message: output }); stream.end(); };
            stream.push({ type: "start", partial: output });
            const last = context.messages.at(-1);
            const text = typeof last.content === "string" ? last.content : last.content.map((block) => block.text ?? "").join("");
            if (last.role === "toolResult") {
                say("the tool said " + text.trim());
                finish("stop");
            } else if (text === "wait") {
                say("waiting");
                options.signal.addEventListener("abort", () => { output.stopReason = "aborted"; stream.push({ type: "error", reason: "aborted", error: output }); });
            } else if (text === "fail") {
                throw new Error("no luck");
            } else if (text === "facts") {
                say(JSON.stringify([options.apiKey, options.headers, context.tools.length > 0, context.systemPrompt.length > 0]));
                finish("stop");
            } else {
                output.content.push({ type: "toolCall", id: "call-1", name: "bash", arguments: { command: "echo from the shell" } });
                stream.push({ type: "toolcall_start", contentIndex: 0, partial: output });
                stream.push({ type: "toolcall_end", contentIndex: 0, toolCall: output.content[0], partial: output });
                finish("toolUse");
            }
            return stream;
        },
    });
    pi.registerCommand("summary", { handler: async (args, ctx) => {
        const message = await ctx.modelRegistry.complete({ provider: "own", id: "m" }, { systemPrompt: "s", tools: [{ name: "t" }], messages: [{ role: "user", content: "facts" }] });
        ctx.ui.notify(message.content[0].text);
    } });
};"#;

fn streaming() -> Scene {
    let mut scene = prepared(STREAMING, [], |_, _| {}, |builder| builder.env("OWN_KEY", "own-secret"));
    use_model(&mut scene, "own", "m");
    scene
}

#[test]
fn an_extension_answers_for_its_models() {
    let mut scene = streaming();
    let frames = scene.run("do something");
    let ends: Vec<Value> = of_type(&frames, "tool_execution_end").into_iter().cloned().collect();
    assert_eq!(ends.len(), 1);
    assert_eq!(texts(&answer(&frames)["content"]), "the tool said from the shell");
    assert_eq!(answer(&frames)["usage"]["totalTokens"], 7);
    let frames = scene.run("facts");
    assert_eq!(texts(&answer(&frames)["content"]), r#"["own-secret",{"x-h":"1"},true,true]"#);
    // A request of an extension uses the same key.
    assert_eq!(told(&mut scene, "/summary"), json!(["own-secret", {"x-h": "1"}, true, true]));
    assert!(scene.server.requests().is_empty());
    scene.finish();
}

#[test]
fn an_extensions_answer_can_be_aborted_and_can_fail() {
    let mut scene = streaming();
    scene.prompt("wait");
    scene.wait_update("text_end");
    scene.command(json!({"type": "abort"}));
    let settled = scene.host.wait_type("agent_settled");
    assert_eq!(settled["aborted"], true);
    let messages = scene.messages();
    assert_like(messages.last().expect("an answer"), &json!({"stopReason": "aborted", "provider": "own"}));
    let frames = scene.run("fail");
    let failed = answer(&frames);
    assert_eq!((&failed["stopReason"], &failed["errorMessage"]), (&json!("error"), &json!("no luck")));
    scene.finish();
}

#[test]
fn a_missing_key_of_an_own_provider_is_named() {
    let mut scene = prepared(STREAMING, [], |_, _| {}, |builder| builder);
    let refusal = scene.refusal(json!({"type": "set_model", "provider": "own", "modelId": "m"}));
    assert_eq!(refusal, "Failed to resolve API key for provider \"own\" from environment variable: OWN_KEY");
    scene.finish();
}

#[test]
fn stored_logins_of_extensions_are_renewed_and_used() {
    let source = r#"
export default (pi) => {
    pi.registerProvider("club", {
        baseUrl: process.env.MOCK_URL, api: "anthropic-messages", models: [{ id: "m" }],
        oauth: {
            name: "Club",
            login: async () => { throw new Error("not here"); },
            refreshToken: async (old) => ({ ...old, access: old.access + "-renewed", expires: Date.now() + 3600000 }),
            getApiKey: (credentials) => "key of " + credentials.access,
            modifyModels: (models, credentials) => models.map((model) => ({ ...model, name: "M for " + credentials.member })),
        },
    });
};"#;
    let auth = json!({"club": {"type": "oauth", "access": "a", "refresh": "r", "expires": 1, "member": "me"}, "other": {"type": "api_key", "key": "k"}});
    let turns = [Turn::text("one"), Turn::text("two")];
    let write = |home: &TempHome, _: &ModelServer| home.write_agent_file("auth.json", auth.to_string());
    let mut scene = prepared(source, turns, write, |builder| builder);
    use_model(&mut scene, "club", "m");
    scene.run("hello");
    scene.run("again");
    for index in [0, 1] {
        assert_eq!(scene.server.wait_request(index).header("x-api-key"), Some("key of a-renewed"));
    }
    assert_eq!(scene.state()["model"]["name"], "M for me");
    let stored = fs::read_to_string(scene.home.agent().join("auth.json")).expect("auth.json");
    let stored: Value = serde_json::from_str(&stored).expect("JSON");
    assert_like(
        &stored,
        &json!({"club": {"type": "oauth", "access": "a-renewed", "refresh": "r", "member": "me"}, "other": {"key": "k"}}),
    );
    scene.finish();
}

#[test]
fn a_provider_fetches_its_models_itself() {
    let source = r#"
export default (pi) => {
    let count = 0;
    pi.registerProvider("live", {
        baseUrl: process.env.MOCK_URL, api: "anthropic-messages", apiKey: "k", models: [{ id: "old" }],
        refreshModels: async () => [{ id: `new-${++count}` }],
    });
    pi.registerCommand("refresh", { handler: async (args, ctx) => { await ctx.modelRegistry.refresh(); ctx.ui.notify("done"); } });
};"#;
    let mut scene = with_extension(source, []);
    told(&mut scene, "/refresh");
    let models = scene.data(json!({"type": "get_available_models"}));
    let own = models["models"].as_array().expect("a list").iter().filter(|model| model["provider"] == "live");
    assert_eq!(own.map(|model| model["id"].clone()).collect::<Vec<_>>(), [json!("new-2")]);
    scene.finish();
}

#[test]
fn a_provider_builds_on_a_built_in_api() {
    let source = r#"
import { streamSimpleAnthropic } from "@earendil-works/pi-ai";
export default (pi) => {
    pi.registerProvider("gate", {
        baseUrl: process.env.MOCK_URL, apiKey: "outer", api: "gate-api", models: [{ id: "m" }],
        streamSimple: (model, context, options) => streamSimpleAnthropic(model, context, { ...options, apiKey: "inner for " + options.apiKey, headers: { "x-gate": "open" } }),
    });
};"#;
    let mut scene = with_extension(source, [Turn::text("through the gate")]);
    use_model(&mut scene, "gate", "m");
    let frames = scene.run("hello");
    assert_eq!(texts(&answer(&frames)["content"]), "through the gate");
    let request = scene.server.wait_request(0);
    assert_eq!((request.header("x-api-key"), request.header("x-gate")), (Some("inner for outer"), Some("open")));
    assert!(!request.body["tools"].as_array().expect("tools").is_empty(), "prompt and tools come through");
    scene.finish();
}

#[test]
fn a_native_provider_has_its_own_models_key_and_stream() {
    let source = r#"
import { createAssistantMessageEventStream } from "@earendil-works/pi-ai";
export default (pi) => {
    const model = (id) => ({ id, name: id, api: "whole-api", provider: "whole", baseUrl: "https://whole.invalid", reasoning: false, input: ["text"],
        cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 1000, maxTokens: 100 });
    let models = [model("m")];
    const answer = (model, context, options) => {
        const stream = createAssistantMessageEventStream();
        const message = { role: "assistant", content: [{ type: "text", text: `${model.id} with ${options.apiKey}` }], api: model.api, provider: model.provider, model: model.id, stopReason: "stop", timestamp: 1 };
        stream.push({ type: "done", reason: "stop", message });
        stream.end();
        return stream;
    };
    pi.registerProvider({
        id: "whole", name: "Whole",
        auth: { apiKey: { name: "Whole key", resolve: async ({ ctx }) => { const key = await ctx.env("WHOLE_KEY"); return key ? { auth: { apiKey: key } } : undefined; } } },
        getModels: () => models,
        refreshModels: async ({ publish }) => publish({ update: () => { models = [model("m"), model("later")]; } }),
        stream: answer, streamSimple: answer,
    });
    pi.registerCommand("refresh", { handler: async (args, ctx) => { await ctx.modelRegistry.refresh(); ctx.ui.notify("done"); } });
};"#;
    let mut scene = prepared(source, [], |_, _| {}, |builder| builder.env("WHOLE_KEY", "whole-secret"));
    told(&mut scene, "/refresh");
    for id in ["m", "later"] {
        use_model(&mut scene, "whole", id);
        let frames = scene.run("hello");
        assert_eq!(texts(&answer(&frames)["content"]), format!("{id} with whole-secret"));
    }
    scene.finish();
}

#[test]
fn an_api_of_an_extension_serves_the_providers_that_name_it() {
    let source = r#"
import { createAssistantMessageEventStream, registerApiProvider } from "@earendil-works/pi-ai";
export default (pi) => {
    const answer = (model) => {
        const stream = createAssistantMessageEventStream();
        stream.push({ type: "done", reason: "stop", message: { role: "assistant", content: [{ type: "text", text: "api for " + model.provider }], stopReason: "stop", timestamp: 1 } });
        stream.end();
        return stream;
    };
    registerApiProvider({ api: "shared-api", stream: answer, streamSimple: answer });
    pi.registerProvider("user-of-it", { baseUrl: "https://x.invalid", apiKey: "k", api: "shared-api", models: [{ id: "m" }] });
};"#;
    let mut scene = with_extension(source, []);
    use_model(&mut scene, "user-of-it", "m");
    let frames = scene.run("hello");
    assert_eq!(texts(&answer(&frames)["content"]), "api for user-of-it");
    scene.finish();
}
