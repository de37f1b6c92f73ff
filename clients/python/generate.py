#!/usr/bin/env python3
"""Writes ``types.py`` and ``commands.py`` from the schema of the protocol.

    python3 generate.py            # writes them
    python3 generate.py --check    # fails if they are not what the schema says
"""

import json
import keyword
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
SCHEMA = HERE.parent.parent / "schema" / "pi.json"
PACKAGE = HERE / "src" / "pith_client"
HEADER = '"""{}\n\nGenerated from the schema by ``generate.py``; do not edit.\n"""\n\nfrom __future__ import annotations\n\n'
PRIMITIVES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


class Types:
    """Turns definitions of the schema into Python types."""

    def __init__(self, definitions):
        self.definitions = definitions
        self.written = {}  # name -> source, in the order of need

    def of(self, schema, name):
        """The annotation for a schema; objects in it become classes called after `name`."""
        if schema is True or not schema:
            return "Any"
        if "$ref" in schema:
            return self.referred(schema, name)
        if "const" in schema:
            return f"Literal[{schema['const']!r}]"
        if "enum" in schema:
            return f"Literal[{', '.join(repr(value) for value in schema['enum'])}]"
        variants = schema.get("anyOf") or schema.get("oneOf")
        if variants:
            return self.union([self.of(self.merged(schema, variant), self.variant(name, variant)) for variant in variants])
        kind = schema.get("type")
        if isinstance(kind, list):
            return self.union([self.of({**schema, "type": one}, name) for one in kind])
        if kind == "array":
            return f"list[{self.of(schema.get('items', True), name + 'Item')}]"
        if kind == "object" or "properties" in schema:
            return self.typed_dict(name, schema) if schema.get("properties") else "dict[str, Any]"
        return PRIMITIVES.get(kind, "Any")

    def referred(self, schema, name):
        """Another definition; with properties beside the reference, one that has both."""
        target = schema["$ref"].rsplit("/", 1)[1]
        if not schema.get("properties"):
            return target
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        found = self.definitions.get(target, {})
        return self.of({**found, **beside, **self.merged(found, beside)}, name)

    @staticmethod
    def merged(schema, variant):
        """A variant with the properties all variants share."""
        if "$ref" in variant or not schema.get("properties"):
            return variant
        properties = {**schema["properties"], **variant.get("properties", {})}
        required = [*schema.get("required", []), *variant.get("required", [])]
        return {**variant, "type": "object", "properties": properties, "required": required}

    @staticmethod
    def variant(name, variant):
        """A name for one of several variants: by the constant that tells them apart, or by a property."""
        properties = variant.get("properties", {})
        constants = [str(value["const"]) for value in properties.values() if isinstance(value, dict) and "const" in value]
        word = (constants or list(properties) or ["Other"])[0]
        return name + "".join(part[:1].upper() + part[1:] for part in re.split(r"\W|_", word))

    @staticmethod
    def union(types):
        unique = list(dict.fromkeys(types))
        return unique[0] if len(unique) == 1 else "Any" if "Any" in unique else f"Union[{', '.join(unique)}]"

    def typed_dict(self, name, schema):
        required = set(schema.get("required", []))
        annotated = {key: self.of(value, name + key[:1].upper() + key[1:]) for key, value in schema["properties"].items()}
        doc = f'    """{" ".join(schema["description"].split())}"""\n\n' if schema.get("description") else ""
        if not all(key.isidentifier() and not keyword.iskeyword(key) for key in annotated):
            fields = ", ".join(f"{key!r}: {text!r}" for key, text in annotated.items())
            self.written[name] = f'{name} = TypedDict({name!r}, {{{fields}}}, total=False)\n'
            return name
        lines = lambda keys: "".join(f"    {key}: {annotated[key]}\n" for key in keys) or "    pass\n"
        needed = [key for key in annotated if key in required]
        optional = [key for key in annotated if key not in required]
        if not optional:
            self.written[name] = f"class {name}(TypedDict):\n{doc}{lines(needed)}"
        elif not needed:
            self.written[name] = f"class {name}(TypedDict, total=False):\n{doc}{lines(optional)}"
        else:
            self.written[name] = (
                f"class _{name}(TypedDict):\n{lines(needed)}\n\nclass {name}(_{name}, total=False):\n{doc}{lines(optional)}"
            )
        return name

    def define(self, name, schema):
        text = self.of(schema, name)
        if text != name:
            comment = "".join(f"#: {line}\n" for line in schema.get("description", "").splitlines())
            self.written[name] = f"{comment}{name}: TypeAlias = \"{text}\"\n"

    def module(self):
        for name, schema in self.definitions.items():
            self.define(name, schema)
        head = HEADER.format("Everything that goes over the wire.")
        head += "from typing import Any, Literal, TypeAlias, TypedDict, Union\n\n\n"
        return head + "\n\n".join(self.written.values())


def snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def commands(definitions):
    """Two classes with a method per command: one that blocks, one to await."""
    methods = []
    for name, schema in definitions.items():
        if not name.endswith("Command") or "const" not in schema.get("properties", {}).get("type", {}):
            continue
        kind = schema["properties"]["type"]["const"]
        answer = definitions[name.removesuffix("Command") + "Response"]["properties"].get("data")
        types = Types({})
        required, optional, given = [], [], []
        for key, value in schema["properties"].items():
            if key in ("id", "type"):
                continue
            text = types.of(value, "Item")
            text = "list[ImageBlock]" if key == "images" else text if "Item" not in text else "Any"
            text = re.sub(r"Union\[(.*), None\]$", r"\1", text)
            if key in schema["required"]:
                required.append(f"{snake(key)}: {text}")
            else:
                optional.append(f"{snake(key)}: {text} | None = None")
            given.append(f"{key}={snake(key)}")
        parameters = ["self", *required, *(["*", *optional] if optional else [])]
        result = types.of(answer, "Item") if answer else "None"
        doc = " ".join(schema.get("description", "See ``docs/protocol.md``.").split())
        methods.append((kind, ", ".join(parameters), ", ".join([repr(kind), *given]), result, doc))
    def written(define, ask):
        texts = []
        for kind, parameters, call, result, doc in methods:
            body = f"{ask}({call})"
            # What is known of an answer is what the schema says of it.
            body = body if result == "None" else f'return cast("{result}", {body})'
            texts.append(f'\n    {define} {kind}({parameters}) -> {result}:\n        """{doc}"""\n        {body}\n')
        return "".join(texts)

    sync, awaited = written("def", "self.ask"), written("async def", "await self.ask")
    head = HEADER.format("A method for each command of the protocol.")
    used = set(re.findall(r"\w+", sync)) & set(definitions)
    imports = "".join(f"    {name},\n" for name in sorted(used))
    head += f"from typing import Any, Union, cast\n\nfrom .types import (\n{imports})\n\n\n"
    ask = "    {}def ask(self, kind: str, /, **fields: Any) -> Any:\n        \"\"\"Sends a command and returns the data of its response.\"\"\"\n        raise NotImplementedError\n"
    return (
        f'{head}class CommandMethods:\n    """Each blocks until pith has answered."""\n\n{ask.format("")}{sync}'
        f'\n\nclass AsyncCommandMethods:\n    """Each is awaited until pith has answered."""\n\n{ask.format("async ")}{awaited}'
    )


def main():
    definitions = json.loads(SCHEMA.read_text())["$defs"]
    written = {"types.py": Types(definitions).module(), "commands.py": commands(definitions)}
    stale = [name for name, text in written.items() if not (PACKAGE / name).exists() or (PACKAGE / name).read_text() != text]
    if "--check" in sys.argv[1:]:
        sys.exit(f"not what the schema says: {', '.join(stale)}; run clients/python/generate.py" if stale else 0)
    for name in stale:
        (PACKAGE / name).write_text(written[name])
        print(f"wrote {name}")


if __name__ == "__main__":
    main()
