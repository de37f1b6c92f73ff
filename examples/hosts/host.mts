// A host without a library: answers a dialog of an extension, then forks. PITH names the program.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

type Frame = { type: string; [key: string]: any };

const directory = mkdtempSync(join(tmpdir(), "host-"));
const extension = join(directory, "greet.ts");
writeFileSync(
  extension,
  `export default (pi) => pi.registerCommand("greet", { handler: async (_, ctx) => {
    ctx.ui.notify("Hello " + await ctx.ui.input("Your name?"));
  } });`,
);
const pith = spawn(process.env.PITH ?? "pith", ["--mode", "rpc", "--model", "scripted/tour", "-e", extension], {
  cwd: directory,
  env: { ...process.env, PITH_AGENT_DIR: join(directory, "agent") },
  stdio: ["pipe", "pipe", "inherit"],
});
const ended = new Promise((resolve) => pith.on("exit", resolve));
const lines = createInterface({ input: pith.stdout })[Symbol.asyncIterator]();

function send(frame: object): void {
  pith.stdin.write(`${JSON.stringify(frame)}\n`);
}

async function readUntil(isWanted: (frame: Frame) => boolean): Promise<Frame> {
  for (;;) {
    const { value: line, done } = await lines.next();
    if (done) throw new Error("pith has ended");
    const frame: Frame = JSON.parse(line);
    if (frame.type === "extension_ui_request" && frame.method === "input") {
      send({ type: "extension_ui_response", id: frame.id, value: "Ada" });
    }
    if (frame.type === "extension_ui_request" && frame.method === "notify") console.log("extension:", frame.message);
    if (isWanted(frame)) return frame;
  }
}

async function ask(type: string, fields: object = {}): Promise<any> {
  send({ id: type, type, ...fields });
  const response = await readUntil((frame) => frame.type === "response" && frame.id === type);
  if (!response.success) throw new Error(response.error);
  return response.data;
}

await ask("prompt", { message: "/greet" }); // Answered when the extension is done: "handled", and no run follows.
if ((await ask("prompt", { message: "What is here?" })).disposition === "started") {
  await readUntil((frame) => frame.type === "agent_settled");
}
const first = (await ask("get_fork_messages")).messages[0];
console.log("fork before:", (await ask("fork", { entryId: first.entryId })).text);
console.log("messages now:", (await ask("get_messages")).messages.length);
pith.stdin.end();
console.log("exit code:", await ended);
rmSync(directory, { recursive: true });
