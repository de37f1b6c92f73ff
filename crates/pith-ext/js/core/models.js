// `modelRegistry`: lists models and calls them.

const owners = require("internal/owners");
const ops = require("internal/ops");

// `ext` is used if the calling extension cannot be determined from the stack.
exports.makeRegistry = (ext, live) => {
  const providers = () => require("internal/providers");
  // What the registry has in common with the runtime that extensions can create for themselves.
  const runtime = () => {
    live();
    const { ModelRuntime } = require("internal/model-runtime");
    return new ModelRuntime();
  };
  const ask = (kind, payload) => {
    live();
    return ops.ask(kind, payload);
  };
  const auth = (model) => ask("model_auth", { provider: model?.provider, model });
  const registry = {
    find: (provider, id) => (live(), ops.query("model", { provider, id }) ?? undefined),
    getAll: () => (live(), ops.query("models", { available: false })),
    getAvailable: () => (live(), ops.query("models", { available: true })),
    getError: () => (live(), ops.query("provider", { provider: null }).error ?? undefined),
    hasConfiguredAuth: (model) => (live(), ops.query("provider", { provider: model?.provider }).hasAuth === true),
    isUsingOAuth: (model) => (live(), ops.query("provider", { provider: model?.provider }).isOAuth === true),
    getProviderDisplayName: (provider) => (live(), ops.query("provider", { provider }).name ?? provider),
    getProviderAuthStatus: (provider) => {
      live();
      const found = ops.query("provider", { provider });
      return { configured: found.hasAuth === true, source: found.source, label: found.label };
    },
    getProvider: (provider) => runtime().getProvider(provider),
    getProviderAuth: (provider) => runtime().getAuth(provider),
    getRegisteredProviderConfig: (provider) => runtime().getRegisteredProviderConfig(provider),
    getRegisteredNativeProvider: (provider) => runtime().getRegisteredNativeProvider(provider),
    getRegisteredProviderIds: () => runtime().getRegisteredProviderIds(),
    getApiKeyAndHeaders: (model) => auth(model),
    getApiKey: async (model) => (await auth(model)).apiKey,
    getApiKeyForProvider: async (provider) => (await ask("model_auth", { provider, model: null })).apiKey,
    refresh: () => ask("refresh_models"),
    registerProvider: (provider, config) => (live(), providers().register(owners.now() ?? ext, provider, config)),
    unregisterProvider: (name) => (live(), providers().unregister(owners.now() ?? ext, name)),
    stream: (model, context, options) => (live(), exports.stream(model, context, options)),
    streamSimple: (model, context, options) => (live(), exports.stream(model, context, options)),
    complete: (model, context, options) => (live(), exports.stream(model, context, options).result()),
    completeSimple: (model, context, options) => (live(), exports.stream(model, context, options).result()),
  };
  registry.authStorage = {
    getApiKey: (provider) => registry.getApiKeyForProvider(provider),
    hasAuth: (provider) => registry.hasConfiguredAuth({ provider }),
    get: () => undefined,
    list: () => [],
  };
  return registry;
};

const plainOptions = (options) => {
  const { signal, onPayload, onResponse, ...rest } = options ?? {};
  return rest;
};

// Calls a model through the agent and returns an event stream like those of providers. With `native` only the agent's
// own clients answer, so that a provider can build on one of them.
exports.stream = (model, context, options = {}, native = false) => {
  const { AssistantMessageEventStream } = require("pi-ai");
  const stream = new AssistantMessageEventStream();
  const ext = owners.now();
  let partial = { role: "assistant", content: [], api: model?.api, provider: model?.provider, model: model?.id, usage: emptyUsage(), stopReason: "stop", timestamp: Date.now() };
  const fold = (event) => {
    if (event.type === "done" || event.type === "error") return stream.push(event);
    partial = exports.fold(partial, event);
    // Token usage matters only for the message itself.
    if (event.type !== "meta") stream.push({ ...event, partial });
  };
  ops
    .open("stream", { model, context: { ...context }, options: plainOptions(options), native }, fold, options?.signal)
    .catch((error) => {
      const reason = options?.signal?.aborted ? "aborted" : "error";
      stream.push({ type: "error", reason, error: { ...partial, stopReason: reason, errorMessage: owners.text(owners.tag(error, ext)) } });
    })
    .finally(() => stream.end());
  return stream;
};

// Models of an extension's own provider are answered by it, all others by the agent.
exports.route = (model, context, options) => {
  const own = require("internal/providers").streamFor(model);
  return own ? own.stream(model, context, options) : exports.stream(model, context, options);
};

const emptyUsage = () => ({ input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } });
exports.emptyUsage = emptyUsage;

// Applies one event of a stream to the message so far.
exports.fold = (partial, event) => {
  const { content } = partial;
  const at = event.contentIndex;
  switch (event.type) {
    case "start":
      return { ...partial, ...event.message };
    case "meta":
      Object.assign(partial, event.fields);
      break;
    case "text_start":
      content[at] = { type: "text", text: "" };
      break;
    case "text_delta":
      content[at].text += event.delta;
      break;
    case "text_end":
      content[at].text = event.content;
      if (event.textSignature) content[at].textSignature = event.textSignature;
      break;
    case "thinking_start":
      content[at] = { type: "thinking", thinking: "" };
      break;
    case "thinking_delta":
      content[at].thinking += event.delta;
      break;
    case "thinking_end":
      content[at].thinking = event.content;
      if (event.thinkingSignature) content[at].thinkingSignature = event.thinkingSignature;
      break;
    case "toolcall_start":
      content[at] = { type: "toolCall", id: event.id, name: event.toolName, arguments: {} };
      break;
    case "toolcall_end":
      content[at] = event.toolCall;
      break;
  }
  return partial;
};
