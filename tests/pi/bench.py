"""What a row of the table is played on: a program in rpc mode, with a home, a project and a model server of its own."""

import json
import pathlib
import shutil
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "extensions"))

from agent import START, Program  # noqa: E402
from server import Server  # noqa: E402

ROWS = []
APIS = {"anthropic": ("anthropic-messages", ""), "completions": ("openai-completions", "/v1"), "responses": ("openai-responses", "/v1"), "google": ("google-generative-ai", "/v1beta")}


def row(name, fix, test, want, pith=None, wants=(), own=False):
    """Registers a row. Its function plays the case and returns what the row is about.

    `test` is the test of pith that holds the fix without pi.
    `want` is what the reference has to show: the fix, or `any` where it is too long to say here. `pith` is (value, reason) where pith shows another thing on purpose.
    `wants` names programs without which the row cannot be played. A fault was pith's `own` if pi never had it.
    """

    def register(play):
        ROWS.append({"name": name, "fix": fix, "test": test, "want": want, "pith": pith, "wants": wants, "own": own, "play": play})
        return play

    return register


class Failed(Exception):
    """The case cannot be played to its end."""


class Bench:
    def __init__(self, command, path):
        self.command = command
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="pith-beside-"))
        self.home, self.work = self.root / "home", self.root / "work"
        self.agent = self.home / ".pi" / "agent"
        self.agent.mkdir(parents=True)
        self.work.mkdir()
        self.server = Server()
        self.program = None
        self.before = []
        # Retries follow at once.
        self.settings = {"retry": {"enabled": True, "maxRetries": 3, "baseDelayMs": 1}, "extensionLimits": {"executionMs": 60000}}
        self.providers = {wire: self.provider(wire) for wire in APIS}
        self.env = {"HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8", "PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "NO_COLOR": "1", "TZ": "UTC"}
        self.extensions = []

    # -- what the program finds

    def provider(self, wire, **model):
        api, base = APIS[wire]
        cost = {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}
        known = {"id": "m", "name": "m", "reasoning": True, "input": ["text", "image"], "contextWindow": 200000, "maxTokens": 8000, "cost": cost}
        return {"baseUrl": self.server.url + base, "apiKey": "k", "api": api, "models": [known | model]}

    def extension(self, source):
        """An extension for all programs that follow: the body of its function, with `pi` as its argument."""
        path = self.root / f"extension{len(self.extensions)}.ts"
        path.write_text("export default function (pi) {\n" + source + "\n}\n")
        self.extensions.append(path)

    def tool(self, parameters, body='return { content: [{ type: "text", text: JSON.stringify(args) }] };', **more):
        """An extension with the tool `probe`, which shows its arguments unless the body says otherwise."""
        fields = json.dumps({"name": "probe", "label": "probe", "description": "A probe.", "parameters": parameters, **more})
        self.extension(f"pi.registerTool({{ ...{fields}, async execute(id, args, signal, update, ctx) {{ {body} }} }});")

    def put(self, path, content):
        path = pathlib.Path(path) if str(path).startswith("/") else self.work / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def mcp(self, tools, **entry):
        """An MCP server `peer` with these tools; a tool's `answer` is its result, otherwise it shows its arguments."""
        path = self.root / "tools.json"
        path.write_text(json.dumps(tools))
        script = pathlib.Path(__file__).parent / "mcp_server.py"
        entry = {"command": sys.executable, "args": [str(script), str(path)], "exposure": "direct"} | entry
        self.put(self.agent / "mcp.json", json.dumps({"mcpServers": {"peer": entry}}))

    # -- the program

    def start(self, *arguments, model="completions/m", stored=True):
        self.end()
        self.put(self.agent / "models.json", json.dumps({"providers": self.providers}))
        self.put(self.agent / "settings.json", json.dumps(self.settings))
        options = ["--model", model] if model else []
        options += [] if stored else ["--no-session"]
        for path in self.extensions:
            options += ["-e", str(path)]
        self.program = Program([*self.command, "--mode", "rpc", *options, *arguments], self.work, self.env)
        self.ask("get_state", START)
        return self

    def ask(self, kind, patience=25, **fields):
        """The data of a command's answer, or its error as a text."""
        given = self.program.ask(kind, patience, **fields)
        if given is None:
            raise Failed(f"{kind}: no answer; stderr: {''.join(self.program.complaints)[-400:]}")
        return given.get("data") if given["success"] else given.get("error", "refused")

    def prompt(self, message="hello", **fields):
        """Sends a prompt and waits until the work is over. Returns the frames since."""
        start = len(self.program.frames)
        self.ask("prompt", message=message, **fields)
        self.settled(start)
        return self.program.frames[start:]

    def settled(self, start):
        """Waits until what began after this frame is over."""
        is_over = lambda frame: frame["type"] == "agent_settled"
        if not any(map(is_over, self.program.frames[start:])) and self.program.wait(is_over, 40) is None:
            raise Failed(f"no agent_settled; frames: {[frame['type'] for frame in self.program.frames[start:]]}")

    def command_run(self, message):
        """Runs a command of an extension. Returns the frames since."""
        start = len(self.program.frames)
        self.ask("prompt", message=message)
        return self.program.frames[start:]

    def end(self):
        if self.program:
            self.before += self.program.frames
            code = self.program.end()
            self.program = None
            return code

    def close(self):
        self.end()
        self.server.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    # -- what was seen

    def answers(self, *answers):
        self.server.answers[:] = answers

    @property
    def requests(self):
        return self.server.requests

    def body(self, index=-1):
        return self.requests[index]["body"]

    def frames(self, kind):
        return [frame for frame in self.before + self.program.frames if frame["type"] == kind]

    def results(self):
        """Text and success of every tool call that has ended."""
        ends = self.frames("tool_execution_end")
        return [(bool(end["isError"]), self.plain(text_of(end["result"]))) for end in ends]

    def result(self):
        return self.results()[-1][1]

    def said(self):
        """The last message of the assistant."""
        return [frame["message"] for frame in self.frames("message_end") if frame["message"]["role"] == "assistant"][-1]

    def plain(self, words):
        return words.replace(str(self.work), "<work>").replace(str(self.root), "<root>")

    def entries(self):
        """The lines of the newest session file."""
        paths = sorted((self.agent / "sessions").glob("**/*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
        return [json.loads(line) for line in paths[-1].read_text().splitlines()]


def text_of(result):
    parts = (result or {}).get("content") or []
    return "\n".join(part.get("text", f"<{part.get('type')}>") for part in parts if isinstance(part, dict))


def play(row, command, path):
    """What one program shows in a row: ("seen", value), or ("failed", why)."""
    bench = Bench(command, path)
    try:
        return "seen", json.loads(json.dumps(row["play"](bench)))
    except Failed as why:
        return "failed", str(why)
    except Exception:
        return "failed", traceback.format_exc(limit=-3)
    finally:
        bench.close()
