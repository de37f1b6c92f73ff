"""What is sent to the servers of models."""

from bench import row
from server import answer, call, calling, chunk, completed, function_call, refusal, stream, thinking


def blank(bench, model):
    bench.start(model=model)
    bench.answers(calling("bash", {"command": "printf ' \\n'"}))
    bench.prompt()
    return bench.body()


@row("A6", "no empty list of tools, unless `requiresToolsWithToolHistory`", "a_history_of_calls_needs_no_tools_but_where_a_server_says_so", want=["none", []])
def _(bench):
    seen = []
    for compat in ({}, {"requiresToolsWithToolHistory": True}):
        bench.providers["completions"] = bench.provider("completions", compat=compat)
        bench.start()
        bench.answers(calling("bash", {"command": "echo hi"}))
        bench.prompt()
        bench.start("--continue", "--no-tools")
        bench.prompt()
        seen.append(bench.body().get("tools", "none"))
    return seen


@row("A7a", "blank output of a tool, completions", "blank_output_is_sent_as_what_servers_take", want="(no tool output)")
def _(bench):
    return blank(bench, "completions/m")["messages"][-1]["content"]


@row("A7b", "blank output of a tool, responses", "blank_output_is_sent_as_what_servers_take", want="(no tool output)")
def _(bench):
    return blank(bench, "responses/m")["input"][-1]["output"]


@row("A7c", "blank output of a tool, Google", "blank_output_is_sent_as_what_servers_take", want="")
def _(bench):
    return blank(bench, "google/m")["contents"][-1]["parts"][0]["functionResponse"]["response"]["output"]


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


@row("A8", "Anthropic: images of a failed tool follow all results of the turn", "anthropic_is_sent_the_pictures_of_errors_behind_all_results", want=[["tool_result", True, ["text"]], ["tool_result", False, ["text"]], ["text"], ["image"]])
def _(bench):
    bench.extension(f"""pi.on("tool_result", (event) => event.input.command === "echo one"
      ? {{ isError: true, content: [{{ type: "text", text: "bad" }}, {{ type: "image", mimeType: "image/png", data: "{PIXEL}" }}] }} : undefined);""")
    bench.start(model="anthropic/m")
    bench.answers(answer(call("bash", {"command": "echo one"}, "toolu_1"), call("bash", {"command": "echo two"}, "toolu_2")))
    bench.prompt()
    shape = []
    for block in bench.body()["messages"][-1]["content"]:
        if block["type"] == "tool_result":
            inner = block["content"] if isinstance(block["content"], list) else [{"type": "text"}]
            shape.append(["tool_result", bool(block.get("is_error")), [part["type"] for part in inner]])
        else:
            shape.append([block["type"]])
    return shape


CONTROLS = "thinking-binding-controls-2026-08-01"


def bound(request):
    """How a request to Anthropic thinks: whether it does, what a changed prefix does to old thinking, and the beta for it."""
    asked = request["body"].get("thinking", {})
    betas = request["headers"].get("anthropic-beta", "")
    return [asked.get("type"), asked.get("block_binding", {}).get("prefix_mismatch_behavior"), CONTROLS in betas]


@row("A9a", "Anthropic: changed tools drop old thinking instead of failing", "thinking_may_come_back_behind_another_prompt", want=[["adaptive", "drop_block", True], ["disabled", None, True]], pith=([["adaptive", "drop_block", True], ["disabled", None, False]], "the beta is sent with the field it is for"))
def _(bench):
    bench.providers["anthropic"] = {"baseUrl": bench.server.url, "apiKey": "k"}
    bench.start("--thinking", "high", model="anthropic/claude-opus-5")
    bench.prompt()
    bench.start("--thinking", "off", model="anthropic/claude-opus-5")
    bench.prompt()
    return [bound(request) for request in bench.requests]


@row("A9b", "Anthropic: a refusal of old thinking does not turn thinking off", "refused_thinking_is_left_out_and_the_model_goes_on_thinking", want="adaptive", own=True)
def _(bench):
    bench.providers["anthropic"] = {"baseUrl": bench.server.url, "apiKey": "k"}
    bench.start("--thinking", "high", model="anthropic/claude-opus-5")
    bench.answers(answer(thinking("Hm."), {"type": "text", "text": "ok"}))
    bench.prompt()
    words = "messages.1.content.0: Invalid `signature` in `thinking` block"
    bench.answers(refusal(400, {"type": "error", "error": {"type": "invalid_request_error", "message": words}}))
    bench.prompt()
    bench.ask("new_session")
    bench.prompt()
    return bench.body().get("thinking", {}).get("type")


@row("A10", "Anthropic: a tool's schema has five keys at its root", "schemas_are_sent_in_the_form_the_server_takes", want=["$defs", "properties", "required", "type"])
def _(bench):
    parameters = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "required": ["a"],
        "anyOf": [{"required": ["a"]}],
        "additionalProperties": False,
        "title": "T",
        "$defs": {"A": {"type": "string"}},
    }
    bench.tool(parameters)
    bench.start(model="anthropic/m")
    bench.prompt()
    tool = next(tool for tool in bench.body()["tools"] if tool["name"] == "probe")
    return sorted(tool["input_schema"])


def two_calls():
    """Two calls whose events are mixed."""
    calls = [function_call(call("bash", {"command": f"echo {word} >> ran"}, f"call_{word}"), f"fc_{word}", {}) for word in ("one", "two")]
    mixed = [event for pair in zip(*calls) for event in pair]
    return stream({"type": "response.created", "response": {"id": "r"}}, *mixed, completed({"input": 1, "output": 1}))


@row("A11", "Responses: calls without a number are not mixed up", "calls_that_can_be_told_apart_all_run", want=["error", ""], pith=(["toolUse", "one\ntwo\n"], "the ids of the items tell them apart, so they run with their own arguments"))
def _(bench):
    bench.start(model="responses/m")
    bench.answers(two_calls())
    bench.prompt()
    first = next(frame["message"] for frame in bench.frames("message_end") if frame["message"]["role"] == "assistant")
    ran = bench.work / "ran"
    return [first["stopReason"], "\n".join(sorted(ran.read_text().split())) + "\n" if ran.exists() else ""]


@row("A12", "Responses: a call whose end never came does not run", "a_call_runs_with_its_own_arguments_or_not_at_all", want=["error", False])
def _(bench):
    bench.start(model="responses/m")
    events = list(function_call(call("bash", {"command": "touch ran"}), "fc_1", {"output_index": 0}))
    bench.answers(*[stream({"type": "response.created", "response": {"id": "r"}}, *events[:-1], completed({"input": 1, "output": 1}))] * 5)
    bench.prompt()
    return [bench.said()["stopReason"], (bench.work / "ran").exists()]


@row("A13", "Responses: the session's header is `session-id`", "the_example_request", want=[True, False])
def _(bench):
    bench.start(model="responses/m")
    bench.prompt()
    session = bench.ask("get_state")["sessionId"]
    headers = bench.requests[-1]["headers"]
    return [headers.get("session-id") == session, "session_id" in headers]


@row("A14", "service tier `fast` costs double", "service_tiers_have_their_prices", want=[[2.0, 4.0], [1.0, 2.0]])
def _(bench):
    bench.start(model="responses/m")
    costs = []
    for tier in ["fast", "default"]:
        bench.answers(stream({"type": "response.created", "response": {"id": "r"}}, completed({"input": 1000000, "output": 1000000}, service_tier=tier)))
        bench.prompt()
        cost = bench.said()["usage"]["cost"]
        costs.append([cost["input"], cost["output"]])
    return costs


@row("A15", "Gemini 4 thinks by level", "thinking_by_level_or_by_budget", want={"includeThoughts": True, "thinkingLevel": "HIGH"})
def _(bench):
    bench.env["GEMINI_API_KEY"] = "k"
    bench.providers["google"] = bench.provider("google", id="gemini-4-argon")
    bench.start("--thinking", "high", model="google/gemini-4-argon")
    bench.prompt()
    return bench.body()["generationConfig"]["thinkingConfig"]


@row("A16", "Google: a constant is an enum of one", "constants_of_tools_are_sent_as_choices", want={"properties": {"kind": ["enum"], "n": ["enum"], "plain": ["const"]}, "default": {"const": "kept"}})
def _(bench):
    properties = {"kind": {"type": "string", "const": "a"}, "n": {"type": "number", "const": 3}, "plain": {"type": "boolean", "const": True}, "kept": {"type": "object", "default": {"const": "kept"}}}
    bench.tool({"type": "object", "properties": properties})
    bench.start(model="google/m")
    bench.prompt()
    declared = next(tool for tool in bench.body()["tools"][0]["functionDeclarations"] if tool["name"] == "probe")
    sent = (declared.get("parameters") or declared.get("parametersJsonSchema"))["properties"]
    return {"properties": {name: sorted({"const", "enum"} & set(sent[name])) for name in ("kind", "n", "plain")}, "default": sent["kept"].get("default")}


@row("A17", "room for the answer beside a long prompt", "the_limit_leaves_room_for_the_input", want="near 15800")
def _(bench):
    bench.providers["completions"] = bench.provider("completions", contextWindow=100000, maxTokens=64000)
    bench.settings["compaction"] = {"enabled": False}
    bench.put("AGENTS.md", "")
    bench.start("--no-tools", "--no-context-files", "--system-prompt", "x")
    bench.prompt("x" * 280000)
    asked = bench.body().get("max_completion_tokens") or bench.body().get("max_tokens")
    # System prompts are not of one length.
    return f"near {round(asked / 200) * 200}"


@row("A18", "what OpenRouter has billed is the cost", "what_openrouter_has_billed_counts", want=[0.5, 0.75])
def _(bench):
    bench.env["OPENROUTER_API_KEY"] = "k"
    bench.providers["openrouter"] = {"baseUrl": bench.server.url + "/v1"}
    bench.start(model="openrouter/openai/gpt-5.1")
    costs = []
    for billed in [{"cost": 0.5, "is_byok": False}, {"cost": 0.25, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.5}}]:
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, **billed}
        bench.answers(stream(chunk({"content": "ok"}), chunk({}, "stop"), {"id": "c", "choices": [], "usage": usage}))
        bench.prompt()
        costs.append(bench.said()["usage"]["cost"]["total"])
    return costs


@row("A19", "encrypted reasoning that comes with the text is before it", "what_was_thought_comes_first_even_if_it_is_encrypted", want=["thinking", "text"])
def _(bench):
    bench.env["OPENROUTER_API_KEY"] = "k"
    bench.providers["openrouter"] = {"baseUrl": bench.server.url + "/v1"}
    bench.start(model="openrouter/openai/gpt-5.1")
    details = [{"type": "reasoning.encrypted", "id": "r1", "data": "abc", "format": "openai-responses-v1", "index": 0}]
    bench.answers(stream(chunk({"content": "ok", "reasoning_details": details}), chunk({}, "stop")))
    bench.prompt()
    return [block["type"] for block in bench.said()["content"]]


def strict_tools(request):
    return [tool["name"] for tool in request["body"]["tools"] if tool.get("strict")]


BUILT_IN = ["read", "bash", "edit", "write"]
STRICT = {"type": "json_schema", "strict": "prefer"}


def anthropic_with_strict_tools(bench):
    bench.providers["anthropic"] = {"baseUrl": bench.server.url, "apiKey": "k"}
    return bench.start(model="anthropic/claude-opus-5")


@row("A21a", "Anthropic: a tool with limits is not strict", "schemas_are_sent_in_the_form_the_server_takes", want=[[*BUILT_IN], [*BUILT_IN, "probe"]])
def _(bench):
    seen = []
    for schema in ({"type": "integer", "minimum": 1}, {"type": "integer"}):
        bench.extensions.clear()
        parameters = {"type": "object", "properties": {"n": schema}, "required": ["n"], "additionalProperties": False}
        bench.tool(parameters, constrainedSampling=STRICT)
        anthropic_with_strict_tools(bench)
        bench.prompt()
        seen.append(strict_tools(bench.requests[-1]))
    return seen


@row("A21b", "Anthropic: tools that are too strict together are sent as ordinary ones, for the session", "tools_that_are_too_strict_together_are_refused_once", want=[[True, False, False], [True, False, False], [True, False, False]])
def _(bench):
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
    bench.tool(parameters, constrainedSampling=STRICT)
    seen = []
    for words in ["The compiled grammar is too large, simplify it", "Too many strict tools (30)", "Schemas contains too many parameters with union types (20)"]:
        anthropic_with_strict_tools(bench)
        before = len(bench.requests)
        bench.answers(refusal(400, {"type": "error", "error": {"type": "invalid_request_error", "message": words}}))
        bench.prompt()
        bench.prompt()
        seen.append([bool(strict_tools(request)) for request in bench.requests[before:]])
    return seen


@row("A22", "Mistral is told not to think", "mistral_is_told_not_to_think", want="none")
def _(bench):
    bench.env["MISTRAL_API_KEY"] = "k"
    bench.providers["mistral"] = {"baseUrl": bench.server.url}
    bench.start("--thinking", "off", model="mistral/mistral-medium-latest")
    bench.prompt()
    return bench.body().get("reasoning_effort")
