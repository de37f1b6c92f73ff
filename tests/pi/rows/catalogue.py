"""Models and providers that both know without being told."""

import json

from bench import row

# Those that need more than a key are not listed before there is a login.
PROVIDERS = """ant-ling anthropic baseten cerebras deepseek fireworks google groq huggingface kimi-coding meta minimax
minimax-cn mistral moonshotai moonshotai-cn nvidia openai openai-codex opencode opencode-go openrouter qwen-token-plan qwen-token-plan-cn
qwen-token-plan-individual qwen-token-plan-individual-cn together typesafe vercel-ai-gateway xai xiaomi
xiaomi-token-plan-ams xiaomi-token-plan-cn xiaomi-token-plan-sgp zai zai-coding-cn""".split()


def models(bench):
    bench.put(bench.agent / "auth.json", json.dumps({provider: {"type": "api_key", "key": "k"} for provider in PROVIDERS}))
    bench.providers = {}
    bench.start(model=None)
    return [model for model in bench.ask("get_available_models")["models"] if model["provider"] in PROVIDERS]


@row("A20a", "every model has its address, wire, window, limit and prices", "every_model_equals_its_source", want=any)
def _(bench):
    fields = ("api", "baseUrl", "contextWindow", "maxTokens", "reasoning", "input")
    seen = {}
    for model in models(bench):
        prices = [max(0, model["cost"][price]) for price in ("input", "output", "cacheRead", "cacheWrite")]
        # pith speaks completions to Mistral, pi a wire of Mistral's own.
        said = fields[2:] if model["provider"] == "mistral" else fields
        seen[f"{model['provider']}/{model['id']}"] = [*(model[field] for field in said), prices]
    return seen


@row("A20b", "no price is below zero", "no_price_is_below_zero", want=0)
def _(bench):
    return sum(model["cost"][price] < 0 for model in models(bench) for price in ("input", "output", "cacheRead", "cacheWrite"))


@row("A20c", "the default models of providers", "a_provider_alone_means_its_default_model", want=any)
def _(bench):
    seen = {}
    for provider in PROVIDERS:
        bench.put(bench.agent / "auth.json", json.dumps({provider: {"type": "api_key", "key": "k"}}))
        bench.providers = {}
        bench.start(model=None)
        model = bench.ask("get_state")["model"]
        # Without a model pi shows an object of unknowns, pith nothing.
        seen[provider] = model["id"] if model and model["provider"] == provider else None
    return seen
