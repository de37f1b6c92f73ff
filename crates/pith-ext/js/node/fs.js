// node:fs. Every operation exists natively once and is offered in three forms: sync, callback and promise.

const native = host.ops("fs");
const ops = require("internal/ops");
const owners = require("internal/owners");
const { Buffer } = require("buffer");

const constants = {
  F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, COPYFILE_EXCL: 1, COPYFILE_FICLONE: 2, COPYFILE_FICLONE_FORCE: 4, UV_FS_COPYFILE_EXCL: 1, UV_FS_COPYFILE_FICLONE: 2, UV_FS_COPYFILE_FICLONE_FORCE: 4,
  O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_EXCL: 128, O_NOCTTY: 256, O_TRUNC: 512, O_APPEND: 1024, O_NONBLOCK: 2048, O_DSYNC: 4096, O_DIRECT: 16384, O_DIRECTORY: 65536, O_NOFOLLOW: 131072, O_NOATIME: 262144, O_SYNC: 1052672,
  S_IFMT: 61440, S_IFREG: 32768, S_IFDIR: 16384, S_IFCHR: 8192, S_IFBLK: 24576, S_IFIFO: 4096, S_IFLNK: 40960, S_IFSOCK: 49152,
  S_IRWXU: 448, S_IRUSR: 256, S_IWUSR: 128, S_IXUSR: 64, S_IRWXG: 56, S_IRGRP: 32, S_IWGRP: 16, S_IXGRP: 8, S_IRWXO: 7, S_IROTH: 4, S_IWOTH: 2, S_IXOTH: 1,
  UV_FS_SYMLINK_DIR: 1, UV_FS_SYMLINK_JUNCTION: 2, UV_DIRENT_UNKNOWN: 0, UV_DIRENT_FILE: 1, UV_DIRENT_DIR: 2, UV_DIRENT_LINK: 3, UV_DIRENT_FIFO: 4, UV_DIRENT_SOCKET: 5, UV_DIRENT_CHAR: 6, UV_DIRENT_BLOCK: 7,
};

const pathOf = (path) => {
  if (typeof path === "string") {
    if (path.includes("\0")) throw Object.assign(new TypeError("The argument 'path' must be a string without null bytes"), { code: "ERR_INVALID_ARG_VALUE" });
    return path.startsWith("/") ? path : `${process.cwd()}/${path}`;
  }
  if (path instanceof URL) return require("url").fileURLToPath(path);
  if (path instanceof Uint8Array) return pathOf(Buffer.from(path).toString());
  throw Object.assign(new TypeError(`The "path" argument must be of type string or an instance of Buffer or URL. Received ${path === null ? "null" : typeof path}`), { code: "ERR_INVALID_ARG_TYPE" });
};

const optionsOf = (options) => (typeof options === "string" ? { encoding: options } : (options ?? {}));
const modeOf = (mode) => (mode === undefined ? undefined : typeof mode === "string" ? Number.parseInt(mode, 8) : mode);

const flagsOf = (flags) => {
  if (flags === undefined) return "r";
  if (typeof flags === "string") return flags;
  const access = flags & 3;
  if (flags & constants.O_APPEND) return access === 2 ? "a+" : "a";
  if (flags & constants.O_CREAT) return `${flags & constants.O_TRUNC || access ? "w" : "a"}${flags & constants.O_EXCL ? "x" : ""}${access === 2 ? "+" : ""}${flags & constants.O_TRUNC ? "" : "!"}`;
  return access === 0 ? "r" : "r+";
};

class Stats {
  constructor(raw) {
    const { kind, ...rest } = raw;
    Object.defineProperty(this, "kind", { value: kind });
    Object.assign(this, rest);
    for (const name of ["atime", "mtime", "ctime", "birthtime"]) this[name] = new Date(rest[`${name}Ms`]);
  }
  isFile() {
    return this.kind === "file";
  }
  isDirectory() {
    return this.kind === "directory";
  }
  isSymbolicLink() {
    return this.kind === "link";
  }
  isFIFO() {
    return this.kind === "fifo";
  }
  isSocket() {
    return this.kind === "socket";
  }
  isBlockDevice() {
    return this.kind === "block";
  }
  isCharacterDevice() {
    return this.kind === "char";
  }
}

class StatFs {}

class Dirent {
  constructor(name, parentPath, kind) {
    this.name = name;
    this.parentPath = parentPath;
    this.path = parentPath;
    Object.defineProperty(this, "kind", { value: kind });
  }
}
for (const method of ["isFile", "isDirectory", "isSymbolicLink", "isFIFO", "isSocket", "isBlockDevice", "isCharacterDevice"]) Dirent.prototype[method] = Stats.prototype[method];

const text = (bytes, encoding) => (encoding && encoding !== "buffer" ? Buffer.from(bytes.buffer).toString(encoding) : Buffer.from(bytes.buffer));
const bigStats = (stats) => {
  for (const key of Object.keys(stats)) if (typeof stats[key] === "number") stats[key] = BigInt(Math.floor(stats[key]));
  for (const name of ["atime", "mtime", "ctime", "birthtime"]) stats[`${name}Ns`] = stats[`${name}Ms`] * 1000000n;
  return stats;
};

// The data to write, as text or as base64 of bytes.
const dataOf = (data, encoding) => {
  if (typeof data === "string") return !encoding || /^utf-?8$/i.test(encoding) ? { text: data.toWellFormed() } : { bytes: Buffer.from(data, encoding).toBase64() };
  if (ArrayBuffer.isView(data)) return { bytes: new Uint8Array(data.buffer, data.byteOffset, data.byteLength).toBase64() };
  if (data instanceof ArrayBuffer) return { bytes: new Uint8Array(data).toBase64() };
  throw Object.assign(new TypeError(`The "data" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received ${data === null ? "null" : typeof data}`), { code: "ERR_INVALID_ARG_TYPE" });
};

// name -> [arguments for the native side, result from it]. The native side does not know Node's conventions.
const calls = {
  access: (path, mode = 0) => [{ path: pathOf(path), mode }],
  stat: (path, options) => [{ path: pathOf(path), follow: true }, (raw) => (raw === null ? undefined : options?.bigint ? bigStats(new Stats(raw)) : new Stats(raw)), options?.throwIfNoEntry === false],
  lstat: (path, options) => [{ path: pathOf(path), follow: false }, (raw) => (raw === null ? undefined : options?.bigint ? bigStats(new Stats(raw)) : new Stats(raw)), options?.throwIfNoEntry === false],
  fstat: (fd) => [{ fd }, (raw) => new Stats(raw)],
  readFile: (path, options) => {
    const { encoding, flag } = optionsOf(options);
    const target = typeof path === "number" ? { fd: path } : { path: pathOf(path), flags: flagsOf(flag) };
    const isText = encoding && /^utf-?8$/i.test(encoding);
    return [{ ...target, asText: !!isText }, (raw) => (isText ? raw : text(raw, encoding))];
  },
  writeFile: (path, data, options) => {
    const { encoding, mode, flag = "w" } = optionsOf(options);
    const target = typeof path === "number" ? { fd: path } : { path: pathOf(path), flags: flagsOf(flag), mode: modeOf(mode) };
    return [{ ...target, ...dataOf(typeof data === "string" || ArrayBuffer.isView(data) ? data : data instanceof ArrayBuffer ? data : String(data), encoding) }];
  },
  appendFile: (path, data, options) => calls.writeFile(path, data, { flag: "a", ...optionsOf(options) }),
  readdir: (path, options) => {
    const { withFileTypes, recursive } = optionsOf(options);
    const root = pathOf(path);
    const shown = typeof path === "string" ? path : root;
    return [
      { path: root, recursive: !!recursive },
      (raw) => raw.map(([name, kind]) => {
        if (!withFileTypes) return name;
        const slash = name.lastIndexOf("/");
        return slash < 0 ? new Dirent(name, shown, kind) : new Dirent(name.slice(slash + 1), `${shown}/${name.slice(0, slash)}`, kind);
      }),
    ];
  },
  mkdir: (path, options) => {
    const { recursive, mode } = typeof options === "object" && options !== null ? options : { mode: options };
    return [{ path: pathOf(path), recursive: !!recursive, mode: modeOf(mode) }, (made) => made ?? undefined];
  },
  mkdtemp: (prefix) => [{ path: pathOf(prefix) }],
  rmdir: (path, options) => [{ path: pathOf(path), recursive: !!options?.recursive }],
  rm: (path, options) => [{ path: pathOf(path), recursive: !!options?.recursive, force: !!options?.force }],
  unlink: (path) => [{ path: pathOf(path) }],
  rename: (from, to) => [{ path: pathOf(from), to: pathOf(to) }],
  copyFile: (from, to, mode = 0) => [{ path: pathOf(from), to: pathOf(to), exclusive: (mode & 1) === 1 }],
  cp: (from, to, options) => [{ path: pathOf(from), to: pathOf(to), recursive: !!options?.recursive, force: options?.force !== false, errorOnExist: !!options?.errorOnExist }],
  link: (from, to) => [{ path: pathOf(from), to: pathOf(to) }],
  symlink: (target, path) => [{ path: pathOf(path), to: String(target) }],
  readlink: (path) => [{ path: pathOf(path) }],
  realpath: (path) => [{ path: pathOf(path) }],
  chmod: (path, mode) => [{ path: pathOf(path), mode: modeOf(mode) }],
  fchmod: (fd, mode) => [{ fd, mode: modeOf(mode) }],
  chown: (path, uid, gid) => [{ path: pathOf(path), uid, gid }],
  lchown: (path, uid, gid) => [{ path: pathOf(path), uid, gid }],
  fchown: (fd, uid, gid) => [{ fd, uid, gid }],
  lutimes: (path, atime, mtime) => [{ path: pathOf(path), atime: seconds(atime), mtime: seconds(mtime) }],
  statfs: (path, options) => [{ path: pathOf(path) }, (raw) => Object.assign(new StatFs(), options?.bigint ? Object.fromEntries(Object.entries(raw).map(([key, value]) => [key, BigInt(value)])) : raw)],
  utimes: (path, atime, mtime) => [{ path: pathOf(path), atime: seconds(atime), mtime: seconds(mtime) }],
  futimes: (fd, atime, mtime) => [{ fd, atime: seconds(atime), mtime: seconds(mtime) }],
  truncate: (path, length = 0) => [{ path: pathOf(path), length }],
  ftruncate: (fd, length = 0) => [{ fd, length }],
  open: (path, flags, mode) => [{ path: pathOf(path), flags: flagsOf(flags), mode: modeOf(mode) }],
  close: (fd) => [{ fd }],
  fsync: (fd) => [{ fd }],
  fdatasync: (fd) => [{ fd }],
};

const seconds = (time) => (time instanceof Date ? time.getTime() / 1000 : Number(time));

// Reading and writing through descriptors uses the caller's buffer.
const readArguments = (buffer, offset, length, position) => {
  if (typeof offset === "object" && offset !== null) ({ offset = 0, length, position } = offset);
  offset ??= 0;
  length ??= buffer.byteLength - offset;
  return { offset, length, position: typeof position === "bigint" ? Number(position) : (position ?? null) };
};
calls.read = (fd, buffer, ...rest) => {
  const { offset, length, position } = readArguments(buffer, ...rest);
  return [{ fd, length, position }, (raw) => {
    new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength).set(raw, offset);
    return raw.length;
  }];
};
calls.write = (fd, data, offset, length, position) => {
  if (typeof data === "string") return [{ fd, position: typeof offset === "number" ? offset : null, ...dataOf(data, length) }];
  ({ offset, length, position } = readArguments(data, offset, length, position));
  return [{ fd, position, ...dataOf(new Uint8Array(data.buffer, data.byteOffset + offset, length)) }];
};

const identity = (raw) => raw;

function sync(name, args) {
  const [request, convert = identity, forgives] = calls[name](...args);
  try {
    return convert(native.sync(name, JSON.stringify(request)));
  } catch (error) {
    if (forgives && error?.code === "ENOENT") return undefined;
    throw error;
  }
}

async function later(name, args) {
  const [request, convert = identity, forgives] = calls[name](...args);
  const ext = owners.now();
  try {
    const raw = await ops.begin((op) => native.later(op, name, JSON.stringify(request))).promise;
    if (raw?.failure) throw owners.tag(native.failure(JSON.stringify(raw.failure)), ext);
    return convert(raw instanceof Uint8Array ? raw : raw?.value);
  } catch (error) {
    if (forgives && error?.code === "ENOENT") return undefined;
    throw error;
  }
}

const fs = { constants, Stats, Dirent };
const promises = { constants };

for (const name of Object.keys(calls)) {
  fs[`${name}Sync`] = (...args) => sync(name, args);
  const callbackForm = (...args) => {
    const callback = args.pop();
    if (typeof callback !== "function") throw Object.assign(new TypeError('The "callback" argument must be of type function'), { code: "ERR_INVALID_ARG_TYPE" });
    later(name, args).then((value) => callback(null, value, args[1]), callback);
  };
  fs[name] = callbackForm;
  if (!/^f(stat|chmod|chown|utimes|truncate|sync|datasync)$|^(read|write|open|close)$/.test(name)) promises[name] = (...args) => later(name, args);
}

fs.existsSync = (path) => {
  try {
    return native.exists(pathOf(path));
  } catch {
    return false;
  }
};
fs.exists = (path, callback) => queueMicrotask(() => callback(fs.existsSync(path)));
fs.realpathSync.native = fs.realpathSync;
fs.realpath.native = fs.realpath;
const { promisify } = require("util");
fs.exists[promisify.custom] = async (path) => fs.existsSync(path);
fs.read[promisify.custom] = async (fd, buffer, ...rest) => ({ bytesRead: await later("read", [fd, buffer, ...rest]), buffer });
fs.write[promisify.custom] = async (fd, data, ...rest) => ({ bytesWritten: await later("write", [fd, data, ...rest]), buffer: data });

// Several buffers in turn; a short one ends it.
for (const [name, one, counted] of [["readv", "read", "bytesRead"], ["writev", "write", "bytesWritten"]]) {
  const each = function* (fd, buffers, position) {
    let sum = 0;
    for (const buffer of buffers) {
      const count = yield [fd, buffer, 0, buffer.byteLength, typeof position === "number" ? position + sum : null];
      sum += count;
      if (count < buffer.byteLength) break;
    }
    return sum;
  };
  fs[`${name}Sync`] = (...args) => {
    const steps = each(...args);
    let step = steps.next();
    while (!step.done) step = steps.next(sync(one, step.value));
    return step.value;
  };
  const vector = async (...args) => {
    const steps = each(...args);
    let step = steps.next();
    while (!step.done) step = steps.next(await later(one, step.value));
    return step.value;
  };
  fs[name] = (fd, buffers, position, callback = position) => {
    vector(fd, buffers, position).then((count) => callback(null, count, buffers), callback);
  };
  fs[name][promisify.custom] = async (fd, buffers, position) => ({ [counted]: await vector(fd, buffers, position), buffers });
}

// FileHandle of fs/promises.
class FileHandle {
  constructor(fd) {
    this.fd = fd;
  }
  async read(buffer, ...rest) {
    if (!ArrayBuffer.isView(buffer)) {
      const options = buffer ?? {};
      buffer = options.buffer ?? Buffer.alloc(16384);
      rest = [options];
    }
    return { bytesRead: await later("read", [this.fd, buffer, ...rest]), buffer };
  }
  async write(data, ...rest) {
    return { bytesWritten: await later("write", [this.fd, data, ...rest]), buffer: data };
  }
  readFile(options) {
    return later("readFile", [this.fd, options]);
  }
  writeFile(data, options) {
    return later("writeFile", [this.fd, data, options]);
  }
  appendFile(data, options) {
    return later("writeFile", [this.fd, data, options]);
  }
  readv(buffers, position) {
    return fs.readv[promisify.custom](this.fd, buffers, position);
  }
  writev(buffers, position) {
    return fs.writev[promisify.custom](this.fd, buffers, position);
  }
  chown(uid, gid) {
    return later("fchown", [this.fd, uid, gid]);
  }
  utimes(atime, mtime) {
    return later("futimes", [this.fd, atime, mtime]);
  }
  stat() {
    return later("fstat", [this.fd]);
  }
  truncate(length) {
    return later("ftruncate", [this.fd, length]);
  }
  chmod(mode) {
    return later("fchmod", [this.fd, mode]);
  }
  sync() {
    return later("fsync", [this.fd]);
  }
  datasync() {
    return later("fsync", [this.fd]);
  }
  async close() {
    const { fd } = this;
    if (fd < 0) return;
    this.fd = -1;
    await later("close", [fd]);
  }
  createReadStream(options) {
    return fs.createReadStream(null, { ...options, fd: this.fd });
  }
  createWriteStream(options) {
    return fs.createWriteStream(null, { ...options, fd: this.fd });
  }
  readLines(options) {
    return require("readline").createInterface({ input: this.createReadStream(options) });
  }
  [Symbol.asyncDispose]() {
    return this.close();
  }
}
promises.open = async (path, flags, mode) => new FileHandle(await later("open", [path, flags, mode]));

// Streams are created when first used: most extensions never do.
const streamModule = () => require("internal/fs-streams");
fs.createReadStream = (path, options) => streamModule().createReadStream(path, optionsOf(options));
fs.createWriteStream = (path, options) => streamModule().createWriteStream(path, optionsOf(options));
for (const name of ["ReadStream", "WriteStream"]) Object.defineProperty(fs, name, { get: () => streamModule()[name], enumerable: true, configurable: true });

const watching = () => require("internal/fs-watch");
fs.watch = (path, options, listener) => watching().watch(pathOf(path), typeof options === "function" ? {} : optionsOf(options), typeof options === "function" ? options : listener);
fs.watchFile = (path, options, listener) => watching().watchFile(pathOf(path), typeof options === "function" ? {} : options, typeof options === "function" ? options : listener);
fs.unwatchFile = (path, listener) => watching().unwatchFile(pathOf(path), listener);
promises.watch = (path, options = {}) => watching().iterate(pathOf(path), options);

class Dir {
  constructor(path, entries) {
    this.path = path;
    this.entries = entries;
  }
  readSync() {
    return this.entries.shift() ?? null;
  }
  async read() {
    return this.readSync();
  }
  closeSync() {}
  async close() {}
  async *[Symbol.asyncIterator]() {
    while (this.entries.length) yield this.entries.shift();
  }
}
fs.opendirSync = (path) => new Dir(String(path), fs.readdirSync(path, { withFileTypes: true }));
promises.opendir = async (path) => new Dir(String(path), await promises.readdir(path, { withFileTypes: true }));
fs.opendir = (path, options, callback = options) => promises.opendir(path).then((dir) => callback(null, dir), callback);

fs.globSync = (pattern, options = {}) => require("internal/glob").globSync(pattern, options);
fs.glob = (pattern, options, callback = options) => queueMicrotask(() => callback(null, fs.globSync(pattern, typeof options === "function" ? {} : options)));
promises.glob = async function* (pattern, options) {
  yield* fs.globSync(pattern, options);
};

fs.openAsBlob = async (path, options) => new Blob([await promises.readFile(path)], options);
fs.mkdtempDisposableSync = (prefix) => {
  const path = fs.mkdtempSync(prefix);
  const remove = () => fs.rmSync(path, { recursive: true, force: true });
  return { path, remove, [Symbol.dispose]: remove };
};
promises.mkdtempDisposable = async (prefix) => {
  const path = await promises.mkdtemp(prefix);
  const remove = () => promises.rm(path, { recursive: true, force: true });
  return { path, remove, [Symbol.asyncDispose]: remove };
};

Object.defineProperty(fs, "promises", { value: promises, enumerable: true });
Object.assign(fs, { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1 });
fs.pathOf = pathOf;
module.exports = fs;
