// Drives pith with the RpcClient of a published pi: node pi-client.mjs PACKAGE CLI SCRIPT
// Prints one line per feature: "FEATURE: ok" or "FEATURE: why not".
import assert from "node:assert/strict";
import { fileURLToPath, pathToFileURL } from "node:url";

const [root, cliPath, script] = process.argv.slice(2);
const { RpcClient } = await import(pathToFileURL(`${root}/dist/modes/rpc/rpc-client.js`).href);
const extension = fileURLToPath(new URL("dialogs.ts", import.meta.url));
const client = new RpcClient({ cliPath, args: ["--script", script, "-e", extension] });
const events = [];
client.onEvent((event) => events.push(event));

function seen(wanted, from = 0) {
  return new Promise((resolve, reject) => {
    const limit = setTimeout(() => reject(new Error("it never came")), 60_000);
    const look = () => {
      const found = events.slice(from).find(wanted);
      if (found) clearTimeout(limit), resolve(found);
      else setTimeout(look, 5);
    };
    look();
  });
}

async function run(message) {
  const from = events.length;
  await client.prompt(message);
  await seen((event) => event.type === "agent_end", from);
  return client.getLastAssistantText();
}

const features = {
  async text() {
    assert.equal(await run("hello"), "You said: hello");
  },
  async "tool call"() {
    assert.equal(await run("use the tool"), "It says 42.");
    assert.ok(events.some((event) => event.type === "tool_execution_end" && !event.isError));
  },
  // The client passes questions on as events and has no method for answers: hosts write them to its process.
  async dialogs() {
    const from = events.length;
    const answers = { select: { value: "second" }, confirm: { confirmed: true }, input: { value: "main" }, editor: { value: "Mend it" } };
    const stop = client.onEvent(({ type, id, method }) => {
      if (type !== "extension_ui_request" || !answers[method]) return;
      client.process.stdin.write(`${JSON.stringify({ type: "extension_ui_response", id, ...answers[method] })}\n`);
    });
    await client.prompt("/ask");
    const told = await seen((event) => event.method === "notify", from);
    stop();
    assert.equal(told.message, 'answers ["second",true,"main","Mend it"]');
  },
  async steer() {
    const from = events.length;
    await client.prompt("a long story");
    await seen((event) => event.type === "message_update", from);
    await client.steer("be brief");
    await seen((event) => event.type === "queue_update" && event.steering.includes("be brief"), from);
  },
  async abort() {
    const from = events.length;
    await client.abort();
    await seen((event) => event.type === "agent_end", Math.max(0, from - 1));
    assert.equal((await client.getState()).isStreaming, false);
    if (client.clearQueue) await client.clearQueue();
  },
  async "session switch"() {
    const { sessionFile } = await client.getState();
    await client.newSession();
    assert.equal((await client.getMessages()).length, 0);
    await client.switchSession(sessionFile);
    assert.ok((await client.getMessages()).length > 0);
  },
  async fork() {
    const [first] = await client.getForkMessages();
    assert.equal((await client.fork(first.entryId)).text, "hello");
  },
};

await client.start();
for (const [name, play] of Object.entries(features)) {
  try {
    await play();
    console.log(`${name}: ok`);
  } catch (error) {
    console.log(`${name}: ${String(error.message).split("\n")[0]}`);
  }
}
await client.stop();
process.exit(0);
