// The client against the real pith, with its scripted model. PITH names the program.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { CommandFailed, Pith, PithExited } from "../dist/index.js";

const script = fileURLToPath(new URL("../../script.json", import.meta.url));
const ASKS = `export default (pi) => pi.registerCommand("ask", { handler: async (_, ctx) => {
  const name = await ctx.ui.input("Name?", "somebody");
  const sure = await ctx.ui.confirm("Sure?", "Really");
  ctx.ui.notify(name + " " + sure);
} });`;
const weather = (call) => ({
  name: "weather",
  description: "Tells the weather",
  parameters: { type: "object", properties: { city: { type: "string" } } },
  call,
});

/** Runs a story with a home of its own. */
function scene(name, story) {
  test(name, async () => {
    const root = mkdtempSync(join(tmpdir(), "pith-client-"));
    mkdirSync(join(root, "work"));
    writeFileSync(join(root, "asks.ts"), ASKS);
    const all = [];
    const start = (more = [], options = {}) => {
      const env = { PATH: process.env.PATH, HOME: root, PITH_AGENT_DIR: join(root, "agent") };
      const program = process.env.PITH ?? "pith";
      const pith = Pith.spawn({ program, arguments: ["--script", script, ...more], cwd: join(root, "work"), env, ...options });
      all.push(pith);
      return pith;
    };
    try {
      await story(start, root);
    } finally {
      await Promise.all(all.map((pith) => pith.close()));
      rmSync(root, { recursive: true });
    }
  });
}

async function all(events) {
  const seen = [];
  for await (const event of events) seen.push(event);
  return seen;
}

function text(events) {
  const ends = events.filter((event) => event.type === "message_end" && event.message.role === "assistant");
  return ends.at(-1).message.content.map((block) => block.text ?? "").join("");
}

scene("a prompt yields its events and ends", async (start) => {
  const pith = start();
  const events = await all(pith.run("hello"));
  assert.deepEqual([events[0].type, events.at(-1).type], ["agent_start", "agent_settled"]);
  assert.equal(text(events), "You said: hello");
});

scene("a refused command rejects and the next one works", async (start) => {
  const pith = start();
  await assert.rejects(pith.ask("set_model", { provider: "nobody", modelId: "nothing" }), CommandFailed);
  assert.equal((await pith.ask("get_state")).isStreaming, false);
});

scene("steering joins a run that is then aborted", async (start) => {
  const pith = start();
  const events = pith.listen();
  await pith.prompt("a long one");
  await events.wait("message_update");
  await pith.steer("shorter");
  assert.deepEqual((await events.wait("queue_update")).steering, ["shorter"]);
  await pith.abort();
  assert.equal((await events.wait("agent_settled")).aborted, true);
  events.stop();
});

scene("the model calls a tool of this program", async (start) => {
  const tools = [
    weather(({ city }, { update }) => {
      update("looking");
      return `4 degrees in ${city}`;
    }),
  ];
  assert.equal(text(await all(start([], { tools }).run("how is the weather?"))), "It is cold in Oslo.");
});

scene("what a tool throws reaches the model", async (start) => {
  const tools = [
    weather(() => {
      throw new Error("no such city");
    }),
  ];
  assert.equal(text(await all(start([], { tools }).run("how is the weather?"))), "The tool failed.");
});

scene("a withdrawn call is aborted", async (start) => {
  const { promise: began, resolve: begin } = withResolvers();
  const { promise: ended, resolve: end } = withResolvers();
  const tools = [weather((_, { signal }) => (begin(), new Promise((resolve) => signal.addEventListener("abort", () => (end(), resolve("late"))))))];
  const pith = start([], { tools });
  await pith.prompt("how is the weather?");
  await began;
  await pith.abort();
  await ended;
});

function withResolvers() {
  let resolve;
  return { promise: new Promise((done) => (resolve = done)), resolve };
}

scene("dialogs are answered", async (start, root) => {
  const asked = [];
  const dialog = (request) => {
    asked.push(request.method);
    return request.method === "input" ? "Ada" : true;
  };
  const pith = start(["-e", join(root, "asks.ts")], { dialog });
  const events = pith.listen();
  assert.deepEqual(await all(pith.run("/ask")), []);
  for await (const event of events) {
    if (event.method !== "notify") continue;
    assert.equal(event.message, "Ada true");
    break;
  }
  assert.deepEqual(asked, ["input", "confirm"]);
});

scene("calls are permitted or refused", async (start) => {
  const answers = [["once", "it ran"], [{ optionId: "deny", message: "Not today." }, "Not today."], [undefined, ""]];
  for (const [answer, expected] of answers) {
    const asked = [];
    const permission = (request) => {
      asked.push([request.toolName, request.arguments.command]);
      return answer;
    };
    const events = await all(start(["--permission-mode", "ask"], { permission }).run("please run it"));
    const ended = events.find((event) => event.type === "tool_execution_end");
    assert.deepEqual([asked, ended.isError], [[["bash", "echo it ran"]], answer !== "once"]);
    assert.ok(ended.result.content[0].text.includes(expected), ended.result.content[0].text);
  }
});

scene("tools that are refused are an error", async (start) => {
  const pith = start([], { tools: [{ ...weather(() => ""), name: "read" }] });
  const refused = (error) => error instanceof CommandFailed && error.command === "set_host_tools";
  await assert.rejects(pith.ask("get_state"), refused);
  await assert.rejects(all(pith.run("hello")), refused);
});

scene("sessions fork and resume", async (start) => {
  const pith = start();
  await all(pith.run("one"));
  await all(pith.run("two"));
  const { messages } = await pith.ask("get_fork_messages");
  assert.deepEqual(await pith.ask("fork", { entryId: messages[1].entryId }), { text: "two", cancelled: false });
  await all(pith.run("three"));
  const { sessionFile } = await pith.ask("get_state");
  assert.equal(await pith.close(), 0);
  const again = start(["--session", sessionFile]);
  assert.equal((await again.ask("get_last_assistant_text")).text, "You said: three");
});

scene("a pith that dies fails what waits", async (start) => {
  const pith = start();
  const events = pith.listen();
  await pith.prompt("a long one");
  await events.wait("message_update");
  process.kill(pith.pid, "SIGKILL");
  await assert.rejects(events.wait("agent_settled"), (error) => error instanceof PithExited && error.signal === "SIGKILL");
  await assert.rejects(pith.ask("get_state"), PithExited);
});

scene("a pith that refuses to start says why", async (start) => {
  const pith = start(["--script", "/nowhere/script.json"]);
  await assert.rejects(pith.ask("get_state"), (error) => error.stderr.includes("/nowhere/script.json"));
});

scene("a program that is not there is an error", async (start) => {
  await assert.rejects(start([], { program: "/nowhere/pith" }).ask("get_state"), /nowhere/);
});
