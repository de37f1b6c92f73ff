"""Starts real MCP servers with pith, lists and calls their tools, and looks for what is left of them."""

import argparse
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

arguments = argparse.ArgumentParser()
arguments.add_argument("--pith", required=True)
arguments.add_argument("--cache", required=True, type=pathlib.Path)
arguments.add_argument("--table", required=True)
given = arguments.parse_args()

work = tempfile.TemporaryDirectory()
home = pathlib.Path(work.name, "home")
project = pathlib.Path(work.name, "project")
for directory in (home / ".pi/agent", project):
    directory.mkdir(parents=True)
subprocess.run(["git", "init", "-q", str(project)], check=True)
(project / "notes.txt").write_text("The tests are slow.\n")

npm, pypi = given.cache / "npm/node_modules/.bin", given.cache / "pypi/bin"
PIXEL = "image/png"

EVERYTHING = [
    ("echo", {"message": "hello"}, "hello"),
    ("get-tiny-image", {}, PIXEL),
    ("get-structured-content", {"location": "New York"}, "structuredContent"),
    ("trigger-long-running-operation", {"duration": 1, "steps": 2}, "completed"),
]

# name, program, arguments, number of tools, the calls and what their results contain
SERVERS = [
    ("everything", npm / "mcp-server-everything", ["stdio"], 12, EVERYTHING),
    ("everything-http", npm / "mcp-server-everything", ["streamableHttp"], 12, EVERYTHING),
    ("everything-sse", npm / "mcp-server-everything", ["sse"], 12, EVERYTHING),
    ("python-http", pypi / "python", [str(pathlib.Path(__file__).parent / "words.py")], 1, [("count_words", {"text": "a b c"}, "3")]),
    ("filesystem", npm / "mcp-server-filesystem", [str(project)], 14, [("read_text_file", {"path": str(project / "notes.txt")}, "slow")]),
    ("memory", npm / "mcp-server-memory", [], 9, [("read_graph", {}, "entities")]),
    ("thinking", npm / "mcp-server-sequential-thinking", [], 1, [
        ("sequentialthinking", {"thought": "a", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}, "thoughtNumber"),
    ]),
    ("git", pypi / "mcp-server-git", ["--repository", str(project)], 12, [("git_status", {"repo_path": str(project)}, "notes.txt")]),
    ("time", pypi / "mcp-server-time", ["--local-timezone", "UTC"], 2, [("get_current_time", {"timezone": "Europe/Oslo"}, "Oslo")]),
    ("fetch", pypi / "mcp-server-fetch", [], 1, []),
]
# Servers that ask the model: the tool, its arguments, what the model answers.
SAMPLING = {"everything": ("trigger-sampling-request", {"prompt": "the capital of Norway", "maxTokens": 20}, "It is Oslo.")}
ERAS = {"auto": "auto", "2026-07-28": "2026-07-28"}
MODERN = {"git", "time", "fetch", "python-http"}
# Servers that listen at a port, and the path there.
PATHS = {"everything-http": "/mcp", "everything-sse": "/sse", "python-http": "/mcp"}

environment = {**os.environ, "HOME": str(home), "MEMORY_FILE_PATH": str(project / "memory.json")}
environment.pop("PITH_AGENT_DIR", None)


def pith(*words):
    return subprocess.run([given.pith, "mcp", *words], cwd=project, env=environment, capture_output=True, text=True, timeout=300)


def serve(program, words):
    """Starts a server that listens, and waits until it does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([str(program), *words], cwd=project, env={**environment, "PORT": str(port)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return process, port
        except OSError:
            time.sleep(0.1)
    process.kill()
    sys.exit(f"{program} {words} does not listen")


def left_over():
    """Processes whose command line names the cache."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if entry.name.isdigit() and str(given.cache) in line and "check.py" not in line and "tests/mcp/run" not in line:
            found.append(line.strip())
    return found


def sampled(name, tool, values, expected):
    """Lets the scripted model call a tool whose server asks the model, and says what went wrong."""
    script = pathlib.Path(work.name, "script.json")
    def call(tool, values):
        return {"blocks": [{"type": "toolCall", "name": f"mcp__{name}__{tool.replace('-', '_')}", "args": values}]}
    # The server offers the tool a moment after it has learned that it may ask.
    first = call("trigger-long-running-operation", {"duration": 2, "steps": 1})
    script.write_text(json.dumps({
        "turns": [first, call(tool, values), {"text": "done"}],
        "routes": [{"match": re.escape(values["prompt"]), "turns": [{"text": expected}]}],
    }))
    words = ["--mode", "json", "--script", str(script), "-p", "go"]
    done = subprocess.run([given.pith, *words], cwd=project, env=environment, capture_output=True, text=True, timeout=300)
    ends = [json.loads(line) for line in done.stdout.splitlines() if '"tool_execution_end"' in line]
    if done.returncode or len(ends) != 2 or ends[1].get("isError") or expected not in json.dumps(ends[1]):
        return [f"{tool}: {ends} {done.stderr[-300:]}"]
    return []


rows, n_failed, n_skipped = [], 0, 0
for name, program, words, n_tools, calls in SERVERS:
    for era in ["auto"] + (["2026-07-28"] if name in MODERN else []):
        if not program.exists():
            print(f"skipped: {name}: not installed")
            n_skipped += 1
            rows.append((name, era, "skipped", "", "", ""))
            continue
        entry = {"command": str(program), "args": words, "protocolVersion": era, "startupTimeoutMs": 120000}
        served = None
        if name in PATHS:
            served, port = serve(program, words)
            entry = {"url": f"http://127.0.0.1:{port}{PATHS[name]}", "protocolVersion": era, "startupTimeoutMs": 120000}
        if name in SAMPLING:
            entry["sampling"] = "allow"
        if name == "memory":
            entry["env"] = {"MEMORY_FILE_PATH": "${MEMORY_FILE_PATH}"}
        (home / ".pi/agent/mcp.json").write_text(json.dumps({"mcpServers": {name: entry}}))
        listed = pith("list", "--json")
        problems = []
        try:
            server = json.loads(listed.stdout)["servers"][0]
        except (ValueError, IndexError):
            server = {"state": "?", "tools": []}
            problems.append(f"list: {listed.stdout} {listed.stderr}")
        if listed.returncode or server["state"] != "ready":
            problems.append(f"{server['state']}: {server.get('error')}")
        if len(server["tools"]) < n_tools:
            problems.append(f"{len(server['tools'])} tools instead of {n_tools}")
        for tool, values, expected in calls:
            done = pith("test", name, "--call", tool, json.dumps(values))
            if done.returncode or expected not in done.stdout + done.stderr:
                problems.append(f"{tool}: {done.stdout[-300:]} {done.stderr[-300:]}")
        called = [tool for tool, _, _ in calls]
        if name in SAMPLING:
            tool, values, expected = SAMPLING[name]
            problems += sampled(name, tool, values, expected)
            called.append(tool)
        if served:
            served.kill()
            served.wait()
        # What was killed takes a moment to disappear on a busy machine.
        deadline = time.monotonic() + 10
        while (left := left_over()) and time.monotonic() < deadline:
            time.sleep(0.1)
        if left:
            problems.append(f"left: {left}")
        n_failed += bool(problems)
        for problem in problems:
            print(f"{name} ({era}): {problem}")
        info = server.get("serverInfo") or {}
        verdict = "ok" if not problems else "FAILED"
        rows.append((name, server.get("protocolVersion", ""), verdict, f"{info.get('name', '')} {info.get('version', '')}", str(len(server["tools"])), ", ".join(called)))

lines = ["| server | revision | | says it is | tools | called |", "|---|---|---|---|---|---|"]
lines += ["| " + " | ".join(row) + " |" for row in rows]
lines += ["", f"{len(rows)} rows, {n_failed} failed, {n_skipped} skipped"]
pathlib.Path(given.table).write_text("\n".join(lines) + "\n")
raise SystemExit(1 if n_failed else 0)
