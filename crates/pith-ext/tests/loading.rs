//! Finding, reading and starting extensions.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::time::Duration;

use pith_ext::{Limits, Loading};
use support::Harness;

/// Loads one extension and checks that `/show` notifies each line of `expected`.
async fn check(files: &[(&str, &str)], expected: &[&str]) {
    let harness = Harness::start();
    for (name, text) in &files[1..] {
        harness.file(name, text);
    }
    harness.run(&files[..1]).await;
    harness.command("show", "").await;
    assert_eq!(harness.notifications(), expected, "{}", files[0].1);
}

/// An extension whose command `show` notifies the values of expressions.
fn showing(imports: &str, values: &str) -> String {
    format!(
        "{imports}\nexport default (pi) => pi.registerCommand('show', {{ handler: async (args, ctx) => {{
            for (const value of [{values}]) ctx.ui.notify(String(await value));
        }} }});"
    )
}

#[tokio::test]
async fn a_typescript_extension_loads_and_registers() {
    let harness = Harness::start();
    let report = harness
        .load(&[(
            "hello.ts",
            r#"
            import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
            enum Mood { Good = "good" }
            namespace Names { export const first = "hello"; }
            class Greeter { constructor(private readonly name: string) {} get value() { return this.name; } }
            export default async function (pi: ExtensionAPI): Promise<void> {
                const name = new Greeter(Names.first).value satisfies string;
                pi.registerCommand(name, { description: `a ${Mood.Good} one`, handler: async () => {} });
                pi.on("tool_call", () => undefined);
            }"#,
        )])
        .await;
    assert_eq!(report.errors, []);
    assert_eq!(report.extensions[0].commands, ["hello"]);
    assert_eq!(report.extensions[0].events, ["tool_call"]);
    assert_eq!(harness.handle.registry().commands[0].description.as_deref(), Some("a good one"));
}

#[tokio::test]
async fn missing_named_imports_are_undefined() {
    let imports = r#"
        import { nothing } from "./other.ts";
        import { getThingThatNeverWas } from "@earendil-works/pi-tui";
        import { alsoMissing } from "node:fs";
        import missingDefault from "./other.ts";"#;
    let text =
        showing(imports, "typeof nothing, typeof getThingThatNeverWas, typeof alsoMissing, typeof missingDefault");
    check(&[("main.ts", &text), ("other.ts", "export const something = 1;")], &["undefined"; 4]).await;
}

#[tokio::test]
async fn each_query_of_an_import_is_an_instance_of_its_own() {
    let imports = r#"import { next } from "./count.ts?static"; import { writeFileSync } from "node:fs";"#;
    let values = r#"next(), (await import("./count.ts")).next(), (await import("./count.ts?v=1")).next(),
        (await import("./count.ts?v=1")).next(), (await import("./count?v=2")).next(),
        (await import(import.meta.resolve("./count.ts?v=1"))).next(), (await import("./count.ts?v=1")).query,
        (writeFileSync(import.meta.dirname + "/count.ts", "export const changed = true"), (await import("./count.ts?v=3")).changed)"#;
    let count = "let n = 0; export const next = () => ++n; export const query = new URL(import.meta.url).search;";
    check(
        &[("main.ts", &showing(imports, values)), ("count.ts", count)],
        &["1", "1", "1", "2", "1", "3", "?v=1", "true"],
    )
    .await;
}

#[tokio::test]
async fn modules_link_as_the_reference_links_them() {
    let imports = r#"
        import fallback, { live, bump, type Shape, renamed as other } from "./esm";
        import * as everything from "./esm.js";
        import { "odd name" as odd } from "./esm.ts";
        import common, { named } from "./common.cjs";
        import data from "./data.json";
        import { a } from "./cycle-a.ts";
        import { star } from "./stars.ts";"#;
    let values = r#"fallback(), (bump(), live), other, Object.keys(everything).sort().join(), odd, common.named, named,
        data.answer, a(), star, (await import("./esm.ts")).live, require("./common.cjs").named, require("./esm.ts").live,
        import.meta.filename.endsWith("main.ts"), import.meta.url.startsWith("file://"), __dirname === import.meta.dirname,
        (({ other }) => other)({ other }), typeof (await import("./async.ts")).ready"#;
    let esm = r#"
        export type Shape = { x: number };
        export let live = 0;
        export function bump() { live++; }
        const renamedInside = "renamed";
        export { renamedInside as renamed, renamedInside as "odd name" };
        export default function () { return "default"; }"#;
    check(
        &[
            ("main.ts", &showing(imports, values)),
            ("esm.ts", esm),
            ("common.cjs", "exports.named = 'from cjs'; exports.self = module.id;"),
            ("data.json", r#"{"answer": 42}"#),
            (
                "cycle-a.ts",
                "import { b } from './cycle-b.ts'; export const a = () => 'a' + b(); export const tail = () => '!';",
            ),
            ("cycle-b.ts", "import { tail } from './cycle-a.ts'; export const b = () => 'b' + tail();"),
            ("stars.ts", "export * from './star-source.ts'; export * as inner from './star-source.ts';"),
            ("star-source.ts", "export const star = 'star'; export default 1;"),
            ("async.ts", "export const ready = await Promise.resolve(true);"),
        ],
        &[
            "default",
            "1",
            "renamed",
            "bump,default,live,odd name,renamed",
            "renamed",
            "from cjs",
            "from cjs",
            "42",
            "ab!",
            "star",
            "1",
            "from cjs",
            "1",
            "true",
            "true",
            "true",
            "renamed",
            "boolean",
        ],
    )
    .await;
}

#[tokio::test]
async fn packages_next_to_the_extension_are_found() {
    let imports = r##"
        import esm from "both";
        import { sub } from "both/feature";
        import main from "classic";
        import { secret } from "#internal";
        const required = require("both");"##;
    check(
        &[
            ("pkg/main.ts", &showing(imports, "esm, required.default ?? required, sub, main.name, secret")),
            ("pkg/package.json", r##"{"name":"me","imports":{"#internal":"./lib/secret.ts"}}"##),
            ("pkg/lib/secret.ts", "export const secret = 'inside';"),
            (
                "node_modules/both/package.json",
                r#"{"exports":{".":{"types":"./x.d.ts","import":"./esm.mjs","require":"./cjs.cjs"},"./feature":"./feature.mjs"}}"#,
            ),
            ("node_modules/both/esm.mjs", "export default 'esm build';"),
            ("node_modules/both/cjs.cjs", "module.exports = 'cjs build';"),
            ("node_modules/both/feature.mjs", "export const sub = 'feature';"),
            ("node_modules/classic/package.json", r#"{"main":"lib"}"#),
            ("node_modules/classic/lib/index.js", "module.exports = { name: 'classic', dirname: __dirname };"),
        ],
        &["esm build", "cjs build", "feature", "classic", "inside"],
    )
    .await;
}

#[tokio::test]
async fn each_extension_has_its_own_copy_of_a_shared_file_but_one_bus() {
    let harness = Harness::start();
    harness.file("shared.ts", "export const seen: string[] = [];");
    let text = |name: &str| {
        format!(
            "import {{ seen }} from './shared.ts';
             export default (pi) => {{
                seen.push('{name}');
                pi.events.on('ask', (reply) => reply('{name}:' + seen.length));
                pi.registerCommand('{name}', {{ handler: async (_, ctx) => pi.events.emit('ask', (text) => ctx.ui.notify(text)) }});
             }};"
        )
    };
    harness.run(&[("one.ts", &text("one")), ("two.ts", &text("two"))]).await;
    harness.command("one", "").await;
    assert_eq!(harness.notifications(), ["one:1", "two:1"]);
}

#[tokio::test]
async fn extensions_that_cannot_be_loaded_are_named_and_others_work() {
    let harness = Harness::with_limits(Limits {
        slice: Duration::from_millis(300),
        factory: Duration::from_millis(300),
        ..Limits::default()
    });
    let good = "export default (pi) => pi.registerCommand('fine', { handler: async () => {} });";
    let cases = [
        ("syntax.ts", "export default function (pi) {\n  const = 3;\n}", "syntax.ts:2:"),
        ("import.ts", "import x from './gone.ts'; export default () => x;", "Cannot find module './gone.ts'"),
        ("package.ts", "import x from 'not-installed'; export default () => x;", "Cannot find module 'not-installed'"),
        ("nofactory.ts", "export const x = 1;", "Extension does not export a valid factory function: "),
        ("throws.ts", "export default () => { throw new Error('no thanks'); };", "no thanks"),
        ("throws-text.ts", "export default () => { throw 'plain text'; };", "plain text"),
        ("rejects.ts", "export default async () => { await null; throw new Error('later'); };", "later"),
        ("top.ts", "throw new Error('at the top'); export default () => {};", "at the top"),
        ("loops.ts", "export default () => { for (;;) {} };", "was interrupted"),
        ("top-loops.ts", "while (true) {} export default () => {};", "was interrupted"),
        ("hangs.ts", "export default () => new Promise(() => {});", "did not finish within 0.3 s"),
        ("action.ts", "export default (pi) => pi.sendUserMessage('hi');", "Extension runtime not initialized."),
        (
            "tool.ts",
            "export default (pi) => pi.registerTool({ name: 'x', parameters: [], execute() {} });",
            "parameters",
        ),
    ];
    let mut extensions: Vec<(&str, &str)> = cases.iter().map(|(name, text, _)| (*name, *text)).collect();
    extensions.push(("good.ts", good));
    let report = harness.load(&extensions).await;
    for ((name, _, expected), error) in cases.iter().zip(&report.errors) {
        let path = harness.surroundings.cwd.join(name).display().to_string();
        assert_eq!(error.path, path);
        assert!(error.error.starts_with(&format!("Failed to load extension \"{path}\": ")), "{}", error.error);
        assert!(error.error.contains(expected), "{name}: {}", error.error);
    }
    assert_eq!(report.errors.len(), cases.len());
    assert_eq!(report.extensions.len(), 1, "the good one is there");
    harness.bind().await;
    harness.command("fine", "").await;
}

#[tokio::test]
async fn clashing_tools_and_flags_are_reported_and_the_first_wins() {
    let harness = Harness::start();
    let text = |label: &str| {
        format!(
            "export default (pi) => {{
                pi.registerTool({{ name: 'twice', label: '{label}', description: '', parameters: {{ type: 'object' }}, execute() {{}} }});
                pi.registerFlag('loud', {{ type: 'boolean' }});
                pi.registerCommand('same', {{ handler: async () => {{}} }});
            }};"
        )
    };
    let report = harness.load(&[("a.ts", &text("first")), ("b.ts", &text("second"))]).await;
    let first = harness.surroundings.cwd.join("a.ts").display().to_string();
    let texts: Vec<&str> = report.errors.iter().map(|error| error.error.as_str()).collect();
    assert!(texts[0].ends_with(&format!("Tool \"twice\" conflicts with {first}")), "{texts:?}");
    assert!(texts[1].ends_with(&format!("Flag \"--loud\" conflicts with {first}")), "{texts:?}");
    let registry = harness.handle.registry();
    assert_eq!(registry.tool("twice").unwrap().label, "first");
    let commands: Vec<&str> = registry.commands.iter().map(|command| command.name.as_str()).collect();
    assert_eq!(commands, ["same:1", "same:2"]);
}

#[tokio::test]
async fn later_sources_are_added_without_loading_the_earlier_ones_twice() {
    let harness = Harness::start();
    let text = |name: &str| {
        format!(
            "globalThis.order ??= []; export default (pi) => {{
                globalThis.order.push('{name}');
                pi.on('agent_start', (_, ctx) => ctx.ui.notify('{name} of ' + globalThis.order));
            }};"
        )
    };
    let user = harness.source(&harness.file("user.ts", &text("user")));
    let project = harness.source(&harness.file("project.ts", &text("project")));
    harness.handle.load(std::slice::from_ref(&user), Loading::Add, &harness.surroundings).await;
    harness.handle.load(&[project, user], Loading::Add, &harness.surroundings).await;
    harness.bind().await;
    harness.handle.notify(pith_ext::EventName::AgentStart, serde_json::json!({})).await;
    // Handlers are called in the order of the list, not of loading.
    assert_eq!(harness.notifications(), ["project of user,project", "user of user,project"]);
}

#[tokio::test]
async fn a_replaced_session_leaves_the_old_instances_stale() {
    let harness = Harness::start();
    let text = "export default (pi) => {
        globalThis.count = (globalThis.count ?? 0) + 1;
        const mine = globalThis.count;
        globalThis.old ??= pi;
        pi.registerCommand('who', { handler: async (_, ctx) => {
            ctx.ui.notify('instance ' + mine);
            try { globalThis.old.getSessionName(); ctx.ui.notify('old works'); } catch (error) { ctx.ui.notify(error.message.slice(0, 63)); }
        } });
    };";
    let source = harness.source(&harness.file("again.ts", text));
    harness.handle.load(std::slice::from_ref(&source), Loading::Add, &harness.surroundings).await;
    harness.bind().await;
    harness.command("who", "").await;
    harness.handle.invalidate().await;
    harness.handle.load(&[source], Loading::Again, &harness.surroundings).await;
    harness.bind().await;
    harness.command("who", "").await;
    let stale = "This extension ctx is stale after session replacement or reload";
    assert_eq!(harness.notifications(), ["instance 1", "old works", "instance 2", stale]);
}

#[tokio::test]
async fn a_tool_call_during_a_reload_waits_for_handlers_that_may_block_it() {
    let harness = Harness::start();
    let text = "export default async (pi) => {
        await new Promise((resolve) => setTimeout(resolve, 30));
        pi.on('tool_call', (event, ctx) => { if (ctx.cwd) return { block: true, reason: 'not now' }; });
    };";
    let source = harness.source(&harness.file("gate.ts", text));
    harness.handle.load(std::slice::from_ref(&source), Loading::Add, &harness.surroundings).await;
    harness.bind().await;
    harness.handle.invalidate().await;
    let call = harness.handle.tool_call("1", "bash", serde_json::Map::new());
    let reload = async {
        harness.handle.load(&[source], Loading::Reload, &harness.surroundings).await;
        harness.bind().await;
    };
    let (verdict, ()) = tokio::join!(call, reload);
    let blocked = pith_ext::ToolCallVerdict::Block { reason: "not now".to_owned(), terminate: false };
    assert_eq!(verdict, blocked);
    assert!(harness.errors().is_empty(), "{:?}", harness.errors());
}

#[tokio::test]
async fn a_reload_reads_changed_files() {
    let harness = Harness::start();
    let text = |word: &str| {
        format!(
            "import {{ word }} from './word.ts'; export default (pi) => pi.registerCommand('say', {{ handler: async (_, ctx) => ctx.ui.notify(word + '{word}') }});"
        )
    };
    harness.file("word.ts", "export const word = 'old';");
    let path = harness.file("say.ts", &text("!"));
    let source = harness.source(&path);
    harness.handle.load(std::slice::from_ref(&source), Loading::Add, &harness.surroundings).await;
    harness.bind().await;
    harness.command("say", "").await;
    harness.file("word.ts", "export const word = 'newer';");
    harness.handle.load(&[source], Loading::Reload, &harness.surroundings).await;
    harness.bind().await;
    harness.command("say", "").await;
    assert_eq!(harness.notifications(), ["old!", "newer!"]);
}

#[tokio::test]
async fn flags_have_defaults_and_take_values_from_the_command_line() {
    let harness = Harness::start();
    let text = "export default (pi) => {
        pi.registerFlag('mode', { type: 'string', default: 'calm', description: 'the mode' });
        pi.registerFlag('loud', { type: 'boolean' });
        globalThis.early = pi.getFlag('mode');
        pi.registerCommand('flags', { handler: async (_, ctx) =>
            ctx.ui.notify([globalThis.early, pi.getFlag('mode'), pi.getFlag('loud'), pi.getFlag('other')].join()) });
    };";
    harness.load(&[("flags.ts", text)]).await;
    let registry = harness.handle.registry();
    assert_eq!(registry.flags[0].description.as_deref(), Some("the mode"));
    let given = [("mode".to_owned(), "wild".into()), ("loud".to_owned(), true.into())].into();
    harness.handle.bind(&harness.surroundings, &given).await;
    harness.command("flags", "").await;
    assert_eq!(harness.notifications(), ["calm,wild,true,"]);
}
