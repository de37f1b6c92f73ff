// Drives `pith acp` with the official TypeScript SDK as an editor does that serves files, terminals and questions; prints
// one line per feature.
//
//   node tests/acp/sdk-editor.mjs PACKAGE PITH
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

const [packageDirectory, pith] = process.argv.slice(2);
const acp = await import(join(packageDirectory, "dist/v1/unstable/acp.js"));
const here = dirname(fileURLToPath(import.meta.url));
const cwd = realpathSync(mkdtempSync(join(tmpdir(), "pith-acp-")));
const notes = join(cwd, "notes.txt");
writeFileSync(notes, "on the disk\n");
writeFileSync(join(process.env.PITH_AGENT_DIR, "settings.json"), JSON.stringify({ acp: { clientTerminal: true } }));

// What the editor has, and what it was asked for.
const buffers = new Map([[notes, "only the editor knows\n"]]);
const asked = [];
const updates = [];
let permission = "allow";
const note = (method, answer) => [method, ({ params }) => (asked.push({ method, params }), answer(params))];
const served = [
  note("fs/read_text_file", ({ path }) => ({ content: buffers.get(path) ?? "" })),
  note("fs/write_text_file", ({ path, content }) => (buffers.set(path, content), {})),
  note("terminal/create", () => ({ terminalId: "t1" })),
  note("terminal/wait_for_exit", () => ({ exitCode: 0 })),
  note("terminal/output", () => ({ output: "made in the terminal\n", truncated: false })),
  note("terminal/kill", () => ({})),
  note("terminal/release", () => ({})),
  note("session/request_permission", () => ({ outcome: { outcome: "selected", optionId: permission } })),
  note("elicitation/create", () => ({ action: "accept", content: { choice: "blue" } })),
];
const child = spawn(pith, ["acp", "--script", join(here, "script.json"), "-e", join(here, "asks.ts")], {
  stdio: ["pipe", "pipe", "inherit"],
});
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const app = served.reduce(
  (client, [method, serve]) => client.onRequest(method, serve),
  acp.client().onNotification("session/update", ({ params }) => void updates.push(params.update)),
);

const check = (is, what) => {
  if (!is) throw new Error(what);
};
const feature = async (name, work) => {
  try {
    await work();
    console.log(`${name}: ok`);
  } catch (error) {
    console.log(`${name}: ${String(error.message ?? error).split("\n")[0]}`);
  }
};
const methods = () => asked.splice(0).map(({ method }) => method);

await app.connectWith(stream, async (agent) => {
  await agent.request("initialize", {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {
      fs: { readTextFile: true, writeTextFile: true },
      terminal: true,
      elicitation: { form: {} },
    },
  });
  const { sessionId } = await agent.request("session/new", { cwd, mcpServers: [] });
  // Prompts, and waits until the answer is there.
  const prompt = async (words, expected) => {
    const end = await agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: words }] });
    check(end.stopReason === "end_turn", JSON.stringify(end));
    const said = () => updates.map((update) => update.content?.text ?? "").join("");
    const late = Date.now() + 60_000;
    while (!said().includes(expected)) {
      check(Date.now() < late, `it never said "${expected}": ${said()}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  await feature("read an unsaved buffer", async () => {
    await prompt("read the buffer", "The buffer was read.");
    check(methods().join() === "fs/read_text_file", "not asked");
  });
  await feature("write a buffer", async () => {
    await prompt("change the buffer", "The buffer was changed.");
    check(methods().includes("fs/write_text_file") && buffers.get(notes) === "from the model\n", "not written");
    check(readFileSync(notes, "utf8") === "on the disk\n", "the disk has changed");
  });
  await feature("permission, command in a terminal", async () => {
    await prompt("run it in the terminal", "The terminal was read.");
    const expected = ["session/request_permission", "terminal/create", "terminal/wait_for_exit", "terminal/output"];
    check(methods().slice(0, 4).join() === expected.join(), "asked otherwise");
    const shown = updates.some((update) => update.content?.[0]?.terminalId === "t1");
    check(shown, "the terminal is not in the call");
  });
  await feature("permission rejected", async () => {
    permission = "reject";
    methods();
    await prompt("run it in the terminal again", "You said:");
    check(updates.some((update) => update.status === "failed"), "the call has not failed");
    check(!methods().includes("terminal/create"), "it ran all the same");
  });
  await feature("form", async () => {
    await prompt("/color", "chosen: blue");
    check(methods().join() === "elicitation/create", "not asked");
  });
});
await new Promise((resolve) => {
  child.on("exit", resolve);
  child.stdin.end();
});
process.exit(0);
