// Names that must be importable although pith cannot do what they stand for.

const owners = require("internal/owners");

exports.fill = (target, names, why) => {
  for (const name of names) if (!(name in target)) target[name] = owners.refusal(name, why);
  return target;
};

// Functions that would change or measure a screen: they can be called and have no effect.
exports.headless = (target, members) => {
  for (const [name, member] of Object.entries(members)) {
    Object.defineProperty(member, owners.KIND, { value: "headless stub" });
    target[name] = member;
  }
  return target;
};
