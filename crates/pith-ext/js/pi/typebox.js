// TypeBox: a builder of JSON Schema, written for pith. Covers what extensions use.
//
// Marks that are not part of JSON Schema are not enumerable, so `JSON.stringify` gives a clean schema. Other members
// come from the real package if the extension has it installed.

const Kind = Symbol.for("TypeBox.Kind");
const OptionalKind = Symbol.for("TypeBox.Optional");
const Hint = Symbol.for("TypeBox.Hint");

const mark = (schema, name, value) => Object.defineProperty(schema, name, { value, enumerable: false, configurable: true, writable: true });

const make = (kind, schema, options) => {
  const made = { ...schema, ...options };
  mark(made, "~kind", kind);
  mark(made, Kind, kind);
  return made;
};

// A copy keeps the marks.
const copy = (schema, changes = {}) => {
  const made = { ...schema, ...changes };
  for (const name of ["~kind", "~optional", "~readonly", Kind, OptionalKind]) if (schema?.[name] !== undefined) mark(made, name, schema[name]);
  return made;
};

const isOptional = (schema) => schema?.["~optional"] === true || schema?.[OptionalKind] === "Optional";
const setOptional = (schema, yes) => {
  const made = copy(schema);
  if (yes) {
    mark(made, "~optional", true);
    mark(made, OptionalKind, "Optional");
  } else {
    delete made["~optional"];
    delete made[OptionalKind];
  }
  return made;
};

function object(properties, options) {
  const required = Object.keys(properties).filter((key) => !isOptional(properties[key]));
  return make("Object", { type: "object", ...(required.length ? { required } : {}), properties }, options);
}

// The properties of an object, or of several joined objects.
const propertiesOf = (schema) => (schema.allOf ? Object.assign({}, ...schema.allOf.map(propertiesOf)) : { ...schema.properties });
const mapProperties = (schema, change, options) => {
  const { required, properties, allOf, ...rest } = schema;
  const changed = Object.fromEntries(Object.entries(propertiesOf(schema)).flatMap(([key, value]) => change(key, value)));
  return object(changed, { ...rest, ...options });
};

const keysOf = (keys) => {
  if (Array.isArray(keys)) return keys.map(String);
  if (keys?.anyOf) return keys.anyOf.map((option) => String(option.const));
  if (keys?.enum) return keys.enum.map(String);
  return [String(keys?.const ?? keys)];
};

const literal = (value, options) => make("Literal", { const: value, type: typeof value === "bigint" ? "integer" : typeof value }, options);

const enumValues = (values) => {
  if (Array.isArray(values)) return values;
  // A numeric TypeScript enum also maps its numbers back to names.
  return Object.keys(values).filter((key) => Number.isNaN(Number(key))).map((key) => values[key]);
};

const Type = {
  String: (options) => make("String", { type: "string" }, options),
  Number: (options) => make("Number", { type: "number" }, options),
  Integer: (options) => make("Integer", { type: "integer" }, options),
  Boolean: (options) => make("Boolean", { type: "boolean" }, options),
  Null: (options) => make("Null", { type: "null" }, options),
  Any: (options) => make("Any", {}, options),
  Unknown: (options) => make("Unknown", {}, options),
  Never: (options) => make("Never", { not: {} }, options),
  Undefined: (options) => make("Undefined", { type: "undefined" }, options),
  Void: (options) => make("Void", { type: "void" }, options),
  BigInt: (options) => make("BigInt", { type: "bigint" }, options),
  Date: (options) => make("Date", { type: "Date" }, options),
  Uint8Array: (options) => make("Uint8Array", { type: "Uint8Array" }, options),
  RegExp: (pattern, options) => make("String", { type: "string", pattern: pattern?.source ?? String(pattern) }, options),
  Literal: literal,
  Const: (value, options) => {
    if (Array.isArray(value)) return Type.Tuple(value.map((item) => Type.Const(item)), options);
    if (value !== null && typeof value === "object") return object(Object.fromEntries(Object.entries(value).map(([key, item]) => [key, Type.Const(item)])), options);
    return literal(value, options);
  },
  Enum: (values, options) => {
    const list = enumValues(values);
    const kinds = new Set(list.map((value) => typeof value));
    return make("Enum", { ...(kinds.size === 1 ? { type: [...kinds][0] } : {}), enum: list }, options);
  },
  Array: (items, options) => make("Array", { type: "array", items }, options),
  Tuple: (items, options) => make("Tuple", { type: "array", items, additionalItems: false, minItems: items.length, maxItems: items.length }, options),
  Object: object,
  Record: (key, value, options) => {
    const names = key?.anyOf || key?.enum || key?.const !== undefined ? keysOf(key) : null;
    if (names) return object(Object.fromEntries(names.map((name) => [name, value])), options);
    const pattern = key?.pattern ?? (key?.type === "number" || key?.type === "integer" ? "^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$" : "^.*$");
    return make("Record", { type: "object", patternProperties: { [pattern]: value } }, options);
  },
  Union: (options, extra) => {
    if (options.length === 0) return Type.Never(extra);
    return options.length === 1 ? copy(options[0], extra) : make("Union", { anyOf: options }, extra);
  },
  Intersect: (parts, options) => (parts.length === 1 ? copy(parts[0], options) : make("Intersect", { allOf: parts }, options)),
  Composite: (parts, options) => object(Object.assign({}, ...parts.map(propertiesOf)), options),
  Not: (schema, options) => make("Not", { not: schema }, options),
  Optional: (schema, isSet = true) => setOptional(schema, isSet !== false),
  Readonly: (schema) => mark(copy(schema), "~readonly", true),
  ReadonlyOptional: (schema) => Type.Readonly(Type.Optional(schema)),
  Partial: (schema, options) => mapProperties(schema, (key, value) => [[key, setOptional(value, true)]], options),
  Required: (schema, options) => mapProperties(schema, (key, value) => [[key, setOptional(value, false)]], options),
  Pick: (schema, keys, options) => mapProperties(schema, (key, value) => (keysOf(keys).includes(key) ? [[key, value]] : []), options),
  Omit: (schema, keys, options) => mapProperties(schema, (key, value) => (keysOf(keys).includes(key) ? [] : [[key, value]]), options),
  KeyOf: (schema, options) => Type.Union(Object.keys(propertiesOf(schema)).map((key) => literal(key)), options),
  Index: (schema, keys, options) => {
    if (schema.type === "array" && !Array.isArray(schema.items)) return copy(schema.items, options);
    return Type.Union(keysOf(keys).map((key) => propertiesOf(schema)[key]).filter(Boolean), options);
  },
  Extract: (left, right, options) => Type.Union((left.anyOf ?? [left]).filter((option) => (right.anyOf ?? [right]).some((other) => other.const === option.const)), options),
  Exclude: (left, right, options) => Type.Union((left.anyOf ?? [left]).filter((option) => !(right.anyOf ?? [right]).some((other) => other.const === option.const)), options),
  Ref: (reference, options) => make("Ref", { $ref: typeof reference === "string" ? reference : reference.$id }, options),
  Recursive: (build, options = {}) => {
    const $id = options.$id ?? `T${host.uuid().slice(0, 8)}`;
    return copy(build(make("This", { $ref: $id })), { $id, ...options });
  },
  TemplateLiteral: (template, options) => make("TemplateLiteral", { type: "string", pattern: templatePattern(template) }, options),
  Unsafe: (schema = {}) => make("Unsafe", { ...schema }),
  Transform: (schema) => ({ Decode: (decode) => ({ Encode: (encode) => mark(copy(schema), "~transform", { decode, encode }) }) }),
  Clone: (schema) => copy(schema),
  Strict: (schema) => JSON.parse(JSON.stringify(schema)),
  Static: undefined,
};

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const templatePattern = (template) => {
  if (typeof template === "string") return `^${escaped(template)}$`;
  const part = (schema) => (schema.const !== undefined ? escaped(String(schema.const)) : schema.anyOf ? `(?:${schema.anyOf.map(part).join("|")})` : schema.type === "number" ? "-?\\d+(?:\\.\\d+)?" : ".*");
  return `^${template.map(part).join("")}$`;
};

// Unknown members come from the extension's own copy of TypeBox, or throw a clear error.
const guarded = (from) => {
  let real;
  const load = () => {
    if (real !== undefined) return real;
    const path = from && (host.installed("typebox", from) ?? host.installed("@sinclair/typebox", from));
    const ext = path && require("internal/owners").now();
    real = path && ext ? ext.modules.require(from)(path) : null;
    return real;
  };
  return new Proxy(Type, {
    get(target, name) {
      if (name in target || typeof name === "symbol") return target[name];
      const found = load()?.Type?.[name];
      if (found !== undefined) return found;
      // Loaders and printers read names such as `then` and `toJSON`.
      if (!/^[A-Z]/.test(name)) return undefined;
      return () => {
        throw new Error(`Type.${name} is not part of pith's TypeBox; install the typebox package next to the extension to use it`);
      };
    },
  });
};

const isKind = (kind) => (schema) => schema?.["~kind"] === kind;
const guards = Object.fromEntries(["String", "Number", "Integer", "Boolean", "Null", "Literal", "Array", "Object", "Union", "Record", "Tuple", "Any", "Unknown", "Enum", "Intersect"].map((kind) => [`Is${kind}`, isKind(kind)]));
const TypeGuard = { ...guards, IsSchema: (schema) => schema !== null && typeof schema === "object", IsOptional: isOptional };

// Registries of old versions; formats are not checked.
const registry = () => {
  const known = new Map();
  return { Set: (name, value) => void known.set(name, value), Get: (name) => known.get(name), Has: (name) => known.has(name), Delete: (name) => known.delete(name), Clear: () => known.clear(), Entries: () => new Map(known) };
};

const shared = { ...Type, ...guards, Kind, OptionalKind, Hint, ReadonlyKind: Symbol.for("TypeBox.Readonly"), TransformKind: Symbol.for("TypeBox.Transform"), TypeGuard, KindGuard: TypeGuard, TypeRegistry: registry(), FormatRegistry: registry(), CloneType: copy, IsOptional: isOptional, PatternString: "^.*$", PatternNumber: "^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$" };

const perFile = new Map();
exports.forFile = (from) => {
  const directory = from.slice(0, from.lastIndexOf("/"));
  if (!perFile.has(directory)) {
    const guardedType = guarded(from);
    perFile.set(directory, { ...shared, Type: guardedType, default: guardedType });
  }
  return perFile.get(directory);
};
exports.Type = guarded(null);
Object.assign(exports, shared);
