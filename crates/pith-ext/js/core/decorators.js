// The helper functions of compiled decorators.

// Applies decorators from the last to the first, to a class or to one of its members.
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

// Turns a decorator of a parameter into one of the member.
exports.decorateParam = (index, decorator) => (target, key) => decorator(target, key, index);

// Types are not available at run time.
exports.decorateMetadata = () => () => {};
