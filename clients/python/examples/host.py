#!/usr/bin/env python3
"""A small, complete host: prompt, stream, steer, abort, dialog, host tool, fork, resume.

    PITH=target/release/pith python3 clients/python/examples/host.py

The model is scripted, so no key and no network is needed.
"""

import os
import pathlib
import tempfile

from pith_client import HostTool, Pith

HERE = pathlib.Path(__file__).parent
PROGRAM = os.environ.get("PITH", "pith")
ASK = """export default (pi) => pi.registerCommand("ask", { handler: async (_, ctx) => {
  ctx.ui.notify(`Hello ${await ctx.ui.input("Your name?")}`);
} });"""


def show(event):
    """Prints an answer as it grows."""
    if event["type"] == "message_update":
        step = event["assistantMessageEvent"]
        if step["type"] == "text_delta":
            print(step["delta"], end="", flush=True)
    elif event["type"] == "agent_settled":
        print()


def weather(arguments, context):
    context.update("looking out of the window")
    return f"4 degrees in {arguments['city']}"


TOOL = HostTool("weather", "Tells the weather", {"type": "object", "properties": {"city": {"type": "string"}}}, weather)


def start(directory, *more):
    (directory / "ask.ts").write_text(ASK)
    script = HERE.parent.parent / "script.json"
    arguments = ["--script", str(script), "-e", str(directory / "ask.ts"), *more]
    environment = {**os.environ, "PITH_AGENT_DIR": str(directory / "agent")}
    return Pith(PROGRAM, arguments, cwd=directory, env=environment, tools=[TOOL], dialog=lambda request: "Ada")


def main():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        with start(directory) as pith:
            for event in pith.run("how is the weather?"):  # prompt, stream, host tool
                show(event)
            with pith.listen() as events:  # steer, then abort
                pith.prompt("a long story")
                events.wait("message_update")
                pith.steer("make it short")
                pith.abort()
                print("aborted:", events.wait("agent_settled")["aborted"])
            pith.clear_queue()
            with pith.listen() as events:  # dialog
                list(pith.run("/ask"))
                print("extension:", next(event["message"] for event in events if event.get("method") == "notify"))
            first = pith.get_fork_messages()["messages"][0]  # fork
            print("fork before:", pith.fork(first["entryId"])["text"])
            for event in pith.run("and now something else"):
                show(event)
            path = pith.get_state()["sessionFile"]
        with start(directory, "--session", path) as pith:  # resume
            print("resumed with:", pith.get_last_assistant_text()["text"])


if __name__ == "__main__":
    main()
