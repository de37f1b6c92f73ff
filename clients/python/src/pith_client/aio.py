"""The asyncio client. One event loop, no threads."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from . import _wire as wire
from ._wire import Frame, HostTool, PithExited, Told
from .commands import AsyncCommandMethods


class AsyncToolContext:
    """What a host tool can do and see while it runs. A withdrawn call is cancelled as a task."""

    def __init__(self, send: Callable[[Frame], Awaitable[None]], call: Frame) -> None:
        self._send = send
        self._call = call

    async def update(self, result: Any) -> None:
        """Reports progress: the whole result so far."""
        await self._send(wire.tool_update(self._call, result))


class AsyncPith(AsyncCommandMethods):
    """One pith process: ``async with AsyncPith.spawn() as pith: …``.

    ``dialog``, ``permission`` and host tools may be plain or coroutine functions, see :class:`pith_client.Pith`.
    """

    def __init__(
        self,
        dialog: Callable[[Frame], Any] | None,
        permission: Callable[[Frame], Any] | None,
        tools: Iterable[HostTool],
    ) -> None:
        self._wire = wire.Wire()
        self._dialog = dialog
        self._permission = permission
        self._tools = {tool.name: tool for tool in tools}
        self._pending: dict[str, asyncio.Future[Frame]] = {}
        self._calls: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._listeners: list[asyncio.Queue[Frame | None]] = []
        self._stderr = bytearray()
        self._ended: PithExited | None = None
        self._process: asyncio.subprocess.Process

    @staticmethod
    def spawn(
        program: str | Sequence[str] = "pith",
        arguments: Sequence[str] = (),
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        dialog: Callable[[Frame], Any] | None = None,
        permission: Callable[[Frame], Any] | None = None,
        tools: Iterable[HostTool] = (),
    ) -> _Spawn:
        """Starts pith. Await the result, or use it with ``async with``, which also ends pith."""
        pith = AsyncPith(dialog, permission, tools)
        return _Spawn(pith, wire.command_line(program, arguments), cwd, None if env is None else dict(env))

    async def _start(self, command: list[str], cwd: Any, env: dict[str, str] | None) -> None:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env=env
        )
        self._stderr_reader = asyncio.create_task(self._read_stderr())
        self._reader = asyncio.create_task(self._read())
        if self._permission:
            await self.ask("hello", accept={"permissionRequest": True})
        if self._tools:
            await self.ask("set_host_tools", tools=[tool.definition() for tool in self._tools.values()])

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    async def ask(self, kind: str, /, **fields: Any) -> Any:
        """Sends any command, waits for its response and returns the data."""
        if self._ended:
            raise self._ended
        name, line = self._wire.command(kind, fields)
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._pending[name] = answer
        await self._write(line)
        return wire.unwrap(await answer)

    async def run(self, message: str, **fields: Any) -> AsyncIterator[Told]:
        """Sends a prompt and yields its events up to ``agent_settled``.

        Nothing is yielded for a text that an extension has dealt with itself (disposition ``handled``).
        """
        with self.listen() as events:
            if (await self.ask("prompt", message=message, **fields))["disposition"] == "handled":
                return
            async for event in events:
                yield event
                if wire.is_over(event):
                    return
        raise self._ended or PithExited(None, "")

    def listen(self) -> AsyncEvents:
        """Everything pith says from now on that answers no command, until it ends."""
        return AsyncEvents(self)

    async def close(self, grace: float = 10.0) -> int:
        """Ends pith: closes its stdin and waits; after ``grace`` seconds asks it to end, then kills it.

        Returns its exit status. What pith has started ends with it in every case.
        """
        process = self._process
        assert process.stdin is not None
        process.stdin.close()
        for end in (process.terminate, process.kill):
            try:
                await asyncio.wait_for(process.wait(), grace)
                break
            except asyncio.TimeoutError:
                end()
                grace = 2.0
        status = await process.wait()
        await self._reader
        for task in list(self._tasks):
            task.cancel()
        return status

    async def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            await self._process.stdin.drain()
        except (OSError, RuntimeError):
            pass  # The reader notices the end and says why.

    async def _send(self, frame: Frame) -> None:
        await self._write(wire.encode(frame))

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(4096):
            self._stderr += data
            del self._stderr[: -wire.STDERR_KEPT]

    async def _read(self) -> None:
        assert self._process.stdout is not None
        lines = wire.Lines()
        while data := await self._process.stdout.read(1 << 16):
            for line in lines.push(data):
                try:
                    self._take(wire.decode(line))
                except wire.BadFrame:
                    continue  # Not ours to judge; every command still gets its answer.
        status = await self._process.wait()
        # A child of pith may hold stderr open for longer than anybody wants to wait.
        await asyncio.wait([self._stderr_reader], timeout=1.0)
        self._ended = PithExited(status, self._stderr.decode(errors="replace"))
        pending, self._pending = self._pending, {}
        for answer in pending.values():
            if not answer.done():
                answer.set_exception(self._ended)
        for listener in self._listeners:
            listener.put_nowait(None)

    def _take(self, frame: Frame) -> None:
        kind = frame.get("type")
        if kind == "response":
            answer = self._pending.pop(str(frame.get("id")), None)
            if answer is not None and not answer.done():
                answer.set_result(frame)
            return
        if kind == "host_tool_call":
            self._calls[frame["id"]] = self._begin(self._call_tool(frame))
        elif kind == "host_tool_cancel":
            withdrawn = self._calls.pop(str(frame.get("targetId")), None)
            if withdrawn is not None:
                withdrawn.cancel()
        elif kind == "permission_request":
            self._begin(self._ask_permission(frame))
        elif kind == "extension_ui_request" and frame.get("method") in wire.DIALOGS:
            self._begin(self._ask_person(frame))
        for listener in self._listeners:
            listener.put_nowait(frame)

    def _begin(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _ask_person(self, request: Frame) -> None:
        answer = None
        try:
            answer = await _result(self._dialog(request)) if self._dialog else None
        finally:
            await self._send(wire.dialog_answer(request, answer))

    async def _ask_permission(self, request: Frame) -> None:
        answer = None
        try:
            answer = await _result(self._permission(request)) if self._permission else None
        finally:
            await self._send(wire.permission_answer(request, answer))

    async def _call_tool(self, call: Frame) -> None:
        tool = self._tools.get(call["toolName"])
        try:
            if tool is None:
                raise LookupError(f"there is no host tool {call['toolName']}")
            context = AsyncToolContext(self._send, call)
            answer = wire.tool_result(call, await _result(tool.call(call["arguments"], context)))
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is its result
            answer = wire.tool_failure(call, error)
        self._calls.pop(call["id"], None)
        await self._send(answer)


class _Spawn:
    """A process that is about to be started."""

    def __init__(self, pith: AsyncPith, command: list[str], cwd: Any, env: dict[str, str] | None) -> None:
        self._pith = pith
        self._arguments = (command, cwd, env)

    def __await__(self) -> Any:
        return self._begin().__await__()

    async def _begin(self) -> AsyncPith:
        await self._pith._start(*self._arguments)
        return self._pith

    async def __aenter__(self) -> AsyncPith:
        return await self._begin()

    async def __aexit__(self, *_: object) -> None:
        await self._pith.close()


class AsyncEvents:
    """A subscription: ``with pith.listen() as events: async for event in events: …``. It misses nothing."""

    def __init__(self, pith: AsyncPith) -> None:
        self._pith = pith
        self._queue: asyncio.Queue[Frame | None] = asyncio.Queue()
        if pith._ended:
            self._queue.put_nowait(None)
        pith._listeners.append(self._queue)

    def __enter__(self) -> AsyncEvents:
        return self

    def __exit__(self, *_: object) -> None:
        if self._queue in self._pith._listeners:
            self._pith._listeners.remove(self._queue)

    def __aiter__(self) -> AsyncEvents:
        return self

    async def __anext__(self) -> Told:
        event = await self._queue.get()
        if event is None:
            self._queue.put_nowait(None)
            raise StopAsyncIteration
        return cast(Told, event)

    async def wait(self, kind: str) -> Told:
        """The next event of this type; raises :class:`pith_client.PithExited` at the end."""
        async for event in self:
            if event.get("type") == kind:
                return event
        raise self._pith._ended or PithExited(None, "")


async def _result(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
