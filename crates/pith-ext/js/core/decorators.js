// What compiled decorators call.

// Applies decorators from the last to the first, to a class or to a member of one.
exports.decorate = (decorators, target, key, descriptor) => {
  const isMember = key !== undefined;
  let result = isMember ? (descriptor ?? Object.getOwnPropertyDescriptor(target, key)) : target;
  for (const decorator of [...decorators].reverse()) {
    if (typeof decorator !== "function") continue;
    const replaced = isMember ? decorator(target, key, descriptor === undefined ? undefined : result) : decorator(result);
    if (replaced !== undefined) result = replaced;
  }
  if (isMember && descriptor !== undefined && result) Object.defineProperty(target, key, result);
  return result;
};

// A decorator of a parameter, as one of the member.
exports.decorateParam = (index, decorator) => (target, key) => decorator(target, key, index);

// Nothing here reads types at run time.
exports.decorateMetadata = () => () => {};
