// @earendil-works/pi-ai, with the exports of its compat superset.

const ops = require("internal/ops");
const models = require("internal/models");
const providers = require("internal/providers");
const transcript = require("internal/transcript");
const { fill } = require("internal/stubs");

Object.assign(exports, transcript);
delete exports.textOf;

exports.Type = require("typebox").Type;
exports.StringEnum = (values, options = {}) => exports.Type.Unsafe({ type: "string", enum: [...values], ...(options.description ? { description: options.description } : {}), ...(options.default !== undefined ? { default: options.default } : {}) });
exports.uuidv7 = () => host.uuid7();
exports.contentText = transcript.textOf;

// Events pushed by a producer and read by one consumer, until a final one.
class EventStream {
  #queue = [];
  #waiting = [];
  #isDone = false;
  #resolve;
  #result = new Promise((resolve) => (this.#resolve = resolve));
  constructor(isComplete, extractResult) {
    this.isComplete = isComplete;
    this.extractResult = extractResult;
  }
  push(event) {
    if (this.#isDone) return;
    if (this.isComplete(event)) {
      this.#isDone = true;
      this.#resolve(this.extractResult(event));
    }
    const reader = this.#waiting.shift();
    if (reader) reader({ value: event, done: false });
    else this.#queue.push(event);
    if (this.#isDone) this.#release();
  }
  end(result) {
    this.#isDone = true;
    if (result !== undefined) this.#resolve(result);
    this.#release();
  }
  #release() {
    for (const reader of this.#waiting.splice(0)) reader({ value: undefined, done: true });
  }
  [Symbol.asyncIterator]() {
    return {
      next: async () => {
        if (this.#queue.length) return { value: this.#queue.shift(), done: false };
        if (this.#isDone) return { value: undefined, done: true };
        return new Promise((resolve) => this.#waiting.push(resolve));
      },
      return: async () => ({ value: undefined, done: true }),
    };
  }
  result() {
    return this.#result;
  }
}

class AssistantMessageEventStream extends EventStream {
  constructor() {
    super(
      (event) => event.type === "done" || event.type === "error",
      (event) => (event.type === "done" ? event.message : event.error),
    );
  }
}

Object.assign(exports, { EventStream, AssistantMessageEventStream, createAssistantMessageEventStream: () => new AssistantMessageEventStream() });

// As with pi, these functions do not know the credentials of the session: a model is called with the key that is passed
// or with one in the environment, and not at all without. A provider of an extension looks for its key itself.
const stream = (model, context, options) => {
  if (providers.streamFor(model) || isAuthorized(model, options)) return models.route(model, context, options);
  const apiKey = envKey(model?.provider, options?.env);
  return apiKey ? models.route(model, context, { ...options, apiKey }) : failed(model, `No API key for provider: ${model?.provider}`);
};
// These clouds have credentials that are no key.
const KEYLESS = new Set(["bedrock-converse-stream", "google-vertex"]);
const isAuthorized = (model, options) =>
  (typeof options?.apiKey === "string" && options.apiKey.trim() !== "") || KEYLESS.has(model?.api) || Object.keys(options?.headers ?? {}).some((name) => /^(cf-aig-)?authorization$|^x-api-key$/i.test(name));
const failed = (model, errorMessage) => {
  const answer = new AssistantMessageEventStream();
  const error = { role: "assistant", content: [], api: model?.api, provider: model?.provider, model: model?.id, usage: models.emptyUsage(), stopReason: "error", errorMessage, timestamp: Date.now() };
  answer.push({ type: "error", reason: "error", error });
  return answer;
};
const complete = async (model, context, options) => (await stream(model, context, options)).result();
Object.assign(exports, { stream, streamSimple: stream, complete, completeSimple: complete });

// One wire format, whatever API the model names.
const api = (name) => {
  const fixed = (model, context, options) => models.stream({ ...model, api: name }, context, options, true);
  return { api: name, stream: fixed, streamSimple: fixed };
};
for (const [name, wire, suffix] of [
  ["anthropicMessagesApi", "anthropic-messages", "Anthropic"], ["openAICompletionsApi", "openai-completions", "OpenAICompletions"], ["openAIResponsesApi", "openai-responses", "OpenAIResponses"],
  ["openAICodexResponsesApi", "openai-codex-responses", "OpenAICodexResponses"], ["azureOpenAIResponsesApi", "azure-openai-responses", "AzureOpenAIResponses"], ["googleGenerativeAIApi", "google-generative-ai", "Google"],
  ["googleVertexApi", "google-vertex", "GoogleVertex"], ["mistralConversationsApi", "mistral-conversations", "Mistral"], ["bedrockConverseStreamApi", "bedrock-converse-stream", "Bedrock"],
]) {
  exports[name] = () => api(wire);
  exports[`stream${suffix}`] = exports[`streamSimple${suffix}`] = api(wire).stream;
}

Object.assign(exports, {
  registerApiProvider: (provider, sourceId) => providers.registerApi(provider.api, { ...provider, sourceId }),
  unregisterApiProviders: (sourceId) => {
    for (const name of providers.apis()) if (providers.apiOf(name).sourceId === sourceId) providers.unregisterApi(name);
  },
  resetApiProviders: () => providers.apis().forEach(providers.unregisterApi),
  clearApiProviders: () => providers.apis().forEach(providers.unregisterApi),
  // The agent's own are always there.
  registerBuiltInApiProviders: () => {},
  getApiProvider: (name) => providers.apiOf(name) ?? api(name),
  getApiProviders: () => providers.apis().map((name) => providers.apiOf(name)),
  getModel: (provider, id) => ops.query("model", { provider, id }) ?? undefined,
  getModels: (provider) => ops.query("models", { available: false }).filter((model) => provider === undefined || model.provider === provider),
  getProviders: () => [...new Set(ops.query("models", { available: false }).map((model) => model.provider))],
  modelsAreEqual: (a, b) => !!a && !!b && a.id === b.id && a.provider === b.provider,
  hasApi: (model, name) => model?.api === name,
});

const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];
exports.getSupportedThinkingLevels = (model) => {
  if (!model?.reasoning) return ["off"];
  const map = model.thinkingLevelMap ?? {};
  return LEVELS.filter((level) => (level in map ? map[level] !== null : LEVELS.indexOf(level) < LEVELS.indexOf("xhigh")));
};
exports.clampThinkingLevel = (model, level) => {
  const supported = exports.getSupportedThinkingLevels(model);
  return supported.find((known) => LEVELS.indexOf(known) >= LEVELS.indexOf(level)) ?? supported.at(-1);
};

exports.calculateCost = (model, usage) => {
  const size = usage.input + usage.cacheRead + usage.cacheWrite;
  const tier = [...(model.cost?.tiers ?? [])].filter((known) => known.inputTokensAbove < size).sort((a, b) => b.inputTokensAbove - a.inputTokensAbove)[0] ?? model.cost ?? {};
  const part = (name, tokens) => (Math.max(tier[name] ?? 0, 0) / 1e6) * (tokens ?? 0);
  const cost = { input: part("input", usage.input), output: part("output", usage.output), cacheRead: part("cacheRead", usage.cacheRead), cacheWrite: part("cacheWrite", usage.cacheWrite) };
  usage.cost = { ...cost, total: cost.input + cost.output + cost.cacheRead + cost.cacheWrite };
  return usage.cost;
};

// Parses JSON that a model is still writing.
const parseStreamingJson = (text) => {
  if (!text || !String(text).trim()) return {};
  try {
    return JSON.parse(text);
  } catch {
    return closeJson(String(text));
  }
};

// Closes what is open; removes from the end what cannot be closed.
function closeJson(text) {
  for (let end = text.length; end > 0; end--) {
    const open = [];
    let inString = false;
    let isEscaped = false;
    for (const character of text.slice(0, end)) {
      if (isEscaped) isEscaped = false;
      else if (character === "\\" && inString) isEscaped = true;
      else if (character === '"') inString = !inString;
      else if (!inString && (character === "{" || character === "[")) open.push(character === "{" ? "}" : "]");
      else if (!inString && (character === "}" || character === "]")) open.pop();
    }
    if (isEscaped) continue;
    const candidate = text.slice(0, end) + (inString ? '"' : "");
    try {
      return JSON.parse(candidate.replace(/[,:]\s*$/, "") + open.reverse().join(""));
    } catch {
      // Try with one character less.
    }
  }
  return {};
}

const repairJson = (text) => String(text).replace(/[\u0000-\u001f]/g, (c) => ({ "\n": "\\n", "\r": "\\r", "\t": "\\t" })[c] ?? "");
Object.assign(exports, {
  parseStreamingJson,
  repairJson,
  parseJsonWithRepair: (text) => {
    try {
      return JSON.parse(text);
    } catch {
      return JSON.parse(repairJson(text));
    }
  },
});

// The lists of `pith-ai/src/failure.rs`; a test compares them.
const overflow = [/prompt (is )?too long/i, /prompt exceeds max length/i, /request_too_large/i, /input is too long for requested model/i, /exceeds the context window/i, /context window exceeded/i, /exceeds (the )?(model'?s )?maximum context length( of [\d,]+ tokens?|\s*\([\d,]+\))/i, /input token count.*exceeds the maximum/is, /maximum prompt length is [\d,]+/i, /reduce the length of the messages/i, /maximum context length is [\d,]+ tokens/i, /exceeds (the )?maximum allowed input length of [\d,]+ tokens/i, /input \([\d,]+ tokens\) is longer than the model's context length \([\d,]+ tokens\)/i, /exceeds the limit of [\d,]+/i, /exceeds the available context size/i, /greater than the context length/i, /context window exceeds limit/i, /exceeded model token limit/i, /too large for model with [\d,]+ maximum context length/i, /prompt has [\d,]+ tokens, but the configured context size is [\d,]+ tokens/i, /model_context_window_exceeded/i, /prompt too long; exceeded (max )?context length/i, /range of input length should be/i, /context[_ ]length[_ ]exceeded/i, /too many tokens/i, /token limit exceeded/i, /^([\w -]+ API error \(413\):|413(\s|:|$))/i];
const throttled = /rate.?limit|too many requests|^(throttling error|service unavailable):/i;
const spent = /GoUsageLimitError|FreeUsageLimitError|monthly usage limit reached|available balance|insufficient_quota|out of budget|quota exceeded|billing|subscription_sharing_(workplace_individual_)?usage_limit_exceeded|"code"\s*:\s*"?1308([^0-9]|$)/i;
const transient = /overloaded|server_busy|servers are currently busy|currently experiencing high demand|model is at capacity|rate.?limit|too many requests|(^|[^a-z0-9])(429|500|502|503|504|520|524)([^a-z0-9]|$)|service.?(is.?)?(temporarily.?)?unavailable|server.?error|internal.?error|provider.?returned.?(an.?)?error|exceeded request buffer limit while retrying upstream|unable to forward upstream|upstream.?request.?failed|upstream_stream_read_error|stream was interrupted|http\/?2 stream failed|network.?error|connection.?(error|refused|lost)|other side closed|fetch failed|request to \S+ failed, reason:|getaddrinfo|ENOTFOUND|EAI_AGAIN|upstream.?connect|reset before headers|socket hang up|socket connection was closed|timed? out|timeout|terminated|websocket.?(closed|error)|ended without|stream ended before (message_stop|a terminal response event)|http2 request did not get a response|stream disconnected before completion|cut short after the reply had begun|pending stream has been canceled|retry delay|you can retry your request|try your request again|please retry your request|ResourceExhausted|subscription_sharing_(usage|user)_unavailable/i;
const isTooLong = (text) => !throttled.test(text) && overflow.some((pattern) => pattern.test(text));
Object.assign(exports, {
  getOverflowPatterns: () => [...overflow],
  isContextOverflow: (message, contextWindow) => {
    const input = (message?.usage?.input ?? 0) + (message?.usage?.cacheRead ?? 0);
    const isBare = () => message.provider === "cerebras" && /^400 (status code )?\(no body\)/i.test(message.errorMessage ?? "");
    if (message?.stopReason === "error") return isTooLong(message.errorMessage ?? "") || isBare();
    if (message?.stopReason === "length") return !!contextWindow && message.usage?.output === 0 && input >= contextWindow * 0.99;
    return !!contextWindow && message?.stopReason === "stop" && input > contextWindow;
  },
  isRecoverableLength: (message, wanted) => message?.stopReason === "length" && wanted > 0 && (message.usage?.output ?? 0) < wanted,
  isRetryableAssistantError: (message) => message?.stopReason === "error" && !spent.test(message.errorMessage ?? "") && transient.test(message.errorMessage ?? ""),
  DEFAULT_MAX_AGENT_RETRY_DELAY_MS: 60000,
  retryDelayMs: ({ baseDelayMs, maxAgentDelayMs = 60000 }, attempt) => Math.min(baseDelayMs * 2 ** Math.max(0, attempt - 1), maxAgentDelayMs),
  retryAssistantCall,
});

// Repeats a call whose failure may pass, as often and as late as the policy says.
async function retryAssistantCall(produce, policy, signal, callbacks) {
  for (let attempt = 0; ; ) {
    const answer = await produce();
    const isAgain = attempt < (policy?.enabled ? policy.maxRetries : 0) && !signal?.aborted && exports.isRetryableAssistantError(answer);
    if (!isAgain) {
      if (attempt) await callbacks?.onRetryFinished?.(!["error", "aborted"].includes(answer.stopReason), attempt, answer.errorMessage);
      return answer;
    }
    attempt++;
    const delay = exports.retryDelayMs(policy, attempt);
    await callbacks?.onRetryScheduled?.(attempt, policy.maxRetries, delay, answer.errorMessage || "Unknown error");
    const isAborted = await new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), delay);
      signal?.addEventListener("abort", () => (clearTimeout(timer), resolve(true)), { once: true });
    });
    if (isAborted) {
      await callbacks?.onRetryFinished?.(false, attempt);
      return { ...answer, stopReason: "aborted", errorMessage: "Aborted" };
    }
  }
}

exports.validateToolArguments = (tool, toolCall) => {
  const { Value } = require("typebox/value");
  const args = Value.Convert(tool.parameters, structuredClone(toolCall.arguments ?? {}));
  const problems = [...Value.Errors(tool.parameters, args)];
  if (problems.length === 0) return args;
  throw new Error(`Validation failed for tool "${toolCall.name}":\n${problems.map(({ path, message }) => `  - ${path.slice(1).replace(/\//g, ".") || "root"}: ${message}`).join("\n")}`);
};
exports.validateToolCall = (tools, toolCall) => {
  const tool = tools.find((known) => known.name === toolCall.name);
  if (!tool) throw new Error(`Tool "${toolCall.name}" not found`);
  return exports.validateToolArguments(tool, toolCall);
};

// The variables that have keys of providers, as pi knows them.
const KEYS = {
  anthropic: ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY"],
  "ant-ling": ["ANT_LING_API_KEY"], "qwen-token-plan": ["QWEN_TOKEN_PLAN_API_KEY"], "qwen-token-plan-cn": ["QWEN_TOKEN_PLAN_CN_API_KEY"], "qwen-token-plan-individual": ["QWEN_TOKEN_PLAN_API_KEY"],
  openai: ["OPENAI_API_KEY"], "azure-openai-responses": ["AZURE_OPENAI_API_KEY"], nvidia: ["NVIDIA_API_KEY"], deepseek: ["DEEPSEEK_API_KEY"],
  google: ["GEMINI_API_KEY"], "google-vertex": ["GOOGLE_CLOUD_API_KEY"], groq: ["GROQ_API_KEY"], cerebras: ["CEREBRAS_API_KEY"],
  xai: ["XAI_API_KEY"], radius: ["RADIUS_API_KEY"], openrouter: ["OPENROUTER_API_KEY"], "vercel-ai-gateway": ["AI_GATEWAY_API_KEY"],
  zai: ["ZAI_API_KEY"], "zai-coding-cn": ["ZAI_CODING_CN_API_KEY"], mistral: ["MISTRAL_API_KEY"], minimax: ["MINIMAX_API_KEY"],
  "minimax-cn": ["MINIMAX_CN_API_KEY"], moonshotai: ["MOONSHOT_API_KEY"], "moonshotai-cn": ["MOONSHOT_API_KEY"], huggingface: ["HF_TOKEN"],
  fireworks: ["FIREWORKS_API_KEY"], together: ["TOGETHER_API_KEY"], baseten: ["BASETEN_API_KEY"], opencode: ["OPENCODE_API_KEY"],
  "opencode-go": ["OPENCODE_API_KEY"], "kimi-coding": ["KIMI_API_KEY"], meta: ["META_API_KEY"], "cloudflare-workers-ai": ["CLOUDFLARE_API_KEY"],
  "cloudflare-ai-gateway": ["CLOUDFLARE_API_KEY"], xiaomi: ["XIAOMI_API_KEY"], "xiaomi-token-plan-cn": ["XIAOMI_TOKEN_PLAN_CN_API_KEY"], "xiaomi-token-plan-ams": ["XIAOMI_TOKEN_PLAN_AMS_API_KEY"],
  "xiaomi-token-plan-sgp": ["XIAOMI_TOKEN_PLAN_SGP_API_KEY"], "github-copilot": ["COPILOT_GITHUB_TOKEN"],
};
exports.findEnvKeys = (provider, env) => {
  const found = (KEYS[provider] ?? []).filter((name) => env?.[name] || process.env[name]);
  return found.length > 0 ? found : undefined;
};
// The first of them that can be sent as a key; a bearer token of Anthropic cannot.
function envKey(provider, env) {
  const name = exports.findEnvKeys(provider, env)?.find((name) => name !== "ANTHROPIC_AUTH_TOKEN");
  return name && (env?.[name] || process.env[name]);
}
exports.getEnvApiKey = envKey;
Object.assign(exports, { ANTHROPIC_API_KEY_ENV: "ANTHROPIC_API_KEY", ANTHROPIC_AUTH_TOKEN_ENV: "ANTHROPIC_AUTH_TOKEN", ANTHROPIC_OAUTH_TOKEN_ENV: "ANTHROPIC_OAUTH_TOKEN" });

// Message helpers for tests.
const fauxMessage = (content, extra = {}) => ({ role: "assistant", content: typeof content === "string" ? [{ type: "text", text: content }] : [content].flat(), api: "faux", provider: "faux", model: "faux", usage: models.emptyUsage(), stopReason: "stop", timestamp: Date.now(), ...extra });
Object.assign(exports, { fauxAssistantMessage: fauxMessage, fauxText: (text) => ({ type: "text", text }), fauxThinking: (thinking) => ({ type: "thinking", thinking }), fauxToolCall: (name, args = {}, id = host.uuid()) => ({ type: "toolCall", id, name, arguments: args }) });

const cleanups = new Set();

const formatThrownValue = (value) => require("internal/owners").text(value);
Object.assign(exports, {
  formatThrownValue,
  extractDiagnosticError: (error) => ({ name: error?.name, message: formatThrownValue(error), code: error?.code }),
  createAssistantMessageDiagnostic: (kind, error) => ({ kind, message: formatThrownValue(error), timestamp: Date.now() }),
  appendAssistantMessageDiagnostic: (message, diagnostic) => void (message.diagnostics = [...(message.diagnostics ?? []), diagnostic]),
  registerSessionResourceCleanup: (cleanup) => {
    cleanups.add(cleanup);
    return () => cleanups.delete(cleanup);
  },
  cleanupSessionResources: (sessionId) => {
    const errors = [];
    for (const cleanup of cleanups) {
      try {
        cleanup(sessionId);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length) throw new AggregateError(errors, "Failed to cleanup session resources");
  },
  lazyApi: (load) => ({ stream: (...args) => lazyStream(load, "stream", args), streamSimple: (...args) => lazyStream(load, "streamSimple", args) }),
  lazyStream: (load) => (...args) => lazyStream(load, "stream", args),
  lazyOAuth: (load) => ({ login: async (...args) => (await load()).login(...args), refreshToken: async (...args) => (await load()).refreshToken(...args) }),
});

function lazyStream(load, name, args) {
  const outer = new AssistantMessageEventStream();
  Promise.resolve(load())
    .then(async (loaded) => {
      for await (const event of loaded[name](...args)) outer.push(event);
      outer.end();
    })
    .catch((error) => {
      outer.push({ type: "error", reason: "error", error: fauxMessage([], { stopReason: "error", errorMessage: formatThrownValue(error) }) });
      outer.end();
    });
  return outer;
}

for (const name of ["ModelsError", "InMemoryCredentialStore", "InMemoryModelsStore", "envApiKeyAuth", "defaultProviderAuthContext", "createProvider"]) {
  Object.defineProperty(exports, name, { get: () => require("internal/provider-kit")[name], enumerable: true, configurable: true });
}
// The agent's models, with its credentials.
exports.createModels = () => new (require("internal/model-runtime").ModelRuntime)();

fill(
  exports,
  ["AssistantMessageFrameEncoder", "createFauxCore", "createImagesModels", "createImagesProvider", "fauxProvider", "registerFauxProvider", "reduceAssistantMessageFrames", "generateImages", "generateImagesOpenRouter", "getImageModel", "getImageModels", "getImageProviders", "getImagesApiProvider", "registerImagesApiProvider", "registerBuiltInImagesApiProviders", "setBedrockProviderModule", "piMessagesApi"],
  "is not available in pith",
);
