// A small, complete host: prompt, stream, steer, abort, dialog, host tool, fork, resume.
//
//   PITH=target/release/pith node clients/typescript/examples/host.mjs
//
// The model is scripted, so no key and no network is needed.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Pith } from "../dist/index.js";

const directory = mkdtempSync(join(tmpdir(), "pith-host-"));
const extension = join(directory, "ask.ts");
writeFileSync(
  extension,
  `export default (pi) => pi.registerCommand("ask", { handler: async (_, ctx) => {
    ctx.ui.notify("Hello " + await ctx.ui.input("Your name?"));
  } });`,
);

const weather = {
  name: "weather",
  description: "Tells the weather",
  parameters: { type: "object", properties: { city: { type: "string" } } },
  call({ city }, { update }) {
    update("looking out of the window");
    return `4 degrees in ${city}`;
  },
};

function start(...more) {
  const script = fileURLToPath(new URL("../../script.json", import.meta.url));
  return Pith.spawn({
    program: process.env.PITH ?? "pith",
    arguments: ["--script", script, "-e", extension, ...more],
    cwd: directory,
    env: { ...process.env, PITH_AGENT_DIR: join(directory, "agent") },
    tools: [weather],
    dialog: () => "Ada",
  });
}

async function show(events) {
  for await (const event of events) {
    if (event.type !== "message_update") continue;
    const step = event.assistantMessageEvent;
    if (step.type === "text_delta") process.stdout.write(step.delta);
  }
  console.log();
}

const pith = start();
await show(pith.run("how is the weather?")); // prompt, stream, host tool
const events = pith.listen(); // steer, then abort
await pith.prompt("a long story");
await events.wait("message_update");
await pith.steer("make it short");
await pith.abort();
console.log("aborted:", (await events.wait("agent_settled")).aborted);
await pith.ask("clear_queue");
await show(pith.run("/ask")); // dialog
for await (const event of events) {
  if (event.method !== "notify") continue;
  console.log("extension:", event.message);
  break;
}
const { messages } = await pith.ask("get_fork_messages"); // fork
console.log("fork before:", (await pith.ask("fork", { entryId: messages[0].entryId })).text);
await show(pith.run("and now something else"));
const { sessionFile } = await pith.ask("get_state");
await pith.close();
const again = start("--session", sessionFile); // resume
console.log("resumed with:", (await again.ask("get_last_assistant_text")).text);
await again.close();
rmSync(directory, { recursive: true });
