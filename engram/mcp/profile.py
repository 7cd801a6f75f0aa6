"""A profile: the tools that a server has, and what they work on."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from engram.mcp.options import PROFILES

if TYPE_CHECKING:
    from mcp.server.mcpserver.tools import Tool

    from engram.mcp.opening import Opening
    from engram.mcp.options import Options

__all__ = ["Profile", "chosen"]


@dataclass(frozen=True)
class Profile:
    """The tools that a server has.

    Attributes:
        instructions: What a client is told about all of them; a constant.
        store: What they work on, opened when the client was answered.
        tools: The tools, as `calls.store_tool` makes them of functions that call `store.get()`.
    """

    instructions: str
    store: Opening[Any]
    tools: list[Tool]


def chosen(options: Options) -> Profile:
    """Return the profile that a server was started with; nothing is opened yet."""
    profile: Profile = import_module(PROFILES[options.profile]).profile(options)
    return profile
