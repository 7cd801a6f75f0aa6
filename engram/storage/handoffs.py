"""Session checkpoints: where a session left off."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engram.storage.connection import Connection


class Handoffs:
    """The session checkpoints of a store; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
