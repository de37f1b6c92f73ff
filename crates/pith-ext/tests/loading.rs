//! Finding, reading and starting extensions.

mod support;

use support::Harness;

#[tokio::test]
async fn a_typescript_extension_loads_and_registers() {
    let harness = Harness::start();
    let report = harness
        .load(&[(
            "hello.ts",
            r#"
            import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
            enum Mood { Good = "good" }
            export default async function (pi: ExtensionAPI): Promise<void> {
                const name = "hello" satisfies string;
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
