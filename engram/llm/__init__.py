"""Language models that reflection and compression ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from typing import Any

    from engram.models import Episode

__all__ = ["LLMAdapter"]


@runtime_checkable
class LLMAdapter(Protocol):
    """What reflection and compression need of a language model."""

    model_name: str

    def extract_facts(self, episodes: list[Episode]) -> tuple[list[dict[str, Any]], int]:
        """Return the facts the episodes state, and the tokens that cost."""

    def summarise(self, episodes: list[Episode]) -> tuple[str, int]:
        """Return one paragraph that says what the episodes say, and the tokens that cost."""
