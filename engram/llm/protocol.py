"""What reflection and compression need of a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from typing import Any

    from engram.models import Episode
    from engram.storage.triplets import Experience

__all__ = ["DuplicateJudge", "LLMAdapter", "MemoryJudge"]


@runtime_checkable
class LLMAdapter(Protocol):
    """What reflection and compression need of a language model."""

    model_name: str

    def extract_facts(self, episodes: list[Episode]) -> tuple[list[dict[str, Any]], int]:
        """Return the facts the episodes state, and the tokens that cost.

        A fact is a dict with `subject`, `predicate` and `object`, and if the model says so
        `confidence` (0 to 1) and `sources`: the numbers, counted from 1, of the episodes that
        state it. A fact that names no `sources` may come from any of the episodes.
        """

    def summarise(self, episodes: list[Episode]) -> tuple[str, int]:
        """Return one paragraph that says what the episodes say, and the tokens that cost."""


@runtime_checkable
class MemoryJudge(Protocol):
    """A language model that can also say how useful a memory is; every adapter of engram can."""

    def judge_memory(self, query: str, text: str) -> tuple[float, str]:
        """Return how useful a memory is for a query, 0 to 1, and why.

        Args:
            query: What was asked; "" if that is not known.
            text: What the memory says.
        """


@runtime_checkable
class DuplicateJudge(Protocol):
    """A language model that can tell whether two experiences are one."""

    def are_duplicates(self, first: Experience, second: Experience) -> tuple[bool, int]:
        """Say whether two experiences say the same, and return the tokens that cost."""
