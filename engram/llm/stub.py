"""A language model that always gives the same answers, for tests and work without a network."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from engram.models import Episode
    from engram.storage.triplets import Experience

__all__ = ["StubLLMAdapter"]


class StubLLMAdapter:
    """Answers every call with what it was given.

    Args:
        facts: What `extract_facts` returns a copy of; None is no facts.
        tokens: What each call costs.
        summary: What `summarise` returns.
        judgement: What `judge_memory` returns.
        duplicates: Whether `are_duplicates` says that two experiences say the same.
    """

    model_name = "stub"

    def __init__(
        self,
        facts: Iterable[dict[str, Any]] | None = None,
        tokens: int = 0,
        summary: str = "Stub summary.",
        *,
        judgement: tuple[float, str] = (0.5, "Stub judgement."),
        duplicates: bool = False,
    ) -> None:
        self._facts = list(facts or ())
        self._tokens = tokens
        self._summary = summary
        self._judgement = judgement
        self._duplicates = duplicates

    def extract_facts(self, episodes: list[Episode]) -> tuple[list[dict[str, Any]], int]:
        """Return a copy of the facts, and the tokens."""
        return copy.deepcopy(self._facts), self._tokens

    def summarise(self, episodes: list[Episode]) -> tuple[str, int]:
        """Return the summary, and the tokens."""
        return self._summary, self._tokens

    def judge_memory(self, query: str, text: str) -> tuple[float, str]:
        """Return the judgement."""
        return self._judgement

    def are_duplicates(self, first: Experience, second: Experience) -> tuple[bool, int]:
        """Return whether they are, and the tokens."""
        return self._duplicates, self._tokens
