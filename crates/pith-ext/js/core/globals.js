// The globals that extensions expect. Large ones are created on first use.

const timers = require("internal/timers");
const abort = require("internal/abort");

const define = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });

const lazy = (name, get) =>
  Object.defineProperty(globalThis, name, {
    configurable: true,
    enumerable: false,
    get() {
      const value = get();
      define(name, value);
      return value;
    },
    set(value) {
      define(name, value);
    },
  });

const from = (module, ...names) => {
  for (const name of names) lazy(name, () => require(module)[name]);
};

define("global", globalThis);
for (const name of ["setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval", "clearImmediate"]) define(name, timers[name]);
for (const name of ["AbortController", "AbortSignal", "Event", "EventTarget", "CustomEvent"]) define(name, abort[name]);
lazy("process", () => require("process"));
lazy("console", () => require("console"));
lazy("crypto", () => require("crypto").webcrypto);
lazy("performance", () => require("perf_hooks").performance);
lazy("WebAssembly", () => require("internal/wasm"));
lazy("Intl", () => require("internal/intl"));
from("internal/small", "navigator", "Navigator", "CompressionStream", "DecompressionStream");
from("internal/messaging", "MessageEvent", "CloseEvent", "MessagePort", "MessageChannel", "BroadcastChannel");
from("internal/url-pattern", "URLPattern");
from("perf_hooks", "Performance", "PerformanceEntry", "PerformanceMark", "PerformanceMeasure", "PerformanceObserver", "PerformanceObserverEntryList", "PerformanceResourceTiming");
from("crypto", "Crypto", "CryptoKey", "SubtleCrypto");
from("buffer", "Buffer", "Blob", "File", "atob", "btoa");
from("url", "URL", "URLSearchParams");
from("util", "TextEncoder", "TextDecoder");
from("internal/fetch", "fetch", "Headers", "Request", "Response", "FormData", "EventSource");
from("internal/websocket", "WebSocket");
from("internal/streams", "ReadableStream", "WritableStream", "TransformStream", "TextDecoderStream", "TextEncoderStream");
from("internal/streams", "ReadableStreamDefaultReader", "ReadableStreamBYOBReader", "ReadableStreamBYOBRequest", "ReadableStreamDefaultController", "ReadableByteStreamController");
from("internal/streams", "WritableStreamDefaultWriter", "WritableStreamDefaultController", "TransformStreamDefaultController", "CountQueuingStrategy", "ByteLengthQueuingStrategy");
lazy("babelHelpers", () => require("internal/decorators"));
lazy("structuredClone", () => require("internal/clone").structuredClone);

// The engine formats dates and numbers without a locale; pith's subset of `Intl` formats them in English.
for (const [prototype, names] of [
  [Date.prototype, ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"]],
  [Number.prototype, ["toLocaleString"]],
  [BigInt.prototype, ["toLocaleString"]],
]) {
  for (const name of names) {
    Object.defineProperty(prototype, name, {
      configurable: true,
      writable: true,
      value(locale, options) {
        return require("internal/intl").localized(this, name, locale, options);
      },
    });
  }
}

Object.defineProperty(String.prototype, "localeCompare", {
  configurable: true,
  writable: true,
  value(other, locale, options) {
    const intl = require("internal/intl");
    return options === undefined ? intl.compareUsually(String(this), String(other)) : new intl.Collator(locale, options).compare(this, other);
  },
});
