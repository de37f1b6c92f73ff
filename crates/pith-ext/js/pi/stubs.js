// Names that must be importable although they need a terminal, which pith does not have.

const owners = require("internal/owners");

exports.fill = (target, names, why) => {
  for (const name of names) {
    if (name in target) continue;
    // A plain function can be called, constructed and extended; only using it fails.
    const stub = function () {
      throw owners.unavailable(name, why);
    };
    Object.defineProperty(stub, "name", { value: name });
    target[name] = stub;
  }
  return target;
};
