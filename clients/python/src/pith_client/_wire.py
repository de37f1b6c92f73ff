"""Lines to frames and back. Nothing here reads, writes or waits, so the plain and the asyncio client share it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .types import Event, HostToolFrame, PermissionFrame, UiRequest

Frame = dict[str, Any]

#: Everything that answers no command.
Told: TypeAlias = "Event | UiRequest | HostToolFrame | PermissionFrame"

#: What the arguments of every process begin with.
RPC = ("--mode", "rpc")

#: How many bytes of stderr are kept to explain an unexpected end.
STDERR_KEPT = 64 * 1024

#: Requests of extensions that wait for an answer; all others are told and forgotten.
DIALOGS = frozenset({"select", "confirm", "input", "editor"})


class PithError(Exception):
    """Anything that goes wrong between this program and pith."""


class CommandFailed(PithError):
    """A command that was answered with ``success: false``."""

    def __init__(self, command: str, error: str, code: str | None) -> None:
        super().__init__(f"{command}: {error}")
        self.command = command
        self.error = error
        #: Stable name of the kind of failure, if pith names one.
        self.code = code


class PithExited(PithError):
    """pith has ended; commands that were not answered fail with this."""

    def __init__(self, status: int | None, stderr: str) -> None:
        last = stderr.strip().splitlines()[-1:] or ["nothing on stderr"]
        super().__init__(f"pith has ended with status {status}: {last[0]}")
        self.status = status
        self.stderr = stderr


class BadFrame(PithError):
    """A line of pith that is no JSON object."""


@dataclass(frozen=True)
class HostTool:
    """A function of this program that the model can call.

    ``call`` gets the arguments and a context with ``update(text)`` and ``cancelled``. It returns a text or a list of
    content blocks; what it raises becomes a failed call. With the asyncio client it may be a coroutine function.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    call: Callable[..., Any]
    label: str | None = None

    def definition(self) -> Frame:
        """The tool as ``set_host_tools`` wants it."""
        told: Frame = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        if self.label is not None:
            told["label"] = self.label
        return told


def content(result: Any) -> list[Frame]:
    """What a tool returned, as content blocks."""
    if isinstance(result, str):
        return [{"type": "text", "text": result}]
    if isinstance(result, Sequence):
        return [dict(block) for block in result]
    return [{"type": "text", "text": json.dumps(result)}]


def tool_result(call: Frame, result: Any) -> Frame:
    """The answer to a call that succeeded."""
    return {"type": "host_tool_result", "id": call["id"], "result": {"content": content(result)}}


def tool_failure(call: Frame, error: BaseException) -> Frame:
    """The answer to a call that failed."""
    text = str(error) or type(error).__name__
    return {"type": "host_tool_result", "id": call["id"], "isError": True, "result": {"content": content(text)}}


def tool_update(call: Frame, result: Any) -> Frame:
    """Progress of a call: the whole result so far."""
    return {"type": "host_tool_update", "id": call["id"], "partialResult": {"content": content(result)}}


def permission_answer(request: Frame, answer: Any) -> Frame:
    """The answer to a question about a tool call: an option, or an option and a text for the model."""
    option, message = answer if isinstance(answer, tuple) else (answer, None)
    told: Frame = {"type": "permission_response", "id": request["id"], "optionId": option or "deny"}
    if message is not None:
        told["message"] = message
    return told


def dialog_answer(request: Frame, answer: Any) -> Frame:
    """The answer to a dialog: a truth value for ``confirm``, a text for the others, ``None`` for a refusal."""
    told: Frame = {"type": "extension_ui_response", "id": request["id"]}
    if answer is None:
        told["cancelled"] = True
    elif request["method"] == "confirm":
        told["confirmed"] = bool(answer)
    else:
        told["value"] = str(answer)
    return told


@dataclass
class Lines:
    """Cuts what arrives into lines. LF is the only separator."""

    _rest: bytearray = field(default_factory=bytearray)

    def push(self, data: bytes) -> list[bytes]:
        """The lines that are complete now."""
        self._rest += data
        if b"\n" not in data:
            return []
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        return [line for line in lines if line.strip()]


class Wire:
    """Numbers commands and reads frames."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)

    def command(self, kind: str, fields: Mapping[str, Any]) -> tuple[str, bytes]:
        """A command as a line, and the id its response will carry. Fields that are ``None`` are left out."""
        name = f"py-{next(self._ids)}"
        given = {key: value for key, value in fields.items() if value is not None}
        return name, encode({"id": name, "type": kind, **given})


def encode(frame: Mapping[str, Any]) -> bytes:
    """One line."""
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Frame:
    """The frame in a line."""
    try:
        frame = json.loads(line)
    except ValueError as error:
        raise BadFrame(f"not JSON: {line[:200]!r}") from error
    if not isinstance(frame, dict):
        raise BadFrame(f"not an object: {line[:200]!r}")
    return frame


def unwrap(response: Frame) -> Any:
    """The data of a response."""
    if response.get("success"):
        return response.get("data")
    raise CommandFailed(response.get("command", "?"), response.get("error", "unknown error"), response.get("code"))


def is_over(event: Told) -> bool:
    """Whether nothing follows this event without a new command."""
    return event.get("type") == "agent_settled"


def command_line(program: str | Sequence[str], arguments: Sequence[str]) -> list[str]:
    """The whole command line of a process."""
    head = [program] if isinstance(program, str) else list(program)
    return [*head, *RPC, *arguments]
