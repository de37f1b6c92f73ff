#!/usr/bin/env python3
"""A small host for pith, in the xcsh dialect, with nothing but the standard library.

It offers a tool of its own, brings a todo list, steers a run, and replaces one
run by another. The model is scripted, so no key and no network is needed:

    python3 examples/host.py --pith target/release/pith

`Pith` below is all a host needs; `main` is the example.
"""

import argparse
import itertools
import json
import pathlib
import queue
import subprocess
import sys
import threading

PATIENCE = 30  # seconds to wait for any one frame


class Refused(Exception):
    """A command that was answered with success: false."""


class Pith:
    """One pith process: commands go in, responses and events come out."""

    def __init__(self, command, tools):
        self.tools = tools  # name -> (definition, function)
        self.ids = itertools.count(1)
        self.events = queue.Queue()  # everything that answers no command, in order
        self.answers = {}  # id -> queue with the one response
        self.write_lock = threading.Lock()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        threading.Thread(target=self._read, daemon=True).start()
        self.wait("ready")
        definitions = [definition for definition, _ in tools.values()]
        self.ask("set_host_tools", tools=definitions)

    def ask(self, kind, **fields):
        """Sends a command, waits for its response and returns the data."""
        name = f"req-{next(self.ids)}"
        answer = self.answers[name] = queue.Queue()
        self._send({"id": name, "type": kind, **fields})
        response = answer.get(timeout=PATIENCE)
        if not response["success"]:
            raise Refused(response["error"])
        return response.get("data")

    def wait(self, kind, **fields):
        """The next event of that type whose fields have these values."""
        while True:
            event = self.events.get(timeout=PATIENCE)
            if event is None:
                raise EOFError(f"pith ended while waiting for {kind}")
            if event["type"] == kind and all(event.get(key) == value for key, value in fields.items()):
                return event

    def close(self):
        """Ends pith in an orderly way and returns its exit code."""
        self.process.stdin.close()
        return self.process.wait(timeout=PATIENCE)

    def _send(self, frame):
        line = json.dumps(frame, ensure_ascii=False).encode() + b"\n"
        with self.write_lock:  # tools answer from threads of their own
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def _read(self):
        # Iterating over a binary pipe splits at LF only, as the protocol demands.
        for line in self.process.stdout:
            frame = json.loads(line)
            if frame["type"] == "response" and frame.get("id") in self.answers:
                # A later failure of an accepted prompt comes under the same id; nobody waits for it here.
                self.answers[frame["id"]].put(frame)
            elif frame["type"] == "host_tool_call":
                threading.Thread(target=self._call_tool, args=(frame,), daemon=True).start()
            else:
                self.events.put(frame)
        self.events.put(None)

    def _call_tool(self, call):
        _, function = self.tools[call["toolName"]]

        def report(text):
            self._send({"type": "host_tool_update", "id": call["id"], "partialResult": content(text)})

        try:
            text, failed = function(report, **call["arguments"]), False
        except Exception as error:  # the model is told, whatever it is
            text, failed = f"{type(error).__name__}: {error}", True
        self._send({"type": "host_tool_result", "id": call["id"], "result": content(text), "isError": failed})


def content(text):
    return {"content": [{"type": "text", "text": text}]}


def text_of(message):
    return "".join(block.get("text", "") for block in message["content"])


def main():
    here = pathlib.Path(__file__).resolve().parent
    options = argparse.ArgumentParser(description="Drive pith through a scripted session.")
    options.add_argument("--pith", default="pith", help="the binary")
    pith_path = options.parse_args().pith

    may_answer = threading.Event()

    def weather(report, city):
        report(f"looking out of the window in {city}")
        may_answer.wait(PATIENCE)  # so that the steering below arrives while the tool runs
        return f"{city}: 4 degrees, rain"

    definition = {
        "name": "weather",
        "label": "Weather",
        "description": "The weather in a city, as the host sees it.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    }
    command = [pith_path, "--mode", "rpc", "--dialect", "xcsh", "--no-session"]
    pith = Pith(command + ["--script", str(here / "host-script.json")], {"weather": (definition, weather)})

    tasks = [{"content": "Ask for the weather"}, {"content": "Report it"}]
    pith.ask("set_todos", phases=[{"name": "Weather report", "tasks": tasks}])
    print("todos:", [task["id"] for task in pith.ask("get_state")["todoPhases"][0]["tasks"]])

    # A run with a tool of ours, steered while the tool works.
    pith.ask("prompt", message="How is the weather in Oslo?")
    update = pith.wait("tool_execution_update", toolName="weather")
    print("tool:", text_of(update["partialResult"]))
    pith.ask("steer", message="Keep it short.")
    may_answer.set()
    end = pith.wait("tool_execution_end", toolName="weather")
    print("tool result:", text_of(end["result"]))
    pith.wait("agent_settled", aborted=False)
    print("answer:", pith.ask("get_last_assistant_text")["text"])
    print("todo status:", [task["status"] for task in pith.ask("get_state")["todoPhases"][0]["tasks"]])

    # A run that takes too long, replaced by another.
    pith.ask("prompt", message="Tell me everything about rain.")
    pith.wait("message_update")
    pith.ask("abort_and_prompt", message="On second thought: in one sentence.")
    pith.wait("agent_settled", aborted=True)
    pith.wait("agent_settled", aborted=False)
    print("answer:", pith.ask("get_last_assistant_text")["text"])

    code = pith.close()
    print("exit code:", code)
    return code


if __name__ == "__main__":
    sys.exit(main())
