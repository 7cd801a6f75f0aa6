"""What the server allows, as its settings say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from engram.server.sections import Process, Trainer

__all__ = ["Limits"]

_LONG: Final = 600.0
"""Seconds that a request may take whose work grows with the store."""

_TRAINER_SPARE: Final = 60.0
"""Seconds beyond the trainer's own time, whose end must come first."""

_SLOWEST: Final = 65_536
"""Bytes that a client must take or send in each second, beside the time of a request."""

_UPKEEP: Final = 5.0
"""Seconds between two rounds of upkeep, unless they are to be even closer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the server allows.

    Attributes:
        workers: Requests that are carried out at the same time.
        request_seconds: What a request may take, and how long a client may take nothing of a
            reply, or send nothing of a line that others may be waiting for room for.
        long_seconds: What a request may take that is long.
        upkeep_seconds: Between two rounds of upkeep; 0 is no upkeep.
        max_line_bytes: Of a request.
        max_connections: Clients at the same time; more are disconnected at once.
    """

    workers: int
    request_seconds: float
    long_seconds: float
    upkeep_seconds: float
    max_line_bytes: int
    max_connections: int

    @classmethod
    def of(cls, server: Process, trainer: Trainer) -> Self:
        """Return the limits that these settings make."""
        return cls(
            workers=server.workers,
            request_seconds=server.request_timeout_secs,
            long_seconds=max(_LONG, trainer.trainer_timeout_secs + _TRAINER_SPARE),
            upkeep_seconds=min(_UPKEEP, server.reindex_interval_secs),
            max_line_bytes=server.max_line_bytes,
            max_connections=server.max_connections,
        )

    def transfer_seconds(self, size: int) -> float:
        """Return what a client may take to send or receive so many bytes, in seconds."""
        return self.request_seconds + size / _SLOWEST
