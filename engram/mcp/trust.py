"""What a session is trusted with: provenance can only be lowered, quarantine only begins.

The tools' caller is a model, and a model can be steered by what it read. So nothing that a call
says makes anything more trusted, and once the session has returned what is not the user's own
words, what it writes is marked for as long as it lasts. Why, and what this does not see, is told in
docs/explanation/trust.md.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from typing_extensions import TypedDict

from engram.errors import InvalidArgument
from engram.provenance import (
    DEFAULT_PROVENANCE,
    PROVENANCES,
    TRUSTED_PROVENANCE,
    UNKNOWN_PROVENANCE,
    is_untrusted,
    least_trusted,
)
from engram.times import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

__all__ = ["Cause", "Mark", "Returned", "Session", "SessionState", "check_claim"]

CLAIMABLE: Final = tuple(p for p in PROVENANCES if p != TRUSTED_PROVENANCE)
"""The sources that a caller may name: they only lower the server's."""


class Mark(NamedTuple):
    """What a write is stored with.

    Attributes:
        provenance: Its source.
        quarantined: Whether its writer had read untrusted content.
    """

    provenance: str
    quarantined: bool


class Returned(NamedTuple):
    """A memory that a tool returns, as far as trust looks at it.

    Attributes:
        memory_id: The public id.
        provenance: Its source.
        quarantined: Whether it is.
    """

    memory_id: str
    provenance: str
    quarantined: bool


class Cause(TypedDict):
    """What first made a session untrusted.

    Attributes:
        tool: The tool that was called; None where the session was started so.
        memory_id: The memory that it returned; None where it was a write.
        provenance: That memory's, or the one that the caller named.
        quarantined: Whether that memory is; None where there is none.
        at: When, in ISO 8601.
    """

    tool: str | None
    memory_id: str | None
    provenance: str | None
    quarantined: bool | None
    at: str


class SessionState(TypedDict):
    """How a session stands.

    Attributes:
        untrusted: Whether what it writes is quarantined.
        reason: The first reason in words; None while it is trusted.
        cause: The first cause; None while it is trusted.
    """

    untrusted: bool
    reason: str | None
    cause: Cause | None


def check_claim(given: str | None) -> None:
    """Refuse a provenance that a caller must not name.

    Raises:
        InvalidArgument: It is "user", or none at all.
    """
    if given == TRUSTED_PROVENANCE:
        message = "a caller cannot claim provenance 'user': the server sets it"
        raise InvalidArgument(message, f"leave provenance out, or give {' or '.join(CLAIMABLE)}")
    if given is not None and given not in CLAIMABLE:
        message = f"provenance must be {' or '.join(CLAIMABLE)}, or be left out"
        raise InvalidArgument(message)


class Session:
    """Whether what a session writes can be trusted. Safe to use from any thread.

    Args:
        ceiling: The most trusted source that a write may carry.
        untrusted: Whether it starts untrusted.
        clock: Where "now" comes from.
    """

    def __init__(
        self,
        ceiling: str = DEFAULT_PROVENANCE,
        *,
        untrusted: bool = False,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._ceiling = ceiling
        self._clock = clock
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._cause: Cause | None = None
        if untrusted:
            self._taint("the session was started untrusted")

    def state(self) -> SessionState:
        """Return how it stands."""
        with self._lock:
            return {
                "untrusted": self._cause is not None,
                "reason": self._reason,
                "cause": self._cause,
            }

    def writing(self, tool: str, given: str | None = None, *, read_untrusted: bool = False) -> Mark:
        """Return what a write is stored with, which may itself be what makes it untrusted.

        Args:
            tool: The tool that writes.
            given: The provenance that the caller named, see `check_claim`.
            read_untrusted: Whether the caller says that it follows untrusted content.
        """
        with self._lock:
            if given is not None:
                reason = f"the caller wrote content it labelled {given}"
                self._taint(reason, tool=tool, provenance=given)
            if read_untrusted:
                self._taint("the caller said that it had read untrusted content", tool=tool)
            quarantined = self._cause is not None
        provenance = least_trusted((self._ceiling, given or self._ceiling))
        if quarantined and provenance == TRUSTED_PROVENANCE:
            provenance = DEFAULT_PROVENANCE
        return Mark(provenance, quarantined)

    def returning(self, tool: str, memories: Iterable[Returned]) -> None:
        """Note what a tool is about to return; called before the caller gets to see it.

        Args:
            tool: The tool.
            memories: What it returns, in order.
        """
        for memory_id, provenance, quarantined in memories:
            if not is_untrusted(provenance, quarantined):
                continue
            # A store may name sources that nobody knows; what they are called stays there.
            known = provenance if provenance in PROVENANCES else UNKNOWN_PROVENANCE
            what = "a quarantined memory" if quarantined else f"a memory of provenance {known}"
            with self._lock:
                self._taint(
                    f"{tool} returned {what}",
                    tool=tool,
                    memory_id=memory_id,
                    provenance=known,
                    quarantined=quarantined,
                )
            return

    def _taint(
        self,
        reason: str,
        *,
        tool: str | None = None,
        memory_id: str | None = None,
        provenance: str | None = None,
        quarantined: bool | None = None,
    ) -> None:
        if self._cause is None:
            self._reason = reason
            self._cause = {
                "tool": tool,
                "memory_id": memory_id,
                "provenance": provenance,
                "quarantined": quarantined,
                "at": self._clock().isoformat(),
            }
