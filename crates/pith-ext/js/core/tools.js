// Calls the tools and commands that extensions registered.

const owners = require("internal/owners");
const runs = require("internal/runs");
const state = require("internal/state");
const { methods } = require("internal/calls");
const { commands } = require("internal/api");

function findTool(name) {
  for (const ext of state.extensions()) {
    const tool = ext.tools.get(name);
    if (tool) return { ext, tool };
  }
  return null;
}

const isBlock = (block) =>
  (block?.type === "text" && typeof block.text === "string") ||
  (block?.type === "image" && typeof block.data === "string" && typeof block.mimeType === "string");

// Normalises content to blocks; a string becomes one text block.
exports.content = (who, content) => {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) throw new Error(`${who} returned content that is not an array`);
  const bad = content.findIndex((block) => !isBlock(block));
  if (bad >= 0) throw new Error(`${who} returned content[${bad}] that is neither text nor an image`);
  return content;
};

// Checks a result: a tool may leave members out, but those present must be valid.
function checked(name, result) {
  if (result === null || typeof result !== "object") throw new Error(`Tool "${name}" did not return a result object`);
  const content = exports.content(`Tool "${name}"`, result.content ?? []);
  const { details, usage, terminate, isError } = result;
  return { content, details, usage, terminate: terminate === true, isError: isError === true };
}

methods.tool = (call, { name, toolCallId, params }) => {
  const found = findTool(name);
  if (!found) return call.fail(`Tool ${name} not found`);
  const { ext, tool } = found;
  if (ext.isDisabled) return call.fail(`Extension ${ext.path} is disabled`);
  const onUpdate = (partial) => {
    let update;
    try {
      update = checked(name, partial);
    } catch {
      return; // Progress that cannot be shown is no reason to fail.
    }
    call.progress(update);
  };
  const settle = (outcome) => {
    if (!outcome.ok) return call.fail(outcome.error);
    try {
      call.reply(checked(name, outcome.value));
    } catch (error) {
      call.fail(error);
    }
  };
  runs.start(ext, () => tool.definition.execute(toolCallId, params, call.signal, onUpdate, state.contextFor(ext)), settle);
};

methods.prepare = (call, { name, args }) => {
  const found = findTool(name);
  if (!found?.tool.info.prepares) return call.reply(args);
  const settle = (outcome) => (outcome.ok ? call.reply(outcome.value) : call.fail(outcome.error));
  runs.start(found.ext, () => found.tool.definition.prepareArguments(args), settle, state.limits.handlerMs);
};

methods.command = (call, { name, args }) => {
  const command = commands().find((known) => known.name === name);
  if (!command) return call.reply({ found: false });
  const settle = (outcome) => {
    if (!outcome.ok) owners.report(`command:${name}`, "command", outcome.error);
    call.reply({ found: true });
  };
  const context = require("internal/context").commandContext(command.ext);
  runs.start(command.ext, () => command.definition.handler(args, context), settle, undefined, "command");
};

methods.completions = (call, { name, prefix }) => {
  const command = commands().find((known) => known.name === name);
  const complete = command?.definition.getArgumentCompletions;
  if (typeof complete !== "function") return call.reply(null);
  const settle = (outcome) => call.reply(outcome.ok ? outcome.value : null);
  runs.start(command.ext, () => complete(prefix), settle, state.limits.handlerMs);
};

// Runs a command through `operations` that a `user_bash` handler returned, usually on another machine.
methods.bash_operations = (call, { operations, command, cwd, timeout, env }) => {
  const found = state.take(operations);
  const ext = owners.now() ?? state.extensions()[0];
  if (!found || !ext) return call.fail("These shell operations are gone");
  const onData = (data) => call.progress({ data: typeof data === "string" ? data : require("buffer").Buffer.from(data).toString("utf8") });
  const settle = (outcome) => {
    state.drop(operations);
    if (outcome.ok) call.reply({ exitCode: outcome.value?.exitCode ?? null });
    else call.fail(outcome.error);
  };
  runs.start(ext, () => found.exec(command, cwd, { onData, signal: call.signal, timeout: timeout ?? undefined, env: env ?? undefined }), settle);
};
