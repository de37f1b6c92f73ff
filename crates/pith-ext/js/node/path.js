// node:path. POSIX paths; Windows paths as far as text allows.

const check = (path, name = "path") => {
  if (typeof path !== "string") {
    throw Object.assign(new TypeError(`The "${name}" argument must be of type string. Received ${path === null ? "null" : typeof path}`), { code: "ERR_INVALID_ARG_TYPE" });
  }
  return path;
};

// Resolves `.` and `..`; leading `..` remain only in relative paths.
function squeeze(path, isAbsolute) {
  const kept = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") kept.push(part);
    else if (kept.length && kept.at(-1) !== "..") kept.pop();
    else if (!isAbsolute) kept.push("..");
  }
  return kept.join("/");
}

const posix = {
  sep: "/",
  delimiter: ":",
  normalize(path) {
    check(path);
    if (path === "") return ".";
    const isAbsolute = path.startsWith("/");
    let clean = squeeze(path, isAbsolute);
    if (clean === "" && !isAbsolute) clean = ".";
    if (clean !== "" && path.endsWith("/")) clean += "/";
    return isAbsolute ? `/${clean}` : clean;
  },
  join(...parts) {
    for (const part of parts) check(part);
    const joined = parts.filter((part) => part !== "").join("/");
    return joined === "" ? "." : posix.normalize(joined);
  },
  resolve(...parts) {
    let path = "";
    for (let index = parts.length - 1; index >= 0 && !path.startsWith("/"); index--) {
      const part = check(parts[index], `paths[${index}]`);
      if (part !== "") path = path === "" ? part : `${part}/${path}`;
    }
    if (!path.startsWith("/")) path = path === "" ? process.cwd() : `${process.cwd()}/${path}`;
    return `/${squeeze(path, true)}`;
  },
  isAbsolute: (path) => check(path).startsWith("/"),
  relative(from, to) {
    from = posix.resolve(check(from, "from"));
    to = posix.resolve(check(to, "to"));
    if (from === to) return "";
    const a = from.split("/").filter(Boolean);
    const b = to.split("/").filter(Boolean);
    let same = 0;
    while (same < a.length && same < b.length && a[same] === b[same]) same++;
    return [...Array(a.length - same).fill(".."), ...b.slice(same)].join("/");
  },
  dirname(path) {
    check(path);
    if (path === "") return ".";
    const trimmed = path.replace(/\/+$/, "");
    if (trimmed === "") return "/";
    const slash = trimmed.lastIndexOf("/");
    if (slash < 0) return ".";
    return trimmed.slice(0, slash).replace(/\/+$/, "") || "/";
  },
  basename(path, suffix) {
    const trimmed = check(path).replace(/\/+$/, "");
    const base = trimmed.slice(trimmed.lastIndexOf("/") + 1);
    if (suffix !== undefined && base !== suffix && base.endsWith(suffix)) return base.slice(0, -suffix.length);
    return base;
  },
  extname(path) {
    const base = posix.basename(path);
    const dot = base.lastIndexOf(".");
    return dot <= 0 || base === ".." ? "" : base.slice(dot);
  },
  parse(path) {
    const base = posix.basename(path);
    const ext = posix.extname(base);
    const root = path.startsWith("/") ? "/" : "";
    const dir = base === path ? "" : posix.dirname(path);
    return { root, dir: dir === "." && !path.startsWith(".") ? "" : dir, base, ext, name: ext ? base.slice(0, -ext.length) : base };
  },
  format({ dir, root = "", base, name = "", ext = "" }) {
    const file = base ?? name + (ext && !ext.startsWith(".") ? `.${ext}` : ext);
    if (!dir) return root + file;
    return dir === root ? dir + file : `${dir}/${file}`;
  },
  toNamespacedPath: (path) => path,
  matchesGlob: (path, pattern) => require("internal/glob").matches(pattern, path),
};

// Handles backslashes and drive letters by converting to POSIX paths and back.
const forward = (path) => check(path).replace(/\\/g, "/");
const backward = (path) => path.replace(/\//g, "\\");
const drive = /^[A-Za-z]:/;
const win32 = {
  ...posix,
  sep: "\\",
  delimiter: ";",
  normalize: (path) => backward(posix.normalize(forward(path))),
  join: (...parts) => backward(posix.join(...parts.map(forward))),
  isAbsolute: (path) => forward(path).startsWith("/") || /^[A-Za-z]:[\\/]/.test(path),
  dirname: (path) => backward(posix.dirname(forward(path))),
  basename: (path, suffix) => posix.basename(forward(path).replace(drive, ""), suffix),
  extname: (path) => posix.extname(forward(path)),
};

posix.posix = win32.posix = posix;
posix.win32 = win32.win32 = win32;
module.exports = posix;
