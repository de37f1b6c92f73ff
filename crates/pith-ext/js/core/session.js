// The session as extensions read it: entries are fetched once and cached.

const ops = require("internal/ops");

let known = { sessionId: null, entries: [], byId: new Map() };

// The current session; only entries appended since the last call are fetched.
function look() {
  const from = known.entries.length;
  const now = ops.query("session", { sessionId: known.sessionId, from });
  if (now.sessionId !== known.sessionId || now.from !== from) {
    known = { sessionId: now.sessionId, entries: [], byId: new Map() };
  }
  for (const entry of now.entries) {
    known.entries.push(entry);
    known.byId.set(entry.id, entry);
  }
  return Object.assign(now, { entries: known.entries, byId: known.byId });
}

// Whether there is an entry with that id.
exports.has = (id) => look().byId.has(id);

function branch(session, fromId) {
  const path = [];
  const seen = new Set();
  for (let id = fromId ?? session.leafId; id && !seen.has(id); ) {
    seen.add(id);
    const entry = session.byId.get(id);
    if (!entry) break;
    path.push(entry);
    id = entry.parentId;
  }
  return path.reverse();
}

function labels(session) {
  const found = new Map();
  for (const entry of session.entries) {
    if (entry.type !== "label") continue;
    if (entry.label) found.set(entry.targetId, { label: entry.label, timestamp: entry.timestamp });
    else found.delete(entry.targetId);
  }
  return found;
}

function tree(session) {
  const nodes = new Map();
  const named = labels(session);
  const roots = [];
  for (const entry of session.entries) {
    const label = named.get(entry.id);
    nodes.set(entry.id, { entry, children: [], label: label?.label, labelTimestamp: label?.timestamp });
  }
  for (const node of nodes.values()) {
    const parent = node.entry.parentId ? nodes.get(node.entry.parentId) : null;
    (parent && parent !== node ? parent.children : roots).push(node);
  }
  return roots;
}

// Entries that the model sees: from the last compaction on, if there is one.
function contextEntries(path) {
  const last = path.findLastIndex((entry) => entry.type === "compaction");
  if (last < 0) return path;
  const compaction = path[last];
  const kept = path.findIndex((entry) => entry.id === compaction.firstKeptEntryId);
  return [compaction, ...(kept >= 0 && kept < last ? path.slice(kept, last) : []), ...path.slice(last + 1)];
}

exports.contextEntries = contextEntries;

// The message that an entry is for the model, if it is one.
function messageOf(entry) {
  const timestamp = Date.parse(entry.timestamp) || 0;
  switch (entry.type) {
    case "message":
      return entry.message;
    case "custom_message": {
      const { customType, content, display, details } = entry;
      return { role: "custom", customType, content, display, details, timestamp };
    }
    case "compaction":
      return { role: "compactionSummary", summary: entry.summary, tokensBefore: entry.tokensBefore, timestamp };
    case "branch_summary":
      return { role: "branchSummary", summary: entry.summary, fromId: entry.fromId, timestamp };
    default:
      return undefined;
  }
}

// Entries with their messages. A `context_edit` replaces the content of an earlier message, or takes it out.
function projected(entries) {
  const edits = new Map(entries.filter(({ type }) => type === "context_edit").map((entry) => [entry.targetId, entry.replacement]));
  return entries.map((sourceEntry) => {
    const message = messageOf(sourceEntry);
    const edit = edits.get(sourceEntry.id);
    if (!message || edit === null) return { sourceEntry, messages: [] };
    return { sourceEntry, messages: [edit ? { ...message, content: edit.content } : message] };
  });
}

exports.toMessages = (entries) => projected(entries).flatMap(({ messages }) => messages);

// The model and thinking level that the entries of a branch name last.
exports.choices = (path) => {
  let thinkingLevel = "off";
  let model = null;
  for (const entry of path) {
    if (entry.type === "thinking_level_change") ({ thinkingLevel } = entry);
    if (entry.type === "model_change") model = { provider: entry.provider, modelId: entry.modelId };
    if (entry.type === "message" && entry.message.role === "assistant") model = { provider: entry.message.provider, modelId: entry.message.model };
  }
  return { thinkingLevel, model };
};

exports.projection = (path) => {
  const entries = projected(contextEntries(path));
  return { entries, messages: entries.flatMap(({ messages }) => messages), ...exports.choices(path) };
};

// The session itself, as its extensions see it.
exports.makeView = (live) => {
  const view = exports.viewOf(() => {
    live();
    return look();
  });
  view.buildSessionContext = () => {
    const now = ops.query("state");
    const model = now.model ? { provider: now.model.provider, modelId: now.model.id } : null;
    return { messages: view.buildSessionProjection().messages, thinkingLevel: now.thinkingLevel, model };
  };
  view.usesDefaultSessionDir = () => view.getSessionDir() === require("internal/session-manager").defaultDirectory(view.getCwd());
  // Writes the branch to a file of its own; this session stays where it is.
  view.createBranchedSession = (leafId) => {
    const { SessionManager } = require("internal/session-manager");
    const entries = [view.getHeader(), ...view.getEntries()].filter(Boolean);
    return SessionManager.copyOf(entries, view.getCwd(), view.getSessionDir(), view.getSessionFile()).createBranchedSession(leafId);
  };
  return view;
};

// The reading functions over the session that `see` returns.
exports.viewOf = (see) => {
  return {
    getCwd: () => see().cwd,
    getSessionDir: () => see().sessionDir,
    getSessionId: () => see().sessionId,
    getSessionFile: () => see().sessionFile ?? undefined,
    getLeafId: () => see().leafId ?? null,
    getLeafEntry: () => {
      const session = see();
      return session.leafId ? session.byId.get(session.leafId) : undefined;
    },
    getEntry: (id) => see().byId.get(id),
    getLabel: (id) => labels(see()).get(id)?.label,
    getBranch: (fromId) => branch(see(), fromId),
    getEntries: () => [...see().entries],
    getChildren: (parentId) => see().entries.filter((entry) => entry.parentId === parentId),
    getTree: () => tree(see()),
    getHeader: () => see().header ?? null,
    getSessionName: () => see().name ?? undefined,
    isPersisted: () => !!see().sessionFile,
    buildContextEntries: () => contextEntries(branch(see())),
    buildSessionProjection: () => exports.projection(branch(see())),
    buildSessionContext: () => {
      const { messages, thinkingLevel, model } = exports.projection(branch(see()));
      return { messages, thinkingLevel, model };
    },
  };
};
