"""An agent under test: pi or pith in rpc mode, with a home, a project and a scripted model of its own."""

import json
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATIENCE = 25  # seconds for one step; a step that takes longer is recorded as open
START = 90  # seconds until the first answer, on a machine that does much else

BUILTIN = {"bash", "read", "write", "edit", "grep", "find", "ls"}


class Model:
    """A model server. It calls the tool that the prompt asks for with `call NAME {arguments}`, else it says one word."""

    def __init__(self):
        self.requests = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                model.requests.append(body)
                pieces = model.answer(body)
                text = "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces) + "data: [DONE]\n\n"
                data = text.encode()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                self.send_error(404)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def answer(self, body):
        def piece(delta, reason=None):
            return {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

        last = body["messages"][-1]
        text = last.get("content") or ""
        if not isinstance(text, str):
            text = "".join(part.get("text", "") for part in text)
        wanted = re.search(r"^call (\S+) (\{.*\})$", text, re.M) if last["role"] == "user" else None
        if wanted:
            call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": wanted[1], "arguments": wanted[2]}}
            return [piece({"role": "assistant", "tool_calls": [call]}), piece({}, "tool_calls")]
        return [piece({"role": "assistant", "content": "Done."}), piece({}, "stop")]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Program:
    """A process in rpc mode. Frames are kept in `frames`; dialogs are answered at once, the same way for every program."""

    def __init__(self, command, work, env):
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=work,
            env=env,
            start_new_session=True,
        )
        self.frames = []
        self.arrived = queue.Queue()
        self.complaints = []
        self.has_ended = False
        self.ids = 0
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._listen, daemon=True).start()

    def send(self, kind, **fields):
        self.ids += 1
        self._write({"id": f"c{self.ids}", "type": kind, **fields})
        return f"c{self.ids}"

    def _write(self, frame):
        try:
            self.process.stdin.write(json.dumps(frame).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            pass

    def wait(self, is_wanted, patience=PATIENCE):
        """The next frame that is wanted, or nothing: the time is over or the agent has ended."""
        until = time.monotonic() + patience
        while not self.has_ended:
            try:
                frame = self.arrived.get(timeout=max(0.01, until - time.monotonic()))
            except queue.Empty:
                return None
            if frame is None:
                self.has_ended = True
                return None
            self.frames.append(frame)
            self._answer(frame)
            if is_wanted(frame):
                return frame
        return None

    def ask(self, kind, patience=PATIENCE, **fields):
        id = self.send(kind, **fields)
        return self.wait(lambda frame: frame.get("id") == id and frame["type"] == "response", patience)

    def _answer(self, frame):
        if frame["type"] != "extension_ui_request":
            return
        answer = {"type": "extension_ui_response", "id": frame["id"]}
        match frame["method"]:
            case "select":
                options = frame.get("options") or []
                first = options[0] if options else None
                answer |= {"value": first} if isinstance(first, str) else {"cancelled": True}
            case "confirm":
                answer |= {"confirmed": True}
            case "input":
                answer |= {"value": "words"}
            case "editor":
                answer |= {"value": frame.get("prefill") or "words"}
            case _:
                return
        self._write(answer)

    def memory(self):
        """Resident memory of the process and what it has started, in kB."""
        total = 0
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.getpgid(int(entry.name)) != self.process.pid:
                    continue
                total += int(re.search(r"VmRSS:\s+(\d+)", (entry / "status").read_text())[1])
            except (OSError, TypeError):
                continue
        return total

    def end(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            code = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            code = "killed"
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except OSError:
            pass
        self.process.wait()
        return code

    def _read(self):
        for line in self.process.stdout:
            try:
                self.arrived.put(json.loads(line))
            except ValueError:
                self.arrived.put({"type": "not a frame", "line": line.decode(errors="replace")[:200]})
        self.arrived.put(None)

    def _listen(self):
        for line in self.process.stderr:
            self.complaints.append(line.decode(errors="replace"))


class Agent(Program):
    """A program with one extension, in a home and a project of its own."""

    def __init__(self, command, root, model):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="ext-compare-"))
        home = self.directory / "home"
        agent = home / ".pi" / "agent"
        agent.mkdir(parents=True)
        models = [{"id": "m", "name": "m", "reasoning": False, "input": ["text"], "contextWindow": 200000, "maxTokens": 8000, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]
        provider = {"baseUrl": model.url, "apiKey": "k", "api": "openai-completions", "models": models}
        (agent / "models.json").write_text(json.dumps({"providers": {"server": provider}}))
        # A debug build on a busy machine is slow; pi has no such limits.
        (agent / "settings.json").write_text(json.dumps({"extensionLimits": {"executionMs": 60000}}))
        self.work = home / "work"
        self.work.mkdir()
        (self.work / "README.md").write_text("# A project\n\nSome text.\n")
        (self.work / "main.py").write_text("def main():\n    print('hello')\n")
        # Packages wait a moment for the browser of the machine and say what became of it by then: here one opens at once.
        programs = self.directory / "bin"
        programs.mkdir()
        (programs / "xdg-open").write_text("#!/bin/sh\n")
        (programs / "xdg-open").chmod(0o755)
        env = {"HOME": str(home), "PATH": f"{programs}:{os.environ['PATH']}", "LANG": "C.UTF-8", "PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "NO_COLOR": "1", "TZ": "UTC"}
        # Some packages update programs when their commands are called: that stays in the home.
        env["npm_config_prefix"] = str(home / "npm")
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
        for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "first", "--date", "2026-01-01T00:00:00Z"]):
            subprocess.run([*git, *arguments], cwd=self.work, env=env, check=True)
        super().__init__([*command, "--mode", "rpc", "--model", "server/m", "-e", str(root)], self.work, env)

    def end(self):
        code = super().end()
        shutil.rmtree(self.directory, ignore_errors=True)
        return code
