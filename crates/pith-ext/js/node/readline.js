// node:readline and, under `promises`, node:readline/promises.

const EventEmitter = require("events");

class Interface extends EventEmitter {
  constructor(input, output) {
    super();
    const options = input?.input !== undefined || input?.output !== undefined ? input : { input, output };
    this.input = options.input;
    this.output = options.output;
    this.terminal = false;
    this.line = "";
    this.closed = false;
    this._prompt = options.prompt ?? "> ";
    this._rest = "";
    this._questions = [];
    if (!this.input) return;
    const { StringDecoder } = require("string_decoder");
    const decoder = new StringDecoder("utf8");
    this._onData = (chunk) => this._take(typeof chunk === "string" ? chunk : decoder.write(chunk));
    this._onEnd = () => {
      this._take(decoder.end());
      if (this._rest) this._line(this._rest);
      this._rest = "";
      this.close();
    };
    this.input.on("data", this._onData);
    this.input.on("end", this._onEnd);
    this.input.on("error", (error) => (this.listenerCount("error") ? this.emit("error", error) : this.close()));
    options.signal?.addEventListener?.("abort", () => this.close(), { once: true });
  }
  _take(text) {
    const lines = (this._rest + text).split(/\r\n|\n|\r(?!$)/);
    this._rest = lines.pop();
    for (const line of lines) this._line(line);
  }
  _line(line) {
    const question = this._questions.shift();
    if (question) question(line);
    else this.emit("line", line);
  }
  question(query, options, callback) {
    if (typeof options === "function") callback = options;
    this.output?.write?.(query);
    if (this.closed) return queueMicrotask(() => callback(""));
    this._questions.push(callback);
  }
  setPrompt(prompt) {
    this._prompt = prompt;
  }
  getPrompt() {
    return this._prompt;
  }
  prompt() {
    this.output?.write?.(this._prompt);
  }
  write(text) {
    this.output?.write?.(text);
  }
  pause() {
    this.input?.pause?.();
    this.emit("pause");
    return this;
  }
  resume() {
    this.input?.resume?.();
    this.emit("resume");
    return this;
  }
  close() {
    if (this.closed) return;
    this.closed = true;
    if (this.input) {
      this.input.off("data", this._onData);
      this.input.off("end", this._onEnd);
    }
    this.emit("close");
  }
  [Symbol.dispose]() {
    this.close();
  }
  async *[Symbol.asyncIterator]() {
    const queue = [];
    let wake = null;
    const poke = () => {
      wake?.();
      wake = null;
    };
    this.on("line", (line) => {
      queue.push(line);
      poke();
    });
    this.on("close", poke);
    try {
      for (;;) {
        if (queue.length) yield queue.shift();
        else if (this.closed) return;
        else await new Promise((resolve) => (wake = resolve));
      }
    } finally {
      this.close();
    }
  }
}

class PromiseInterface extends Interface {
  question(query) {
    return new Promise((resolve) => super.question(query, resolve));
  }
}

const nothing = (...args) => {
  const callback = args.at(-1);
  if (typeof callback === "function") callback();
  return true;
};
const cursor = { clearLine: nothing, clearScreenDown: nothing, cursorTo: nothing, moveCursor: nothing };

module.exports = {
  Interface,
  createInterface: (input, output) => new Interface(input, output),
  emitKeypressEvents: () => {},
  ...cursor,
  promises: { Interface: PromiseInterface, createInterface: (input, output) => new PromiseInterface(input, output), Readline: class Readline {} },
};
