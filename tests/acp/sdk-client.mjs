// Drives `pith acp` with the official TypeScript SDK; prints one line per feature.
//
//   node tests/acp/sdk-client.mjs PITH [PACKAGE]
//
// PACKAGE is the directory of the SDK; without it, the one that tests/acp/run has installed.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [pith, named] = process.argv.slice(2);
const installed = () => {
  const cache = join(here, "../../target/acp");
  const sdk = existsSync(cache) && readdirSync(cache).find((name) => name.startsWith("sdk-"));
  return sdk && join(cache, sdk, "node_modules/@agentclientprotocol/sdk");
};
const packageDirectory = named ?? installed();
if (!pith || !packageDirectory) {
  console.error("usage: node tests/acp/sdk-client.mjs PITH [PACKAGE]; tests/acp/run installs the package");
  process.exit(2);
}
// Not among the sessions of whoever runs this.
process.env.PITH_AGENT_DIR ??= mkdtempSync(join(tmpdir(), "pith-agent-"));
const acp = await import(realpathSync(join(packageDirectory, "dist/v1/unstable/acp.js")));
const cwd = realpathSync(mkdtempSync(join(tmpdir(), "pith-acp-")));
const child = spawn(pith, ["acp", "--script", join(here, "../hosts/script.json")], { stdio: ["pipe", "pipe", "inherit"] });
const updates = [];
const app = acp.client().onNotification("session/update", ({ params }) => void updates.push(params));
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));

const wait = async (what, isSo) => {
  const end = Date.now() + 60_000;
  while (!isSo()) {
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};
const text = (sessionId) =>
  updates
    .filter((update) => update.sessionId === sessionId && update.update.sessionUpdate === "agent_message_chunk")
    .map((update) => update.update.content.text)
    .join("");
const check = (is, what) => {
  if (!is) throw new Error(what);
};
const feature = async (name, work) => {
  try {
    await work();
    console.log(`${name}: ok`);
  } catch (error) {
    console.log(`${name}: ${String(error.message ?? error).split("\n")[0]}`);
    process.exitCode = 1;
  }
};

await app.connectWith(stream, async (agent) => {
  const prompt = (sessionId, words) =>
    agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: words }] });
  let session;
  await feature("initialize", async () => {
    const greeting = await agent.request("initialize", {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: { session: { configOptions: { boolean: {} } } },
      clientInfo: { name: "sdk-client", version: "1" },
    });
    check(greeting.protocolVersion === 1 && greeting.agentInfo.name === "pith", JSON.stringify(greeting));
  });
  await feature("new session", async () => {
    const opened = await agent.request("session/new", { cwd, mcpServers: [] });
    check(opened.configOptions.some((option) => option.id === "model"), JSON.stringify(opened));
    session = opened.sessionId;
  });
  await feature("text", async () => {
    const end = await prompt(session, "hello");
    check(end.stopReason === "end_turn", JSON.stringify(end));
    await wait("the answer", () => text(session).includes("You said: hello"));
  });
  await feature("tool call", async () => {
    await prompt(session, "use the tool");
    await wait("the result", () => text(session).includes("It says 42."));
    const call = updates.find((update) => update.update.sessionUpdate === "tool_call")?.update;
    check(call?.kind === "execute" && call.title === "echo forty-two", JSON.stringify(call));
    check(updates.some((update) => update.update.status === "completed"), "it never completed");
  });
  await feature("cancel", async () => {
    const before = text(session).length;
    const running = prompt(session, "a long story");
    await wait("the beginning", () => text(session).length > before);
    await agent.notify("session/cancel", { sessionId: session });
    check((await running).stopReason === "cancelled", "not cancelled");
  });
  await feature("config option", async () => {
    const value = { sessionId: session, configId: "auto_retry", type: "boolean", value: false };
    const { configOptions } = await agent.request("session/set_config_option", value);
    check(configOptions.find((option) => option.id === "auto_retry").currentValue === false, "unchanged");
  });
  await feature("mode", () => agent.request("session/set_mode", { sessionId: session, modeId: "full" }));
  await feature("list", async () => {
    const { sessions } = await agent.request("session/list", { cwd });
    check(sessions.some((listed) => listed.sessionId === session), JSON.stringify(sessions));
  });
  await feature("close and load", async () => {
    await agent.request("session/close", { sessionId: session });
    const before = updates.length;
    await agent.request("session/load", { sessionId: session, cwd, mcpServers: [] });
    const kinds = updates.slice(before).map((update) => update.update.sessionUpdate);
    check(kinds[0] === "user_message_chunk" && kinds.includes("tool_call"), kinds.join());
  });
  await feature("resume", async () => {
    await agent.request("session/close", { sessionId: session });
    await agent.request("session/resume", { sessionId: session, cwd, mcpServers: [] });
    check((await prompt(session, "hello again")).stopReason === "end_turn", "no end");
  });
  await feature("fork, title, status (unstable)", async () => {
    const copy = await agent.request("session/fork", { sessionId: session, cwd, mcpServers: [] });
    check(copy.sessionId !== session, "the same session");
    await agent.request("session/set_title", { sessionId: copy.sessionId, title: "Copy" });
    check((await agent.request("session/status", { sessionId: copy.sessionId })).status === "open", "not open");
  });
  await feature("delete", async () => {
    await agent.request("session/delete", { sessionId: session });
    const { sessions } = await agent.request("session/list", { cwd });
    check(!sessions.some((listed) => listed.sessionId === session), "still there");
  });
  await feature("errors", async () => {
    const refused = await agent.request("session/prompt", { sessionId: "nobody", prompt: [] }).catch((error) => error);
    check(refused.code === -32002, String(refused));
  });
});
await feature("end of input", async () => {
  const code = await new Promise((resolve) => {
    if (child.exitCode !== null) resolve(child.exitCode);
    child.on("exit", resolve);
    child.stdin.end();
  });
  check(code === 0, `exit code ${code}`);
});
process.exit();
