// @earendil-works/pi-coding-agent.

const state = require("internal/state");
const core = require("pi-agent-core");
const truncate = require("internal/truncate");
const tools = require("internal/native-tools");
const components = require("internal/components");
const { Theme, theme } = require("internal/theme");
const { fill, headless } = require("internal/stubs");

Object.assign(exports, truncate, tools);
for (const name of ["convertToLlm", "serializeConversation", "estimateTokens", "calculateContextTokens", "getLastAssistantUsage"]) exports[name] = core[name];

const lazy = (name, get) => Object.defineProperty(exports, name, { get, enumerable: true, configurable: true });
lazy("CONFIG_DIR_NAME", () => state.config.configDirName);
lazy("VERSION", () => state.config.version);
Object.assign(exports, {
  APP_NAME: "pi",
  getAgentDir: () => state.config.agentDir,
  getPackageDir: () => require("path").dirname(process.execPath),
  getReadmePath: () => require("path").join(exports.getPackageDir(), "README.md"),
  getDocsPath: () => require("path").join(exports.getPackageDir(), "docs"),
  getExamplesPath: () => require("path").join(exports.getPackageDir(), "examples"),
  defineTool: (tool) => tool,
  Theme,
  theme,
  DynamicBorder: components.DynamicBorder,
  BorderedLoader: components.BorderedLoader,
  CustomEditor: class CustomEditor extends components.Editor {
    constructor(tui, editorTheme, keybindings, options) {
      super(tui, editorTheme, options);
      this.keybindings = keybindings;
      this.actionHandlers = new Map();
    }
    onAction(action, handler) {
      this.actionHandlers.set(action, handler);
    }
  },
});

headless(exports, { initTheme: () => {}, highlightCode: (code) => String(code).split("\n"), renderDiff: (diff) => String(diff) });

// Most extensions need few of these: each module is evaluated when one of its names is first used.
const from = (module, ...names) => {
  for (const name of names) lazy(name, () => require(module)[name]);
};
from("internal/files", "AuthStorage", "FileAuthStorageBackend", "InMemoryAuthStorageBackend", "ModelRegistry", "readStoredCredential");
from("internal/settings-manager", "SettingsManager");
from("internal/session-manager", "SessionManager");
from("internal/agent-session", "AgentSession");
from("internal/agent-sessions", "AgentSessionRuntime", "createAgentSession", "createAgentSessionFromServices", "createAgentSessionRuntime", "createAgentSessionServices");
from("internal/model-runtime", "ModelRuntime", "CredentialSynchronizationError", "resolveCliModel", "resolveModelScopeWithDiagnostics");
from("internal/packages", "DefaultPackageManager", "ProjectTrustStore", "hasTrustRequiringProjectResources");
from("internal/resources", "DefaultResourceLoader", "formatSkillsForPrompt", "loadProjectContextFiles", "loadSkills", "loadSkillsFromDir");
from("internal/compaction", "DEFAULT_COMPACTION_SETTINGS", "collectEntriesForBranchSummary", "compact", "findCutPoint", "findTurnStartIndex", "generateBranchSummary", "generateSummary", "generateSummaryWithUsage", "prepareBranchEntries", "shouldCompact");
from("internal/media", "detectSupportedImageMimeTypeFromFile", "formatDimensionNote", "generateDiffString", "generateUnifiedPatch");
from("internal/rpc-client", "RpcClient");
lazy("CURRENT_SESSION_VERSION", () => require("internal/session-manager").VERSION);

// Tells which tool an event is about.
const isTool = (...names) => (event) => names.includes(event?.toolName);
Object.assign(exports, {
  isToolCallEventType: (name, event) => event?.type === "tool_call" && event.toolName === name,
  isBashToolResult: isTool("bash"), isReadToolResult: isTool("read"), isEditToolResult: isTool("edit"), isWriteToolResult: isTool("write"), isGrepToolResult: isTool("grep"), isFindToolResult: isTool("find"), isLsToolResult: isTool("ls"), isPowerShellToolResult: isTool("powershell"),
});

// Front matter: keys and simple values.
const scalar = (text) => {
  const value = text.trim();
  const quoted = /^"((?:[^"\\]|\\.)*)"$|^'((?:[^']|'')*)'$/.exec(value);
  if (quoted) return quoted[1] !== undefined ? quoted[1].replace(/\\(.)/g, (_, c) => ({ n: "\n", t: "\t" })[c] ?? c) : quoted[2].replace(/''/g, "'");
  if (/^\[.*\]$/.test(value)) return value.slice(1, -1).split(",").map((item) => item.trim()).filter(Boolean).map(scalar);
  const bare = value.replace(/\s+#.*$/, "");
  if (bare === "" || bare === "null" || bare === "~") return bare === "" ? "" : null;
  if (bare === "true" || bare === "false") return bare === "true";
  return /^-?\d+(\.\d+)?$/.test(bare) ? Number(bare) : bare;
};

function parseYaml(text) {
  const result = {};
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const match = /^([A-Za-z_][\w-]*)\s*:(?:\s+(.*)|\s*)$/.exec(lines[at].replace(/\r$/, ""));
    if (!match) continue;
    const inner = [];
    while (at + 1 < lines.length && (/^\s+\S/.test(lines[at + 1]) || lines[at + 1].trim() === "" || /^-\s/.test(lines[at + 1]))) inner.push(lines[++at].replace(/\r$/, ""));
    const given = (match[2] ?? "").trim();
    const block = /^([|>])[+-]?$/.exec(given);
    const items = inner.filter((line) => /^\s*-\s/.test(line));
    if (block) {
      const indent = /^\s*/.exec(inner.find((line) => line.trim()) ?? "")[0].length;
      const body = inner.map((line) => line.slice(indent)).join("\n").trimEnd();
      result[match[1]] = block[1] === "|" ? `${body}\n` : `${body.replace(/([^\n])\n(?!\n)/g, "$1 ")}\n`;
    } else if (given === "" && items.length) result[match[1]] = items.map((line) => scalar(line.replace(/^\s*-\s/, "")));
    else if (given === "" && inner.some((line) => line.trim())) result[match[1]] = parseYaml(inner.map((line) => line.replace(/^\s+/, "")).join("\n"));
    else result[match[1]] = scalar([given, ...inner.map((line) => line.trim())].filter(Boolean).join(" "));
  }
  return result;
}

exports.parseFrontmatter = (content) => {
  const text = String(content).replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
  const match = /^---\n([\s\S]*?)\n---[ \t]*(?:\n|$)/.exec(text);
  if (!match) return { frontmatter: {}, body: text };
  return { frontmatter: parseYaml(match[1]), body: text.slice(match[0].length).trim() };
};
exports.stripFrontmatter = (content) => exports.parseFrontmatter(content).body;

// Themes for components.
const paint = (color) => (text) => theme.fg(color, text);
exports.getMarkdownTheme = () => ({ heading: paint("mdHeading"), link: paint("mdLink"), linkUrl: paint("mdLinkUrl"), code: paint("mdCode"), codeBlock: paint("mdCodeBlock"), codeBlockBorder: paint("mdCodeBlockBorder"), quote: paint("mdQuote"), quoteBorder: paint("mdQuoteBorder"), hr: paint("mdHr"), listBullet: paint("mdListBullet"), bold: (text) => theme.bold(text), italic: (text) => theme.italic(text), underline: (text) => theme.underline(text), strikethrough: (text) => theme.strikethrough(text), highlightCode: (code) => code.split("\n") });
exports.getSelectListTheme = () => ({ selectedPrefix: paint("accent"), selectedText: paint("accent"), description: paint("muted"), scrollInfo: paint("muted"), noMatch: paint("muted") });
exports.getSettingsListTheme = () => ({ label: (text, isSelected) => (isSelected ? theme.fg("accent", text) : text), value: (text, isSelected) => theme.fg(isSelected ? "accent" : "muted", text), description: paint("dim"), cursor: theme.fg("accent", "→ "), hint: paint("dim") });

const keyText = (name) => require("internal/keys").getKeybindings().getKeys(name).join("/") || String(name);
Object.assign(exports, {
  keyText,
  keyHint: (name, description) => theme.fg("dim", keyText(name)) + theme.fg("muted", ` ${description}`),
  rawKeyHint: (key, description) => theme.fg("dim", key) + theme.fg("muted", ` ${description}`),
  appKeyHint: (_, name, description) => theme.fg("dim", keyText(name)) + theme.fg("muted", ` ${description}`),
  editorKey: keyText,
  truncateToVisualLines: (text, maxLines, width) => {
    const lines = require("internal/text").wrapTextWithAnsi(text, width);
    return { visualLines: lines.slice(-maxLines), skippedCount: Math.max(0, lines.length - maxLines) };
  },
});

const languages = { ts: "typescript", tsx: "typescript", mts: "typescript", js: "javascript", jsx: "javascript", mjs: "javascript", cjs: "javascript", py: "python", rs: "rust", go: "go", rb: "ruby", java: "java", c: "c", h: "c", cpp: "cpp", cs: "csharp", sh: "bash", bash: "bash", zsh: "bash", json: "json", yaml: "yaml", yml: "yaml", toml: "toml", md: "markdown", html: "html", css: "css", sql: "sql", swift: "swift", kt: "kotlin", php: "php", lua: "lua" };
exports.getLanguageFromPath = (path) => languages[require("path").extname(String(path)).slice(1).toLowerCase()];

// Sessions as data.
const session = () => require("internal/session");
const pathTo = (entries, leafId) => {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const path = [];
  for (let entry = leafId === undefined ? entries.at(-1) : byId.get(leafId); entry; entry = byId.get(entry.parentId)) path.unshift(entry);
  return path;
};
Object.assign(exports, {
  buildContextEntries: (entries, leafId) => session().contextEntries(pathTo(entries, leafId)),
  buildSessionProjection: (entries, leafId) => session().projection(pathTo(entries, leafId)),
  buildSessionContext: (entries, leafId) => {
    const { messages, thinkingLevel, model } = session().projection(pathTo(entries, leafId));
    return { messages, thinkingLevel, model };
  },
  sessionEntryToContextMessages: (entry) => session().toMessages([entry]),
  getLatestCompactionEntry: (entries) => [...entries].reverse().find((entry) => entry.type === "compaction") ?? null,
  parseSessionEntries: (content) => require("internal/session-manager").parse(content),
  migrateSessionEntries: (entries) => void require("internal/session-manager").migrate(entries),
  parseSkillBlock: (text) => {
    const match = /^<skill name="([^"]*)" location="([^"]*)">\n([\s\S]*?)\n<\/skill>(?:\n\n([\s\S]*))?$/.exec(text);
    return match ? { name: match[1], location: match[2], content: match[3], userMessage: match[4] } : null;
  },
  createSyntheticSourceInfo: (path, { source, scope = "temporary", origin = "top-level", baseDir }) => ({ path, source, scope, origin, baseDir }),
  createEventBus: () => {
    const channels = new Map();
    return {
      emit: (channel, data) => {
        for (const listener of [...(channels.get(channel) ?? [])]) listener(data);
      },
      on: (channel, fn) => {
        if (!channels.has(channel)) channels.set(channel, new Set());
        channels.get(channel).add(fn);
        return () => channels.get(channel)?.delete(fn);
      },
      clear: () => channels.clear(),
    };
  },
  getShellConfig: () => ({ shell: require("fs").existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh", args: ["-c"] }),
});

// Uses whatever clipboard program the desktop has.
exports.copyToClipboard = async (text) => {
  const { spawn } = require("child_process");
  const programs = process.platform === "darwin" ? [["pbcopy"]] : [["wl-copy"], ["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]];
  for (const [program, ...args] of programs) {
    const isDone = await new Promise((resolve) => {
      const child = spawn(program, args, { stdio: ["pipe", "ignore", "ignore"] });
      child.on("error", () => resolve(false));
      child.on("close", (code) => resolve(code === 0));
      child.stdin?.end(text);
    });
    if (isDone) return;
  }
  throw new Error("No clipboard program was found");
};

// A tool of an extension as the agent loop takes it.
exports.wrapRegisteredTool = ({ definition, extensionPath }) => {
  const ext = state.extensions().find((known) => known.path === extensionPath) ?? require("internal/owners").now();
  return { ...definition, execute: (id, params, signal, onUpdate) => definition.execute(id, params, signal, onUpdate, state.contextFor(ext)) };
};
exports.wrapRegisteredTools = (tools) => tools.map((tool) => exports.wrapRegisteredTool(tool));

// What a resource loader of an extension's own hands to the sessions it starts. No extension is loaded into those, so
// nothing is ever bound to it.
exports.createExtensionRuntime = () => {
  const unbound = () => {
    throw new Error("Extension runtime not initialized. Action methods cannot be called during extension loading.");
  };
  const actions = ["sendMessage", "sendUserMessage", "appendEntry", "setSessionName", "getSessionName", "setLabel", "getActiveTools", "getAllTools", "setActiveTools", "getCommands", "getThinkingLevel", "setThinkingLevel"];
  const runtime = {
    ...Object.fromEntries(actions.map((name) => [name, unbound])),
    refreshTools: () => {},
    setModel: async () => unbound(),
    flagValues: new Map(),
    pendingProviderRegistrations: [],
    pendingNativeProviderRegistrations: [],
    assertActive: () => {},
    invalidate: () => {},
    trackEventBusSubscription: (unsubscribe) => unsubscribe,
    registerProvider: (name, config, extensionPath = "<unknown>") => void runtime.pendingProviderRegistrations.push({ name, config, extensionPath }),
    registerNativeProvider: (provider, extensionPath = "<unknown>") => void runtime.pendingNativeProviderRegistrations.push({ provider, extensionPath }),
    unregisterProvider: (gone) => {
      runtime.pendingProviderRegistrations = runtime.pendingProviderRegistrations.filter(({ name }) => name !== gone);
      runtime.pendingNativeProviderRegistrations = runtime.pendingNativeProviderRegistrations.filter(({ provider }) => provider.id !== gone);
    },
  };
  return runtime;
};

fill(exports, ["ExtensionRunner", "discoverAndLoadExtensions"], "is not available to extensions in pith: extensions are loaded by the agent");
fill(exports, ["main", "parseArgs", "runPrintMode", "runRpcMode"], 'is not available in pith: start process.execPath, for example with "--mode json -p"');
fill(exports, ["convertToPng", "resizeImage"], "is not available in pith: the agent resizes pictures before it sends them");
fill(exports, ["createLocalPowerShellOperations", "createPowerShellTool", "createPowerShellToolDefinition", "getPowerShellConfig"], "is not available in pith: there is no PowerShell tool");
fill(
  exports,
  ["InteractiveMode", "ArminComponent", "AssistantMessageComponent", "BashExecutionComponent", "BranchSummaryMessageComponent", "CompactionSummaryMessageComponent", "CustomMessageComponent", "ExtensionEditorComponent", "ExtensionInputComponent", "ExtensionSelectorComponent", "FooterComponent", "LoginDialogComponent", "ModelSelectorComponent", "OAuthSelectorComponent", "SessionSelectorComponent", "SettingsSelectorComponent", "ShowImagesSelectorComponent", "SkillInvocationMessageComponent", "ThemeSelectorComponent", "ThinkingSelectorComponent", "ToolExecutionComponent", "TreeSelectorComponent", "UserMessageComponent", "UserMessageSelectorComponent"],
  "needs a terminal",
);
