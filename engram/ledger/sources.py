"""Whether what a check observation cites still bears it, followed to the end."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Final

from engram.entries import MEMORY
from engram.transfer.strict_json import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engram.storage.ledger_store import LedgerStore
    from engram.storage.observations import StoredObservation

MOST_FOLLOWED: Final = 256
"""Sources that are looked at for one observation."""

_SUPPORTED = "supported"


class Sources:
    """The sources of check observations, in one snapshot of a store at one time.

    Args:
        store: The store, inside a transaction.
        now: The time, in microseconds.
    """

    def __init__(self, store: LedgerStore, now: int) -> None:
        # In one snapshot nothing changes: what many observations cite is read once.
        self._observation = cache(store.observations.get)
        self._state = cache(partial(store.lifecycle.source_state, now=now))
        self._now = now

    def expired(self, observation: StoredObservation) -> bool:
        """Return whether an observation is past its time."""
        return self._now / 1e6 >= observation.payload.expires_at

    def broken(self, observation: StoredObservation) -> str | None:
        """Return why an observation can no longer be relied on, None when its sources bear it.

        References are taken in their order, and each observation's own before the next one, so the
        first that is broken gives the reason. One that leads back to what was looked at already
        says nothing new. "source_unavailable" too where there are more than `MOST_FOLLOWED`.
        """
        waiting, seen = [(observation, _cited(observation))], {observation.id}
        while waiting:
            citing, references = waiting[-1]
            source = next(references, None)
            if source is None:
                waiting.pop()
                continue
            cited = self._observation(source)
            if reason := self._reason(source, cited, citing):
                return reason
            if source in seen:
                continue
            if len(seen) > MOST_FOLLOWED:
                return "source_unavailable"
            seen.add(source)
            if cited is not None:
                waiting.append((cited, _cited(cited)))
        return None

    def _reason(
        self, source: str, cited: StoredObservation | None, citing: StoredObservation
    ) -> str | None:
        if cited is None:
            state = self._state(source)
            return None if state is None else f"source_{state}"
        if cited.forgotten:
            return "source_forgotten"
        if not cited.intact:
            return "source_unavailable"
        if cited.inactive:
            return "source_inactive"
        if self.expired(cited):
            return "source_stale"
        if citing.payload.outcome != _SUPPORTED:
            return None
        # Nothing is supported by a check that came to another end.
        return _NO_SUPPORT.get(cited.payload.outcome)


_NO_SUPPORT = {"contradicted": "source_inactive", "unknown": "source_unavailable"}


def _cited(observation: StoredObservation) -> Iterator[str]:
    """Yield the ids of the memories that an observation cites, in order."""
    for reference in parse(observation.payload.source_refs, "source_refs"):
        if reference.startswith(MEMORY):
            yield reference.removeprefix(MEMORY)
