"""Drives pith, a headless coding agent, over JSON lines.

>>> from pith_client import Pith
>>> with Pith(arguments=["--model", "scripted/tour"]) as pith:
...     for event in pith.run("hello"):
...         print(event["type"])
"""

from ._wire import BadFrame, CommandFailed, Frame, HostTool, PithError, PithExited, Told
from .aio import AsyncEvents, AsyncPith, AsyncToolContext
from .client import Events, Pith, ToolContext

__all__ = [
    "AsyncEvents",
    "AsyncPith",
    "AsyncToolContext",
    "BadFrame",
    "CommandFailed",
    "Events",
    "Frame",
    "HostTool",
    "Pith",
    "PithError",
    "PithExited",
    "Told",
    "ToolContext",
]
