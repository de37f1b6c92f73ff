//! Agents that extensions run beside the session, what they call before there is one, and what outlives it.

use pith_testkit::Turn;
use serde_json::json;

use crate::models::{told, with_extension};

/// A command that runs a prompt in a nested session and tells its last text and the results of its tools.
const NESTED: &str = r#"
import { createAgentSession, SessionManager, DefaultResourceLoader, getAgentDir } from "@earendil-works/pi-coding-agent";
export default (pi) => {
    pi.on("tool_call", (event, ctx) => {
        if (/secret/.test(event.input.command)) return { block: true, reason: "secret, ui " + ctx.hasUI };
    });
    pi.registerTool({ name: "mark", description: "marks", parameters: { type: "object", properties: {} },
        execute: async (id, params, signal, onUpdate, ctx) => ({ content: [{ type: "text", text: "marked " + ctx.hasUI }] }) });
    pi.registerCommand("nested", { handler: async (args, ctx) => {
        const resourceLoader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir: getAgentDir(), noExtensions: args === "alone" });
        const { session } = await createAgentSession({ cwd: ctx.cwd, sessionManager: SessionManager.inMemory(ctx.cwd), resourceLoader });
        await session.prompt("go on");
        const results = session.messages.filter(({ role }) => role === "toolResult").map(({ content }) => content[0].text.trim());
        ctx.ui.notify(JSON.stringify({ text: session.getLastAssistantText(), results, tools: session.getActiveToolNames() }));
        session.dispose();
    } });
};"#;

#[test]
fn the_gates_of_extensions_decide_about_nested_sessions_without_asking() {
    let turns = || {
        [
            Turn::call("bash", json!({"command": "echo open"})),
            Turn::call("bash", json!({"command": "echo secret"})),
            Turn::text("done"),
        ]
    };
    let mut scene = with_extension(NESTED, turns());
    let expected = json!({"text": "done", "results": ["open", "secret, ui false"], "tools": ["read", "bash", "edit", "write", "mark"]});
    assert_eq!(told(&mut scene, "/nested"), expected);
    // Nothing of it is in the session itself.
    assert_eq!(scene.data(json!({"type": "get_messages"}))["messages"], json!([]));
    // The model sees the prompt of the agent and the tools of the nested session.
    let request = &scene.server.requests()[0].body;
    assert!(request["system"].to_string().contains("pith"), "{request}");
    assert_eq!(request["tools"].as_array().map(Vec::len), Some(5), "{request}");

    // A loader without extensions has neither their tools nor their gates, as with pi.
    let mut scene = with_extension(NESTED, turns());
    let expected = json!({"text": "done", "results": ["open", "secret"], "tools": ["read", "bash", "edit", "write"]});
    assert_eq!(told(&mut scene, "/nested alone"), expected);
}

#[test]
fn tools_of_extensions_run_in_nested_sessions() {
    let mut scene = with_extension(NESTED, [Turn::call("mark", json!({})), Turn::text("done")]);
    assert_eq!(told(&mut scene, "/nested")["results"], json!(["marked false"]));
}

#[test]
fn a_factory_may_call_models_and_tools() {
    let source = r#"
        import { complete, getModels } from "@earendil-works/pi-ai";
        import { createBashTool } from "@earendil-works/pi-coding-agent";
        export default async (pi) => {
            const model = getModels().find(({ provider }) => provider === "mock-anthropic");
            const answer = await complete(model, { messages: [{ role: "user", content: "early", timestamp: 1 }] }, { apiKey: "k" });
            const result = await createBashTool(process.cwd()).execute("call", { command: "echo from a tool" });
            const early = [answer.stopReason, answer.content[0]?.text, answer.errorMessage, result.content[0].text.trim()];
            pi.registerCommand("early", { handler: (args, ctx) => ctx.ui.notify(JSON.stringify(early)) });
        };"#;
    let mut scene = with_extension(source, [Turn::text("so soon")]);
    assert_eq!(told(&mut scene, "/early"), json!(["stop", "so soon", null, "from a tool"]));
}

#[test]
fn variables_of_modules_outlive_the_session_but_not_a_reload() {
    let source = r#"
        let inModule = 0;
        export default (pi) => {
            let inFactory = 0;
            const show = (ctx) => ctx.ui.notify(JSON.stringify([inModule, inFactory]));
            pi.registerCommand("bump", { handler: (args, ctx) => { inModule++; inFactory++; show(ctx); } });
            pi.registerCommand("show", { handler: (args, ctx) => show(ctx) });
            pi.registerCommand("again", { handler: async (args, ctx) => { await ctx.reload(); } });
        };"#;
    let mut scene = with_extension(source, [Turn::text("hello")]);
    scene.run("hi");
    assert_eq!(told(&mut scene, "/bump"), json!([1, 1]));
    let file = scene.data(json!({"type": "get_state"}))["sessionFile"].clone();
    let entry = scene.data(json!({"type": "get_fork_messages"}))["messages"][0]["entryId"].clone();
    let ways = [
        json!({"type": "fork", "entryId": entry}),
        json!({"type": "new_session"}),
        json!({"type": "switch_session", "sessionPath": file}),
    ];
    for (n, way) in ways.into_iter().enumerate() {
        scene.data(way);
        assert_eq!(told(&mut scene, "/show"), json!([n + 1, 0]));
        assert_eq!(told(&mut scene, "/bump"), json!([n + 2, 1]));
    }
    scene.command(json!({"type": "prompt", "message": "/again"}));
    assert_eq!(told(&mut scene, "/show"), json!([0, 0]));
}

#[test]
fn models_behind_a_sign_in_are_offered_only_with_a_credential() {
    let source = r#"
        const model = { id: "m", name: "m", reasoning: false, input: ["text"], contextWindow: 1000, maxTokens: 100, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };
        const oauth = { name: "sign in", login: async () => ({}), refreshToken: async (kept) => kept, getApiKey: ({ access }) => access };
        const base = { baseUrl: process.env.MOCK_URL, api: "anthropic-messages", models: [model] };
        export default (pi) => {
            pi.registerProvider("x-out", { ...base, oauth });
            pi.registerProvider("x-in", { ...base, oauth });
            pi.registerProvider("x-local", base);
            const native = (id, resolve) => pi.registerProvider({ id, name: id, auth: { apiKey: { name: "key", resolve } },
                getModels: () => [{ ...model, provider: id, api: "own", baseUrl: process.env.MOCK_URL }], stream: () => {}, streamSimple: () => {} });
            native("x-none", async () => undefined);
            native("x-throws", async () => { throw new Error("no key"); });
            native("x-found", async () => ({ auth: { apiKey: "k" } }));
        };"#;
    let login = json!({"x-in": {"type": "oauth", "refresh": "r", "access": "a", "expires": 9_999_999_999_999_u64}});
    let prepare = |home: &pith_testkit::TempHome| home.write_agent_file("auth.json", login.to_string());
    let mut scene = crate::models::prepared_home(source, prepare);
    let models = scene.data(json!({"type": "get_available_models"}))["models"].clone();
    let providers = models.as_array().expect("a list").iter().filter_map(|model| model["provider"].as_str());
    let mut own: Vec<&str> = providers.filter(|name| name.starts_with("x-")).collect();
    own.sort_unstable();
    assert_eq!(own, ["x-found", "x-in", "x-local"]);
}
