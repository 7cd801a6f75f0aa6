"""What asks: it has texts and a question, and nothing that says what would answer it.

Of engram it uses the public names alone, as any program would; a test holds it to that.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engram import Engram, ObserveInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engram import SearchResult
    from engram.embedding import Embedder

__all__ = ["Answer", "K", "Question", "Store", "Turn", "Variant"]

K = 50
"""Results of each recall."""

Answer = tuple[str, str, float, float | None]
"""A turn's id, its session's, its score and its confidence."""

_BATCH = 500
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
        weights: Shares of meaning and of words; None leaves them as they are by default.
    """

    label: str
    mode: str
    weights: tuple[float, float] | None = None


class Store:
    """Turns in a store in memory, and the answers it gives.

    Args:
        turns: What to remember, in order.
        embedder: The model.

    Attributes:
        seconds: How long remembering took.
    """

    def __init__(self, turns: Sequence[Turn], embedder: Embedder) -> None:
        self._last = max((turn.at for turn in turns if turn.at), default=_UNDATED)
        self._now = self._last
        self._memory = Engram(agent_id="reader", embedder=embedder, clock=lambda: self._now)
        started = time.perf_counter()
        self._turns = dict(zip(self._remember(turns), turns, strict=True))
        self._memory.maintain()
        self.seconds = time.perf_counter() - started

    def close(self) -> None:
        """Let the store go."""
        self._memory.close()

    def _remember(self, turns: Sequence[Turn]) -> list[str]:
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
        return [
            uid
            for at in range(0, len(inputs), _BATCH)
            for uid in self._memory.observe_many(inputs[at : at + _BATCH])
        ]

    def ask(
        self, question: Question, variants: Iterable[Variant]
    ) -> tuple[dict[str, list[Answer]], dict[str, float]]:
        """Return what each variant recalls, best first, and the seconds each took.

        The seconds are those of a store that was asked before and of a question that the model has
        read: its vector is computed once, and counts for none of them.
        """
        self._now = question.at or self._last
        self._memory.recall(question.text, 1, mode="cosine")
        answers: dict[str, list[Answer]] = {}
        seconds: dict[str, float] = {}
        for variant in variants:
            started = time.perf_counter()
            found = self._recall(question.text, variant)
            seconds[variant.label] = time.perf_counter() - started
            answers[variant.label] = [self._answer(hit) for hit in found]
        return answers, seconds

    def _recall(self, text: str, variant: Variant) -> list[SearchResult]:
        if variant.weights is None:
            return self._memory.recall(text, K, mode=variant.mode)
        vector, words = variant.weights
        return self._memory.recall(
            text, K, mode=variant.mode, vector_weight=vector, fts_weight=words
        )

    def _answer(self, hit: SearchResult) -> Answer:
        turn = self._turns[hit.episode.id]
        return turn.id, turn.session, hit.score, getattr(hit, "confidence", None)
