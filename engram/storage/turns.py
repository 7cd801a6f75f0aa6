"""Turns of conversations: which episodes were said together, and what answers what.

A turn is an episode with an actor. It goes on with the conversation of the turn before it: the
latest of the turns written earlier that are of the same agent, tags, provenance and quarantine and
happened at most `PAUSE` before it, and not after it. So of conversations nothing counts for a turn
that another agent wrote, or that is trusted otherwise. What such texts still do: all texts of the
file tell how rare a word is, and of the candidates of one recall the best sets the scale.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import apsw
import numpy as np

from engram.storage.headings import ASSISTANTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from engram.storage.connection import Connection
    from engram.storage.episodes import NewEpisode

PAUSE: Final = 3_600_000_000
"""Microseconds after which a turn begins another conversation."""

# Of the turn before; it is sought twice, for a join would copy it to a table of its own first.
_BEFORE: Final = (
    "(SELECT {} FROM turn"  # noqa: S608
    f" WHERE thread = ?2 AND occurred_at BETWEEN ?3 - {PAUSE} AND ?3"
    " ORDER BY occurred_at DESC, episode DESC LIMIT 1)"
)
# One statement, for a conversation is many of these.
_INSERT: Final = (
    "INSERT INTO turn (episode, thread, occurred_at, asker, assistant, conversation, answers)"  # noqa: S608
    " VALUES (?1, ?2, ?3, iif(?5 OR NOT ?6, NULL, ?4), ?5,"
    f" coalesce({_BEFORE.format('conversation')}, ?1),"
    f" iif(?5, NULL, {_BEFORE.format('iif(asker <> ?4, episode, NULL)')}))"
)
# In step with the keys; an answered turn may be gone.
_OF: Final = (
    "SELECT coalesce(t.conversation, 0),"
    " coalesce((SELECT q.episode FROM turn AS q WHERE q.episode = t.answers), 0),"
    " coalesce(t.assistant, 0)"
    " FROM carray(?) AS k LEFT JOIN turn AS t ON t.episode = k.value"
)


@dataclass(frozen=True, slots=True)
class TurnColumns:
    """What is known of some episodes as turns, each array in step with their keys.

    Attributes:
        conversation: int64[n], the same for all turns of a conversation; 0 where it is no turn.
        answers: int64[n], the key of the question that it may answer; 0 where there is none.
        assistant: bool[n], whether an assistant said it.
    """

    conversation: NDArray[np.int64]
    answers: NDArray[np.int64]
    assistant: NDArray[np.bool_]


class Turns:
    """The turns of a store; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, keys: Sequence[int], new: Sequence[NewEpisode], agent: int | None) -> None:
        """Note which of new episodes are turns, and of which conversations.

        A summary is none: it stands for many.

        Args:
            keys: n keys, ascending, larger than any before.
            new: n episodes, all of one agent.
            agent: The key of the agent, None: of none.
        """
        said = [
            (key, one)
            for key, one in zip(keys, new, strict=True)
            if one.actors and not one.summary_of
        ]
        if said:
            self._connection.executemany(_INSERT, _rows(said, agent))

    def of(self, keys: NDArray[np.int64]) -> TurnColumns:
        """Return what is known of some episodes as turns, given by their keys, int64[n]."""
        if not len(keys):
            none = np.empty(0, dtype=np.int64)
            return TurnColumns(none, none, none.astype(np.bool_))
        rows = self._connection.execute(_OF, (apsw.carray(keys),)).fetchall()
        conversation, answers, assistant = np.array(rows, dtype=np.int64).T.copy()
        return TurnColumns(conversation, answers, assistant.astype(np.bool_))


def _rows(
    said: Sequence[tuple[int, NewEpisode]], agent: int | None
) -> Iterator[tuple[int, int, int, int, bool, bool]]:
    digests: dict[tuple[object, ...], int] = {}

    def digest(*parts: object) -> int:
        """Return 64 bits that only equal parts share."""
        if parts not in digests:
            told = blake2b(repr(parts).encode(), digest_size=8).digest()
            digests[parts] = int.from_bytes(told, signed=True)
        return digests[parts]

    for key, one in said:
        yield (
            key,
            digest(agent, one.provenance, one.quarantined, *sorted(set(one.tags))),
            one.occurred_at,
            digest(*sorted(set(one.actors))),
            is_assistant(one.actors),
            asks(one.content),
        )


def is_assistant(actors: Sequence[str]) -> bool:
    """Return whether an assistant alone said something."""
    return len(actors) == 1 and actors[0].strip() in ASSISTANTS


def asks(text: str) -> bool:
    """Return whether a text contains a question mark of any script."""
    return "?" in text or (not text.isascii() and _question_marks().search(text) is not None)


# Compiled at the first use: most programs need none.
@cache
def _question_marks() -> re.Pattern[str]:
    # Greek, Armenian, Arabic, Ethiopic, double and mixed ones, reversed, Vai, Bamum, small, wide
    return re.compile(
        "[\u037e\u055e\u061f\u1367\u203d\u2047-\u2049\u2e2e\ua60f\ua6f7\ufe56\uff1f\U00011143]"
    )
