"""The event log: one line per memory written or forgotten, for those who ask for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ENV_EVENTS_PATH = "ENGRAM_EVENTS_PATH"


def resolve_events_path(explicit: str | os.PathLike[str] | None) -> str | None:
    """Return the file to log to: the explicit one, else `ENGRAM_EVENTS_PATH`, else none."""
    if explicit is not None:
        return os.fspath(explicit)
    return os.environ.get(ENV_EVENTS_PATH) or None


class EventLog:
    """An NDJSON file of events."""

    def __init__(self, path: str) -> None:
        self.path = path

    def emit_many(
        self,
        event_type: str,
        agent_id: str | None,
        data_items: Sequence[Mapping[str, object]],
        *,
        run_id: str | None = None,
    ) -> None:
        """Append one event per item."""
        raise NotImplementedError
