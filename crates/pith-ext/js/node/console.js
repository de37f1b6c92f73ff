// The console writes to standard error: standard output carries the protocol.

const { format, inspect } = require("util");
const { stackOf } = require("internal/traces");

let indent = "";
const counts = new Map();
const started = new Map();

const line = (...args) => {
  const shown = format(...args);
  host.log(`${indent ? shown.replace(/^/gm, indent) : shown}\n`);
};

const elapsed = (label) => `${label}: ${(host.now() - (started.get(label) ?? host.now())).toFixed(3)}ms`;

class Console {
  constructor(stdout) {
    Object.assign(this, console);
    const stream = stdout?.stdout ?? stdout;
    if (stream?.write) this.log = this.info = this.debug = (...args) => stream.write(`${format(...args)}\n`);
  }
}

const console = {
  log: line,
  info: line,
  debug: line,
  warn: line,
  error: line,
  trace: (...args) => line(`Trace: ${format(...args)}\n${stackOf(new Error())}`),
  dir: (value, options) => line(inspect(value, options)),
  dirxml: line,
  table: (data) => line(inspect(data, { depth: 3 })),
  assert: (condition, ...args) => {
    if (!condition) line(`Assertion failed${args.length ? `: ${format(...args)}` : ""}`);
  },
  count: (label = "default") => {
    counts.set(label, (counts.get(label) ?? 0) + 1);
    line(`${label}: ${counts.get(label)}`);
  },
  countReset: (label = "default") => counts.delete(label),
  group: (...args) => {
    if (args.length) line(...args);
    indent += "  ";
  },
  groupCollapsed: (...args) => console.group(...args),
  groupEnd: () => {
    indent = indent.slice(2);
  },
  time: (label = "default") => started.set(label, host.now()),
  timeLog: (label = "default", ...args) => line(elapsed(label), ...args),
  timeEnd: (label = "default") => {
    line(elapsed(label));
    started.delete(label);
  },
  clear: () => {},
};
console.Console = Console;
module.exports = console;
