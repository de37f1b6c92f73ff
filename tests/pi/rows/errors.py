"""Errors of models: which pass, which are final, which mean that the window is full."""

from bench import row
from server import chunk, refusal, stream, text

TRANSIENT = [
    "server_busy",
    "Servers are currently busy",
    "Selected model is at capacity",
    "Service is temporarily unavailable",
    "service unavailable",
    "Provider returned an error",
    "Provider returned error",
    "Unable to forward upstream",
    "upstream request failed",
    "upstream_stream_read_error",
    "The stream was interrupted",
    "HTTP/2 stream failed",
    "request to http://host/v1 failed, reason: gone",
    "stream disconnected before completion",
    "The answer was cut short after the reply had begun",
    "The pending stream has been canceled",
]
# Numbers that are no status: they touch a letter or a digit.
LASTING = ["req_a429bc failed to validate", "1500 items refused", "key 503f is no key"]


def requests_for(bench, model, faults):
    """How many requests each fault leads to, if a good answer follows it."""
    bench.start(model=model)
    counts = []
    for fault in faults:
        before = len(bench.requests)
        bench.answers(fault)
        bench.prompt()
        counts.append(len(bench.requests) - before)
    return counts


def in_stream(message, **more):
    return stream({"error": {"message": message, **more}})


def failed_response(code, message="It did not work."):
    return stream({"type": "response.failed", "response": {"id": "r", "status": "failed", "error": {"code": code, "message": message}}})


@row("A1a", "transient texts in a stream are asked again", "texts_decide_for_messages_from_elsewhere", want=[2] * len(TRANSIENT))
def _(bench):
    return requests_for(bench, "completions/m", map(in_stream, TRANSIENT))


@row("A1b", "the same in a failed response, as code and as message", "code_and_text_decide_in_every_api", want=[2, 2, 1])
def _(bench):
    faults = [failed_response("server_busy"), failed_response("odd", "Selected model is at capacity"), failed_response("odd")]
    return requests_for(bench, "responses/m", faults)


@row("A1c", "the same from Anthropic", "code_and_text_decide_in_every_api", want=[2, 2, 1])
def _(bench):
    faults = [stream({"type": "error", "error": {"type": kind, "message": message}}) for kind, message in [("server_busy", "No."), ("odd", "upstream request failed"), ("odd", "No.")]]
    return requests_for(bench, "anthropic/m", faults)


@row("A2", "a status number counts only if it stands alone", "texts_decide_for_messages_from_elsewhere", want=[1, 1, 1, 2])
def _(bench):
    return requests_for(bench, "completions/m", map(in_stream, [*LASTING, "error 429: slow down"]))


@row("A3", "two more texts mean that the window is full", "overflow_is_recognised_in_words", want=[["compaction", "ok"]] * 4)
def _(bench):
    seen = []
    bench.start()
    for words in ["Prompt exceeds max length", "litellm.BadRequestError: Context Window exceeded"]:
        for fault in [in_stream(words), refusal(400, {"error": {"message": words}})]:
            bench.ask("new_session")
            bench.answers(text("long " * 30000, input=60000))
            bench.prompt("one")
            bench.answers(text("long " * 30000, input=120000))
            bench.prompt("two")
            bench.answers(fault, text("a summary"))
            frames = bench.prompt("three")
            kinds = [frame["type"] for frame in frames]
            last = bench.said()["content"]
            seen.append(["compaction" if "compaction_start" in kinds else "none", last[0]["text"][:2] if last else ""])
    return seen


@row("A4", "a used-up plan of Z.ai is final", "the_status_decides_before_the_text", want=[1, 2])
def _(bench):
    faults = [refusal(429, {"error": {"code": code, "message": "Limit reached"}}) for code in ["1308", "1302"]]
    return requests_for(bench, "completions/m", faults)


@row("A5", "Mistral's finish reason `error` is asked again", "a_fault_of_mistral_itself_is_worth_another_request", want=[2])
def _(bench):
    bench.env["MISTRAL_API_KEY"] = "k"
    bench.providers["mistral"] = {"baseUrl": bench.server.url}
    return requests_for(bench, "mistral/mistral-medium-latest", [stream(chunk({"content": "half"}, "error"))])
