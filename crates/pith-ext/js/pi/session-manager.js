// `SessionManager`: session files of their own, which an extension reads and writes. The session that is running belongs
// to the agent, see internal/session.

const session = require("internal/session");
const state = require("internal/state");

const VERSION = 3;

const fs = () => require("fs");
const path = () => require("path");
const absolute = (name) => path().resolve(state.config.cwd ?? process.cwd(), String(name).replace(/^~(?=\/|$)/, () => require("os").homedir()));

// The directory of a working directory's sessions, named after it.
const defaultDirectory = (cwd, agentDir = state.config.agentDir) => {
  const directory = absolute(cwd ?? state.config.cwd);
  return path().join(agentDir, "sessions", `--${directory.replace(/^[/\\]/, "").replace(/[/\\:]/g, "-")}--`);
};

const parse = (text) =>
  String(text).split("\n").flatMap((line) => {
    try {
      return line.trim() ? [JSON.parse(line)] : [];
    } catch {
      // A line that was cut off by a crash is left out.
      return [];
    }
  });

const newId = (taken) => {
  for (;;) {
    const id = host.uuid().replace(/-/g, "").slice(0, 8);
    if (!taken.has(id)) return id;
  }
};

// Brings entries of older versions up to date, in place: the first had no ids, the second called custom messages hooks.
function migrate(entries) {
  const header = entries.find((entry) => entry.type === "session");
  const version = header?.version ?? 1;
  if (version >= VERSION) return false;
  if (version < 2) {
    const taken = new Set();
    let parentId = null;
    for (const entry of entries) {
      if (entry.type === "session") continue;
      entry.id ??= newId(taken);
      entry.parentId ??= parentId;
      taken.add(entry.id);
      parentId = entry.id;
    }
    for (const entry of entries) {
      if (entry.type !== "compaction" || typeof entry.firstKeptEntryIndex !== "number") continue;
      entry.firstKeptEntryId = entries[entry.firstKeptEntryIndex]?.id;
      delete entry.firstKeptEntryIndex;
    }
  }
  for (const entry of entries) if (entry.type === "message" && entry.message?.role === "hookMessage") entry.message.role = "custom";
  if (header) header.version = VERSION;
  return true;
}

const checkId = (id) => {
  if (!/^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/.test(id)) throw new Error(`Session id "${id}" must consist of letters, digits, "-", "_" and "."`);
  return id;
};

class SessionManager {
  constructor(cwd, directory, file, isPersisted, options = {}, entries = null) {
    this.cwd = absolute(cwd);
    this.sessionDir = directory;
    this.persist = isPersisted;
    if (isPersisted) fs().mkdirSync(directory, { recursive: true });
    if (file) this.setSessionFile(file);
    else if (entries?.length) this.#load(entries, options);
    else this.newSession(options);
  }

  static create(cwd = state.config.cwd, directory, options) {
    return new SessionManager(cwd, directory ? absolute(directory) : defaultDirectory(cwd), null, true, options);
  }
  static open(file, directory, cwd) {
    const full = absolute(file);
    const header = fs().existsSync(full) ? parse(fs().readFileSync(full, "utf8")).find((entry) => entry.type === "session") : null;
    return new SessionManager(cwd ?? header?.cwd ?? state.config.cwd, directory ? absolute(directory) : path().dirname(full), full, true);
  }
  static continueRecent(cwd = state.config.cwd, directory) {
    const dir = directory ? absolute(directory) : defaultDirectory(cwd);
    const recent = findMostRecent(dir, directory ? absolute(cwd) : undefined);
    return recent ? new SessionManager(cwd, dir, recent, true) : SessionManager.create(cwd, directory);
  }
  static inMemory(cwd = state.config.cwd, options, entries) {
    return new SessionManager(cwd, "", null, false, options, entries);
  }
  // A manager over entries that are in a file already.
  static copyOf(entries, cwd, directory, file) {
    const copy = new SessionManager(cwd, directory, null, false, {}, entries);
    return Object.assign(copy, { persist: !!file, sessionFile: file });
  }
  static forkFrom(source, cwd, directory, options = {}) {
    const full = absolute(source);
    const entries = fs().existsSync(full) ? parse(fs().readFileSync(full, "utf8")) : [];
    if (!entries.some((entry) => entry.type === "session")) throw new Error(`Cannot fork: source session file is empty or invalid: ${full}`);
    migrate(entries);
    const dir = directory ? absolute(directory) : defaultDirectory(cwd);
    const forked = new SessionManager(cwd, dir, null, true, { ...options, parentSession: full });
    forked.fileEntries = [forked.getHeader(), ...entries.filter((entry) => entry.type !== "session")];
    forked.#index();
    forked.#write();
    return forked;
  }
  static findById(cwd, id, directory) {
    const dir = directory ? absolute(directory) : defaultDirectory(cwd);
    return files(dir).find((file) => readHeader(file)?.id === id);
  }
  static async list(cwd = state.config.cwd, directory, onProgress, signal) {
    const dir = directory ? absolute(directory) : defaultDirectory(cwd);
    const found = await infos(files(dir), onProgress, signal);
    return directory ? found.filter((info) => !info.cwd || info.cwd === absolute(cwd)) : found;
  }
  static async listAll(...args) {
    const directory = typeof args[0] === "string" ? args.shift() : undefined;
    const [onProgress, signal] = args;
    if (directory) return infos(files(absolute(directory)), onProgress, signal);
    const root = path().join(state.config.agentDir, "sessions");
    if (!fs().existsSync(root)) return [];
    const dirs = fs().readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return infos(dirs.flatMap(({ name }) => files(path().join(root, name))), onProgress, signal);
  }

  // Starts over with another file; one that does not exist yet is created with the first answer.
  setSessionFile(file) {
    this.sessionFile = absolute(file);
    const entries = fs().existsSync(this.sessionFile) ? parse(fs().readFileSync(this.sessionFile, "utf8")) : [];
    if (!entries.some((entry) => entry.type === "session")) {
      const given = this.sessionFile;
      this.newSession();
      this.sessionFile = given;
      if (fs().existsSync(given)) this.#write();
      return;
    }
    const isOlder = migrate(entries);
    this.#load(entries, {});
    this.sessionFile = absolute(file);
    this.isWritten = true;
    if (isOlder) this.#write();
  }

  newSession({ id, parentSession } = {}) {
    this.sessionId = id === undefined ? host.uuid7() : checkId(id);
    const timestamp = new Date().toISOString();
    this.fileEntries = [{ type: "session", version: VERSION, id: this.sessionId, timestamp, cwd: this.cwd, ...(parentSession ? { parentSession } : {}) }];
    this.isWritten = false;
    this.sessionFile = this.persist ? this.#fileName(timestamp, this.sessionId) : undefined;
    this.#index();
    return this.sessionFile;
  }

  #fileName(timestamp, id) {
    return path().join(this.sessionDir, `${timestamp.replace(/[:.]/g, "-")}_${id}.jsonl`);
  }

  #load(entries, options) {
    const header = entries.find((entry) => entry.type === "session");
    if (header) {
      this.fileEntries = entries;
      this.sessionId = header.id;
    } else {
      this.newSession(options);
      this.fileEntries.push(...entries);
    }
    this.#index();
  }

  #index() {
    this.entries = this.fileEntries.filter((entry) => entry.type !== "session");
    this.byId = new Map(this.entries.map((entry) => [entry.id, entry]));
    this.leafId = this.entries.at(-1)?.id ?? null;
  }

  #write() {
    if (!this.persist || !this.sessionFile) return;
    fs().writeFileSync(this.sessionFile, this.fileEntries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
    this.isWritten = true;
  }

  // A file appears with the first answer of a model: a session without one is not worth keeping.
  #append(entry) {
    const whole = { ...entry, id: newId(this.byId), parentId: this.leafId, timestamp: new Date().toISOString() };
    this.fileEntries.push(whole);
    this.entries.push(whole);
    this.byId.set(whole.id, whole);
    this.leafId = whole.id;
    if (!this.persist || !this.sessionFile) return whole;
    if (this.isWritten) fs().appendFileSync(this.sessionFile, `${JSON.stringify(whole)}\n`);
    else if (this.entries.some((known) => known.type === "message" && known.message.role === "assistant")) this.#write();
    return whole;
  }

  appendMessage(message) {
    return this.#append({ type: "message", message }).id;
  }
  appendThinkingLevelChange(thinkingLevel) {
    return this.#append({ type: "thinking_level_change", thinkingLevel }).id;
  }
  appendModelChange(provider, modelId) {
    return this.#append({ type: "model_change", provider, modelId }).id;
  }
  appendUsage(kind, provider, model, usage, note) {
    return this.#append({ type: "usage", kind, provider, model, usage, note });
  }
  appendCompaction(summary, firstKeptEntryId, tokensBefore, details, fromHook, usage) {
    return this.#append({ type: "compaction", summary, firstKeptEntryId, tokensBefore, details, fromHook, usage }).id;
  }
  appendCustomEntry(customType, data) {
    return this.#append({ type: "custom", customType, data }).id;
  }
  appendCustomMessageEntry(customType, content, display, details) {
    return this.#append({ type: "custom_message", customType, content, display, details }).id;
  }
  appendSessionInfo(name) {
    return this.#append({ type: "session_info", name: String(name).trim() }).id;
  }
  appendLabelChange(targetId, label) {
    this.#find(targetId);
    return this.#append({ type: "label", targetId, label }).id;
  }
  appendContextEdit(targetId, replacement) {
    this.#find(targetId);
    return this.#append({ type: "context_edit", targetId, replacement }).id;
  }

  #find(id) {
    const entry = this.byId.get(id);
    if (!entry) throw new Error(`Entry ${id} not found`);
    return entry;
  }

  // The next entry goes below this one.
  branch(fromId) {
    this.leafId = this.#find(fromId).id;
  }
  resetLeaf() {
    this.leafId = null;
  }
  branchWithSummary(fromId, summary, details, fromHook, usage) {
    if (fromId !== null) this.#find(fromId);
    this.leafId = fromId;
    return this.#append({ type: "branch_summary", fromId: fromId ?? "root", summary, details, fromHook, usage }).id;
  }

  // Makes a session of the path to this entry and goes on with it. Labels come last: entries may have been below them.
  createBranchedSession(leafId) {
    this.#find(leafId);
    const branch = this.getBranch(leafId);
    const previous = this.persist ? this.sessionFile : undefined;
    const moved = new Map(); // label entry -> the entry that follows it
    const kept = [];
    let skipped = [];
    for (const entry of branch) {
      if (entry.type === "label") {
        skipped.push(entry.id);
        continue;
      }
      for (const id of skipped) moved.set(id, entry.id);
      skipped = [];
      const firstKept = entry.type === "compaction" ? { firstKeptEntryId: moved.get(entry.firstKeptEntryId) ?? entry.firstKeptEntryId } : {};
      kept.push({ ...entry, ...firstKept, parentId: kept.at(-1)?.id ?? null });
    }
    const ids = new Set(kept.map(({ id }) => id));
    const labels = kept.flatMap(({ id }) => {
      const label = this.getLabel(id);
      return label ? [{ targetId: id, label }] : [];
    });
    this.newSession({ parentSession: previous });
    this.fileEntries.push(...kept);
    for (const { targetId, label } of labels) {
      const id = newId(ids);
      ids.add(id);
      this.fileEntries.push({ type: "label", id, parentId: this.fileEntries.at(-1).id, timestamp: new Date().toISOString(), targetId, label });
    }
    this.#index();
    if (!this.persist) return undefined;
    if (kept.some((entry) => entry.type === "message" && entry.message.role === "assistant")) this.#write();
    return this.sessionFile;
  }

  isPersisted() {
    return this.persist;
  }
  usesDefaultSessionDir() {
    return this.sessionDir === defaultDirectory(this.cwd);
  }
  getHeader() {
    return this.fileEntries.find((entry) => entry.type === "session") ?? null;
  }
  getSessionName() {
    return this.entries.findLast((entry) => entry.type === "session_info")?.name || undefined;
  }
  getSessionFile() {
    return this.sessionFile;
  }
}

// What reads only is the same as for the running session.
for (const name of Object.keys(session.viewOf(() => {}))) {
  if (name in SessionManager.prototype) continue;
  Object.defineProperty(SessionManager.prototype, name, {
    value(...args) {
      return session.viewOf(() => this)[name](...args);
    },
    writable: true,
    configurable: true,
  });
}

const files = (directory) => {
  if (!fs().existsSync(directory)) return [];
  const names = fs().readdirSync(directory).filter((name) => name.endsWith(".jsonl"));
  return names.sort().reverse().map((name) => path().join(directory, name));
};

const readHeader = (file) => {
  const first = parse(fs().readFileSync(file, "utf8").split("\n", 1)[0])[0];
  return first?.type === "session" ? first : null;
};

function findMostRecent(directory, cwd) {
  const fits = (file) => {
    const header = readHeader(file);
    return header && (cwd === undefined || header.cwd === cwd);
  };
  const found = files(directory).filter(fits).map((file) => ({ file, at: fs().statSync(file).mtimeMs }));
  return found.sort((a, b) => b.at - a.at)[0]?.file ?? null;
}

function describe(file) {
  const [header, ...entries] = parse(fs().readFileSync(file, "utf8"));
  if (header?.type !== "session") return null;
  const messages = entries.filter((entry) => entry.type === "message");
  const said = messages.filter(({ message }) => ["user", "assistant"].includes(message?.role));
  const text = ({ message }) => require("internal/transcript").textOf(message.content);
  const times = said.map(({ message, timestamp }) => message.timestamp ?? Date.parse(timestamp)).filter(Number.isFinite);
  const name = entries.findLast((entry) => entry.type === "session_info")?.name?.trim() || undefined;
  const first = said.find(({ message }) => message.role === "user");
  return {
    path: file,
    id: header.id,
    cwd: typeof header.cwd === "string" ? header.cwd : "",
    name,
    parentSessionPath: header.parentSession,
    created: new Date(header.timestamp),
    modified: times.length ? new Date(Math.max(...times)) : new Date(header.timestamp),
    messageCount: messages.length,
    firstMessage: (first && text(first)) || "(no messages)",
    allMessagesText: said.map(text).filter(Boolean).join(" "),
  };
}

// Reads one file per turn of the event loop, so that a large directory does not occupy the engine.
async function infos(list, onProgress, signal) {
  const found = [];
  for (const [at, file] of list.entries()) {
    signal?.throwIfAborted();
    try {
      const info = describe(file);
      if (info) found.push(info);
    } catch {
      // Another process may have removed it.
    }
    onProgress?.(at + 1, list.length);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return found.sort((a, b) => b.modified - a.modified);
}

module.exports = { SessionManager, defaultDirectory, findMostRecent, migrate, parse, VERSION };
