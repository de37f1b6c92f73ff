// Built-in modules that pith does not have: importing them works, using them throws an error that names what is
// missing.

const owners = require("internal/owners");

const shapes = {
  tls: ["connect", "createServer", "createSecureContext", "TLSSocket"],
  dgram: ["createSocket"],
  worker_threads: ["Worker", "parentPort", "workerData", "isMainThread", "threadId", "resourceLimits", "SHARE_ENV", "markAsUntransferable", "moveMessagePortToContext", "getEnvironmentData", "setEnvironmentData"],
  v8: ["getHeapStatistics", "serialize", "deserialize", "setFlagsFromString"],
  cluster: ["fork", "isMaster", "isPrimary"],
  inspector: ["Session", "open", "url"],
  wasi: ["WASI"],
  repl: ["start"],
  sea: ["isSea", "getAsset"],
};

const values = {
  worker_threads: { isMainThread: true, parentPort: null, workerData: null, threadId: 0, resourceLimits: {}, SHARE_ENV: Symbol.for("nodejs.worker_threads.SHARE_ENV"), getEnvironmentData: () => undefined, setEnvironmentData: () => {} },
  v8: { getHeapStatistics: () => ({ heap_size_limit: 256 << 20, used_heap_size: host.memory().heapUsed, total_heap_size: host.memory().heapUsed }), serialize: (value) => require("buffer").Buffer.from(JSON.stringify(value)), deserialize: (bytes) => JSON.parse(String(bytes)) },
  cluster: { isMaster: true, isPrimary: true },
  sea: { isSea: () => false },
};

exports.make = (name) => {
  const made = {};
  for (const member of shapes[name] ?? []) {
    // What is null in Node, such as the port of the main thread, is null here.
    const known = Object.hasOwn(values, name) && Object.hasOwn(values[name], member);
    made[member] = known ? values[name][member] : owners.refusal(`${name}.${member}`);
  }
  // Messages of one thread to itself need no other.
  if (name === "worker_threads") {
    for (const member of ["MessageChannel", "MessagePort", "BroadcastChannel", "receiveMessageOnPort"]) {
      Object.defineProperty(made, member, { get: () => require("internal/messaging")[member], enumerable: true, configurable: true });
    }
  }
  return made;
};
