// node:child_process.

const EventEmitter = require("events");
const { Buffer } = require("buffer");
const { Readable, Writable } = require("stream");
const ops = require("internal/ops");
const owners = require("internal/owners");
const native = host.ops("process");

const MAX_BUFFER = 1024 * 1024;

// Normalises the shorter forms of spawn(command, args?, options?).
const normalize = (command, args, options) => {
  if (typeof command !== "string" || !command) throw Object.assign(new TypeError('The "file" argument must be of type string'), { code: "ERR_INVALID_ARG_TYPE" });
  if (!Array.isArray(args)) [args, options] = [[], args ?? options];
  return { command, args: args.map(String), options: options ?? {} };
};

const stdioOf = (stdio = "pipe", isSync = false) => {
  const list = Array.isArray(stdio) ? stdio : [stdio, stdio, stdio];
  return [0, 1, 2].map((fd) => {
    const kind = list[fd] ?? (fd === 2 && isSync && !Array.isArray(stdio) ? "pipe" : "pipe");
    if (typeof kind === "number") return kind <= 2 ? "inherit" : `fd:${kind}`;
    if (kind === "pipe" || kind === "overlapped" || kind === null || kind === undefined) return "pipe";
    if (kind === "ignore" || kind === "inherit") return kind;
    if (typeof kind?.fd === "number") return kind.fd <= 2 ? "inherit" : `fd:${kind.fd}`;
    return "ignore";
  });
};

const envOf = (env) => {
  const given = env ?? process.env;
  const plain = {};
  for (const key of Object.keys(given)) if (given[key] !== undefined) plain[key] = String(given[key]);
  return plain;
};

const cwdOf = (cwd) => (cwd === undefined || cwd === null ? process.cwd() : require("fs").pathOf(cwd));

const requestOf = ({ command, args, options }, isSync) => {
  const { shell, detached = false, argv0 } = options;
  const line = shell ? [typeof shell === "string" ? shell : "/bin/sh", ["-c", [command, ...args].join(" ")]] : [command, args];
  return { command: line[0], args: line[1], cwd: cwdOf(options.cwd), env: envOf(options.env), stdio: stdioOf(options.stdio, isSync), detached: !!detached, argv0 };
};

// Errors that Node emits as "error"; it throws all others, such as a working directory that is a file.
const REPORTED = ["EACCES", "EAGAIN", "EMFILE", "ENFILE", "ENOENT"];

const spawnError = (failure, command, args) => Object.assign(new Error(`spawn ${command} ${failure.code}`), { errno: failure.errno, code: failure.code, syscall: `spawn ${command}`, path: command, spawnargs: args });

class ChildProcess extends EventEmitter {
  constructor(call) {
    super();
    this.spawnfile = call.command;
    this.spawnargs = [call.command, ...call.args];
    this.exitCode = null;
    this.signalCode = null;
    this.killed = false;
    this.connected = false;
    this.pid = undefined;
    this.stdin = this.stdout = this.stderr = null;
    this.start(call);
    this.stdio = [this.stdin, this.stdout, this.stderr];
  }
  start(call) {
    const request = requestOf(call);
    const { signal, timeout, killSignal = "SIGTERM" } = call.options;
    const streams = {};
    let waiting = 1;
    let outcome = null;
    const closed = () => {
      if (--waiting === 0 && outcome) queueMicrotask(() => this.emit("close", outcome.code, outcome.signal));
    };
    const reader = (name) => {
      const stream = held(new Readable({ read: () => {} }));
      waiting++;
      const { op, promise } = ops.begin((id) => (streams[name] = id), (bytes) => stream.push(bytes));
      promise.finally(() => stream.push(null));
      stream.once("close", closed);
      // A stream that is not read must still end.
      promise.finally(() => queueMicrotask(() => stream.readableFlowing === null && !stream.listenerCount("readable") && !stream._pulled && stream.resume()));
      void op;
      return stream;
    };
    if (request.stdio[1] === "pipe") this.stdout = reader("stdout");
    if (request.stdio[2] === "pipe") this.stderr = reader("stderr");
    const { op, promise } = ops.begin((id) => {
      this.op = id;
    });
    const failure = native.spawn(op, JSON.stringify({ ...request, ...streams }));
    if (typeof failure === "number") {
      this.pid = failure;
      queueMicrotask(() => this.emit("spawn"));
    } else {
      ops.forget(op);
      const error = spawnError(JSON.parse(failure), call.command, call.args);
      for (const id of Object.values(streams)) ops.settle(id, true, null);
      if (!REPORTED.includes(error.code)) throw Object.assign(error, { message: `spawn ${error.code}`, syscall: "spawn" });
      outcome = { code: error.errno, signal: null };
      // Callers write to a program before they hear that there is none.
      if (request.stdio[0] === "pipe") this.stdin = held(new Writable({ write: (_chunk, _encoding, done) => done() }));
      queueMicrotask(() => {
        this.stdin?.destroy();
        this.emit("error", owners.tag(error, owners.now()));
        closed();
      });
      return;
    }
    if (request.stdio[0] === "pipe") this.stdin = stdinOf(op);
    const abort = () => {
      this.kill(killSignal);
      const error = Object.assign(new Error("The operation was aborted"), { name: "AbortError", code: "ABORT_ERR", cause: signal.reason });
      if (this.listenerCount("error")) this.emit("error", error);
    };
    if (signal?.aborted) queueMicrotask(abort);
    else signal?.addEventListener?.("abort", abort, { once: true });
    const timer = timeout > 0 ? setTimeout(() => this.kill(killSignal), timeout) : null;
    promise.then((result) => {
      clearTimeout(timer);
      signal?.removeEventListener?.("abort", abort);
      this.exitCode = result.code;
      this.signalCode = result.signal;
      outcome = result;
      this.stdin?.destroy();
      this.emit("exit", result.code, result.signal);
      closed();
    });
  }
  kill(signal = "SIGTERM") {
    if (this.exitCode !== null || this.signalCode !== null || this.op === undefined) return false;
    const isSent = native.kill(this.op, typeof signal === "number" ? (Object.entries(require("os").constants.signals).find(([, number]) => number === signal)?.[0] ?? "SIGTERM") : signal);
    if (isSent) this.killed = true;
    return isSent;
  }
  ref() {}
  unref() {}
  disconnect() {}
  send() {
    return false;
  }
  [Symbol.dispose]() {
    this.kill();
  }
}

// In Node these are sockets; pith waits for none of them when it ends.
const held = (stream) => Object.assign(stream, { ref: () => stream, unref: () => stream });

const stdinOf = (op) =>
  held(new Writable({
    write: (chunk, encoding, done) => {
      const isOpen = native.write(op, new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength).toBase64());
      done(isOpen ? null : Object.assign(new Error("write EPIPE"), { code: "EPIPE", syscall: "write" }));
    },
    final: (done) => {
      native.closeStdin(op);
      done();
    },
    destroy: (error, done) => {
      native.closeStdin(op);
      // A pipe that is closed at the other end is not worth an uncaught error.
      done(error?.code === "EPIPE" ? null : error);
    },
  }));

const spawn = (...args) => new ChildProcess(normalize(...args));

// Collects output until the process has ended and its pipes are closed.
function execFile(file, args, options, callback) {
  if (typeof args === "function") [args, options, callback] = [[], {}, args];
  else if (!Array.isArray(args)) [args, options, callback] = [[], args ?? {}, typeof options === "function" ? options : callback];
  else if (typeof options === "function") [options, callback] = [{}, options];
  options = { encoding: "utf8", maxBuffer: MAX_BUFFER, ...options };
  const child = spawn(file, args, { ...options, stdio: "pipe", timeout: 0 });
  // Grandchildren may hold the pipes open, so they are not waited for.
  const stop = () => {
    child.stdout?.destroy();
    child.stderr?.destroy();
    child.kill(options.killSignal);
  };
  const timer = options.timeout > 0 ? setTimeout(stop, options.timeout) : null;
  const resumeBudget = owners.pauseBudget(owners.now());
  const collected = { stdout: [], stderr: [] };
  let failure = null;
  for (const name of ["stdout", "stderr"]) {
    let size = 0;
    child[name]?.on("data", (chunk) => {
      const room = options.maxBuffer - size;
      size += chunk.length;
      if (room > 0) collected[name].push(chunk.length > room ? chunk.subarray(0, room) : chunk);
      if (size <= options.maxBuffer) return;
      failure ??= Object.assign(new RangeError(`${name} maxBuffer length exceeded`), { code: "ERR_CHILD_PROCESS_STDIO_MAXBUFFER" });
      stop();
    });
  }
  let isDone = false;
  const finish = (code, signal) => {
    if (isDone) return;
    isDone = true;
    clearTimeout(timer);
    resumeBudget();
    const output = (name) => {
      const bytes = Buffer.concat(collected[name]);
      return options.encoding === "buffer" || options.encoding === null ? bytes : bytes.toString(options.encoding);
    };
    const [stdout, stderr] = [output("stdout"), output("stderr")];
    const command = [file, ...args].join(" ");
    let error = failure;
    if (!error && (code !== 0 || signal)) error = new Error(`Command failed: ${command}\n${stderr}`);
    if (error) Object.assign(error, { code: error.code ?? code ?? undefined, killed: child.killed, signal, cmd: command, stdout, stderr });
    callback?.(error, stdout, stderr);
  };
  child.on("error", (error) => {
    failure ??= error;
    if (child.pid === undefined) finish(null, null);
  });
  child.on("close", finish);
  return child;
}

function exec(command, options, callback) {
  if (typeof options === "function") [options, callback] = [{}, options];
  return execFile(command, [], { shell: true, ...options }, callback);
}

const { promisify } = require("util");
for (const fn of [exec, execFile]) {
  fn[promisify.custom] = (...args) => {
    let child;
    const promise = new Promise((resolve, reject) => {
      child = fn(...args, (error, stdout, stderr) => (error ? reject(error) : resolve({ stdout, stderr })));
    });
    return Object.assign(promise, { child });
  };
}

function spawnSync(...args) {
  const call = normalize(...args);
  const { input, timeout, maxBuffer = MAX_BUFFER, encoding, killSignal = "SIGTERM" } = call.options;
  const bytes = input === undefined || input === null ? null : Buffer.from(input).toBase64();
  const request = { ...requestOf(call, true), input: bytes, timeout: timeout > 0 ? timeout : null, maxBuffer: Number.isFinite(maxBuffer) ? maxBuffer : null, killSignal };
  const raw = native.spawnSync(JSON.stringify(request));
  const convert = (output) => (output === null || output === undefined ? null : encoding && encoding !== "buffer" ? Buffer.from(output.buffer).toString(encoding) : Buffer.from(output.buffer));
  const [stdout, stderr] = [convert(raw.stdout), convert(raw.stderr)];
  const result = { pid: raw.pid ?? 0, output: [null, stdout, stderr], stdout, stderr, status: raw.status ?? null, signal: raw.signal ?? null };
  if (raw.failure) {
    const failure = JSON.parse(raw.failure);
    result.error = Object.assign(new Error(`spawnSync ${call.command} ${failure.code}`), { ...failure, syscall: `spawnSync ${call.command}`, path: call.command, spawnargs: call.args });
  }
  return result;
}

// Returns the output, or throws an exception that carries it.
function outputOf(command, result, options) {
  if (result.stderr?.length && (options.stdio === undefined || options.stdio === "pipe")) host.log(result.stderr.toString());
  if (!result.error && result.status === 0) return result.stdout;
  const error = result.error ?? new Error(`Command failed: ${command}${result.stderr?.length ? `\n${result.stderr}` : ""}`);
  throw Object.assign(error, { ...result, error: result.error });
}

function execFileSync(...args) {
  const call = normalize(...args);
  return outputOf([call.command, ...call.args].join(" "), spawnSync(call.command, call.args, call.options), call.options);
}

function execSync(command, options = {}) {
  return outputOf(command, spawnSync(command, [], { shell: true, ...options }), options);
}

const fork = owners.refusal("child_process.fork", "is not available in pith: there is no Node to start");

module.exports = { ChildProcess, spawn, exec, execFile, spawnSync, execFileSync, execSync, fork };
