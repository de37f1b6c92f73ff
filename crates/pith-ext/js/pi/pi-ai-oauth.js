// @earendil-works/pi-ai/oauth: logins of vendors, which pith does not have.

const { fill } = require("internal/stubs");

const known = new Map();

Object.assign(exports, {
  registerOAuthProvider: (provider) => void known.set(provider.id, provider),
  unregisterOAuthProvider: (id) => known.delete(id),
  resetOAuthProviders: () => known.clear(),
  getOAuthProvider: (id) => known.get(id),
  getOAuthProviders: () => [...known.values()],
  getOAuthProviderInfoList: () => [...known.values()].map(({ id, name }) => ({ id, name, available: true })),
  getOAuthApiKey: async (id, credentials) => {
    const provider = known.get(id);
    const found = credentials?.[id];
    return provider && found ? { apiKey: provider.getApiKey(found), newCredentials: found } : null;
  },
  normalizeDomain: (input) => {
    const url = URL.parse(/^https?:/.test(input) ? input : `https://${input}`);
    return url?.hostname ?? null;
  },
  generatePKCE: async () => {
    const crypto = require("crypto");
    const verifier = crypto.randomBytes(32).toString("base64url");
    return { verifier, challenge: crypto.createHash("sha256").update(verifier).digest("base64url") };
  },
});

fill(exports, ["anthropicOAuthProvider", "githubCopilotOAuthProvider", "openaiCodexOAuthProvider", "getGitHubCopilotBaseUrl", "loginAnthropic", "loginGitHubCopilot", "loginOpenAICodex", "refreshAnthropicToken", "refreshGitHubCopilotToken", "refreshOAuthToken", "refreshOpenAICodexToken"], "is not available in pith");
