// Model providers that extensions register.

const owners = require("internal/owners");
const ops = require("internal/ops");
const runs = require("internal/runs");
const state = require("internal/state");
const { methods } = require("internal/calls");

const byName = new Map(); // provider name -> registration
const byApi = new Map(); // api name -> { stream, streamSimple }

const isFunction = (value) => typeof value === "function";

function describe(ext, provider, config) {
  if (typeof provider === "string") {
    if (config === null || typeof config !== "object") throw new Error(`registerProvider("${provider}"): a configuration object is expected`);
    return { ext, name: provider, config, native: null };
  }
  const id = provider?.id ?? provider?.name;
  if (typeof id !== "string") throw new Error("registerProvider: the provider needs an id");
  return { ext, name: id, config: null, native: provider };
}

exports.register = (ext, provider, config) => {
  const registration = describe(ext, provider, config);
  // All registrations, in order: each is merged over the previous one.
  if (ext.isLoading || ext.generation.phase === "loading") ext.providers.push(registration);
  else exports.apply(registration);
};

// Registers a provider. Returns a promise if the extension has yet to find the key: until it has, the models are known
// and cannot be used.
exports.apply = (registration) => {
  const { ext, native } = registration;
  if (!isFunction(native?.auth?.apiKey?.resolve)) return tell(registration, false);
  tell(registration, true);
  const settle = (outcome) => {
    if (outcome.ok && byName.get(registration.name) === registration) tell(registration, false);
  };
  return new Promise((resolve) => runs.start(ext, () => nativeAuth(registration, {}), (outcome) => resolve(settle(outcome)), state.limits.handlerMs));
};

function tell(registration, lacksKey) {
  const { ext, name, config, native } = registration;
  const before = byName.get(name);
  try {
    if (isFunction(config?.streamSimple) && !config.api) throw new Error(`Provider ${name}: "api" is required when registering streamSimple.`);
    // Members that a configuration leaves out keep their values.
    if (config && before?.config) registration.config = { ...before.config, ...defined(config) };
    byName.set(name, registration);
    const oauth = loginOf({ config, native });
    ops.send("register_provider", {
      name,
      extensionPath: ext.path,
      config: native ? nativeConfig(native, lacksKey) : plainConfig(config),
      lacksKey,
      streams: isFunction(config?.streamSimple) || isFunction(native?.streamSimple) || isFunction(native?.stream) || (config?.api !== undefined && byApi.has(config.api)),
      oauth: oauth ? { name: oauth.name ?? name, isSubscription: oauth.isSubscription === true, modifies: isFunction(oauth.modifyModels) } : null,
      refreshes: isFunction(config?.refreshModels) || isFunction(native?.refreshModels),
    });
  } catch (error) {
    if (before) byName.set(name, before);
    else byName.delete(name);
    owners.report(ext.path, "register_provider", error);
  }
}

const defined = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));

const plainConfig = ({ name, baseUrl, apiKey, api, headers, authHeader, models }) => ({ name, baseUrl, apiKey, api, headers, authHeader, models });

// A native provider that resolves its key itself needs none from the agent.
const nativeConfig = (provider, lacksKey) => {
  const models = isFunction(provider.getModels) ? provider.getModels() : provider.models;
  const auth = !lacksKey && (provider.auth?.apiKey || !provider.auth?.oauth) ? "none" : undefined;
  return { name: provider.name, baseUrl: provider.baseUrl, headers: provider.headers, auth, models: Array.isArray(models) ? [...models] : undefined };
};

// The login of a provider, in the form of a configuration.
const loginOf = ({ config, native }) => {
  const own = native?.auth?.oauth;
  if (!own) return config?.oauth;
  const typed = (credentials) => ({ ...credentials, type: "oauth" });
  return {
    name: own.name,
    isSubscription: own.isSubscription,
    login: (callbacks) => own.login(interaction(callbacks)),
    refreshToken: (credentials, signal) => own.refresh(typed(credentials), signal),
    getApiKey: async (credentials) => (await own.toAuth(typed(credentials))).apiKey,
  };
};

// The interaction object of a native provider, made from the callbacks of a configuration.
const interaction = (callbacks) => ({
  signal: callbacks.signal,
  notify: (event) => {
    if (event.type === "auth_url") callbacks.onAuth(event);
    else if (event.type === "device_code") callbacks.onDeviceCode(event);
    else callbacks.onProgress(event.message ?? "");
  },
  prompt: (prompt) => (prompt.type === "select" ? callbacks.onSelect(prompt) : callbacks.onPrompt(prompt)),
});

// Resolves the key of a native provider, unless the agent has one for it.
const nativeAuth = async ({ native }, options, signal) => {
  if (options.apiKey !== undefined || !isFunction(native?.auth?.apiKey?.resolve)) return {};
  const ctx = { env: async (name) => process.env[name], fileExists: async (path) => require("fs").existsSync(path.replace(/^~(?=\/|$)/, require("os").homedir())) };
  const found = await native.auth.apiKey.resolve({ ctx, signal });
  if (!found) throw new Error(`No API key found for ${native.name ?? native.id}`);
  return { apiKey: found.auth?.apiKey, headers: { ...found.auth?.headers, ...options.headers }, ...(found.env ? { env: found.env } : {}) };
};

exports.unregister = (ext, name) => {
  const queued = ext.providers.length;
  ext.providers = ext.providers.filter((registration) => registration.name !== name);
  if (ext.providers.length !== queued || ext.generation.phase === "loading") return;
  byName.delete(name);
  ops.send("unregister_provider", { name });
};

// Removes the providers of a replaced generation; the next one registers its own.
state.dropProviders = () => {
  for (const [name, { ext }] of byName) {
    if (ext.generation.phase !== "stale") continue;
    byName.delete(name);
    ops.send("unregister_provider", { name });
  }
  byApi.clear();
};

exports.find = (name) => {
  const found = byName.get(name);
  return found ? (found.native ?? found.config) : undefined;
};

exports.names = () => [...byName.keys()];

exports.registerApi = (api, functions) => byApi.set(api, functions);
exports.unregisterApi = (api) => byApi.delete(api);
exports.apiOf = (api) => byApi.get(api);
exports.apis = () => [...byApi.keys()];

// The function of an extension that streams answers of a model, if there is one.
exports.streamFor = (model) => {
  const found = byName.get(model?.provider);
  const own = found?.config?.streamSimple ?? found?.native?.streamSimple ?? found?.native?.stream;
  if (isFunction(own)) return { ext: found.ext, native: found.native, stream: own.bind(found.native ?? found.config) };
  const api = byApi.get(model?.api);
  const stream = api?.streamSimple ?? api?.stream;
  return isFunction(stream) ? { ext: owners.now() ?? state.extensions()[0], stream } : null;
};

// Handlers may change the request and see the response, as with pith's own providers.
const hooks = (call, model) => {
  const emit = (event) => new Promise((resolve) => require("internal/events").compose(event, resolve, call));
  return {
    onPayload: async (payload) => {
      const result = await emit({ type: "before_provider_request", payload, model });
      return result?.payload;
    },
    onResponse: async (response) => {
      await emit({ type: "after_provider_response", status: response?.status, headers: response?.headers });
    },
  };
};

// Forwards a provider's events, without the message that each of them repeats.
const forward = (call) => {
  let usage = "";
  return (event) => {
    const { partial, ...rest } = event;
    if (event.type === "start") return call.progress({ type: "start", message: partial });
    if (event.type === "toolcall_start") {
      const block = partial?.content?.[event.contentIndex];
      rest.id ??= block?.id;
      rest.toolName ??= block?.name;
    }
    if (event.type === "thinking_end" || event.type === "text_end") {
      const block = partial?.content?.[event.contentIndex];
      rest.signature = block?.thinkingSignature ?? block?.textSignature;
    }
    const now = partial?.usage ? JSON.stringify(partial.usage) : usage;
    if (now !== usage) {
      usage = now;
      call.progress({ type: "meta", usage: partial.usage, responseId: partial.responseId, responseModel: partial.responseModel });
    }
    call.progress(rest);
  };
};

methods.stream = (call, { model, context, options }) => {
  const found = exports.streamFor(model);
  if (!found) return call.fail(`No extension provides ${model?.provider}/${model?.id}`);
  const work = async () => {
    const send = forward(call);
    const auth = await nativeAuth(found, options, call.signal);
    const stream = await found.stream(model, context, { ...options, ...auth, signal: call.signal, ...hooks(call, model) });
    let last = null;
    for await (const event of stream) {
      last = event;
      if (event.type === "done" || event.type === "error") break;
      send(event);
    }
    if (last?.type === "done") return { message: last.message, reason: last.reason };
    if (last?.type === "error") return { message: last.error, reason: last.reason, isError: true };
    throw new Error("The provider's stream ended without a result");
  };
  runs.start(found.ext, work, (outcome) => (outcome.ok ? call.reply(outcome.value) : call.fail(outcome.error)));
};

// Login, key refresh and model lists of a provider.
methods.provider = (call, { name, action, args }) => {
  const found = byName.get(name);
  if (!found) return call.fail(`No extension provides ${name}`);
  const oauth = loginOf(found);
  const actions = {
    login: () => oauth.login(loginCallbacks(call, found.ext)),
    refreshToken: () => oauth.refreshToken(args.credentials, call.signal),
    getApiKey: () => oauth.getApiKey(args.credentials),
    modifyModels: () => (oauth.modifyModels ? oauth.modifyModels(args.models, args.credentials) : args.models),
    refreshModels: () => refreshModels(found, { allowNetwork: true, force: false, signal: call.signal, ...args }),
  };
  const run = actions[action];
  if (!run) return call.fail(`Unknown provider action ${action}`);
  runs.start(found.ext, run, (outcome) => (outcome.ok ? call.reply(outcome.value) : call.fail(outcome.error)));
};

// A configuration returns its models; a native provider publishes and lists them itself.
const refreshModels = async ({ config, native }, context) => {
  const publish = async (change) => void (await change?.update?.());
  const returned = await (config ?? native).refreshModels({ ...context, publish });
  return config ? returned : nativeConfig(native).models;
};

// Without a terminal a login uses dialogs.
const loginCallbacks = (call, ext) => {
  const ui = require("internal/ui").makeUi(ext, "command");
  return {
    signal: call.signal,
    onAuth: ({ url, instructions }) => ui.notify(instructions ? `${instructions}\n${url}` : String(url), "info"),
    onDeviceCode: ({ userCode, verificationUri }) => ui.notify(`Enter ${userCode} at ${verificationUri}`, "info"),
    onPrompt: async ({ message, placeholder }) => (await ui.input(message, placeholder)) ?? "",
    onProgress: (message) => ui.notify(String(message), "info"),
    onManualCodeInput: async () => (await ui.input("Paste the code or the address you were sent to")) ?? "",
    onSelect: async ({ message, options }) => {
      const labels = options.map((option) => option.label ?? String(option));
      const picked = await ui.select(message, labels);
      const option = options[labels.indexOf(picked)];
      return option?.value ?? option?.id ?? picked;
    },
  };
};
