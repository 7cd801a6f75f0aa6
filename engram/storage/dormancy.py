"""Dormant memories: what a search might have shown, and how long each one rests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engram.storage.connection import Connection


class Dormancy:
    """The dormant events and states of a store; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
