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

exports.toMessages = (entries) => {
  const messages = [];
  for (const entry of entries) {
    const timestamp = Date.parse(entry.timestamp) || 0;
    if (entry.type === "message") messages.push(entry.message);
    if (entry.type === "custom_message") {
      const { customType, content, display, details } = entry;
      messages.push({ role: "custom", customType, content, display, details, timestamp });
    }
    if (entry.type === "compaction") {
      messages.push({ role: "compactionSummary", summary: entry.summary, tokensBefore: entry.tokensBefore, timestamp });
    }
    if (entry.type === "branch_summary") {
      messages.push({ role: "branchSummary", summary: entry.summary, fromId: entry.fromId, timestamp });
    }
  }
  return messages;
};

exports.makeView = (live) =>
  exports.viewOf(() => {
    live();
    return look();
  });

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
    buildSessionContext: () => {
      const session = see();
      const now = ops.query("state");
      const model = now.model ? { provider: now.model.provider, modelId: now.model.id } : null;
      return { messages: exports.toMessages(contextEntries(branch(session))), thinkingLevel: now.thinkingLevel, model };
    },
    buildSessionProjection: () => {
      const entries = contextEntries(branch(see()));
      return { entries, messages: exports.toMessages(entries) };
    },
  };
};

// A new session: what `setup` writes is sent with the request that creates it.
exports.makeDraft = (entries) => {
  const uuid = () => host.uuid().replace(/-/g, "").slice(0, 8);
  let leafId = null;
  const append = (entry) => {
    const id = uuid();
    entries.push({ ...entry, id, parentId: leafId, timestamp: new Date().toISOString() });
    leafId = id;
    return id;
  };
  return {
    appendMessage: (message) => append({ type: "message", message }),
    appendCustomEntry: (customType, data) => append({ type: "custom", customType, data }),
    appendCustomMessageEntry: (customType, content, display, details) => append({ type: "custom_message", customType, content, display, details }),
    appendThinkingLevelChange: (thinkingLevel) => append({ type: "thinking_level_change", thinkingLevel }),
    appendModelChange: (provider, modelId) => append({ type: "model_change", provider, modelId }),
    appendSessionInfo: (name) => append({ type: "session_info", name }),
    appendLabelChange: (targetId, label) => append({ type: "label", targetId, label }),
    appendCompaction: (summary, firstKeptEntryId, tokensBefore, details) => append({ type: "compaction", summary, firstKeptEntryId, tokensBefore, details }),
    getLeafId: () => leafId,
    getEntries: () => [...entries],
    getEntry: (id) => entries.find((entry) => entry.id === id),
    getBranch: () => [...entries],
    getSessionFile: () => undefined,
    getSessionId: () => undefined,
  };
};
