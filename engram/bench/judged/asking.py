"""What asks: it has texts and a question, and nothing that says what would answer it.

Of engram it uses the public names alone, as any program would; a test holds it to that.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engram import Engram, ObserveInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engram import SearchResult
    from engram.embedding import Embedder

__all__ = ["Answer", "K", "Question", "Store", "Turn", "Variant"]

K = 50
"""Results of each recall."""

Answer = tuple[str, str, float, float | None]
"""A turn's id, its session's, its score and its confidence, both rounded to six digits."""

_BATCH = 500
_DIGITS = 6
_UNDATED = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Question:
    """What is asked, and when; None is some time after all that was said."""

    id: str
    text: str
    at: datetime | None


@dataclass(frozen=True)
class Turn:
    """One text to remember.

    Attributes:
        id: Unique among the texts that are remembered together.
        session: Which conversation it belongs to.
        speaker: Who said it; empty for a text that stands by itself.
        text: What was said.
        at: When; None where nobody knows.
    """

    id: str
    session: str
    speaker: str
    text: str
    at: datetime | None


@dataclass(frozen=True)
class Variant:
    """One way to ask.

    Attributes:
        label: What the records call it.
        mode: That of `Engram.recall`.
        options: Further arguments of it; what is not there is as it is by default.
    """

    label: str
    mode: str
    options: Mapping[str, Any] = field(default_factory=dict)


class Store:
    """Turns in a store in memory, and the answers it gives.

    Args:
        turns: What to remember, in order.
        embedder: The model.
        progress: Called with how many turns are remembered, after some each time.

    Attributes:
        seconds: How long remembering took.
    """

    def __init__(
        self,
        turns: Sequence[Turn],
        embedder: Embedder,
        progress: Callable[[int], None] = lambda _done: None,
    ) -> None:
        self._last = max((turn.at for turn in turns if turn.at), default=_UNDATED)
        self._now = self._last
        self._memory = Engram(agent_id="reader", embedder=embedder, clock=lambda: self._now)
        started = time.perf_counter()
        self._turns = dict(zip(self._remember(turns, progress), turns, strict=True))
        self._memory.maintain()
        self.seconds = time.perf_counter() - started

    def close(self) -> None:
        """Let the store go."""
        self._memory.close()

    def _remember(self, turns: Sequence[Turn], progress: Callable[[int], None]) -> list[str]:
        # Sessions are numbered: the ids that a data set gives them may tell which are evidence.
        numbers: dict[str, int] = {}
        inputs = [
            ObserveInput(
                turn.text,
                actors=[turn.speaker] if turn.speaker else [],
                tags=[f"session {numbers.setdefault(turn.session, len(numbers) + 1)}"]
                if turn.speaker
                else [],
                timestamp=turn.at,
            )
            for turn in turns
        ]
        uids: list[str] = []
        for at in range(0, len(inputs), _BATCH):
            uids += self._memory.observe_many(inputs[at : at + _BATCH])
            progress(len(uids))
        return uids

    def ask(
        self, question: Question, variants: Iterable[Variant]
    ) -> tuple[dict[str, list[Answer]], dict[str, float]]:
        """Return what each variant recalls, best first, and the seconds each took.

        The seconds are those of a store that was asked before, whose words are in memory, and of a
        question that the model has read: its vector is computed once, and counts for none of them.
        """
        self._now = question.at or self._last
        self._memory.recall(question.text, 1)
        answers: dict[str, list[Answer]] = {}
        seconds: dict[str, float] = {}
        for variant in variants:
            started = time.perf_counter()
            found = self._memory.recall(question.text, K, mode=variant.mode, **variant.options)
            seconds[variant.label] = time.perf_counter() - started
            answers[variant.label] = [self._answer(hit) for hit in found]
        return answers, seconds

    def _answer(self, hit: SearchResult) -> Answer:
        turn = self._turns[hit.episode.id]
        sure = None if hit.confidence is None else round(hit.confidence, _DIGITS)
        return turn.id, turn.session, round(hit.score, _DIGITS), sure
