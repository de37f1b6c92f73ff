// node:diagnostics_channel: named channels inside the engine. pith itself publishes nothing on them.

const owners = require("internal/owners");

class Channel {
  #subscribers = [];
  constructor(name) {
    this.name = name;
  }
  get hasSubscribers() {
    return this.#subscribers.length > 0;
  }
  subscribe(subscriber) {
    this.#subscribers = [...this.#subscribers, subscriber];
  }
  unsubscribe(subscriber) {
    const at = this.#subscribers.indexOf(subscriber);
    if (at < 0) return false;
    this.#subscribers = this.#subscribers.toSpliced(at, 1);
    return true;
  }
  publish(message) {
    for (const subscriber of this.#subscribers) {
      try {
        subscriber(message, this.name);
      } catch (error) {
        owners.report(owners.ofError(error)?.path ?? "<runtime>", "diagnostics_channel", error);
      }
    }
  }
  runStores(message, act, self, ...args) {
    this.publish(message);
    return act.apply(self, args);
  }
  bindStore() {}
  unbindStore() {}
}

const channels = new Map();
const channel = (name) => {
  if (!channels.has(name)) channels.set(name, new Channel(name));
  return channels.get(name);
};

class TracingChannel {
  constructor(names) {
    for (const event of ["start", "end", "asyncStart", "asyncEnd", "error"]) this[event] = typeof names === "string" ? channel(`tracing:${names}:${event}`) : names[event];
  }
  get hasSubscribers() {
    return ["start", "end", "asyncStart", "asyncEnd", "error"].some((event) => this[event]?.hasSubscribers);
  }
  subscribe(subscribers) {
    for (const [event, subscriber] of Object.entries(subscribers)) this[event]?.subscribe(subscriber);
  }
  unsubscribe(subscribers) {
    return Object.entries(subscribers).every(([event, subscriber]) => this[event]?.unsubscribe(subscriber));
  }
  #report(context, error) {
    context.error = error;
    this.error.publish(context);
  }
  traceSync(act, context = {}, self = undefined, ...args) {
    this.start.publish(context);
    try {
      context.result = act.apply(self, args);
      return context.result;
    } catch (error) {
      this.#report(context, error);
      throw error;
    } finally {
      this.end.publish(context);
    }
  }
  async tracePromise(act, context = {}, self = undefined, ...args) {
    try {
      context.result = await this.traceSync(act, context, self, ...args);
      this.asyncStart.publish(context);
      return context.result;
    } catch (error) {
      this.#report(context, error);
      throw error;
    } finally {
      this.asyncEnd.publish(context);
    }
  }
}

module.exports = {
  Channel,
  channel,
  hasSubscribers: (name) => channels.get(name)?.hasSubscribers ?? false,
  subscribe: (name, subscriber) => channel(name).subscribe(subscriber),
  unsubscribe: (name, subscriber) => channel(name).unsubscribe(subscriber),
  tracingChannel: (names) => new TracingChannel(names),
};
