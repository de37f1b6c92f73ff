"""Tools: their arguments, their output, and which of them a search finds."""

import random
import re
import struct
import zlib

from bench import row
from server import calling

SEARCH = ("--tools", "read,bash,grep,find,ls")
PROGRAMS = ("rg", "fd")


@row("B1", "a tool that returns `isError` has failed, in event, message and request", "a_tool_fails_by_what_it_returns", want=[True, True, True])
def _(bench):
    bench.tool({"type": "object", "properties": {}}, 'return { isError: true, content: [{ type: "text", text: "no" }] };')
    bench.start(model="anthropic/m")
    bench.answers(calling("probe", {}))
    bench.prompt()
    stored = next(entry["message"] for entry in bench.entries() if entry.get("message", {}).get("role") == "toolResult")
    sent = bench.body()["messages"][-1]["content"][0]
    return [bench.results()[0][0], stored["isError"], bool(sent.get("is_error"))]


def coerced(bench, parameters, *given):
    """What the tool gets when these arguments are sent, or that they are refused."""
    bench.tool(parameters)
    bench.start()
    bench.answers(*(calling("probe", arguments) for arguments in given))
    bench.prompt()
    return ["refused" if is_error else words for is_error, words in bench.results()]


@row("B2", "a single value becomes an array where one is wanted", "a_single_value_becomes_an_array_where_that_fits", want=['{"list":["one"],"numbers":[1]}', "refused"])
def _(bench):
    lists = {"list": {"type": "array", "items": {"type": "string"}}, "numbers": {"type": "array", "items": {"type": "number"}}}
    return coerced(bench, {"type": "object", "properties": lists}, {"list": "one", "numbers": 1}, {"numbers": {"a": 1}})


@row("B3a", "values behind a local reference are converted", "what_a_reference_describes_is_converted", want=['{"a":{"x":1}}', '{"a":{"x":2}}'])
def _(bench):
    parameters = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
    }
    return coerced(bench, parameters, {"a": {"x": "1"}}, {"a": {"x": 2}})


@row("B3b", "a value becomes the constant that it is written like", "words_become_the_constants_they_are_written_like", want=['{"e":1}', '{"e":"2"}', '{"c":3}'])
def _(bench):
    constants = {"e": {"enum": [1, "2", None]}, "c": {"const": 3}}
    return coerced(bench, {"type": "object", "properties": constants}, {"e": "1"}, {"e": 2}, {"c": "3"})


@row("B4", "arguments that are no JSON are quoted", "a_refusal_of_broken_json_quotes_it", want=[True, True, True])
def _(bench):
    bench.start()
    bench.answers(calling("bash", '{"command":"echo hi", oops'))
    bench.prompt()
    is_error, words = bench.results()[0]
    return [is_error, "Received arguments:" in words, '{"command":"echo hi", oops' in words]


def photo(width, height):
    """A picture with smooth colours and grain, as PNG."""
    grain, size, rows = random.Random(1), width * 3, bytearray()
    smooth = bytes(value for x in range(width) for value in (x * 200 // width, 100, 90))
    mask = int.from_bytes(b"\x03" * size, "big")
    for y in range(height):
        shade = y * 30 // height
        line = int.from_bytes(smooth, "big") + int.from_bytes(bytes([shade]) * size, "big") + (int.from_bytes(grain.randbytes(size), "big") & mask)
        rows += b"\0" + line.to_bytes(size, "big")

    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(bytes(rows), 1)) + part(b"IEND", b"")


@row("B5", "a scaled photo is sent as JPEG if that is smaller", "a_scaled_image_takes_the_smaller_encoding", want=["image/jpeg", "below 1 MB"])
def _(bench):
    bench.put("photo.png", photo(2600, 1300))
    bench.start(model="anthropic/m")
    bench.answers(calling("read", {"path": "photo.png"}))
    bench.prompt()
    content = bench.body()["messages"][-1]["content"][0]["content"]
    picture = next(part["source"] for part in content if part["type"] == "image")
    return [picture["media_type"], "below 1 MB" if len(picture["data"]) < 1 << 20 else "more"]


def tree(bench):
    bench.put("src/a.ts", "needle one\nline two\nneedle three\nline four\n")
    bench.put("src/b.ts", "needle b\n")
    bench.put("other/c.ts", "needle c\n")
    bench.put("other/d.md", "beta a\rmid needle\n")


def outputs(bench, *calls):
    """What these calls answer."""
    tree(bench)
    bench.start(*SEARCH)
    bench.answers(*(calling(name, arguments) for name, arguments in calls))
    bench.prompt()
    return [["failed", words] if is_error else sorted_lines(words) for is_error, words in bench.results()]


def sorted_lines(words):
    return sorted(line for line in words.split("\n") if line)


@row("B6", "`./` at the start of a glob is ignored, also after `!`", "grep_finds_lines_in_order", wants=PROGRAMS, want=[["src/b.ts:1: needle b"], ["other/c.ts:1: needle c", "other/d.md:1: beta a\rmid needle"], ["src/b.ts:1: needle b"]])
def _(bench):
    globs = ["./src/b.*", "!./src/**", "././src/b.ts"]
    return outputs(bench, *(("grep", {"pattern": "needle", "glob": glob}) for glob in globs))


@row("B7", "a limit is reported only if there was more", "there_is_more_only_after_another_match", wants=PROGRAMS, want=[False, True, False, True, False, True])
def _(bench):
    calls = [(name, fields | {"limit": limit}) for name, fields, n in (("find", {"pattern": "*.ts"}, 3), ("grep", {"pattern": "needle"}, 5), ("ls", {"path": "src"}, 2)) for limit in (n, n - 1)]
    return ["limit" in " ".join(lines) for lines in outputs(bench, *calls)]


@row("B8", "context ends with the last line of the file", "the_last_match_keeps_its_context", wants=PROGRAMS, want=[["a.ts-1- needle one", "a.ts-2- line two", "a.ts-4- line four", "a.ts:3: needle three"]])
def _(bench):
    return outputs(bench, ("grep", {"pattern": "three", "path": "src", "context": 2}))


@row("B9", "a limit below 1 means 1", "grep_has_limits_and_context", wants=PROGRAMS, want=[1, 1, 1])
def _(bench):
    calls = [("grep", {"pattern": "needle", "limit": 0}), ("find", {"pattern": "*.ts", "limit": -3}), ("ls", {"limit": 0})]
    return [len([line for line in lines if not line.startswith("[")]) for lines in outputs(bench, *calls)]


@row("B10", "a carriage return inside a line stays", "lines_are_made_presentable", wants=PROGRAMS, want="d.md:1: beta a\rmid needle")
def _(bench):
    tree(bench)
    bench.put("other/d.md", "beta a\rmid needle\r\n")
    bench.start(*SEARCH)
    bench.answers(calling("grep", {"pattern": "needle", "path": "other/d.md"}))
    bench.prompt()
    return bench.result()


@row("B11", "a timeout after the shell's end says so", "a_timeout_says_when_only_background_processes_were_left", want="Command timed out after 2 seconds. The shell exited with code 3 after 0 seconds, but background processes it started kept writing output until the timeout.")
def _(bench):
    bench.start()
    bench.answers(calling("bash", {"command": "(while :; do echo t; for i in {1..3000}; do :; done; done)& exit 3", "timeout": 2}))
    bench.prompt()
    return bench.result().splitlines()[-1]


def described(name, description, properties=None, **more):
    return {"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties or {}, **more}}


FOUND = [
    described("app", "Starts programs."),
    described("peekaboo_list", "Lists an app, an app window and every app of peekaboo."),
    described("peekaboo_see", "Sees peekaboo."),
    described("weather", "What it is like outside.", {"latitude": {"type": "number", "description": "Degrees north of the equator."}}),
    described("route", "Finds a way.", {"from": {"$ref": "#/$defs/Place"}}, **{"$defs": {"Place": {"type": "object", "properties": {"postcode": {"type": "string"}}}}}),
    described("lookup", "在网络上搜索文件"),
    described("cafe", "Orders a cafe\u0301 au lait."),
    *(described(f"filler_{n}", f"An app that is number {n} of many apps; app.") for n in range(6)),
]
QUERIES = ["peekaboo app", "peer app", "equator", "postcode", "搜索", "café", "latitude"]


@row("B12", "a search ranks by matched words and names, reads parameters and references, splits scripts", "more_words_count_before_names_and_names_before_mentions", want=any)
def _(bench):
    bench.mcp(FOUND, exposure="deferred")
    bench.start()
    # The server starts in the background.
    for _ in range(50):
        if found(bench, "app"):
            break
    return {query: found(bench, query) for query in QUERIES}


def found(bench, query):
    # What a session has found already, pi does not list again.
    bench.ask("new_session")
    bench.answers(calling("tool_search", {"query": query, "limit": 3}))
    bench.prompt()
    return list(dict.fromkeys(re.findall(r"mcp__peer__(\w+)", bench.result())))
