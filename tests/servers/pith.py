"""A host for pith: what the checks need of the protocol, and a home to run it in."""

import json
import os
import pathlib
import queue
import subprocess
import tempfile
import threading

PATIENCE = 60  # seconds to wait for any one frame


class Pith:
    """One pith process with a home, a model and an environment of its own."""

    def __init__(self, program, provider, *, settings=None, env=None, thinking="off"):
        self.directory = tempfile.TemporaryDirectory(prefix="pith-servers-")
        home = pathlib.Path(self.directory.name)
        agent = home / ".pi" / "agent"
        agent.mkdir(parents=True)
        (agent / "models.json").write_text(json.dumps({"providers": {"server": provider}}))
        (agent / "settings.json").write_text(json.dumps(settings or {}))
        (home / "work").mkdir()
        base = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PI_OFFLINE": "1"}
        model = provider["models"][0]["id"]
        arguments = ["--mode", "rpc", "--model", f"server/{model}", "--thinking", thinking, "--no-session"]
        arguments += ["--stream-updates", "delta"]
        arguments += ["--system-prompt", "Be brief.", "--no-context-files", "--no-builtin-tools"]
        self.process = subprocess.Popen(
            [program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=home / "work",
            env={**base, **(env or {})},
        )
        self.frames = []
        self.arrived = queue.Queue()
        self.complaints = []
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.directory.cleanup()

    def send(self, kind, **fields):
        self.process.stdin.write(json.dumps({"type": kind, **fields}).encode() + b"\n")
        self.process.stdin.flush()

    def wait(self, is_wanted):
        """The next frame that is wanted. Those before it are kept in `frames`."""
        while True:
            try:
                frame = self.arrived.get(timeout=PATIENCE)
            except queue.Empty:
                raise AssertionError(f"no such frame within {PATIENCE} s; {self.story()}") from None
            if frame is None:
                raise AssertionError(f"pith ended; {self.story()}")
            self.frames.append(frame)
            if is_wanted(frame):
                return frame

    def wait_type(self, kind):
        return self.wait(lambda frame: frame["type"] == kind)

    def ask(self, text, **fields):
        """Sends a prompt, waits for its end and returns the last message of the run."""
        self.send("prompt", message=text, **fields)
        self.wait_type("agent_settled")
        return self.answer()

    def answer(self):
        ends = [frame for frame in self.frames if frame["type"] == "agent_end"]
        assert ends, self.story()
        return ends[-1]["messages"][-1]

    def seen(self, kind):
        return [frame for frame in self.frames if frame["type"] == kind]

    def story(self):
        """What happened, in short, for a failure's text."""
        kinds = [frame["type"] for frame in self.frames if frame["type"] != "message_update"]
        return f"frames: {kinds[-12:]}; stderr: {''.join(self.complaints)[-600:]}"

    def _read(self):
        for line in self.process.stdout:
            self.arrived.put(json.loads(line))
        self.arrived.put(None)

    def _listen(self):
        for line in self.process.stderr:
            self.complaints.append(line.decode(errors="replace"))
