"""Both clients against the real pith, with its scripted model. ``PITH`` names the program."""

import asyncio
import os
import pathlib
import signal
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "src"))

from pith_client import AsyncPith, CommandFailed, HostTool, Pith, PithExited  # noqa: E402

PROGRAM = os.environ.get("PITH", "pith")
SCRIPT = pathlib.Path(__file__).parent.parent.parent / "script.json"
PATIENCE = 60.0

ASKS = """export default (pi) => pi.registerCommand("ask", { handler: async (_, ctx) => {
  const name = await ctx.ui.input("Name?", "somebody");
  const sure = await ctx.ui.confirm("Sure?", "Really");
  ctx.ui.notify(`${name} ${sure}`);
} });
"""

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Scene(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.root = pathlib.Path(self.directory.name)
        (self.root / "work").mkdir()
        (self.root / "asks.ts").write_text(ASKS)

    def options(self):
        home = str(self.root)
        environment = {"PATH": os.environ["PATH"], "HOME": home, "PITH_AGENT_DIR": str(self.root / "agent")}
        return {"cwd": self.root / "work", "env": environment}

    def arguments(self, *more):
        return ["--script", str(SCRIPT), *more]

    def pith(self, *more, **options):
        pith = Pith(PROGRAM, self.arguments(*more), **self.options(), **options)
        self.addCleanup(pith.close)
        return pith

    def text(self, events):
        ends = [event["message"] for event in events if event["type"] == "message_end"]
        answers = [message for message in ends if message["role"] == "assistant"]
        return "".join(block.get("text", "") for block in answers[-1]["content"])


class Plain(Scene):
    def test_a_prompt_yields_its_events_and_ends(self):
        pith = self.pith()
        events = list(pith.run("hello"))
        self.assertEqual((events[0]["type"], events[-1]["type"]), ("agent_start", "agent_settled"))
        self.assertEqual(self.text(events), "You said: hello")
        self.assertEqual(pith.get_last_assistant_text()["text"], "You said: hello")

    def test_a_refused_command_raises_and_the_next_one_works(self):
        pith = self.pith()
        with self.assertRaises(CommandFailed) as caught:
            pith.set_model("nobody", "nothing")
        self.assertEqual(caught.exception.command, "set_model")
        self.assertIn("nobody/nothing", caught.exception.error)
        self.assertFalse(pith.get_state()["isStreaming"])

    def test_a_run_is_aborted(self):
        pith = self.pith()
        with pith.listen() as events:
            pith.prompt("a long one")
            events.wait("message_update", PATIENCE)
            pith.abort()
            self.assertTrue(events.wait("agent_settled", PATIENCE)["aborted"])

    def test_steering_joins_the_run(self):
        pith = self.pith()
        with pith.listen() as events:
            pith.prompt("a long one")
            events.wait("message_update", PATIENCE)
            pith.steer("shorter")
            self.assertEqual(events.wait("queue_update", PATIENCE)["steering"], ["shorter"])
            pith.abort()

    def test_the_model_calls_a_tool_of_this_program(self):
        def weather(arguments, context):
            context.update("looking")
            return f"4 degrees in {arguments['city']}"

        pith = self.pith(tools=[HostTool("weather", "Tells the weather", WEATHER, weather)])
        events = list(pith.run("how is the weather?"))
        self.assertEqual(self.text(events), "It is cold in Oslo.")

    def test_what_a_tool_raises_reaches_the_model(self):
        def weather(arguments, context):
            raise LookupError("no such city")

        pith = self.pith(tools=[HostTool("weather", "Tells the weather", WEATHER, weather)])
        self.assertEqual(self.text(list(pith.run("how is the weather?"))), "The tool failed.")

    def test_dialogs_are_answered(self):
        asked = []

        def dialog(request):
            asked.append((request["method"], request["title"]))
            return "Ada" if request["method"] == "input" else True

        pith = self.pith("-e", str(self.root / "asks.ts"), dialog=dialog)
        with pith.listen() as events:
            self.assertEqual(list(pith.run("/ask")), [], "an extension has dealt with it")
            told = next(event for event in events if event.get("method") == "notify")
        self.assertEqual(told["message"], "Ada true")
        self.assertEqual(asked, [("input", "Name?"), ("confirm", "Sure?")])

    def test_calls_are_permitted_or_refused(self):
        for answer, expected in [("once", "it ran"), (("deny", "Not today."), "Not today."), (None, "")]:
            asked = []

            def permission(request, answer=answer, asked=asked):
                asked.append((request["toolName"], request["arguments"]["command"]))
                return answer

            events = list(self.pith("--permission-mode", "ask", permission=permission).run("please run it"))
            ended = next(event for event in events if event["type"] == "tool_execution_end")
            self.assertEqual((asked, ended["isError"]), ([("bash", "echo it ran")], answer != "once"))
            self.assertIn(expected, ended["result"]["content"][0]["text"])

    def test_sessions_fork_and_resume(self):
        pith = self.pith()
        list(pith.run("one"))
        list(pith.run("two"))
        second = pith.get_fork_messages()["messages"][1]
        self.assertEqual(pith.fork(second["entryId"]), {"text": "two", "cancelled": False})
        self.assertEqual(len(pith.get_messages()["messages"]), 2)
        list(pith.run("three"))
        path = pith.get_state()["sessionFile"]
        self.assertEqual(pith.close(), 0)
        again = self.pith("--session", path)
        self.assertEqual(again.get_last_assistant_text()["text"], "You said: three")

    def test_a_pith_that_dies_fails_what_waits(self):
        pith = self.pith()
        with pith.listen() as events:
            pith.prompt("a long one")
            events.wait("message_update", PATIENCE)
            os.kill(pith.pid, signal.SIGKILL)
            with self.assertRaises(PithExited) as caught:
                events.wait("agent_settled", PATIENCE)
        self.assertEqual(caught.exception.status, -signal.SIGKILL)
        with self.assertRaises(PithExited):
            pith.get_state()

    def test_a_pith_that_refuses_to_start_says_why(self):
        pith = self.pith("--script", "/nowhere/script.json")
        with self.assertRaises(PithExited) as caught:
            pith.get_state()
        self.assertIn("/nowhere/script.json", caught.exception.stderr)

    def test_a_second_process_on_a_running_session_is_refused(self):
        first = self.pith()
        list(first.run("hello"))
        path = first.get_state()["sessionFile"]
        with first.listen() as events:
            first.prompt("a long one")
            events.wait("message_update", PATIENCE)
            second = self.pith("--session", path)
            with self.assertRaises(PithExited) as caught:
                second.prompt("me too")
            self.assertIn("in use by another process", caught.exception.stderr)
            first.abort()


class Async(Scene):
    def spawn(self, *more, **options):
        return AsyncPith.spawn(PROGRAM, self.arguments(*more), **self.options(), **options)

    def play(self, story):
        return asyncio.run(asyncio.wait_for(story(), PATIENCE * 2))

    def test_a_prompt_yields_its_events_and_ends(self):
        async def story():
            async with self.spawn() as pith:
                events = [event async for event in pith.run("hello")]
                self.assertEqual(self.text(events), "You said: hello")
                self.assertEqual((await pith.get_last_assistant_text())["text"], "You said: hello")

        self.play(story)

    def test_commands_run_side_by_side(self):
        async def story():
            async with self.spawn() as pith:
                states = await asyncio.gather(*(pith.get_state() for _ in range(50)))
                self.assertEqual({state["sessionId"] for state in states}, {states[0]["sessionId"]})

        self.play(story)

    def test_tools_and_dialogs_may_be_coroutines(self):
        async def weather(arguments, context):
            await context.update("looking")
            return f"4 degrees in {arguments['city']}"

        async def dialog(request):
            return "Ada" if request["method"] == "input" else True

        async def story():
            tools = [HostTool("weather", "Tells the weather", WEATHER, weather)]
            async with self.spawn("-e", str(self.root / "asks.ts"), tools=tools, dialog=dialog) as pith:
                events = [event async for event in pith.run("how is the weather?")]
                self.assertEqual(self.text(events), "It is cold in Oslo.")
                with pith.listen() as events:
                    self.assertEqual([event async for event in pith.run("/ask")], [])
                    async for event in events:
                        if event.get("method") == "notify":
                            self.assertEqual(event["message"], "Ada true")
                            break

        self.play(story)

    def test_a_withdrawn_call_is_cancelled(self):
        began, ended = asyncio.Event(), asyncio.Event()

        async def weather(arguments, context):
            began.set()
            try:
                await asyncio.sleep(PATIENCE)
            finally:
                ended.set()

        async def story():
            async with self.spawn(tools=[HostTool("weather", "Tells the weather", WEATHER, weather)]) as pith:
                await pith.prompt("how is the weather?")
                await began.wait()
                await pith.abort()
                await ended.wait()

        self.play(story)

    def test_a_pith_that_dies_fails_what_waits(self):
        async def story():
            async with self.spawn() as pith:
                with pith.listen() as events:
                    await pith.prompt("a long one")
                    await events.wait("message_update")
                    os.kill(pith.pid, signal.SIGKILL)
                    with self.assertRaises(PithExited):
                        await events.wait("agent_settled")

        self.play(story)


if __name__ == "__main__":
    unittest.main()
