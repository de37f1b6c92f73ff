// Glob patterns of fs.globSync and path.matchesGlob.

const translate = (pattern) => {
  let source = "";
  let depth = 0;
  for (let at = 0; at < pattern.length; at++) {
    const c = pattern[at];
    if (c === "*" && pattern[at + 1] === "*") {
      const isWhole = (at === 0 || pattern[at - 1] === "/") && pattern[at + 2] === "/";
      source += isWhole ? "(?:[^/]+/)*" : ".*";
      at += isWhole ? 2 : 1;
    } else if (c === "*") source += "[^/]*";
    else if (c === "?") source += "[^/]";
    else if (c === "[") {
      const end = pattern.indexOf("]", at + 1);
      if (end < 0) source += "\\[";
      else {
        source += `[${pattern.slice(at + 1, end).replace(/^!/, "^").replace(/\\/g, "\\\\")}]`;
        at = end;
      }
    } else if (c === "{") {
      depth++;
      source += "(?:";
    } else if (c === "}" && depth) {
      depth--;
      source += ")";
    } else if (c === "," && depth) source += "|";
    else source += c.replace(/[.+^$()|\\/]/g, "\\$&");
  }
  return new RegExp(`^${source}$`);
};

exports.matches = (pattern, path) => translate(pattern).test(path);

exports.globSync = (patterns, { cwd, exclude, withFileTypes } = {}) => {
  const fs = require("fs");
  const path = require("path");
  const root = cwd === undefined ? process.cwd() : fs.pathOf(cwd);
  const tests = [patterns].flat().map((pattern) => translate(pattern.replace(/^\.\//, "")));
  const excluded = typeof exclude === "function" ? exclude : (name) => [exclude ?? []].flat().some((pattern) => exports.matches(pattern, name));
  const found = [];
  const walk = (relative) => {
    for (const entry of fs.readdirSync(path.join(root, relative), { withFileTypes: true })) {
      const name = relative ? `${relative}/${entry.name}` : entry.name;
      if (excluded(withFileTypes && typeof exclude === "function" ? entry : name)) continue;
      if (tests.some((test) => test.test(name))) found.push(withFileTypes ? entry : name);
      if (entry.isDirectory()) walk(name);
    }
  };
  walk("");
  return found;
};
