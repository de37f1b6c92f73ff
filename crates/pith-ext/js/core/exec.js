// `pi.exec`: runs a program and returns its output. Never rejects.

const owners = require("internal/owners");
const ops = require("internal/ops");

const KILL_AFTER = 5000;

// Node names the program and the code; what has no code says itself why.
function notStarted(command, error) {
  const text = owners.text(error);
  const code = /^([A-Z][A-Z0-9]+): /.exec(text)?.[1];
  return code ? `spawn ${command} ${code}` : text;
}

exports.exec = (ext, command, args, options = {}) => {
  const { cwd, signal, timeout } = options ?? {};
  const state = require("internal/state");
  const timers = require("internal/timers");
  const done = owners.pauseBudget(ext);
  const process = host.ops("process");
  let killed = false;
  let softKill = null;
  let hardKill = null;
  const { op, promise } = ops.begin((op) =>
    process.run(op, JSON.stringify({ command: String(command), args: (args ?? []).map(String), cwd: cwd ?? state.config.cwd })),
  );
  const kill = () => {
    if (killed) return;
    killed = true;
    process.kill(op, "SIGTERM");
    hardKill = timers.setTimeout(() => process.kill(op, "SIGKILL"), KILL_AFTER);
  };
  if (Number(timeout) > 0) softKill = timers.setTimeout(kill, Number(timeout));
  if (signal?.aborted) kill();
  else signal?.addEventListener?.("abort", kill);
  return promise
    .then(
      (result) => ({ stdout: result.stdout, stderr: result.stderr, code: result.code ?? 0, killed }),
      (error) => ({ stdout: "", stderr: notStarted(command, error), code: 1, killed }),
    )
    .finally(() => {
      done();
      timers.clearTimeout(softKill);
      timers.clearTimeout(hardKill);
      signal?.removeEventListener?.("abort", kill);
    });
};
