// Names that must be importable although pith cannot do what they stand for.

const owners = require("internal/owners");

// What becomes of an export: `refuses` or `headless stub`; everything else works. The table in docs/sdk.md is made of it.
const KIND = Symbol.for("pith.export");

// A plain function can be called, constructed and extended; only using it fails.
exports.fill = (target, names, why) => {
  for (const name of names) {
    if (name in target) continue;
    const stub = function () {
      throw owners.unavailable(name, why);
    };
    Object.defineProperty(stub, "name", { value: name });
    Object.defineProperty(stub, KIND, { value: "refuses" });
    target[name] = stub;
  }
  return target;
};

// Functions that would change or measure a screen: they can be called and have no effect.
exports.headless = (target, members) => {
  for (const [name, member] of Object.entries(members)) {
    Object.defineProperty(member, KIND, { value: "headless stub" });
    target[name] = member;
  }
  return target;
};
