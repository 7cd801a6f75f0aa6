"""Where a memory came from, and how far that is to be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable

PROVENANCES = ("user", "tool", "external")
"""The sources a writer may declare, most trusted first."""
UNKNOWN_PROVENANCE = "unknown"
DEFAULT_PROVENANCE = "external"
TRUSTED_PROVENANCE = "user"

_LEAST_TRUSTED_FIRST = (UNKNOWN_PROVENANCE, *reversed(PROVENANCES))


def check_provenance(value: str) -> str:
    """Return `value` as a plain `str`, if a writer may declare it.

    Raises:
        InvalidArgument: `value` is none of `PROVENANCES`.
    """
    if value not in PROVENANCES:
        message = f"provenance must be one of {', '.join(PROVENANCES)}"
        raise InvalidArgument(message)
    # A member of an enumeration shows itself otherwise.
    return str.__str__(value)


def least_trusted(provenances: Iterable[str]) -> str:
    """Return the least trusted of the given sources: unknown < external < tool < user.

    An unrecognised source ranks as unknown and is returned as it is; no source at all is unknown.
    """

    def rank(value: str) -> int:
        return _LEAST_TRUSTED_FIRST.index(value) if value in _LEAST_TRUSTED_FIRST else 0

    return min(provenances, key=rank, default=UNKNOWN_PROVENANCE)


def is_untrusted(provenance: str, quarantined: bool) -> bool:
    """Say whether a memory is anything but the person's own, unquarantined words."""
    return provenance != TRUSTED_PROVENANCE or quarantined
