// node:querystring.

const unescape = (text) => {
  try {
    return decodeURIComponent(text.replace(/\+/g, " "));
  } catch {
    return text;
  }
};
const escape = (text) => encodeURIComponent(text);

const parse = (text, separator = "&", equals = "=") => {
  const result = Object.create(null);
  for (const pair of String(text).split(separator)) {
    if (!pair) continue;
    const at = pair.indexOf(equals);
    const [key, value] = at < 0 ? [unescape(pair), ""] : [unescape(pair.slice(0, at)), unescape(pair.slice(at + equals.length))];
    if (result[key] === undefined) result[key] = value;
    else result[key] = [result[key], value].flat();
  }
  return result;
};

const stringify = (object, separator = "&", equals = "=") =>
  Object.entries(object ?? {})
    .flatMap(([key, value]) => [value].flat().map((item) => `${escape(key)}${equals}${escape(String(item ?? ""))}`))
    .join(separator);

module.exports = { parse, stringify, escape, unescape, decode: parse, encode: stringify };
