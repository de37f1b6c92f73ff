// Calls from the agent: one id each, answered exactly once.

const owners = require("internal/owners");
const web = require("internal/abort");

const methods = Object.create(null);
const open = new Map(); // id -> Call

// The call being worked on; survives an interrupt, which unwinds past every `finally`.
exports.active = null;

// Requests to send once the code that made them reaches its first `await` or returns.
const waiting = [];

const flush = () => {
  for (const ask of waiting.splice(0)) ask();
};

exports.defer = (ask) => {
  if (!waiting.length) queueMicrotask(flush);
  waiting.push(ask);
};

class Call {
  // A call without an id gets no answer.
  constructor(id) {
    this.id = id;
    this.isDone = false;
    this.controller = null;
    this.after = null; // runs once the call has ended, however it ended
    if (id !== null) open.set(id, this);
  }
  get signal() {
    return (this.controller ??= new web.AbortController()).signal;
  }
  reply(value) {
    this.end(true, value === undefined ? null : value);
  }
  fail(error) {
    owners.freeReserve(error);
    this.end(false, owners.text(error));
  }
  end(ok, value) {
    if (this.isDone) return;
    if (this.after) queueMicrotask(this.after);
    this.after = null;
    let text;
    try {
      text = JSON.stringify(value) ?? "null";
    } catch (error) {
      // Cycles and throwing getters: the caller must learn that there is no usable answer.
      ok = false;
      text = JSON.stringify(`The result cannot be sent as JSON: ${owners.text(error)}`);
    }
    this.isDone = true;
    if (this.id === null) return;
    flush(); // Requests made before the answer are sent before it.
    open.delete(this.id);
    host.reply(this.id, ok, text);
  }
  progress(value) {
    if (!this.isDone && this.id !== null) host.progress(this.id, JSON.stringify(value));
  }
}

exports.Call = Call;
exports.methods = methods;

// Defines methods whose module is loaded when the first of them is called.
exports.later = (module, ...names) => {
  for (const name of names) {
    methods[name] = (call, args) => {
      require(module); // puts its own in this place
      methods[name](call, args);
    };
  }
};

exports.call = (id, method, args) => {
  const call = new Call(id);
  exports.active = call;
  try {
    methods[method](call, args);
  } catch (error) {
    call.fail(error);
  }
  exports.active = null;
};

exports.abort = (id) => open.get(id)?.controller?.abort();
