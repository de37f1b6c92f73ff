// Runs extension code so that it always ends for the caller.
//
// A run settles exactly once: with a value, with an error, when its time is up, or when the engine had to interrupt it.
// An interrupted function never reaches its own `catch` or `finally`, so nothing here may depend on them: the engine
// calls `interrupted` afterwards, and that settles the run.

const owners = require("internal/owners");
const timers = require("internal/timers");

const STRIKES = 3;

const active = new Set(); // runs that have not settled

class Run {
  constructor(ext, settle, kind) {
    this.ext = ext;
    this.kind = kind;
    this.onSettle = settle;
    this.isDone = false;
    this.timer = null;
    ext.runs.add(this);
    active.add(this);
  }

  settle(outcome) {
    if (this.isDone) return;
    this.isDone = true;
    this.ext.runs.delete(this);
    active.delete(this);
    if (this.timer) timers.clearTimeout(this.timer);
    if (outcome.ok) this.ext.strikes = 0;
    else owners.freeReserve(outcome.error);
    this.onSettle(outcome);
  }
}

// Calls `fn` on behalf of `ext`; `settle` gets { ok, value } or { ok: false, error, isTimeout }. `budget`, in
// milliseconds, counts only the time the extension itself uses; `kind` is "command" for commands.
exports.start = (ext, fn, settle, budget, kind = null) => {
  const run = new Run(ext, settle, kind);
  const before = owners.current;
  owners.current = { ext, run };
  let result;
  try {
    result = fn();
  } catch (error) {
    owners.freeReserve(error);
    owners.current = before;
    run.settle({ ok: false, error: owners.tag(error, ext) });
    return run;
  }
  owners.current = before;
  if (result === null || (typeof result !== "object" && typeof result !== "function") || typeof result.then !== "function") {
    run.settle({ ok: true, value: result });
    return run;
  }
  if (budget) watch(run, budget);
  try {
    result.then(
      (value) => run.settle({ ok: true, value }),
      (error) => run.settle({ ok: false, error: owners.tag(error, ext) }),
    );
  } catch (error) {
    run.settle({ ok: false, error });
  }
  return run;
};

// Whether a command of the extension is running. After an await that is known only if nothing else runs.
exports.isCommand = (ext) => {
  const running = owners.current?.ext === ext && owners.current.run ? [owners.current.run] : [...ext.runs];
  return running.length > 0 && running.every((run) => run.kind === "command");
};

function watch(run, budget) {
  const began = host.now();
  const waitedBefore = owners.waited(run.ext);
  const check = () => {
    if (run.isDone) return;
    const used = host.now() - began - (owners.waited(run.ext) - waitedBefore);
    if (used >= budget) {
      const error = new Error(`Handler did not finish within ${budget / 1000} s`);
      return run.settle({ ok: false, error, isTimeout: true });
    }
    run.timer = timers.setTimeout(check, Math.max(budget - used, 5));
  };
  run.timer = timers.setTimeout(check, budget);
}

// A function that is just being resumed is not on the stack yet; often only one extension can be the one.
function onlySuspect() {
  const suspects = new Set([...active].map((run) => run.ext));
  return suspects.size === 1 ? [...suspects][0] : null;
}

// Called when the engine has interrupted code that did not return.
exports.interrupted = (stack, seconds) => {
  const calls = require("internal/calls");
  const current = owners.current;
  const call = calls.active;
  owners.current = null;
  calls.active = null;
  const ext = current?.ext ?? owners.ofStack(stack) ?? onlySuspect();
  const error = new Error(`Extension code ran for more than ${seconds} s without returning and was interrupted`);
  error.stack = stack;
  if (!ext) {
    owners.report("<runtime>", "interrupted", error);
    return call?.fail(error);
  }
  // Disabled before the run settles, because what follows may depend on it.
  const isLast = ++ext.strikes >= STRIKES && !ext.isDisabled;
  if (isLast) ext.isDisabled = true;
  // After an await it is unknown which function was interrupted, so all fail.
  const dead = current?.run ? [current.run] : [...ext.runs];
  if (dead.length === 0) {
    owners.report(ext.path, "interrupted", error);
    // pith's own code was running, called through a getter or `toJSON` of the extension.
    call?.fail(error);
  }
  for (const run of dead) run.settle({ ok: false, error, isInterrupt: true });
  if (isLast) {
    owners.report(ext.path, "disabled", new Error("Interrupted three times in a row; its handlers are off for this session"));
  }
};
