"""The recalls that are timed, and how many of the exact answers they find."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engram.bench.building import HALF, NOW, SHARES
from engram.bench.stats import WARM_UPS, LatencyStats, call_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram import Engram
    from engram.bench.corpus import Questions

__all__ = ["COLUMNS", "DELETED", "SPREADING", "Column", "agents", "search"]


@dataclass(frozen=True)
class Column:
    """A kind of recall.

    Attributes:
        name: Its name in the results.
        options: Arguments of `recall`.
        agent: Whose memory is searched; None is everyone's.
        asks: Which of the questions.
    """

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    agent: str | None = None
    asks: str = "decisions"


_COSINE: dict[str, Any] = {"mode": "cosine"}

COLUMNS = (
    Column("cosine", _COSINE),
    Column("hybrid"),
    Column("hybrid_8_terms", asks="eight"),
    Column("hybrid_15_terms", asks="fifteen"),
    Column("as_of_now", {**_COSINE, "as_of": NOW}),
    Column("as_of_half", {**_COSINE, "as_of": HALF}),
    *(Column(f"filtered_{tag}_percent", {**_COSINE, "tags": [tag]}) for tag in SHARES),
    *(Column(f"hybrid_filtered_{tag}_percent", {"tags": [tag]}) for tag in SHARES),
    Column("scoped_5", _COSINE, "solo"),
    Column("scoped_1000", _COSINE, "mid"),
    Column("hybrid_scoped_1000", agent="mid", asks="eight"),
)
SPREADING = (Column("spreading", {"mode": "spreading"}),)
DELETED = (
    Column("half_deleted_cosine", _COSINE),
    Column("half_deleted_hybrid", asks="eight"),
    Column("half_deleted_as_of_now", {**_COSINE, "as_of": NOW}),
)


def agents(columns: Sequence[Column]) -> list[str | None]:
    """Return whose memories the columns search, each once."""
    return list(dict.fromkeys(column.agent for column in columns))


def search(
    memory: Engram, column: Column, questions: Questions, k: int, recall_options: dict[str, Any]
) -> tuple[LatencyStats, float | None]:
    """Time the recalls of a column, and compare them with exact ones where there are others.

    Returns:
        The times, and the share of the exact answers that were found; None where all answers are
        exact.
    """
    asked: list[str] = getattr(questions, column.asks)
    options = {**column.options, **recall_options}

    def recalled(question: str, **more: object) -> list[str]:
        hits = memory.recall(question, k, **{**options, **more})
        return [hit.episode.id for hit in hits]

    first = asked[:WARM_UPS]
    times = call_times(recalled, [*first, *asked], len(first))
    if options.get("accuracy") == "exact":
        return times, None
    shares = []
    for question in asked:
        exact = recalled(question, accuracy="exact")
        shares.append(len({*exact} & {*recalled(question)}) / len(exact) if exact else 1.0)
    return times, sum(shares) / len(shares)
