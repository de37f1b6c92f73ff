// structuredClone.

const refuse = (value) => {
  throw new DOMException(`${typeof value === "function" ? "A function" : String(value)} could not be cloned.`, "DataCloneError");
};

function clone(value, seen) {
  if (typeof value === "function" || typeof value === "symbol") refuse(value);
  if (value === null || typeof value !== "object") return value;
  if (seen.has(value)) return seen.get(value);
  const keep = (copy) => {
    seen.set(value, copy);
    return copy;
  };
  if (Array.isArray(value)) {
    const copy = keep(new Array(value.length));
    for (const key of Object.keys(value)) copy[key] = clone(value[key], seen);
    return copy;
  }
  if (value instanceof Date) return keep(new Date(value.getTime()));
  if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
  if (value instanceof Boolean || value instanceof Number || value instanceof String) return keep(Object(value.valueOf()));
  if (value instanceof Map) {
    const copy = keep(new Map());
    for (const [key, item] of value) copy.set(clone(key, seen), clone(item, seen));
    return copy;
  }
  if (value instanceof Set) {
    const copy = keep(new Set());
    for (const item of value) copy.add(clone(item, seen));
    return copy;
  }
  if (value instanceof ArrayBuffer) return keep(value.slice(0));
  if (ArrayBuffer.isView(value)) {
    const buffer = clone(value.buffer, seen);
    const View = value instanceof DataView ? DataView : Object.getPrototypeOf(Object.getPrototypeOf(value)).constructor === Uint8Array ? Uint8Array : value.constructor;
    return keep(new View(buffer, value.byteOffset, value instanceof DataView ? value.byteLength : value.length));
  }
  if (value instanceof Error) {
    const Type = { EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError }[value.name] ?? Error;
    const copy = keep(new Type(value.message));
    copy.stack = value.stack;
    if ("cause" in value) copy.cause = clone(value.cause, seen);
    return copy;
  }
  if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef) refuse(value);
  const copy = keep({});
  for (const key of Object.keys(value)) copy[key] = clone(value[key], seen);
  return copy;
}

// What is handed over is not copied: both ends are in one thread. A buffer is empty afterwards where it was.
exports.structuredClone = (value, { transfer = [] } = {}) => {
  const seen = new Map();
  for (const item of transfer) {
    if (item instanceof ArrayBuffer) seen.set(item, item.transfer());
    else seen.set(item, item);
  }
  return clone(value, seen);
};
