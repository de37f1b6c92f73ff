//! `tool_call` handlers as gates: what would be blocked under pi is blocked here, and a gate that needs something pith
//! does not have refuses the call.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use pith_ext::{Mode, ToolCallVerdict};
use serde_json::Map;
use support::Harness;

/// Runs one call through the gate; `Some` is the reason why it was blocked.
async fn verdict(harness: &Harness) -> Option<String> {
    match harness.handle.tool_call("t", "bash", Map::new()).await {
        ToolCallVerdict::Block { reason, .. } => Some(reason),
        ToolCallVerdict::Allow(_) => None,
    }
}

async fn gated(harness: &Harness, body: &str) -> Option<String> {
    let text = format!("export default (pi) => pi.on('tool_call', async (event, ctx) => {{ {body} }});");
    harness.run(&[("gate.ts", &text)]).await;
    verdict(harness).await
}

#[tokio::test]
async fn any_truthy_block_value_blocks() {
    for value in ["true", "1", "'yes'", "{}"] {
        let reason = gated(&Harness::start(), &format!("return {{ block: {value}, reason: 'closed' }};")).await;
        assert_eq!(reason.as_deref(), Some("closed"), "block: {value}");
    }
    for value in ["false", "0", "''", "null", "undefined"] {
        let reason = gated(&Harness::start(), &format!("return {{ block: {value}, reason: 'closed' }};")).await;
        assert_eq!(reason, None, "block: {value}");
    }
}

#[tokio::test]
async fn a_gate_sees_the_command_line_the_environment_and_the_mode() {
    for test in [
        "process.argv.slice(2).includes('--mode')",
        "process.argv[process.argv.indexOf('--mode') + 1] === 'rpc'",
        "process.argv[0] === process.execPath",
        "typeof process.argv[1] === 'string' && !require('fs').existsSync(process.argv[1])",
        "process.env.PI_CODING_AGENT === 'true'",
        "ctx.mode === 'rpc' && ctx.hasUI",
        "!process.stdin.isTTY && !process.stdout.isTTY",
    ] {
        let reason =
            gated(&Harness::start(), &format!("if ({test}) return {{ block: true, reason: 'closed' }};")).await;
        assert_eq!(reason.as_deref(), Some("closed"), "{test}");
    }
}

#[tokio::test]
async fn a_gate_that_needs_something_missing_refuses_even_if_it_catches_the_error() {
    for body in [
        "try { new (require('node:worker_threads').Worker)('x'); } catch {}",
        "await 0; try { require('node:dgram').createSocket('udp4'); } catch {}",
        "try { new EventSource('http://localhost'); } catch {}",
        "try { require('@earendil-works/pi-coding-agent').resizeImage(); } catch {}",
        "try { require('node:child_process').fork('x.js'); } catch {}",
    ] {
        let harness = Harness::start();
        let reason = gated(&harness, body).await.unwrap_or_else(|| panic!("{body}: the call was let through"));
        assert!(reason.contains("could not decide") && reason.contains("is not available"), "{body}: {reason}");
        assert!(harness.error("tool_call").await.path.ends_with("gate.ts"));
    }
    // Earlier failures do not count.
    let harness = Harness::start();
    let reason =
        gated(&harness, "if (!globalThis.tried) { globalThis.tried = 1; try { new EventSource('x'); } catch {} }");
    assert!(reason.await.is_some());
    assert_eq!(verdict(&harness).await, None);
}

#[tokio::test]
async fn a_gate_whose_dialog_can_no_longer_be_answered_refuses() {
    let harness = Harness::start();
    let text = "export default (pi) => pi.on('tool_call', async (event, ctx) => {
        const choice = await ctx.ui.select('Run it?', ['Block', 'Run']);
        if (choice === 'Block') return { block: true };
    });";
    harness.run(&[("gate.ts", text)]).await;
    let call = verdict(&harness);
    let gone = async {
        let dialog = harness.wait_for("the dialog", |seen| seen.open.pop()).await;
        drop(dialog);
    };
    let (reason, ()) = tokio::join!(call, gone);
    assert!(reason.is_some_and(|reason| reason.contains("could not decide")));
}

#[tokio::test]
async fn a_gate_with_a_custom_screen_refuses_where_pi_would_show_it() {
    let text = "export default (pi) => pi.on('tool_call', async (event, ctx) => {
        const answer = await ctx.ui.custom(() => ({ render: () => [] })).catch(() => undefined);
        if (answer === 'deny') return { block: true };
    });";
    for (mode, is_blocked) in [(Mode::Tui, true), (Mode::Rpc, false)] {
        let mut harness = Harness::start();
        harness.surroundings.mode = mode;
        harness.run(&[("gate.ts", text)]).await;
        assert_eq!(verdict(&harness).await.is_some(), is_blocked, "{mode:?}");
    }
}
