// `ctx.ui` without a terminal: dialogs and displays are frames for the host, everything else does nothing.

const owners = require("internal/owners");
const ops = require("internal/ops");
const runs = require("internal/runs");
const state = require("internal/state");
const timers = require("internal/timers");
const { assertActive } = require("internal/api");

const open = new Set(); // dialogs waiting for an answer

// `ui_prompt_start` and `ui_prompt_end` surround the outermost dialog.
let depth = 0;
const announce = (type, kind, title) =>
  queueMicrotask(() => {
    const events = require("internal/events");
    if (events.listens(type)) events.emitLocal({ type, reason: "ui_prompt", kind, title });
  });

function dialog(ext, scope, method, fields, fallback, read, options) {
  const { timeout, signal } = options ?? {};
  const isTrust = scope === "trust";
  if (signal?.aborted || !(isTrust ? state.config.trustHasUI : state.config.hasUI)) return Promise.resolve(fallback);
  const id = host.uuid();
  const limit = Number(timeout) > 0 ? Number(timeout) : undefined;
  const resumeBudget = owners.pauseBudget(ext);
  const inRun = scope === "session" && require("internal/context").isRunning() && !runs.isCommand(ext);
  // Several handlers of one extension that decide at the same time cannot be told apart.
  const toolCallId = ext.toolCallDecisions?.size === 1 ? [...ext.toolCallDecisions][0].toolCallId : null;
  if (depth++ === 0) announce("ui_prompt_start", method, fields.title);
  return new Promise((resolve) => {
    const entry = { ext, inRun, id, op: 0, close: null };
    let timer = null;
    entry.close = (value, isWithdrawn) => {
      if (!open.delete(entry)) return;
      ops.forget(entry.op);
      if (timer) timers.clearTimeout(timer);
      signal?.removeEventListener?.("abort", withdraw);
      if (isWithdrawn) ops.send("ui_withdrawn", { id });
      resumeBudget();
      if (--depth === 0) announce("ui_prompt_end", method, fields.title);
      resolve(value);
    };
    const withdraw = () => entry.close(fallback, true);
    open.add(entry);
    const { op, promise } = ops.begin((op) =>
      host.ask(op, "ui", JSON.stringify({ id, method, ...fields, timeout: limit, toolCallId })),
    );
    entry.op = op;
    promise.then(
      (answer) => entry.close(read(answer) ?? fallback, false),
      () => {
        owners.noteMissing("nobody can answer its question", ext);
        entry.close(fallback, false);
      },
    );
    if (limit) timer = timers.setTimeout(withdraw, limit);
    signal?.addEventListener?.("abort", withdraw);
  });
}

const closeWhere = (test) => {
  for (const entry of [...open]) {
    if (!test(entry)) continue;
    owners.noteMissing("its question was withdrawn", entry.ext);
    entry.close(undefined, true);
  }
};

// Dialogs that belong to a run end with it.
exports.cancelRun = () => closeWhere((entry) => entry.inRun);
// No dialog outlives its generation.
exports.cancelAll = () => closeWhere(() => true);

const value = (answer) => (typeof answer?.value === "string" ? answer.value : undefined);
const confirmed = (answer) => (typeof answer?.confirmed === "boolean" ? answer.confirmed : undefined);
const noop = () => {};

exports.makeUi = (ext, scope) => {
  const live = () => assertActive(ext);
  const show = (method, fields) => {
    live();
    if (state.config.hasUI) ops.send("ui", { id: host.uuid(), method, ...fields });
  };
  const ask = (method, fields, fallback, read, options) => {
    live();
    return dialog(ext, scope, method, fields, fallback, read, options);
  };
  const text = (given) => (given === undefined || given === null ? undefined : String(given));
  return {
    select: (title, choices, options) =>
      ask("select", { title: String(title), options: Array.isArray(choices) ? choices.map(String) : [] }, undefined, value, options),
    confirm: (title, message, options) =>
      ask("confirm", { title: String(title), message: text(message) ?? "" }, false, confirmed, options).then((answer) => answer ?? false),
    input: (title, placeholder, options) =>
      ask("input", { title: String(title), placeholder: text(placeholder) }, undefined, value, options),
    editor: (title, prefill, options) => ask("editor", { title: String(title), prefill: text(prefill) }, undefined, value, options),
    notify: (message, type) => show("notify", { message: String(message), notifyType: text(type) }),
    setStatus: (key, status) => show("setStatus", { statusKey: String(key), statusText: text(status) }),
    setWidget: (key, content, options) => {
      live();
      if (content !== undefined && !Array.isArray(content)) return;
      show("setWidget", { widgetKey: String(key), widgetLines: content?.map(String), widgetPlacement: text(options?.placement) });
    },
    setTitle: (title) => show("setTitle", { title: String(title) }),
    setEditorText: (content) => show("set_editor_text", { text: String(content) }),
    pasteToEditor: (content) => show("set_editor_text", { text: String(content) }),
    getEditorText: () => (live(), ""),
    getToolsExpanded: () => (live(), false),
    getEditorComponent: () => (live(), undefined),
    custom: async () => {
      live();
      // In other modes nothing is shown under pi either.
      if (state.config.mode === "tui") owners.noteMissing("ctx.ui.custom is not available in pith", ext);
    },
    get theme() {
      live();
      return require("internal/theme").theme;
    },
    getAllThemes: () => (live(), []),
    getTheme: () => (live(), undefined),
    setTheme: () => {
      live();
      return { success: false, error: state.config.hasUI ? "Theme switching not supported in RPC mode" : "UI not available" };
    },
    onTerminalInput: () => (live(), noop),
    setWorkingMessage: live,
    setWorkingVisible: live,
    setWorkingIndicator: live,
    setHiddenThinkingLabel: live,
    setFooter: live,
    setHeader: live,
    addAutocompleteProvider: live,
    setEditorComponent: live,
    setToolsExpanded: live,
  };
};
