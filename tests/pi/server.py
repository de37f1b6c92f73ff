"""A scripted model server on loopback: the next answer of a list, in the wire format of the request."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def text(words, **usage):
    return answer({"type": "text", "text": words}, **usage)


def call(name, arguments, id="call_1"):
    """A block that calls a tool. Arguments that are a string are sent as they are, whole or not."""
    return {"type": "call", "id": id, "name": name, "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}


def thinking(words):
    return {"type": "thinking", "text": words}


def answer(*blocks, **usage):
    """An answer of blocks; `input` and `output` are the tokens that it counts."""
    return {"blocks": blocks, "usage": {"input": 100, "output": 20} | usage}


def calling(name, arguments, **usage):
    return answer(call(name, arguments), **usage)


def stream(*events):
    """These events and nothing else."""
    return {"events": events}


def refusal(status, body, **headers):
    return {"status": status, "body": body, "headers": headers}


class Quiet(ThreadingHTTPServer):
    """Programs that end or abort leave requests alone."""

    def handle_error(self, *_):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(*_)


class Server:
    """Answers every request to a model. `requests` has the path, headers (in lower case) and body of each."""

    def __init__(self):
        self.requests = []
        self.answers = []
        # What else there is: path to a function of the request that returns (status, headers, body).
        self.routes = {}
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.take(self.rfile.read(int(self.headers["content-length"] or 0)).decode())

            def do_GET(self):
                self.take("")

            def take(self, body):
                request = {"method": self.command, "path": self.path, "headers": {key.lower(): value for key, value in self.headers.items()}, "text": body}
                route = server.routes.get(self.path.split("?")[0])
                if route:
                    return self.send(*route(request))
                wire = wire_of(self.path)
                if self.command != "POST" or wire is None:
                    return self.send(404, {}, "{}")
                request["body"] = json.loads(body)
                server.requests.append(request)
                given = server.answers.pop(0) if server.answers else text("ok")
                if callable(given):
                    given = given(request)
                if "status" in given:
                    body = given["body"] if isinstance(given["body"], str) else json.dumps(given["body"])
                    return self.send(given["status"], {"content-type": "application/json"} | given["headers"], body)
                events = given["events"] if "events" in given else WIRES[wire](given["blocks"], given["usage"])
                self.send(200, {"content-type": "text/event-stream"}, "".join(frame(event) for event in events))

            def send(self, status, headers, body):
                data = body.encode()
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def stop(self):
        self.http.shutdown()
        self.http.server_close()


def frame(event):
    kind = f"event: {event['type']}\n" if "type" in event else ""
    return f"{kind}data: {json.dumps(event)}\n\n"


def wire_of(path):
    path = path.split("?")[0]
    ends = {"/messages": "anthropic", "/chat/completions": "completions", "/responses": "responses", ":streamGenerateContent": "google"}
    return next((wire for end, wire in ends.items() if path.endswith(end)), None)


def anthropic(blocks, usage):
    counts = {"input_tokens": usage["input"], "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    yield {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None, "usage": counts}}
    for index, block in enumerate(blocks):
        match block["type"]:
            case "text":
                start, deltas = {"type": "text", "text": ""}, [{"type": "text_delta", "text": block["text"]}]
            case "thinking":
                start = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": block["text"]}, {"type": "signature_delta", "signature": "c2lnbmF0dXJl"}]
            case _:
                start = {"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}
                deltas = [{"type": "input_json_delta", "partial_json": block["arguments"]}]
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if has_calls(blocks) else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": usage["output"]}}
    yield {"type": "message_stop"}


def completions(blocks, usage):
    n_calls = 0
    for block in blocks:
        match block["type"]:
            case "text":
                yield chunk({"content": block["text"]})
            case "thinking":
                yield chunk({"reasoning_content": block["text"]})
            case _:
                function = {"name": block["name"], "arguments": block["arguments"]}
                yield chunk({"tool_calls": [{"index": n_calls, "id": block["id"], "type": "function", "function": function}]})
                n_calls += 1
    yield chunk({}, "tool_calls" if n_calls else "stop")
    total = usage["input"] + usage["output"]
    yield {"id": "c", "choices": [], "usage": {"prompt_tokens": usage["input"], "completion_tokens": usage["output"], "total_tokens": total}}


def chunk(delta, reason=None):
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def responses(blocks, usage):
    yield {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}
    for index, block in enumerate(blocks):
        at = {"output_index": index}
        match block["type"]:
            case "text":
                whole = {"type": "output_text", "text": block["text"], "annotations": []}
                item = {"id": f"msg_{index}", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
                yield {"type": "response.output_item.added", **at, "item": item}
                yield {"type": "response.content_part.added", **at, "item_id": item["id"], "content_index": 0, "part": {**whole, "text": ""}}
                yield {"type": "response.output_text.delta", **at, "item_id": item["id"], "content_index": 0, "delta": block["text"]}
                yield {"type": "response.output_item.done", **at, "item": {**item, "status": "completed", "content": [whole]}}
            case "thinking":
                item = {"id": f"rs_{index}", "type": "reasoning", "summary": []}
                yield {"type": "response.output_item.added", **at, "item": item}
                yield {"type": "response.output_item.done", **at, "item": {**item, "summary": [{"type": "summary_text", "text": block["text"]}]}}
            case _:
                yield from function_call(block, f"fc_{index}", at)
    yield completed(usage)


def function_call(block, id, at):
    item = {"id": id, "type": "function_call", "status": "in_progress", "call_id": block["id"], "name": block["name"], "arguments": ""}
    yield {"type": "response.output_item.added", **at, "item": item}
    yield {"type": "response.function_call_arguments.delta", **at, "item_id": id, "delta": block["arguments"]}
    yield {"type": "response.function_call_arguments.done", **at, "item_id": id, "arguments": block["arguments"]}
    yield {"type": "response.output_item.done", **at, "item": {**item, "status": "completed", "arguments": block["arguments"]}}


def completed(usage, **more):
    counts = {"input_tokens": usage["input"], "output_tokens": usage["output"], "total_tokens": usage["input"] + usage["output"]}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "usage": counts | details, **more}}


def google(blocks, usage):
    parts = []
    for block in blocks:
        match block["type"]:
            case "text":
                parts.append({"text": block["text"]})
            case "thinking":
                parts.append({"text": block["text"], "thought": True})
            case _:
                parts.append({"functionCall": {"name": block["name"], "args": json.loads(block["arguments"])}})
    counts = {"promptTokenCount": usage["input"], "candidatesTokenCount": usage["output"], "totalTokenCount": usage["input"] + usage["output"]}
    yield {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}], "usageMetadata": counts}


def has_calls(blocks):
    return any(block["type"] == "call" for block in blocks)


WIRES = {"anthropic": anthropic, "completions": completions, "responses": responses, "google": google}
