// typebox/value and typebox/compile, for extensions that check data themselves.

const typeOf = (value) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);

const isType = (type, value) => {
  if (Array.isArray(type)) return type.some((one) => isType(one, value));
  if (type === "integer") return Number.isInteger(value);
  if (type === "number") return typeof value === "number" && Number.isFinite(value);
  if (type === "Date") return value instanceof Date;
  if (type === "Uint8Array") return value instanceof Uint8Array;
  if (type === "void") return value === undefined;
  return typeOf(value) === type;
};

const same = (a, b) => require("assert").isDeepEqual(a, b);

function* numberErrors(schema, value) {
  if (schema.minimum !== undefined && value < schema.minimum) yield `Expected number to be greater or equal to ${schema.minimum}`;
  if (schema.maximum !== undefined && value > schema.maximum) yield `Expected number to be less or equal to ${schema.maximum}`;
  if (schema.exclusiveMinimum !== undefined && value <= schema.exclusiveMinimum) yield `Expected number to be greater than ${schema.exclusiveMinimum}`;
  if (schema.exclusiveMaximum !== undefined && value >= schema.exclusiveMaximum) yield `Expected number to be less than ${schema.exclusiveMaximum}`;
  if (schema.multipleOf && value % schema.multipleOf !== 0) yield `Expected number to be a multiple of ${schema.multipleOf}`;
}

function* stringErrors(schema, value) {
  if (schema.minLength !== undefined && [...value].length < schema.minLength) yield `Expected string length greater or equal to ${schema.minLength}`;
  if (schema.maxLength !== undefined && [...value].length > schema.maxLength) yield `Expected string length less or equal to ${schema.maxLength}`;
  if (schema.pattern !== undefined && !new RegExp(schema.pattern, "u").test(value)) yield `Expected string to match '${schema.pattern}'`;
}

function* arrayErrors(schema, value, path) {
  if (schema.minItems !== undefined && value.length < schema.minItems) yield { path, message: `Expected array length to be greater or equal to ${schema.minItems}` };
  if (schema.maxItems !== undefined && value.length > schema.maxItems) yield { path, message: `Expected array length to be less or equal to ${schema.maxItems}` };
  if (schema.uniqueItems && value.some((item, at) => value.slice(0, at).some((other) => same(item, other)))) yield { path, message: "Expected array elements to be unique" };
  for (let at = 0; at < value.length; at++) {
    const item = Array.isArray(schema.items) ? schema.items[at] : schema.items;
    if (item) yield* errors(item, value[at], `${path}/${at}`);
  }
}

function* objectErrors(schema, value, path) {
  for (const key of schema.required ?? []) if (value[key] === undefined) yield { path: `${path}/${key}`, message: "Expected required property" };
  for (const key of Object.keys(value)) {
    if (value[key] === undefined) continue;
    const known = schema.properties?.[key] ?? Object.entries(schema.patternProperties ?? {}).find(([pattern]) => new RegExp(pattern).test(key))?.[1];
    if (known) yield* errors(known, value[key], `${path}/${key}`);
    else if (schema.additionalProperties === false) yield { path: `${path}/${key}`, message: "Unexpected property" };
    else if (typeof schema.additionalProperties === "object") yield* errors(schema.additionalProperties, value[key], `${path}/${key}`);
  }
}

// Yields every problem, as { path, message, value, schema }.
function* errors(schema, value, path = "") {
  const at = (message) => ({ path, message, value, schema });
  if (schema === true || schema === undefined) return;
  if (schema === false) return yield at("Unexpected value");
  if (schema.type !== undefined && !isType(schema.type, value)) return yield at(`Expected ${[schema.type].flat().join(" or ")}`);
  if ("const" in schema && !same(schema.const, value)) yield at(`Expected ${JSON.stringify(schema.const)}`);
  if (schema.enum && !schema.enum.some((option) => same(option, value))) yield at(`Expected one of ${JSON.stringify(schema.enum)}`);
  if (schema.anyOf && !schema.anyOf.some((option) => check(option, value))) yield at("Expected union value");
  if (schema.oneOf && schema.oneOf.filter((option) => check(option, value)).length !== 1) yield at("Expected exactly one matching schema");
  for (const part of schema.allOf ?? []) yield* errors(part, value, path);
  if (schema.not && check(schema.not, value)) yield at("Value should not match");
  if (typeof value === "number") for (const message of numberErrors(schema, value)) yield at(message);
  if (typeof value === "string") for (const message of stringErrors(schema, value)) yield at(message);
  if (Array.isArray(value)) yield* arrayErrors(schema, value, path);
  else if (value !== null && typeof value === "object") yield* objectErrors(schema, value, path);
}

const check = (schema, value) => errors(schema, value).next().done === true;

const fill = (schema, value) => {
  if (value === undefined && schema?.default !== undefined) value = structuredClone(schema.default);
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    for (const [key, part] of Object.entries(schema?.properties ?? {})) {
      const filled = fill(part, value[key]);
      if (filled !== undefined) value[key] = filled;
    }
  }
  if (Array.isArray(value) && schema?.items && !Array.isArray(schema.items)) return value.map((item) => fill(schema.items, item));
  return value;
};

const clean = (schema, value) => {
  if (Array.isArray(value)) return value.map((item) => clean(schema?.items ?? {}, item));
  if (value === null || typeof value !== "object" || !schema?.properties) return value;
  for (const key of Object.keys(value)) {
    if (key in schema.properties) value[key] = clean(schema.properties[key], value[key]);
    else delete value[key];
  }
  return value;
};

// Converts strings to the type that the schema wants, if they look like it.
const convert = (schema, value) => {
  if (Array.isArray(value)) return value.map((item) => convert(schema?.items ?? {}, item));
  if (value !== null && typeof value === "object") {
    for (const [key, part] of Object.entries(schema?.properties ?? {})) if (key in value) value[key] = convert(part, value[key]);
    return value;
  }
  if ((schema?.type === "number" || schema?.type === "integer") && typeof value === "string" && value.trim() !== "" && !Number.isNaN(Number(value))) return schema.type === "integer" ? Math.trunc(Number(value)) : Number(value);
  if (schema?.type === "boolean" && (value === "true" || value === "false" || value === 1 || value === 0)) return value === "true" || value === 1;
  if (schema?.type === "string" && ["number", "boolean", "bigint"].includes(typeof value)) return String(value);
  return value;
};

const create = (schema) => {
  if (schema?.default !== undefined) return structuredClone(schema.default);
  if ("const" in Object(schema)) return schema.const;
  if (schema?.enum) return schema.enum[0];
  if (schema?.anyOf) return create(schema.anyOf[0]);
  if (schema?.allOf) return Object.assign({}, ...schema.allOf.map(create));
  const byType = { string: "", number: schema?.minimum ?? 0, integer: schema?.minimum ?? 0, boolean: false, null: null, array: [] };
  if (schema?.type !== "object") return byType[schema?.type];
  return Object.fromEntries((schema.required ?? []).map((key) => [key, create(schema.properties[key])]));
};

class AssertError extends Error {
  constructor(problem) {
    super(problem.message);
    this.error = problem;
  }
}

const assert = (schema, value) => {
  const first = errors(schema, value).next();
  if (!first.done) throw new AssertError(first.value);
};

const parse = (schema, value) => {
  const ready = clean(schema, convert(schema, fill(schema, structuredClone(value))));
  assert(schema, ready);
  return ready;
};

const iterable = (schema, value) => {
  const list = [...errors(schema, value)];
  return Object.assign(list, { First: () => list[0] });
};

const Value = {
  Check: check,
  Errors: iterable,
  Assert: assert,
  Parse: parse,
  Decode: (schema, value) => (assert(schema, value), schema["~transform"] ? schema["~transform"].decode(value) : value),
  Encode: (schema, value) => (schema["~transform"] ? schema["~transform"].encode(value) : value),
  Default: fill,
  Clean: clean,
  Convert: convert,
  Cast: (schema, value) => (check(schema, value) ? value : create(schema)),
  Create: create,
  Clone: (value) => structuredClone(value),
  Equal: same,
};

const Compile = (schema) => ({
  Check: (value) => check(schema, value),
  Errors: (value) => iterable(schema, value),
  Parse: (value) => parse(schema, value),
  Decode: (value) => Value.Decode(schema, value),
  Encode: (value) => Value.Encode(schema, value),
  Schema: () => schema,
  Type: () => schema,
  Code: () => "",
});

module.exports = { Value, ...Value, Compile, TypeCompiler: { Compile }, AssertError, default: Value };
