// Built-in tools as objects that extensions can wrap.
//
// Without `operations` a call goes to the agent's own tool. With them the work is done here, through the functions of
// the extension: that is how a tool works on another machine.

const ops = require("internal/ops");
const state = require("internal/state");

const known = () => (state.builtinTools ??= JSON.parse(host.builtinTools()));

const absolute = (cwd, path) => {
  const nodePath = require("path");
  const clean = String(path ?? ".").replace(/^@/, "");
  if (clean === "~" || clean.startsWith("~/")) return nodePath.join(require("os").homedir(), clean.slice(1));
  return nodePath.resolve(cwd, clean);
};

// Runs work on the same file one after the other.
const queues = new Map();
async function withFileMutationQueue(path, work) {
  let key = String(path);
  try {
    key = require("fs").realpathSync(path);
  } catch {
    // The file does not exist yet: use the path itself.
  }
  const before = queues.get(key) ?? Promise.resolve();
  const run = before.then(work, work);
  const done = run.then(
    () => {},
    () => {},
  );
  queues.set(key, done);
  try {
    return await run;
  } finally {
    if (queues.get(key) === done) queues.delete(key);
  }
}

async function runNative(name, cwd, callId, args, signal, onUpdate, options) {
  const request = { name, callId: String(callId ?? host.uuid()), arguments: args ?? {}, cwd: String(cwd ?? state.config.cwd), options };
  const result = await ops.open("run_tool", request, (partial) => onUpdate?.(strip(partial)), signal);
  if (!result.isError) return strip(result);
  const error = new Error(result.content.filter((block) => block.type === "text").map((block) => block.text).join("\n"));
  throw error;
}

const strip = ({ content, details, usage, terminate }) => ({ content, details: details ?? undefined, ...(usage ? { usage } : {}), ...(terminate ? { terminate } : {}) });

const answer = (text, details) => ({ content: [{ type: "text", text }], details });
const checkAbort = (signal) => {
  if (signal?.aborted) throw new Error("Operation aborted");
};

// Runs a shell command through operations of an extension.
async function runShell(operations, command, cwd, { timeout, signal, onUpdate, env }) {
  const { truncateTail, formatSize, DEFAULT_MAX_BYTES } = require("internal/truncate");
  const { StringDecoder } = require("string_decoder");
  const decoder = new StringDecoder("utf8");
  let output = "";
  onUpdate?.(answer("", undefined));
  const onData = (data) => {
    output += typeof data === "string" ? data : decoder.write(data);
    onUpdate?.(answer(truncateTail(output).content, undefined));
  };
  let exitCode;
  let failure = null;
  try {
    ({ exitCode } = await operations.exec(command, cwd, { onData, signal, timeout, env }));
  } catch (error) {
    failure = error;
  }
  output += decoder.end();
  const cut = truncateTail(output);
  let text = cut.content || (failure ? "" : "(no output)");
  let details;
  if (cut.truncated) {
    const file = require("path").join(require("os").tmpdir(), `pi-bash-${host.uuid().replace(/-/g, "").slice(0, 16)}.log`);
    await require("fs").promises.writeFile(file, output);
    const first = cut.totalLines - cut.outputLines + 1;
    const limit = cut.truncatedBy === "bytes" ? ` (${formatSize(DEFAULT_MAX_BYTES)} limit)` : "";
    text += cut.lastLinePartial
      ? `\n\n[Showing last ${formatSize(cut.outputBytes)} of line ${cut.totalLines} (line is ${formatSize(cut.totalBytes)}). Full output: ${file}]`
      : `\n\n[Showing lines ${first}-${cut.totalLines} of ${cut.totalLines}${limit}. Full output: ${file}]`;
    const { content, ...truncation } = cut;
    details = { truncation, fullOutputPath: file };
  }
  const ended = (status) => (text ? `${text}\n\n${status}` : status);
  if (failure) {
    const [, seconds] = /^timeout:(.*)$/.exec(failure.message) ?? [];
    if (seconds !== undefined) throw new Error(ended(`Command timed out after ${seconds} seconds`));
    if (signal?.aborted || failure.message === "aborted") throw new Error(ended("Command aborted"));
    throw failure;
  }
  if (exitCode !== 0 && exitCode !== null && exitCode !== undefined) throw new Error(ended(`Command exited with code ${exitCode}`));
  return answer(text, details);
}

const withOperations = {
  bash: (operations, cwd, args, context) => runShell(operations, args.command, cwd, { ...context, timeout: args.timeout }),

  async read(operations, cwd, { path, offset, limit }, { signal }) {
    const { truncateHead, formatSize, DEFAULT_MAX_BYTES } = require("internal/truncate");
    const file = absolute(cwd, path);
    await operations.access?.(file);
    checkAbort(signal);
    const mimeType = await operations.detectImageMimeType?.(file);
    const data = require("buffer").Buffer.from(await operations.readFile(file));
    if (mimeType) return { content: [{ type: "text", text: `Read image file [${mimeType}]` }, { type: "image", data: data.toString("base64"), mimeType }], details: undefined };
    const lines = data.toString("utf8").split("\n");
    const start = Math.max(0, (offset ?? 1) - 1);
    if (start >= lines.length) throw new Error(`Offset ${offset} is beyond end of file (${lines.length} lines total)`);
    const wanted = limit === undefined ? lines.slice(start) : lines.slice(start, start + limit);
    const cut = truncateHead(wanted.join("\n"));
    const size = formatSize(DEFAULT_MAX_BYTES);
    if (cut.firstLineExceedsLimit) return answer(`[Line ${start + 1} is ${formatSize(require("buffer").Buffer.byteLength(wanted[0]))}, exceeds ${size} limit. Use bash: sed -n '${start + 1}p' ${path} | head -c ${DEFAULT_MAX_BYTES}]`, { truncation: cut });
    const last = start + cut.outputLines;
    if (cut.truncated) return answer(`${cut.content}\n\n[Showing lines ${start + 1}-${last} of ${lines.length}${cut.truncatedBy === "bytes" ? ` (${size} limit)` : ""}. Use offset=${last + 1} to continue.]`, { truncation: cut });
    const left = lines.length - start - wanted.length;
    return answer(left > 0 ? `${cut.content}\n\n[${left} more lines in file. Use offset=${start + wanted.length + 1} to continue.]` : wanted.join("\n"), undefined);
  },

  async write(operations, cwd, { path, content }, { signal }) {
    const file = absolute(cwd, path);
    return withFileMutationQueue(file, async () => {
      checkAbort(signal);
      await operations.mkdir?.(require("path").dirname(file));
      checkAbort(signal);
      await operations.writeFile(file, content);
      return answer(`Successfully wrote to ${path}`, undefined);
    });
  },

  async edit(operations, cwd, { path, edits }, { signal }) {
    const file = absolute(cwd, path);
    if (!Array.isArray(edits) || edits.length === 0) throw new Error("Edit tool input is invalid. edits must contain at least one replacement.");
    return withFileMutationQueue(file, async () => {
      await operations.access?.(file);
      checkAbort(signal);
      const before = require("buffer").Buffer.from(await operations.readFile(file)).toString("utf8");
      const after = replaceAll(before, edits, path);
      checkAbort(signal);
      await operations.writeFile(file, after);
      return answer(`Successfully replaced ${edits.length} block(s) in ${path}.`, { diff: diff(before, after), patch: "", firstChangedLine: firstDifference(before, after) });
    });
  },

  async ls(operations, cwd, { path = ".", limit = 500 }) {
    const directory = absolute(cwd, path);
    if (!(await operations.exists(directory))) throw new Error(`Path not found: ${directory}`);
    if (!(await operations.stat(directory)).isDirectory()) throw new Error(`Not a directory: ${directory}`);
    const names = [...(await operations.readdir(directory))].sort((a, b) => a.toLowerCase().localeCompare(b.toLowerCase()));
    const shown = [];
    for (const name of names.slice(0, limit)) {
      const isDirectory = await Promise.resolve(operations.stat(`${directory}/${name}`)).then((facts) => facts.isDirectory(), () => false);
      shown.push(isDirectory ? `${name}/` : name);
    }
    return answer(shown.join("\n") || "(empty directory)", undefined);
  },

  async find(operations, cwd, { pattern, path = ".", limit = 1000 }) {
    const directory = absolute(cwd, path);
    if (!(await operations.exists(directory))) throw new Error(`Path not found: ${directory}`);
    const found = await operations.glob(pattern, directory, { ignore: ["**/node_modules/**", "**/.git/**"], limit });
    const relative = found.map((name) => (name.startsWith(`${directory}/`) ? name.slice(directory.length + 1) : name));
    return answer(relative.slice(0, limit).join("\n") || "No files found matching pattern", undefined);
  },

  async grep(operations, cwd, { pattern, path = ".", ignoreCase, literal, limit = 100 }, { signal, onUpdate, callId }) {
    const target = absolute(cwd, path);
    // Searching a whole tree needs the native walker; a single file can be read through the operations.
    if (await operations.isDirectory(target)) return runNative("grep", cwd, callId, { pattern, path, ignoreCase, literal, limit }, signal, onUpdate, {});
    const expression = new RegExp(literal ? pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") : pattern, ignoreCase ? "i" : "");
    const lines = String(await operations.readFile(target)).split("\n");
    const name = require("path").basename(target);
    const hits = lines.map((line, at) => [at + 1, line]).filter(([, line]) => expression.test(line)).slice(0, limit);
    return answer(hits.map(([number, line]) => `${name}:${number}: ${line}`).join("\n") || "No matches found", undefined);
  },
};

function replaceAll(before, edits, path) {
  const many = edits.length > 1;
  const ending = /\r?\n/.exec(before)?.[0] ?? "\n";
  const text = before.replace(/\r\n?/g, "\n");
  const places = edits.map(({ oldText, newText }, index) => {
    const wanted = String(oldText).replace(/\r\n?/g, "\n");
    if (wanted === "") throw new Error(`${many ? `edits[${index}].` : ""}oldText must not be empty in ${path}.`);
    const count = text.split(wanted).length - 1;
    if (count === 0) throw new Error(many ? `Could not find edits[${index}] in ${path}. The oldText must match exactly including all whitespace and newlines.` : `Could not find the exact text in ${path}. The old text must match exactly including all whitespace and newlines.`);
    if (count > 1) throw new Error(many ? `Found ${count} occurrences of edits[${index}] in ${path}. Each oldText must be unique. Please provide more context to make it unique.` : `Found ${count} occurrences of the text in ${path}. The text must be unique. Please provide more context to make it unique.`);
    const start = text.indexOf(wanted);
    return { index, start, end: start + wanted.length, text: String(newText).replace(/\r\n?/g, "\n") };
  });
  places.sort((a, b) => a.start - b.start);
  for (let at = 1; at < places.length; at++) {
    if (places[at].start < places[at - 1].end) throw new Error(`edits[${places[at - 1].index}] and edits[${places[at].index}] overlap in ${path}. Merge them into one edit or target disjoint regions.`);
  }
  let result = text;
  for (const place of places.reverse()) result = result.slice(0, place.start) + place.text + result.slice(place.end);
  if (result === text) throw new Error(`No changes made to ${path}.`);
  return ending === "\r\n" ? result.replace(/\n/g, "\r\n") : result;
}

const firstDifference = (before, after) => {
  const [a, b] = [before.split("\n"), after.split("\n")];
  const at = b.findIndex((line, index) => line !== a[index]);
  return (at < 0 ? b.length : at) + 1;
};

// The changed region with its neighbours; enough for display.
function diff(before, after) {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const width = String(Math.max(a.length, b.length)).length;
  const line = (sign, number, text) => `${sign}${String(number).padStart(width)} ${text}`;
  const context = 4;
  const from = Math.max(0, start - context);
  return [
    ...a.slice(from, start).map((text, at) => line(" ", from + at + 1, text)),
    ...a.slice(start, a.length - end).map((text, at) => line("-", start + at + 1, text)),
    ...b.slice(start, b.length - end).map((text, at) => line("+", start + at + 1, text)),
    ...a.slice(a.length - end, a.length - end + context).map((text, at) => line(" ", a.length - end + at + 1, text)),
  ].join("\n");
}

// Makes the factory of one tool.
const factory = (name) => (cwd, options = {}) => {
  const info = known().find((tool) => tool.name === name) ?? { description: "", parameters: { type: "object", properties: {} } };
  const { operations, spawnHook, commandPrefix, shellPath } = options ?? {};
  return {
    name,
    label: info.label ?? name,
    description: info.description,
    parameters: info.parameters,
    ...(info.promptSnippet ? { promptSnippet: info.promptSnippet } : {}),
    ...(info.promptGuidelines?.length ? { promptGuidelines: info.promptGuidelines } : {}),
    async execute(callId, params, signal, onUpdate) {
      checkAbort(signal);
      let [args, directory, env] = [params, cwd, undefined];
      if (name === "bash" && commandPrefix) args = { ...args, command: `${commandPrefix}\n${args.command}` };
      if (name === "bash" && spawnHook) {
        const hooked = spawnHook({ command: args.command, cwd: String(cwd ?? state.config.cwd), env: { ...process.env } });
        args = { ...args, command: hooked?.command ?? args.command };
        directory = hooked?.cwd ?? cwd;
        env = hooked?.env;
      }
      if (operations) return withOperations[name](operations, String(directory ?? state.config.cwd), args, { signal, onUpdate, env, callId });
      return runNative(name, directory, callId, args, signal, onUpdate, { env, shellPath });
    },
  };
};

for (const { name } of known()) {
  const title = name[0].toUpperCase() + name.slice(1);
  exports[`create${title}Tool`] = exports[`create${title}ToolDefinition`] = factory(name);
}

const list = (isWanted) => (cwd, options = {}) => known().filter(isWanted).map(({ name }) => factory(name)(cwd, options[name]));
exports.createCodingTools = list((tool) => tool.isDefault);
exports.createReadOnlyTools = list((tool) => tool.isReadOnly);
exports.createAllTools = (cwd, options = {}) => Object.fromEntries(known().map(({ name }) => [name, factory(name)(cwd, options[name])]));
exports.withFileMutationQueue = withFileMutationQueue;

// A shell on this machine, in the form of `operations`.
exports.createLocalBashOperations = ({ shellPath } = {}) => ({
  exec: (command, cwd, { onData, signal, timeout, env }) =>
    new Promise((resolve, reject) => {
      const fs = require("fs");
      const shell = shellPath ?? (fs.existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh");
      const child = require("child_process").spawn(shell, ["-c", command], { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
      let isLate = false;
      const kill = () => {
        try {
          process.kill(-child.pid, "SIGKILL");
        } catch {
          child.kill("SIGKILL");
        }
      };
      const timer = timeout ? setTimeout(() => ((isLate = true), kill()), timeout * 1000) : null;
      signal?.addEventListener("abort", kill, { once: true });
      child.stdout.on("data", onData);
      child.stderr.on("data", onData);
      child.on("error", reject);
      child.on("close", (exitCode) => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", kill);
        if (signal?.aborted) reject(new Error("aborted"));
        else if (isLate) reject(new Error(`timeout:${timeout}`));
        else resolve({ exitCode });
      });
    }),
});
