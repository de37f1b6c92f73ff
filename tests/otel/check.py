"""Lets pith work on a prompt and looks at the trace: as a collector prints it, and as protobuf."""

import argparse
import http.server
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

arguments = argparse.ArgumentParser()
arguments.add_argument("--pith", required=True)
arguments.add_argument("--rotel", required=True)
given = arguments.parse_args()

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SCRIPT = {
    "turns": [
        {"blocks": [{"type": "toolCall", "name": "bash", "args": {"command": "echo $TRACEPARENT"}}]},
        {"text": "Done."},
    ]
}

work = tempfile.TemporaryDirectory()
script = pathlib.Path(work.name, "script.json")
script.write_text(json.dumps(SCRIPT))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run_pith(port, protocol):
    """Has pith answer one prompt of a host that traces. Returns when pith has ended."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    environment |= {
        "HOME": work.name,
        "PITH_OTEL": "1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
    }
    command = [given.pith, "--mode", "rpc", "--no-session", "--script", str(script)]
    with subprocess.Popen(command, cwd=work.name, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as pith:
        prompt = {"id": "1", "type": "prompt", "message": "go", "traceparent": f"00-{TRACE}-{PARENT}-01"}
        pith.stdin.write(json.dumps(prompt) + "\n")
        pith.stdin.flush()
        for line in pith.stdout:
            if json.loads(line)["type"] == "agent_settled":
                break
        pith.stdin.close()
        pith.stdout.read()
    assert pith.returncode == 0, f"pith ended with {pith.returncode}"


def check(spans, how):
    """Spans are (trace, id, parent, name)."""
    names = sorted(name.split(" ")[0] for _, _, _, name in spans)
    assert names == ["chat", "chat", "execute_tool", "invoke_agent"], f"{how}: {names}"
    assert {trace for trace, _, _, _ in spans} == {TRACE}, f"{how}: more than one trace: {spans}"
    agent = next(span for span in spans if span[3] == "invoke_agent pith")
    assert agent[2] == PARENT, f"{how}: the agent is not below the host: {agent}"
    assert all(parent == agent[1] for _, id, parent, _ in spans if id != agent[1]), f"{how}: {spans}"
    print(f"ok: {how}: {', '.join(name for _, _, _, name in spans)}")


def printed_by_collector():
    port = free_port()
    endpoints = ["--otlp-http-endpoint", f"127.0.0.1:{port}", "--otlp-grpc-endpoint", f"127.0.0.1:{free_port()}"]
    shown = ["--exporter", "blackhole", "--debug-log", "traces", "--debug-log-verbosity", "detailed"]
    log = pathlib.Path(work.name, "rotel.log")
    with log.open("w") as output:
        collector = subprocess.Popen([given.rotel, "start", *endpoints, *shown], stdout=output, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    assert time.monotonic() < deadline and collector.poll() is None, log.read_text()
                    time.sleep(0.05)
            run_pith(port, "http/json")
            # The collector has answered and prints when it gets to it.
            pattern = r"Trace ID +: (\w+)\s+Parent ID +: (\w*)\s+ID +: (\w+)\s+Name +: (.+)"
            while True:
                found = re.findall(pattern, log.read_text())
                if len(found) >= 4 or time.monotonic() > deadline:
                    return [(trace, id, parent, name.strip()) for trace, parent, id, name in found]
                time.sleep(0.05)
        finally:
            collector.terminate()
            collector.wait()


def read_as_protobuf():
    bodies = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/v1/traces":
                bodies.append((self.headers["content-type"], body))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    run_pith(server.server_address[1], "http/protobuf")
    server.shutdown()
    spans = []
    for kind, body in bodies:
        assert kind == "application/x-protobuf", kind
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = [item.value.string_value for item in resource.resource.attributes if item.key == "service.name"]
            assert service == ["pith"], service
            for scope in resource.scope_spans:
                for span in scope.spans:
                    spans.append((span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(), span.name))
    return spans


check(printed_by_collector(), "printed by the collector")
check(read_as_protobuf(), "read as protobuf")
sys.exit(0)
