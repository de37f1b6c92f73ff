#!/usr/bin/env python3
"""A host without a library: answers a dialog of an extension, then forks. PITH names the program."""

import json
import os
import subprocess
import tempfile

EXTENSION = """export default (pi) => pi.registerCommand("greet", { handler: async (_, ctx) => {
  ctx.ui.notify("Hello " + await ctx.ui.input("Your name?"));
} });"""

directory = tempfile.TemporaryDirectory()
extension = os.path.join(directory.name, "greet.ts")
with open(extension, "w") as file:
    file.write(EXTENSION)
pith = subprocess.Popen(
    [os.environ.get("PITH", "pith"), "--mode", "rpc", "--model", "scripted/tour", "-e", extension],
    cwd=directory.name,
    env={**os.environ, "PITH_AGENT_DIR": os.path.join(directory.name, "agent")},
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
    encoding="utf-8",
)


def send(frame):
    pith.stdin.write(json.dumps(frame) + "\n")
    pith.stdin.flush()


def read_until(is_wanted):
    for line in pith.stdout:
        frame = json.loads(line)
        if frame["type"] == "extension_ui_request" and frame["method"] == "input":
            send({"type": "extension_ui_response", "id": frame["id"], "value": "Ada"})
        if frame["type"] == "extension_ui_request" and frame["method"] == "notify":
            print("extension:", frame["message"])
        if is_wanted(frame):
            return frame
    raise EOFError("pith has ended")


def ask(kind, **fields):
    send({"id": kind, "type": kind, **fields})
    response = read_until(lambda frame: frame["type"] == "response" and frame.get("id") == kind)
    if not response["success"]:
        raise RuntimeError(response["error"])
    return response.get("data")


ask("prompt", message="/greet")  # Answered when the extension is done: "handled", and no run follows.
if ask("prompt", message="What is here?")["disposition"] == "started":
    read_until(lambda frame: frame["type"] == "agent_settled")
first = ask("get_fork_messages")["messages"][0]
print("fork before:", ask("fork", entryId=first["entryId"])["text"])
print("messages now:", len(ask("get_messages")["messages"]))
pith.stdin.close()
print("exit code:", pith.wait())
