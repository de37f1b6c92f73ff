//! Expressions that an extension evaluates.

use super::Harness;

/// What most expressions import.
const IMPORTS: &str = "import * as fs from 'node:fs'; import path from 'path'; import os from 'node:os'; import { promises as fsp } from 'fs';
    import * as cp from 'node:child_process'; import crypto from 'crypto'; import util, { promisify } from 'node:util';
    import { EventEmitter, once } from 'events'; import { fileURLToPath, pathToFileURL } from 'url';
    import { Readable, Writable, Transform, pipeline, PassThrough } from 'stream'; import readline from 'node:readline';
    import { pipeline as pipe } from 'stream/promises'; import { setTimeout as sleep } from 'timers/promises';
    import { createRequire } from 'module'; import assert from 'assert';
    import * as net from 'node:net'; import http from 'node:http'; import zlib from 'node:zlib'; import dns from 'node:dns';";

/// What they may call.
const HELPERS: &str = "const dir = fs.mkdtempSync(path.join(process.cwd(), 'work-'));
    const failure = async (fn) => { try { await fn(); return 'no failure'; } catch (error) { return error.code ?? error.message; } };";

/// Evaluates expressions about Node's modules.
pub async fn check(setup: &str, cases: &[(&str, &str)]) {
    evaluate(IMPORTS, &format!("{HELPERS}\n{setup}"), cases).await;
}

/// Evaluates expressions inside a command of an extension and compares their JSON.
pub async fn evaluate(imports: &str, setup: &str, cases: &[(&str, &str)]) {
    let harness = Harness::patient();
    let list: Vec<String> = cases.iter().map(|(expression, _)| format!("async () => ({expression})")).collect();
    let text = format!(
        "{imports}
         export default (pi) => pi.registerCommand('go', {{ handler: async (args, ctx) => {{
            {setup}
            for (const test of [{}]) {{
                let shown;
                try {{ const value = await test(); shown = JSON.stringify(value) ?? 'undefined'; }} catch (error) {{ shown = 'threw ' + error.message + ' ' + error.stack; }}
                ctx.ui.notify(shown);
            }}
         }} }});",
        list.join(",\n")
    );
    harness.run(&[("cases.ts", &text)]).await;
    harness.command("go", "").await;
    assert_eq!(harness.errors(), []);
    let shown = harness.notifications();
    for ((expression, expected), actual) in cases.iter().zip(&shown) {
        assert_eq!(actual, expected, "{expression}");
    }
    assert_eq!(shown.len(), cases.len());
}
