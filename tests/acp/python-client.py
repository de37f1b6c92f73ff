"""Drives `pith acp` with the official Python SDK; prints one line per feature.

    python tests/acp/python-client.py PITH SCRIPT
"""

import asyncio
import os
import sys
import tempfile

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block

PITH, SCRIPT = sys.argv[1:3]


class Editor:
    def __init__(self):
        self.updates = []

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)

    def on_connect(self, _connection):
        pass

    def __getattr__(self, name):
        raise AttributeError(name)

    def said(self):
        chunks = (update for update in self.updates if update.session_update == "agent_message_chunk")
        return "".join(chunk.content.text for chunk in chunks)


async def until(is_so):
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.sleep(0.01)


async def main():
    editor, cwd = Editor(), os.path.realpath(tempfile.mkdtemp())

    async def feature(name, work):
        try:
            result = await work
            print(f"{name}: ok", flush=True)
            return result
        except Exception as error:
            print(f"{name}: {type(error).__name__} {error}".splitlines()[0], flush=True)

    async with spawn_agent_process(lambda _agent: editor, PITH, "acp", "--script", SCRIPT, env=dict(os.environ)) as (agent, _):
        await feature("initialize", agent.initialize(protocol_version=PROTOCOL_VERSION))
        opened = await feature("new session", agent.new_session(cwd=cwd, mcp_servers=[]))

        async def prompt(words, expected):
            end = await agent.prompt(session_id=opened.session_id, prompt=[text_block(words)])
            assert end.stop_reason == "end_turn", end
            await until(lambda: expected in editor.said())

        await feature("text", prompt("hello", "You said: hello"))
        await feature("tool call", prompt("use the tool", "It says 42."))
        listed = await feature("list", agent.list_sessions(cwd=cwd))
        assert any(session.session_id == opened.session_id for session in listed.sessions), listed
        await feature("close", agent.close_session(session_id=opened.session_id))
        await feature("load", agent.load_session(cwd=cwd, session_id=opened.session_id, mcp_servers=[]))


asyncio.run(main())
