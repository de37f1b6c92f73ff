// `pi.exec`: runs a program and returns its output. Never rejects.

const owners = require("internal/owners");
const ops = require("internal/ops");

const KILL_AFTER = 5000;

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
      () => ({ stdout: "", stderr: "", code: 1, killed }),
    )
    .finally(() => {
      done();
      timers.clearTimeout(softKill);
      timers.clearTimeout(hardKill);
      signal?.removeEventListener?.("abort", kill);
    });
};
