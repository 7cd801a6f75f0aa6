"""Experiences as values: three texts in one, what identical ones share, how times are spelled."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from engram.storage.headings import headed
from engram.times import from_micros

if TYPE_CHECKING:
    from collections.abc import Sequence

INSIGHT: Final = "insight"
INSIGHT_TYPES: Final = ("cluster", "temporal", "causal")
MEMORY_TYPES: Final = ("decision", "pattern", "bugfix", "context", "antipattern", INSIGHT)

Texts = tuple[tuple[int, str], ...]
"""What of an episode is embedded, at least one text: of an experience its parts that are not blank,
each after its number; of an item what is searched of it, and of any other episode all of its text,
after -1."""

_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """What was done, in what situation, and what came of it: an episode in three parts.

    Attributes:
        id: The public id, that of its episode.
        memory_type: "decision", "pattern", "bugfix", "context", "antipattern" or "insight".
        context: The situation.
        action: What was done.
        result: What came of it.
        score: How useful it was found; 0 until it is judged.
        tags: Labels, in the order given.
        project: Whose it is, any text.
        parent_id: The id of what it follows from; that may be missing.
        source_ids: Of an insight: ids of what it rests on, separated by commas.
        insight_type: Of an insight: "cluster", "temporal" or "causal".
        created_at: ISO 8601, in UTC, whole seconds; as it was given where an import said otherwise.
        updated_at: Likewise.
        used_count: How often it was stored again.
        last_used_at: When it was last, likewise; None: never.
        superseded_by: The id of what it was merged into.
        archived: It was put away and is found by no search.
        indexed: Searches find it by meaning.
    """

    id: str
    memory_type: str
    context: str
    action: str
    result: str
    score: float = 0.0
    tags: tuple[str, ...] = ()
    project: str | None = None
    parent_id: str | None = None
    source_ids: str | None = None
    insight_type: str | None = None
    created_at: str
    updated_at: str
    used_count: int = 0
    last_used_at: str | None = None
    superseded_by: str | None = None
    archived: bool = False
    indexed: bool = True


class NewExperience(NamedTuple):
    """What an experience has beside its episode; times in microseconds, everything checked."""

    memory_type: str
    context: str
    action: str
    result: str
    updated_at: int
    project: str | None = None
    parent: str | None = None
    source_ids: str | None = None
    insight_type: str | None = None
    used_count: int = 0
    last_used_at: int | None = None
    given_times: dict[str, str] | None = None
    score: float = 0.0

    @property
    def content(self) -> str:
        """The text of its episode."""
        return "\n".join(self.parts)

    @property
    def parts(self) -> tuple[str, str, str]:
        """Context, action and result."""
        return self.context, self.action, self.result

    @property
    def sources(self) -> tuple[str, ...]:
        """The ids of what an insight was drawn from, each once; they may be of nothing yet."""
        if self.memory_type != INSIGHT or self.source_ids is None:
            return ()
        named = (uid.strip() for uid in self.source_ids.split(","))
        return tuple(dict.fromkeys(uid for uid in named if uid))

    @property
    def texts(self) -> Texts:
        """What of it is embedded."""
        return _texts(self.parts)

    @property
    def digest(self) -> bytes:
        """What identical experiences share."""
        return identity(self.memory_type, self.project, self.parts)


def identity(memory_type: str, project: str | None, parts: tuple[str, str, str]) -> bytes:
    """Return a digest of all in which identical experiences agree."""
    said = json.dumps([memory_type, project, *parts])
    return hashlib.blake2b(said.encode(), digest_size=_DIGEST_BYTES).digest()


def parts_of(content: str, context_bytes: int, action_bytes: int) -> tuple[str, str, str]:
    """Return context, action and result of an experience's episode."""
    said = content.encode()
    ends = context_bytes, context_bytes + 1 + action_bytes
    parts = said[: ends[0]], said[ends[0] + 1 : ends[1]], said[ends[1] + 1 :]
    # In a damaged file the sizes can cut through a character.
    context, action, result = (part.decode(errors="replace") for part in parts)
    return context, action, result


def texts_of(
    content: str,
    sizes: tuple[int, int] | None,
    parts: Sequence[int] | None = None,
    heading: str | None = None,
) -> Texts:
    """Return what of an episode is embedded.

    Args:
        content: Its text.
        sizes: Of an experience, the bytes that context and action take.
        parts: Of an item of which texts are searched, the bytes that each of them takes.
        heading: Of any other, what stands in front of it.
    """
    if parts is not None:
        return pieces_of(content, parts)
    return ((-1, headed(heading, content)),) if sizes is None else _texts(parts_of(content, *sizes))


def pieces_of(content: str, sizes: Sequence[int]) -> Texts:
    """Return what of an item's episode is embedded.

    Args:
        content: Its text.
        sizes: The bytes of each of the texts that are searched, at least one.
    """
    said, begin, pieces = content.encode(), 0, list[tuple[int, str]]()
    for size in sizes:
        pieces.append((-1, said[begin : begin + size].decode(errors="replace")))
        begin += size + 1
    return tuple(pieces)


def _texts(parts: tuple[str, str, str]) -> Texts:
    said = tuple((field, text) for field, text in enumerate(parts) if text.strip())
    return said or ((0, ""),)


def wire_time(micros: int) -> str:
    """Return a time as experiences spell it: UTC, whole seconds, "Z"."""
    # Not strftime: of a year below 1000 some platforms leave out the zeros.
    return from_micros(micros).replace(microsecond=0, tzinfo=None).isoformat() + "Z"
