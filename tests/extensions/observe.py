"""What a package does under one agent: what it registers, asks, shows, and how its tools and commands end."""

import re
import statistics
import time

from agent import BUILTIN, PATIENCE, START, Agent, Model

MAX_TOOLS = 12
MAX_COMMANDS = 14
QUIET = 0.4  # seconds without a frame
# The order of these says nothing; they are shown whenever something has changed.
DISPLAYS = {"setStatus", "setWidget", "setTitle", "set_editor_text"}


def observe(command, root):
    """Plays the scenario; returns plain data with everything that differs from run to run taken out."""
    model = Model()
    agent = Agent(command, root, model)
    try:
        return Play(agent, model, command, root).all()
    finally:
        agent.end()
        model.stop()


class Play:
    def __init__(self, agent, model, command, root):
        self.agent, self.model, self.command, self.root = agent, model, command, root
        self.seen = {"tools": {}, "commands": {}, "calls": {}, "runs": {}}

    def all(self):
        state = self.agent.ask("get_state", START)
        if state is None:
            self.seen["load"] = "fails: " + self.clean("".join(self.agent.complaints))[:600]
            return self.seen
        answer = self.agent.ask("get_commands", START)
        self.seen["load"] = "loads"
        self.seen["loadMs"] = round((time.monotonic() - self.agent.began) * 1000)
        listed = answer["data"]["commands"] if answer else []
        own = [command for command in listed if command["source"] == "extension"]
        self.seen["commands"] = {command["name"]: command.get("description") for command in own}
        # With what extensions showed while the agent was starting.
        self.seen["start"] = self.step(lambda: self.prompt("hello"), since=0)
        self.seen["memoryKb"] = self.agent.memory()
        self.tools()
        for command in own[:MAX_COMMANDS]:
            self.revive()
            self.seen["runs"][command["name"]] = self.step(lambda: self.prompt(f"/{command['name']}"))
        self.seen["exit"] = self.agent.end()
        return self.seen

    def tools(self):
        # An extension may have asked the model something of its own before.
        offered = next((request["tools"] for request in self.model.requests if request.get("tools")), [])
        functions = [tool["function"] for tool in offered]
        self.seen["tools"] = {f["name"]: f["parameters"] for f in functions}
        own = [f for f in functions if f["name"] not in BUILTIN]
        for function in own[:MAX_TOOLS]:
            self.revive()
            arguments = sample(function["parameters"])
            call = f"call {function['name']} {json_text(arguments)}"
            self.seen["calls"][function["name"]] = self.step(lambda: self.prompt(call))
        # What a gate may have a say in.
        for name, command in (("bash", "ls"), ("bash (risky)", "rm -rf build && sudo true")):
            self.revive()
            call = "call bash " + json_text({"command": command})
            self.seen["calls"][name] = self.step(lambda: self.prompt(call))

    def revive(self):
        """Starts the agent again if the last step has ended it, or if it still works on it."""
        is_stuck = not self.agent.has_ended and self.is_busy()
        if self.agent.has_ended or is_stuck:
            self.agent.end()
            self.agent = Agent(self.command, self.root, self.model)
            self.agent.ask("get_state", START)

    def is_busy(self):
        state = self.agent.ask("get_state")
        if state is None:
            return True
        if not state["data"].get("isStreaming"):
            return False
        self.agent.ask("abort")
        state = self.agent.ask("get_state")
        return state is None or state["data"].get("isStreaming")

    def prompt(self, text):
        """Sends a prompt; returns when it is answered and the work it began is over."""
        start = len(self.agent.frames)
        answer = self.agent.ask("prompt", message=text)
        if answer is None:
            return "ended" if self.agent.has_ended else "open"
        if not answer["success"]:
            return "refused: " + self.clean(answer.get("error", ""))
        kinds = lambda: [frame["type"] for frame in self.agent.frames[start:]]
        settled = lambda frame: frame["type"] == "agent_settled"
        if not text.startswith("/") and "agent_settled" not in kinds() and self.agent.wait(settled) is None:
            return "ended" if self.agent.has_ended else "open"
        return self.rest(settled)

    def rest(self, settled):
        """Waits until nothing follows any more: what a command began may go on after its answer."""
        for _ in range(8):
            state = self.agent.ask("get_state")
            if state is None:
                return "ended" if self.agent.has_ended else "open"
            n_frames = len(self.agent.frames)
            is_busy = state["data"].get("isStreaming")
            if self.agent.wait(settled, PATIENCE if is_busy else QUIET) is None and is_busy:
                return "ended" if self.agent.has_ended else "open"
            if not is_busy and len(self.agent.frames) == n_frames:
                break
        return "done"

    def step(self, act, since=None):
        start, n_requests = len(self.agent.frames) if since is None else since, len(self.model.requests)
        outcome = act()
        frames = self.agent.frames[start:]
        asked = [self.dialog(frame) for frame in frames if frame["type"] == "extension_ui_request"]
        ends = [frame for frame in frames if frame["type"] == "tool_execution_end"]
        return {
            "outcome": outcome,
            "ui": [request for request in asked if request[0] not in DISPLAYS],
            "shown": sorted({request[0] + " " + request[2] for request in asked if request[0] in DISPLAYS}),
            "tools": [[end["toolName"], bool(end["isError"]), self.clean(text_of(end["result"]))[:1500]] for end in ends],
            "errors": [[frame["event"], self.clean(frame["error"])] for frame in frames if frame["type"] == "extension_error"],
            "requests": len(self.model.requests) - n_requests,
        }

    def dialog(self, frame):
        words = " ".join(str(frame.get(key) or "") for key in ("title", "message"))
        options = [str(option) for option in frame.get("options") or []]
        key = str(frame.get("statusKey") or frame.get("widgetKey") or "")
        return [frame["method"], self.clean(words), self.clean(key), [self.clean(option) for option in options]]

    def clean(self, text):
        """Takes out what no two runs have in common: places, times, sizes, numbers, colours."""
        text = str(text).replace(str(self.agent.directory), "<dir>").replace(str(self.root), "<package>")
        text = re.sub(r"/tmp/ext-compare-[\w-]+", "<dir>", text)
        text = re.sub(r"\x1b\[[0-9;]*m", "", text)
        text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>", text)
        text = re.sub(r"\b[0-9a-f]{7,64}\b", "<id>", text)
        text = re.sub(r"\d+(\.\d+)?", "0", text)
        return text.strip()


def text_of(result):
    parts = (result or {}).get("content") or []
    return "\n".join(part.get("text", f"<{part.get('type')}>") for part in parts if isinstance(part, dict))


def json_text(value):
    import json

    return json.dumps(value)


def sample(schema):
    """Arguments that fit a schema: what is required, and nothing else."""
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return sample(schema[key][0])
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    match kind:
        case "object":
            required = schema.get("required") or []
            return {name: sample(part) for name, part in schema.get("properties", {}).items() if name in required}
        case "array":
            return [sample(schema.get("items") or {"type": "string"})] if schema.get("minItems") else []
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "README.md" if "path" in schema.get("description", "").lower() else "words"


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None
