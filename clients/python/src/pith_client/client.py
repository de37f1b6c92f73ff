"""The plain client: threads read, calls block."""

from __future__ import annotations

import os
import queue
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, cast

from . import _wire as wire
from ._wire import Frame, HostTool, PithExited, Told
from .commands import CommandMethods

_END = object()


class ToolContext:
    """What a host tool can do and see while it runs."""

    def __init__(self, send: Callable[[Frame], None], call: Frame) -> None:
        self._send = send
        self._call = call
        #: Set when the call is withdrawn; its result is then ignored.
        self.cancelled = threading.Event()

    def update(self, result: Any) -> None:
        """Reports progress: the whole result so far."""
        if not self.cancelled.is_set():
            self._send(wire.tool_update(self._call, result))


class Pith(CommandMethods):
    """One pith process.

    ``dialog`` is asked whenever an extension asks the person; it returns a text, a truth value (``confirm``) or
    ``None`` to cancel. Without it every dialog is cancelled. ``permission`` is asked whether a tool call may run; it
    returns one of the ids in ``options``, or such an id and a text for the model. What it raises is a no; without it
    such questions come as dialogs. Handlers and tools run on threads of their own.
    """

    def __init__(
        self,
        program: str | Sequence[str] = "pith",
        arguments: Sequence[str] = (),
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        dialog: Callable[[Frame], Any] | None = None,
        permission: Callable[[Frame], Any] | None = None,
        tools: Iterable[HostTool] = (),
    ) -> None:
        self._wire = wire.Wire()
        self._dialog = dialog
        self._permission = permission
        self._tools = {tool.name: tool for tool in tools}
        self._lock = threading.Lock()  # guards the fields below and writing
        self._pending: dict[str, Future[Frame]] = {}
        self._calls: dict[str, ToolContext] = {}
        self._listeners: list[queue.SimpleQueue[Any]] = []
        self._stderr = bytearray()
        self._ended: PithExited | None = None
        self._process = subprocess.Popen(
            wire.command_line(program, arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=None if env is None else dict(env),
        )
        self._stderr_reader = threading.Thread(target=self._read_stderr, daemon=True)
        self._stderr_reader.start()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if permission:
            self.ask("hello", accept={"permissionRequest": True})
        if self._tools:
            self.ask("set_host_tools", tools=[tool.definition() for tool in self._tools.values()])

    def __enter__(self) -> Pith:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def ask(self, kind: str, /, **fields: Any) -> Any:
        """Sends any command, waits for its response and returns the data."""
        return wire.unwrap(self._submit(kind, fields).result())

    def _submit(self, kind: str, fields: Mapping[str, Any]) -> Future[Frame]:
        answer: Future[Frame] = Future()
        name, line = self._wire.command(kind, fields)
        with self._lock:
            if self._ended:
                raise self._ended
            self._pending[name] = answer
            self._write(line)
        return answer

    def run(self, message: str, **fields: Any) -> Iterator[Told]:
        """Sends a prompt and yields its events up to ``agent_settled``.

        Nothing is yielded for a text that an extension has dealt with itself (disposition ``handled``).
        """
        with self.listen() as events:
            if self.ask("prompt", message=message, **fields)["disposition"] == "handled":
                return
            for event in events:
                yield event
                if wire.is_over(event):
                    return
        raise self._ended or PithExited(None, "")

    def listen(self) -> Events:
        """Everything pith says from now on that answers no command, until it ends."""
        return Events(self)

    def close(self, grace: float = 10.0) -> int:
        """Ends pith: closes its stdin and waits; after ``grace`` seconds asks it to end, then kills it.

        Returns its exit status. What pith has started ends with it in every case.
        """
        process = self._process
        try:
            assert process.stdin is not None
            with self._lock:
                process.stdin.close()
        except OSError:
            pass  # It has ended already.
        for end in (process.terminate, process.kill):
            try:
                process.wait(grace)
                break
            except subprocess.TimeoutExpired:
                end()
                grace = 2.0
        status = process.wait()
        self._reader.join()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        return status

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except (OSError, ValueError):
            pass  # The reader notices the end and says why.

    def _send(self, frame: Frame) -> None:
        with self._lock:
            self._write(wire.encode(frame))

    def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        while data := os.read(self._process.stderr.fileno(), 4096):
            self._stderr += data
            del self._stderr[: -wire.STDERR_KEPT]

    def _read(self) -> None:
        assert self._process.stdout is not None
        lines = wire.Lines()
        while data := os.read(self._process.stdout.fileno(), 1 << 16):
            for line in lines.push(data):
                try:
                    self._take(wire.decode(line))
                except wire.BadFrame:
                    continue  # Not ours to judge; every command still gets its answer.
        status = self._process.wait()
        # A child of pith may hold stderr open for longer than anybody wants to wait.
        self._stderr_reader.join(1.0)
        with self._lock:
            self._ended = PithExited(status, self._stderr.decode(errors="replace"))
            pending, self._pending = self._pending, {}
            listeners = list(self._listeners)
        for answer in pending.values():
            answer.set_exception(self._ended)
        for listener in listeners:
            listener.put(_END)

    def _take(self, frame: Frame) -> None:
        kind = frame.get("type")
        if kind == "response":
            with self._lock:
                answer = self._pending.pop(str(frame.get("id")), None)
            if answer is not None:
                answer.set_result(frame)
            return
        if kind == "host_tool_call":
            context = ToolContext(self._send, frame)
            with self._lock:
                self._calls[frame["id"]] = context
            threading.Thread(target=self._call_tool, args=(frame, context), daemon=True).start()
        elif kind == "host_tool_cancel":
            with self._lock:
                withdrawn = self._calls.pop(str(frame.get("targetId")), None)
            if withdrawn is not None:
                withdrawn.cancelled.set()
        elif kind == "permission_request":
            threading.Thread(target=self._ask_permission, args=(frame,), daemon=True).start()
        elif kind == "extension_ui_request" and frame.get("method") in wire.DIALOGS:
            threading.Thread(target=self._ask_person, args=(frame,), daemon=True).start()
        with self._lock:
            for listener in self._listeners:
                listener.put(frame)

    def _ask_person(self, request: Frame) -> None:
        answer = None
        try:
            answer = self._dialog(request) if self._dialog else None
        finally:
            self._send(wire.dialog_answer(request, answer))

    def _ask_permission(self, request: Frame) -> None:
        answer = None
        try:
            answer = self._permission(request) if self._permission else None
        finally:
            self._send(wire.permission_answer(request, answer))

    def _call_tool(self, call: Frame, context: ToolContext) -> None:
        tool = self._tools.get(call["toolName"])
        try:
            if tool is None:
                raise LookupError(f"there is no host tool {call['toolName']}")
            answer = wire.tool_result(call, tool.call(call["arguments"], context))
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is its result
            answer = wire.tool_failure(call, error)
        with self._lock:
            self._calls.pop(call["id"], None)
        if not context.cancelled.is_set():
            self._send(answer)


class Events:
    """A subscription: ``with pith.listen() as events: for event in events: …``. It misses nothing once it exists."""

    def __init__(self, pith: Pith) -> None:
        self._pith = pith
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        with pith._lock:
            if pith._ended:
                self._queue.put(_END)
            pith._listeners.append(self._queue)

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        with self._pith._lock:
            if self._queue in self._pith._listeners:
                self._pith._listeners.remove(self._queue)

    def __iter__(self) -> Iterator[Told]:
        return self

    def __next__(self) -> Told:
        event = self._queue.get()
        if event is _END:
            self._queue.put(_END)
            raise StopIteration
        return cast(Told, event)

    def wait(self, kind: str, timeout: float | None = None) -> Told:
        """The next event of this type; raises ``TimeoutError``, or :class:`PithExited` at the end."""
        while True:
            try:
                event = self._queue.get(timeout=timeout)
            except queue.Empty:
                raise TimeoutError(f"no {kind} within {timeout} s") from None
            if event is _END:
                self._queue.put(_END)
                raise self._pith._ended or PithExited(None, "")
            if event.get("type") == kind:
                return cast(Told, event)
