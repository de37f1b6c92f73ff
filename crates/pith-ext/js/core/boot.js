// The boot script of the engine: defines globals, then the functions that the engine calls.

const owners = require("internal/owners");
const ops = require("internal/ops");
const timers = require("internal/timers");
const calls = require("internal/calls");
const runs = require("internal/runs");
const state = require("internal/state");
require("internal/globals");
require("internal/load");
require("internal/context");
require("internal/events");
calls.later("internal/tools", "tool", "prepare", "command", "completions", "bash_operations");
calls.later("internal/providers", "stream", "provider");

exports.call = (id, method, args) => calls.call(id, method, args);
exports.update = (event, key) => require("internal/events").update(event, key);
exports.abort = (id) => calls.abort(id);
exports.settle = (op, ok, value) => ops.settle(op, ok, value);
exports.push = (op, value) => ops.push(op, value);
exports.timer = (id) => timers.fire(id);
exports.interrupted = (stack, seconds) => runs.interrupted(stack, seconds);

exports.refill = () => owners.refill();

exports.rejected = (reason) => {
  owners.freeReserve(reason);
  const ext = owners.ofError(reason);
  owners.report(ext?.path ?? "<runtime>", "unhandled_rejection", reason);
};

// Called for an uncaught exception in pith's own code, usually out of memory.
exports.crashed = (error) => {
  owners.freeReserve(error);
  const { current } = owners;
  const { active } = calls;
  owners.current = null;
  calls.active = null;
  const ext = current?.ext ?? owners.ofError(error);
  owners.report(ext?.path ?? "<runtime>", "uncaught", error);
  current?.run?.settle({ ok: false, error, isInterrupt: true });
  active?.fail(error);
};

// Calls `process.on("exit")` handlers before the engine ends.
exports.exit = () => state.process?.emit("exit", Number(state.process.exitCode ?? 0));

exports.configure = (config, limits) => {
  Object.assign(state.config, config);
  Object.assign(state.limits, limits);
};
