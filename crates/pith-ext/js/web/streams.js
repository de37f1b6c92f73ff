// Web streams, as far as bodies need them.

class ReadableStream {
  #queue = [];
  #waiting = [];
  #state = "open"; // open | closed | errored
  #error;
  #source;
  #locked = false;
  constructor(source = {}) {
    this.#source = source;
    const controller = {
      desiredSize: 1,
      enqueue: (chunk) => this.#push(chunk),
      close: () => this.#end("closed"),
      error: (error) => this.#end("errored", error),
    };
    this.controller = controller;
    try {
      const started = source.start?.(controller);
      started?.then?.(undefined, (error) => controller.error(error));
    } catch (error) {
      controller.error(error);
    }
  }
  #push(chunk) {
    if (this.#state !== "open") return;
    const reader = this.#waiting.shift();
    if (reader) reader.resolve({ value: chunk, done: false });
    else this.#queue.push(chunk);
  }
  #end(state, error) {
    if (this.#state !== "open") return;
    this.#state = state;
    this.#error = error;
    for (const reader of this.#waiting.splice(0)) {
      if (state === "errored") reader.reject(error);
      else reader.resolve({ value: undefined, done: true });
    }
  }
  async #read() {
    if (this.#queue.length) return { value: this.#queue.shift(), done: false };
    if (this.#state === "errored") throw this.#error;
    if (this.#state === "closed") return { value: undefined, done: true };
    const next = new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
    if (this.#source.pull) {
      try {
        await this.#source.pull(this.controller);
      } catch (error) {
        this.#end("errored", error);
      }
    }
    return next;
  }
  get locked() {
    return this.#locked;
  }
  getReader() {
    if (this.#locked) throw new TypeError("ReadableStream is locked");
    this.#locked = true;
    let release;
    const closed = new Promise((resolve) => (release = resolve));
    return {
      closed,
      read: async () => {
        const result = await this.#read();
        if (result.done) release();
        return result;
      },
      releaseLock: () => {
        this.#locked = false;
      },
      cancel: (reason) => this.cancel(reason),
    };
  }
  async cancel(reason) {
    if (this.#state !== "open") return;
    this.#queue.length = 0;
    this.#end("closed");
    await this.#source.cancel?.(reason);
  }
  async *[Symbol.asyncIterator]() {
    const reader = this.getReader();
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        yield value;
      }
    } finally {
      reader.releaseLock();
      await this.cancel();
    }
  }
  values() {
    return this[Symbol.asyncIterator]();
  }
  tee() {
    const reader = this.getReader();
    const targets = [];
    const make = () => new ReadableStream({ start: (controller) => targets.push(controller) });
    const copies = [make(), make()];
    const pump = async () => {
      try {
        for (;;) {
          const { value, done } = await reader.read();
          if (done) break;
          for (const target of targets) target.enqueue(value);
        }
        for (const target of targets) target.close();
      } catch (error) {
        for (const target of targets) target.error(error);
      }
    };
    pump();
    return copies;
  }
  pipeThrough({ readable, writable }) {
    this.pipeTo(writable).catch(() => {});
    return readable;
  }
  async pipeTo(writable) {
    const writer = writable.getWriter();
    try {
      for await (const chunk of this) await writer.write(chunk);
      await writer.close();
    } catch (error) {
      await writer.abort(error);
      throw error;
    }
  }
  static from(items) {
    return new ReadableStream({
      start: async (controller) => {
        try {
          for await (const item of items) controller.enqueue(item);
          controller.close();
        } catch (error) {
          controller.error(error);
        }
      },
    });
  }
}

class WritableStream {
  #sink;
  constructor(sink = {}) {
    this.#sink = sink;
    this.locked = false;
    sink.start?.({ error: () => {} });
  }
  getWriter() {
    this.locked = true;
    const sink = this.#sink;
    const controller = { error: () => {} };
    return {
      ready: Promise.resolve(),
      closed: Promise.resolve(),
      desiredSize: 1,
      write: async (chunk) => sink.write?.(chunk, controller),
      close: async () => sink.close?.(),
      abort: async (reason) => sink.abort?.(reason),
      releaseLock: () => {
        this.locked = false;
      },
    };
  }
  async close() {
    await this.#sink.close?.();
  }
  async abort(reason) {
    await this.#sink.abort?.(reason);
  }
}

class TransformStream {
  constructor(transformer = {}) {
    let output;
    this.readable = new ReadableStream({ start: (controller) => (output = controller) });
    const controller = { enqueue: (chunk) => output.enqueue(chunk), error: (error) => output.error(error), terminate: () => output.close() };
    transformer.start?.(controller);
    this.writable = new WritableStream({
      write: async (chunk) => {
        if (transformer.transform) await transformer.transform(chunk, controller);
        else output.enqueue(chunk);
      },
      close: async () => {
        await transformer.flush?.(controller);
        output.close();
      },
      abort: (reason) => output.error(reason),
    });
  }
}

class TextDecoderStream extends TransformStream {
  constructor(encoding) {
    const decoder = new TextDecoder(encoding);
    super({
      transform: (chunk, controller) => {
        const text = decoder.decode(chunk, { stream: true });
        if (text) controller.enqueue(text);
      },
      flush: (controller) => {
        const text = decoder.decode();
        if (text) controller.enqueue(text);
      },
    });
  }
}

class TextEncoderStream extends TransformStream {
  constructor() {
    const encoder = new TextEncoder();
    super({ transform: (chunk, controller) => controller.enqueue(encoder.encode(chunk)) });
  }
}

module.exports = { ReadableStream, WritableStream, TransformStream, TextDecoderStream, TextEncoderStream };
