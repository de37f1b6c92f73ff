#!/usr/bin/env python3
"""Regenerates the embedded model catalogue.

    tools/catalogue.py DATA_DIR          write crates/pith-ai/data and src/catalogue/providers.rs
    tools/catalogue.py DATA_DIR --check  fail if they differ from what DATA_DIR gives

DATA_DIR holds <provider>.json, as the directory dist/providers/data of the npm package
@earendil-works/pi-ai does: {api: {"chat:<id>": model}}. tools/providers.json says which providers there
are, what holds their keys, and their default models. Python's standard library is enough.

Each table is one JSON file per provider. What models of a provider have in common (API, address,
thinking levels, compat, limits) is a numbered profile; a model is one line:

    [id, name, profile, contextWindow, maxTokens, [input, output, cacheRead, cacheWrite, tiers...]]

A price tier adds five numbers: inputTokensAbove, input, output, cacheRead, cacheWrite. The checksum of
a provider covers every field of every source model, so the tests notice a table that lost something.
"""

import json
import pathlib
import struct
import sys

CRATE = pathlib.Path(__file__).resolve().parent.parent / "crates" / "pith-ai"
INDEX = pathlib.Path(__file__).resolve().parent / "providers.json"
# What is not about the model, or about a gateway that is not supported.
LEFT_OUT = {"type", "enabled", "free", "lab", "providers"}
ROW = {"id", "name", "provider", "cost", "contextWindow", "maxTokens"}
PRICES = ["input", "output", "cacheRead", "cacheWrite"]


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def load(path):
    """The chat models of a provider. A price below zero is none that is known."""
    models = {}
    for group in json.loads(path.read_text()).values():
        for model in group.values():
            if model["type"] == "chat":
                models[model["id"]] = {key: value for key, value in model.items() if key not in LEFT_OUT}
    for model in models.values():
        for prices in [model["cost"], *model["cost"].get("tiers", [])]:
            prices.update({price: max(prices[price], 0) for price in PRICES})
    return list(models.values())


def table(models):
    """The file text for one provider."""
    profiles, rows = [], []
    for model in models:
        profile = compact({key: value for key, value in model.items() if key not in ROW})
        if profile not in profiles:
            profiles.append(profile)
        cost = [model["cost"][price] for price in PRICES]
        for tier in model["cost"].get("tiers", []):
            cost += [tier["inputTokensAbove"]] + [tier[price] for price in PRICES]
        index = profiles.index(profile)
        rows.append(compact([model["id"], model["name"], index, model["contextWindow"], model["maxTokens"], cost]))
    return '{"profiles":[\n' + ",\n".join(profiles) + '\n],"models":[\n' + ",\n".join(rows) + "\n]}\n"


def expand(provider, text):
    """The models a table stands for; the inverse of table()."""
    data = json.loads(text)
    for model_id, name, profile, window, limit, cost in data["models"]:
        model = dict(data["profiles"][profile], id=model_id, name=name, provider=provider)
        model.update(contextWindow=window, maxTokens=limit, cost=dict(zip(PRICES, cost)))
        tiers = [cost[at : at + 5] for at in range(4, len(cost), 5)]
        if tiers:
            model["cost"]["tiers"] = [dict(zip(["inputTokensAbove"] + PRICES, tier)) for tier in tiers]
        yield model


def canonical(value):
    """A text both Python and Rust can write: sorted keys, numbers as the bits of a double."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, (int, float)):
        return "#%d" % struct.unpack("<Q", struct.pack("<d", value))
    if isinstance(value, str):
        return "%d:%s" % (len(value.encode()), value)
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    return "{" + ",".join(canonical(key) + "=" + canonical(value[key]) for key in sorted(value)) + "}"


def checksum(models):
    """FNV-1a, 64 bits, over the canonical models in order."""
    state = 0xCBF29CE484222325
    for byte in "\n".join(canonical(model) for model in models).encode():
        state = (state ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return state


def rust_text(value):
    return compact(value) if value is not None else "None"


def rust_list(values):
    """A list the way rustfmt breaks it."""
    line = f"        variables: &[{', '.join(map(rust_text, values))}],"
    if len(line) <= 120:
        return [line]
    return ["        variables: &["] + [f"            {rust_text(value)}," for value in values] + ["        ],"]


def rust(index, checksums):
    """The Rust table of providers."""
    lines = [
        "//! The built-in providers. Written by `tools/catalogue.py`; change `tools/providers.json` instead.",
        "",
        "use super::BuiltIn;",
        "",
        "/// Every built-in provider, in catalogue order.",
        f"pub(super) static PROVIDERS: [BuiltIn; {len(index['providers'])}] = [",
    ]
    for provider in index["providers"]:
        name = provider["id"]
        lines += [
            "    BuiltIn {",
            f"        id: {rust_text(name)},",
            f"        name: {rust_text(provider['name'])},",
            *rust_list(provider["envVars"]),
            f"        default_model: {rust_text(provider['defaultModel'])},",
            "        #[cfg(test)]",
            f"        checksum: 0x{checksums[name]:016x},",
            f'        table: include_str!("../../data/{name}.json"),',
            "    },",
        ]
    order = index["defaultModelOrder"]
    lines += [
        "];",
        "",
        "/// The providers asked for a default model, first one first.",
        f"pub(super) static DEFAULT_ORDER: [&str; {len(order)}] = [",
    ]
    lines += [f"    {rust_text(name)}," for name in order]
    return "\n".join(lines + ["];", ""])


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    source = pathlib.Path(arguments[0])
    index = json.loads(INDEX.read_text())
    files, checksums = {}, {}
    for provider in index["providers"]:
        name = provider["id"]
        models = load(source / f"{name}.json")
        text = table(models)
        assert list(map(canonical, expand(name, text))) == list(map(canonical, models)), name
        files[CRATE / "data" / f"{name}.json"] = text
        checksums[name] = checksum(models)
    files[CRATE / "src" / "catalogue" / "providers.rs"] = rust(index, checksums)
    stale = [path for path in sorted((CRATE / "data").glob("*.json")) if path not in files]
    if "--check" in sys.argv:
        changed = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
        if changed or stale:
            sys.exit("out of date: " + ", ".join(str(path) for path in changed + stale))
        return
    for path in stale:
        path.unlink()
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    total = sum(len(text.encode()) for text in files.values())
    print(f"{len(checksums)} providers, {total} bytes")


if __name__ == "__main__":
    main()
