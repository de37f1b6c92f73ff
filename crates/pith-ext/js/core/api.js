// `pi`: the object that an extension's factory gets.

const owners = require("internal/owners");
const ops = require("internal/ops");
const state = require("internal/state");

const NOT_READY = "Extension runtime not initialized. Action methods cannot be called during extension loading.";
const STALE =
  "This extension ctx is stale after session replacement or reload. Do not use a captured pi or command ctx after " +
  "ctx.newSession(), ctx.fork(), ctx.switchSession(), or ctx.reload(); move such work into withSession or the new instance.";

class StaleError extends Error {
  constructor() {
    super(STALE);
    this.code = "PITH_STALE";
  }
}

exports.assertActive = (ext) => {
  if (ext.isFailed) throw new Error(`Extension "${ext.path}" failed to load and its API is no longer active.`);
  if (ext.generation.phase === "stale") throw new StaleError();
};

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

// Tells the agent what is registered, after the extension is loaded and whenever it changes later.
exports.publish = () => host.registry(JSON.stringify(summary()));

function summary() {
  const listening = new Set();
  const tools = [];
  const commands = [];
  const flags = [];
  const shortcuts = [];
  const mcpServers = exports.mcpServers();
  const taken = new Set();
  for (const ext of state.extensions()) {
    for (const [name, handlers] of ext.handlers) if (handlers.length) listening.add(name);
    // The first extension that registers a name keeps it.
    for (const tool of ext.tools.values()) {
      if (taken.has(tool.info.name)) continue;
      taken.add(tool.info.name);
      tools.push(tool.info);
    }
    for (const flag of ext.flags.values()) if (!flags.some((known) => known.name === flag.name)) flags.push(flag);
    for (const [key, shortcut] of ext.shortcuts) shortcuts.push({ key, description: shortcut.description, extensionPath: ext.path });
  }
  for (const command of exports.commands()) {
    const { name, ext, definition } = command;
    const description = typeof definition.description === "string" ? definition.description : undefined;
    commands.push({ name, description, sourceInfo: ext.sourceInfo, extensionPath: ext.path, completes: !!definition.getArgumentCompletions });
  }
  return { listening: [...listening], tools, commands, flags, shortcuts, mcpServers };
}

// MCP servers; the first extension that registers a name keeps it.
exports.mcpServers = () => {
  const servers = [];
  for (const ext of state.extensions()) {
    for (const [name, config] of ext.mcpServers) {
      if (!servers.some((known) => known.name === name)) servers.push({ name, config, extensionPath: ext.path });
    }
  }
  return servers;
};

// Commands by the names that call them: clashes get `:1`, `:2`, … in load order.
exports.commands = () => {
  const all = [];
  for (const ext of state.extensions()) for (const [name, definition] of ext.commands) all.push({ name, ext, definition });
  const count = new Map();
  for (const { name } of all) count.set(name, (count.get(name) ?? 0) + 1);
  const used = new Set(all.filter(({ name }) => count.get(name) === 1).map(({ name }) => name));
  return all.map((command) => {
    if (count.get(command.name) === 1) return command;
    let number = 1;
    while (used.has(`${command.name}:${number}`)) number++;
    const name = `${command.name}:${number}`;
    used.add(name);
    return { ...command, name };
  });
};

function describeTool(ext, definition) {
  if (!isObject(definition) || typeof definition.name !== "string" || !definition.name) {
    throw new Error("registerTool: the definition needs a name");
  }
  if (!isObject(definition.parameters)) {
    throw new Error(`Tool "${definition.name}": parameters must be a JSON Schema object`);
  }
  if (typeof definition.execute !== "function") throw new Error(`Tool "${definition.name}": execute must be a function`);
  const text = (value) => (typeof value === "string" ? value : undefined);
  return {
    name: definition.name,
    label: text(definition.label) ?? definition.name,
    description: text(definition.description) ?? "",
    // TypeBox hides its own marks from JSON, so what remains is plain JSON Schema.
    parameters: JSON.parse(JSON.stringify(definition.parameters)),
    promptSnippet: text(definition.promptSnippet),
    promptGuidelines: Array.isArray(definition.promptGuidelines) ? definition.promptGuidelines.filter((line) => typeof line === "string") : undefined,
    executionMode: definition.executionMode === "sequential" ? "sequential" : "parallel",
    prepares: typeof definition.prepareArguments === "function",
    strict: isObject(definition.constrainedSampling),
    extensionPath: ext.path,
    sourceInfo: ext.sourceInfo,
  };
}

exports.makeApi = (ext) => {
  const { generation } = ext;
  const live = () => exports.assertActive(ext);
  const bound = () => {
    live();
    if (generation.phase === "loading") throw new Error(NOT_READY);
  };
  const changed = () => {
    if (generation.phase === "bound") {
      exports.publish();
      ops.send("registry_changed");
    }
  };

  const pi = {
    on(event, fn) {
      live();
      if (typeof fn !== "function") throw new Error(`on("${event}"): the handler must be a function`);
      const list = ext.handlers.get(event) ?? [];
      const entry = { fn };
      // A dispatch in progress keeps using the old list.
      ext.handlers.set(event, [...list, entry]);
      if (generation.phase === "bound") exports.publish();
      return () => {
        ext.handlers.set(event, (ext.handlers.get(event) ?? []).filter((known) => known !== entry));
        if (generation.phase === "bound") exports.publish();
      };
    },

    registerTool(definition) {
      live();
      const info = describeTool(ext, definition);
      ext.tools.set(info.name, { info, definition });
      changed();
    },

    registerCommand(name, definition) {
      live();
      if (typeof name !== "string" || !name) throw new Error("registerCommand: the name must be a string");
      if (typeof definition?.handler !== "function") throw new Error(`Command "${name}": handler must be a function`);
      ext.commands.set(name, definition);
      changed();
    },

    registerShortcut(key, definition) {
      live();
      ext.shortcuts.set(String(key), definition ?? {});
    },

    registerFlag(name, options = {}) {
      live();
      const { type, description } = options;
      if (type !== "boolean" && type !== "string") throw new Error(`Flag "--${name}": type must be "boolean" or "string"`);
      if (options.default !== undefined && typeof options.default !== type) {
        throw new Error(`Flag "--${name}": default must be a ${type}`);
      }
      ext.flags.set(name, { name, type, description, default: options.default, extensionPath: ext.path });
      if (options.default !== undefined && !generation.flagValues.has(name)) {
        if (ext.isLoading) ext.flagDefaults.set(name, options.default);
        else generation.flagValues.set(name, options.default);
      }
    },

    getFlag(name) {
      live();
      if (!ext.flags.has(name)) return undefined;
      return generation.flagValues.has(name) ? generation.flagValues.get(name) : ext.flagDefaults.get(name);
    },

    registerMessageRenderer(customType, fn) {
      live();
      ext.renderers.push({ kind: "message", customType, fn });
    },
    registerEntryRenderer(customType, fn) {
      live();
      ext.renderers.push({ kind: "entry", customType, fn });
    },
    registerMarkdownTransformer(fn) {
      live();
      ext.renderers.push({ kind: "markdown", fn });
    },

    sendMessage(message, options) {
      bound();
      require("internal/actions").sendMessage(message, options);
    },
    sendUserMessage(content, options) {
      bound();
      require("internal/actions").sendUserMessage(content, options);
    },
    appendEntry(customType, data) {
      bound();
      ops.send("append_entry", { customType: String(customType), data });
    },

    setSessionName(name) {
      bound();
      ops.send("set_session_name", { name: String(name) });
    },
    getSessionName() {
      bound();
      return ops.query("state").sessionName ?? undefined;
    },
    setLabel(entryId, label) {
      bound();
      if (!require("internal/session").has(entryId)) throw new Error(`Entry ${entryId} not found`);
      ops.send("set_label", { entryId, label: label === undefined ? null : String(label) });
    },

    exec(command, args, options) {
      live();
      return require("internal/exec").exec(ext, command, args, options);
    },

    getActiveTools() {
      bound();
      return ops.query("tools").active;
    },
    getAllTools() {
      bound();
      return ops.query("tools").all;
    },
    setActiveTools(names) {
      bound();
      if (!Array.isArray(names)) throw new Error("setActiveTools: an array of tool names is expected");
      ops.send("set_active_tools", { names: names.map(String) });
    },
    getCommands() {
      bound();
      return ops.query("commands");
    },

    async setModel(model) {
      bound();
      return ops.ask("set_model", { model });
    },
    getThinkingLevel() {
      bound();
      return ops.query("state").thinkingLevel;
    },
    setThinkingLevel(level) {
      bound();
      ops.send("set_thinking_level", { level: String(level) });
    },

    registerProvider(provider, config) {
      live();
      require("internal/providers").register(ext, provider, config);
    },
    unregisterProvider(name) {
      live();
      require("internal/providers").unregister(ext, String(name));
    },

    registerMcpServer(name, config) {
      live();
      if (typeof name !== "string" || !name) throw new Error("registerMcpServer: the name must be a string");
      if (!isObject(config)) throw new Error(`registerMcpServer("${name}"): a configuration object is expected`);
      ext.mcpServers.set(name, JSON.parse(JSON.stringify(config)));
      changed();
    },
    unregisterMcpServer(name) {
      live();
      if (ext.mcpServers.delete(name)) changed();
    },
    getMcpServers() {
      bound();
      return exports.mcpServers();
    },

    events: {
      emit(channel, data) {
        live();
        for (const { fn, ext: listener } of [...(generation.bus.get(channel) ?? [])]) {
          try {
            const result = fn(data);
            result?.then?.(undefined, (error) => busFailure(listener, channel, error));
          } catch (error) {
            busFailure(listener, channel, error);
          }
        }
      },
      on(channel, fn) {
        live();
        const entry = { fn, ext };
        if (!generation.bus.has(channel)) generation.bus.set(channel, new Set());
        generation.bus.get(channel).add(entry);
        return () => generation.bus.get(channel)?.delete(entry);
      },
    },
  };
  return pi;
};

const busFailure = (ext, channel, error) => host.log(`Event bus handler error in ${ext.path} (${channel}): ${owners.text(error)}\n`);
