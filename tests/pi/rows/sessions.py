"""Sessions: what a resumed one keeps, summaries, moves in the tree, runs of extensions."""

from bench import row
from server import answer, calling, stream, text, thinking

CHOOSE = """
pi.registerCommand("choose", { handler: async (args) => pi.setActiveTools(args.split(",")) });
"""


def tools(request):
    return [tool["function"]["name"] for tool in request["body"].get("tools", [])]


@row("C1", "a session keeps the tools it was left with", "a_restriction_goes_wherever_its_session_goes", want={"continue": ["read"], "switch": ["read"], "fork": ["read"], "clone": ["read"], "--tools": ["read", "bash"]})
def _(bench):
    bench.extension(CHOOSE)
    seen = {}

    def look(where):
        bench.prompt()
        seen[where] = tools(bench.requests[-1])

    bench.start()
    bench.prompt()
    bench.command_run("/choose read")
    bench.prompt("second")
    path = bench.ask("get_state")["sessionFile"]
    bench.ask("new_session")
    bench.prompt("other")
    bench.ask("switch_session", sessionPath=path)
    look("switch")
    bench.ask("clone")
    look("clone")
    messages = bench.ask("get_fork_messages")["messages"]
    bench.ask("fork", entryId=messages[-1]["entryId"])
    look("fork")
    bench.start("--session", path)
    look("continue")
    bench.start("--session", path, "--tools", "read,bash")
    look("--tools")
    return seen


@row("C2", "tools that stay keep their places", "a_choice_keeps_the_order_of_tools_that_stay", want=[["read", "bash", "edit", "write"], ["read", "edit", "write"], ["read", "edit", "write", "bash"]])
def _(bench):
    bench.extension(CHOOSE)
    bench.start()
    seen = []
    for names in ("write,edit,bash,read", "write,edit,read", "bash,write,edit,read"):
        bench.command_run(f"/choose {names}")
        bench.prompt()
        seen.append(tools(bench.requests[-1]))
    return seen


MOVE = """
pi.registerCommand("move", { handler: async (args, ctx) => {
  const [text, summarize] = args.split(" ");
  const entries = ctx.sessionManager.getEntries();
  const entry = entries.find((entry) => entry.type === "message" && JSON.stringify(entry.message.content).includes(text));
  await ctx.navigateTree(entry.id, { summarize: summarize === "summarize" });
} });
"""


@row("C3", "the prompt after a move records the level it runs with", "the_level_is_recorded_on_a_branch_that_says_another_one", want=["high", "high"])
def _(bench):
    bench.extension(MOVE)
    bench.start("--thinking", "low")
    bench.prompt("first")
    bench.prompt("second")
    bench.ask("set_thinking_level", level="high")
    bench.command_run("/move second")
    bench.prompt("third")
    live = bench.ask("get_state")["thinkingLevel"]
    bench.start("--continue")
    return [live, bench.ask("get_state")["thinkingLevel"]]


def last_text(request):
    content = request["body"]["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@row("C4", "the focus of a summary reaches that of a turn's beginning", "the_focus_of_a_compaction_reaches_every_summary", want=[True])
def _(bench):
    bench.settings["compaction"] = {"enabled": True, "keepRecentTokens": 1000, "reserveTokens": 2000}
    bench.start()
    bench.put("long.txt", "word " * 4000)
    bench.answers(*(calling("read", {"path": "long.txt"}) for _ in range(3)))
    bench.prompt("one long turn")
    before = len(bench.requests)
    bench.ask("compact", customInstructions="Look at the FOCUS.")
    return ["FOCUS" in last_text(request) for request in bench.requests[before:]]


@row("C5", "summaries leave thinking out", "summaries_do_not_quote_thinking", want=[[True, False]])
def _(bench):
    bench.settings["compaction"] = {"enabled": True, "keepRecentTokens": 10, "reserveTokens": 2000}
    bench.start("--thinking", "high")
    bench.answers(answer(thinking("SECRETLY"), {"type": "text", "text": "OPENLY"}))
    bench.prompt("first")
    bench.prompt("second " * 50)
    before = len(bench.requests)
    bench.ask("compact")
    return [["OPENLY" in last_text(request), "SECRETLY" in last_text(request)] for request in bench.requests[before:]]


@row("C6", "the summary of a branch leaves out answers that were retried, and the model limits its length", "the_summary_of_a_branch_leaves_out_answers_that_were_retried", want=[[True, False, "above 4096"]])
def _(bench):
    bench.extension(MOVE)
    bench.start()
    bench.prompt("first")
    broken = stream({"id": "c", "choices": [{"index": 0, "delta": {"content": "HALF"}}]}, {"error": {"message": "Overloaded"}})
    bench.answers(broken, text("WHOLE"))
    bench.prompt("second")
    before = len(bench.requests)
    bench.command_run("/move first summarize")
    limit = lambda body: body.get("max_completion_tokens") or body.get("max_tokens") or 0
    return [["WHOLE" in last_text(request), "HALF" in last_text(request), "above 4096" if limit(request["body"]) > 4096 else limit(request["body"])] for request in bench.requests[before:]]


@row("C7", "`before_agent_start` runs for messages that trigger a turn", "a_run_that_an_extension_starts_is_shown_to_its_handlers_like_a_prompt", want=[["user", True], ["custom", True]])
def _(bench):
    bench.extension("""
    pi.on("before_agent_start", (event) => ({ systemPrompt: event.systemPrompt + "\\nMARK " + event.messageType }));
    pi.registerCommand("poke", { handler: async () => pi.sendMessage({ customType: "poke", content: "poked", display: true }, { triggerTurn: true }) });
    """)
    bench.start()
    bench.prompt()
    start = len(bench.program.frames)
    bench.ask("prompt", message="/poke")
    bench.settled(start)
    seen = []
    for request in bench.requests:
        system = request["body"]["messages"][0]["content"]
        system = system if isinstance(system, str) else "".join(part["text"] for part in system)
        seen.append([system.rsplit("MARK ", 1)[-1].split("\n")[0] if "MARK" in system else None, "MARK" in system])
    return seen


@row("C8", "`ctx.reload()` is refused during work", "extensions_cannot_reload_what_is_at_work", want="Wait for the current response to finish before reloading.")
def _(bench):
    bench.extension("""
    pi.registerCommand("again", { handler: async (args, ctx) => {
      try { await ctx.reload(); ctx.ui.notify("reloaded"); } catch (error) { ctx.ui.notify(error.message); }
    } });
    """)
    bench.start()
    bench.answers(calling("bash", {"command": "echo started; until [ -e go ]; do sleep .05; done"}))
    start = len(bench.program.frames)
    bench.ask("prompt", message="hello")
    bench.program.wait(lambda frame: frame["type"] == "tool_execution_update")
    bench.program.send("prompt", message="/again", streamingBehavior="steer")
    told = bench.program.wait(lambda frame: frame.get("method") == "notify" or frame["type"] == "extension_error")
    bench.put("go", "")
    bench.settled(start)
    return told and (told.get("message") or told.get("error"))


@row("C9", "empty quoted arguments of templates count", "arguments_are_split", want="A= B=two C=it's")
def _(bench):
    bench.put(bench.agent / "prompts" / "tp.md", "A=$1 B=$2 C=$3")
    bench.start()
    bench.prompt("/tp \"\" two \"it's\"")
    return last_text(bench.requests[-1])
