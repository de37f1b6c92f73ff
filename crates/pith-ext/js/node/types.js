// node:util/types. What the engine itself cannot tell apart is told by its tag.

const tag = (value) => Object.prototype.toString.call(value).slice(8, -1);
const isObject = (value) => value !== null && typeof value === "object";
const tagged = (name) => (value) => isObject(value) && tag(value) === name;
const has = (type) => (value) => value instanceof type;
// The name of the kind of view, which classes of extensions do not change.
const viewTag = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;
const boxes = [Number, String, Boolean, BigInt, Symbol];
const boxed = (type) => (value) => isObject(value) && value instanceof type;

const views = ["Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "Float16Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array"];

module.exports = {
  isPromise: has(Promise),
  isRegExp: has(RegExp),
  isDate: has(Date),
  isMap: has(Map),
  isSet: has(Set),
  isWeakMap: has(WeakMap),
  isWeakSet: has(WeakSet),
  isNativeError: has(Error),
  isArrayBuffer: has(ArrayBuffer),
  isSharedArrayBuffer: has(SharedArrayBuffer),
  isAnyArrayBuffer: (value) => value instanceof ArrayBuffer || value instanceof SharedArrayBuffer,
  isArrayBufferView: ArrayBuffer.isView,
  isDataView: has(DataView),
  isTypedArray: (value) => ArrayBuffer.isView(value) && !(value instanceof DataView),
  ...Object.fromEntries(views.map((name) => [`is${name}`, (value) => ArrayBuffer.isView(value) && viewTag.call(value) === name])),
  isAsyncFunction: (value) => typeof value === "function" && /^Async(Generator)?Function$/.test(tag(value)),
  isGeneratorFunction: (value) => typeof value === "function" && /^(Async)?GeneratorFunction$/.test(tag(value)),
  isGeneratorObject: (value) => isObject(value) && /^(Async)?Generator$/.test(tag(value)),
  isMapIterator: tagged("Map Iterator"),
  isSetIterator: tagged("Set Iterator"),
  isArgumentsObject: (value) => isObject(value) && !(Symbol.toStringTag in value) && tag(value) === "Arguments",
  isModuleNamespaceObject: tagged("Module"),
  isNumberObject: boxed(Number),
  isStringObject: boxed(String),
  isBooleanObject: boxed(Boolean),
  isBigIntObject: boxed(BigInt),
  isSymbolObject: boxed(Symbol),
  isBoxedPrimitive: (value) => isObject(value) && boxes.some((type) => value instanceof type),
  isKeyObject: (value) => isObject(value) && value instanceof require("crypto").KeyObject,
  isCryptoKey: (value) => isObject(value) && value instanceof CryptoKey,
  // The engine does not show which objects are proxies, and has none of these others.
  isProxy: () => false,
  isExternal: () => false,
};
