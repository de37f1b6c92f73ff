// node:process. All extensions and the agent share one process: nothing here can end it or change its directory.

const EventEmitter = require("events");
const os = host.ops("os");
const state = require("internal/state");
const { Writable, Readable } = require("stream");

const facts = JSON.parse(os.process());

// The environment is copied on write: other threads read the real one.
const env = new Proxy(Object.assign(Object.create(null), facts.env, { PI_CODING_AGENT: "true" }), {
  set: (target, key, value) => {
    target[key] = String(value);
    return true;
  },
  get: (target, key) => target[key],
});

// There is a user at the terminal only in this mode.
const isTerminal = () => state.config.mode === "tui";

// Standard output carries the protocol, so everything goes to standard error.
class Output extends Writable {
  constructor(fd) {
    super({ decodeStrings: false });
    this.fd = fd;
    Object.defineProperty(this, "isTTY", { get: isTerminal, enumerable: true, configurable: true });
    this.columns = undefined;
    this.rows = undefined;
  }
  write(chunk, encoding, done) {
    host.log(typeof chunk === "string" ? chunk : require("buffer").Buffer.from(chunk).toString("utf8"));
    const callback = typeof encoding === "function" ? encoding : done;
    if (callback) queueMicrotask(callback);
    return true;
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
  getColorDepth() {
    return 1;
  }
  hasColors() {
    return false;
  }
  getWindowSize() {
    return [80, 24];
  }
}

const process = new EventEmitter();

// An integer, or a string that spells one.
function checkedCode(code) {
  const isText = typeof code === "string" && code !== "";
  if (Number.isInteger(isText ? Number(code) : code)) return code;
  throw Object.assign(new TypeError('The "code" argument must be an integer'), { code: "ERR_INVALID_ARG_TYPE" });
}

function spent(ofThread, since) {
  const [user = 0, system = 0] = os.processorTime(ofThread);
  return { user: user - (since?.user ?? 0), system: system - (since?.system ?? 0) };
}

const outputs = {};
const lazyStream = (name, make) => Object.defineProperty(process, name, { enumerable: true, configurable: true, get: () => (outputs[name] ??= make()) });
lazyStream("stdout", () => new Output(1));
lazyStream("stderr", () => new Output(2));
lazyStream("stdin", () => {
  const stdin = Object.assign(Readable.from([]), { fd: 0, isRaw: false });
  Object.defineProperty(stdin, "isTTY", { get: isTerminal, enumerable: true, configurable: true });
  for (const name of ["setRawMode", "ref", "unref"]) stdin[name] = () => stdin;
  return stdin;
});

Object.assign(process, {
  env,
  // The script does not exist, as in a program compiled into one file: it cannot be run by itself.
  argv: [facts.execPath, facts.script, ...facts.arguments],
  argv0: facts.execPath,
  execPath: facts.execPath,
  execArgv: [],
  pid: facts.pid,
  ppid: facts.ppid,
  platform: facts.platform,
  arch: facts.arch,
  title: "pith",
  version: "v22.19.0",
  versions: { node: "22.19.0", v8: "12.4.254.21", modules: "127", uv: "1.51.0", pith: state.config.version },
  release: { name: "node" },
  config: { variables: {} },
  features: {},
  exitCode: undefined,
  stdio: [],
  cwd: () => state.config.cwd,
  chdir() {
    throw Object.assign(new Error("process.chdir() is not possible: the session's directory is fixed"), { code: "ERR_WORKER_UNSUPPORTED_OPERATION" });
  },
  exit(code) {
    if (code !== undefined && code !== null) process.exitCode = checkedCode(code);
    // Shuts the agent down in order; never ends the process itself.
    require("internal/ops").send("shutdown", { status: Number(process.exitCode ?? 0) & 0xff });
    throw Object.assign(new Error(`process.exit(${code ?? ""}) was called; the agent is shutting down`), { code: "PITH_EXIT" });
  },
  abort() {
    process.exit(1);
  },
  reallyExit(code) {
    process.exit(code);
  },
  kill(pid, signal = "SIGTERM") {
    if (!Number.isInteger(pid)) throw new TypeError('The "pid" argument must be of type number');
    // Zero only checks whether the process exists.
    if (pid === facts.pid && signal !== 0) throw Object.assign(new Error("kill EPERM"), { code: "EPERM", syscall: "kill" });
    os.kill(pid, signal === 0 ? "0" : String(signal));
    return true;
  },
  uptime: () => host.now() / 1000,
  hrtime: Object.assign(
    (since) => {
      const now = host.now();
      const [seconds, nanos] = [Math.floor(now / 1000), Math.floor((now % 1000) * 1e6)];
      if (!since) return [seconds, nanos];
      const difference = seconds * 1e9 + nanos - (since[0] * 1e9 + since[1]);
      return [Math.floor(difference / 1e9), difference % 1e9];
    },
    { bigint: () => BigInt(Math.floor(host.now() * 1e6)) },
  ),
  memoryUsage: Object.assign(
    () => {
      const { heapUsed, rss } = host.memory();
      return { rss, heapTotal: heapUsed, heapUsed, external: 0, arrayBuffers: 0 };
    },
    { rss: () => host.memory().rss },
  ),
  cpuUsage: (since) => spent(false, since),
  threadCpuUsage: (since) => spent(true, since),
  resourceUsage: () => ({ userCPUTime: spent(false).user, systemCPUTime: spent(false).system, maxRSS: Math.floor(host.memory().rss / 1024) }),
  availableMemory: () => require("os").freemem(),
  constrainedMemory: () => require("os").totalmem(),
  getActiveResourcesInfo: () => [],
  loadEnvFile: (path = ".env") => {
    const found = require("util").parseEnv(require("fs").readFileSync(path, "utf8"));
    for (const name of Object.keys(found)) if (!(name in env)) env[name] = found[name];
  },
  // pith does not wait for what is open when it ends.
  ref: (held) => (held?.[Symbol.for("nodejs.ref")] ?? held?.ref)?.call(held),
  unref: (held) => (held?.[Symbol.for("nodejs.unref")] ?? held?.unref)?.call(held),
  nextTick: (callback, ...args) => queueMicrotask(() => callback(...args)),
  emitWarning: (warning) => host.log(`(pith) Warning: ${warning?.message ?? warning}\n`),
  umask: () => 0o022,
  getuid: () => facts.uid,
  geteuid: () => facts.uid,
  getgid: () => facts.gid,
  getegid: () => facts.gid,
  getgroups: () => [facts.gid],
  setMaxListeners: () => process,
  dlopen(_module, filename) {
    const { unavailable } = require("internal/owners");
    throw Object.assign(unavailable(`${filename}: native add-ons`, "are not available in pith"), { code: "ERR_DLOPEN_FAILED" });
  },
  binding(name) {
    throw new Error(`No such module: ${name}`);
  },
  hasUncaughtExceptionCaptureCallback: () => false,
  getBuiltinModule: (name) => {
    try {
      return require(String(name).replace(/^node:/, ""));
    } catch {
      return undefined;
    }
  },
});
// The agent handles signals: listeners are kept, but of these events only `exit` ever fires.
process.off = process.removeListener;
state.process = process;
module.exports = process;
