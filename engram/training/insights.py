"""What several memories show together, in words."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

from engram.training.messages import Insight

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engram.training.rows import Row

    InsightType = Literal["cluster", "temporal", "causal"]

_NAMESPACE: Final = uuid.UUID("6f1c2a52-7d54-5d1e-9a3f-0c6d6a0b7e41")
_WITNESSES: Final = 3
_MAX_BYTES: Final = 10_000
"""What a memory's context, action or result may have."""
_MAX_WITNESS: Final = 3_000
_MAX_TOPIC: Final = 300


def insight(
    insight_type: InsightType,
    members: Sequence[Row],
    agent: str | None,
    *,
    context: str,
    action: str,
    result: str,
) -> Insight:
    """Return what some memories show together.

    Its id is the same for the same memories and agent in every run; what it says may change.

    Args:
        insight_type: How they were found.
        members: The memories, in the order they are to be named.
        agent: Whose memories were looked at; None: everybody's.
        context: In what situations; this and the next two are cut to what a memory may have.
        action: What was done.
        result: What came of it.
    """
    ids = [member.id for member in members]
    found: list[object] = [insight_type, *sorted(ids)]
    name = json.dumps(found if agent is None else [{"agent": agent}, *found])
    return Insight(
        id=str(uuid.uuid5(_NAMESPACE, name)),
        context=_cut(context, _MAX_BYTES),
        action=_cut(action, _MAX_BYTES),
        result=_cut(result, _MAX_BYTES),
        insight_type=insight_type,
        tags=_listed(shared_tags(members)),
        source_ids=_listed(ids),
    )


def shared_tags(members: Sequence[Row]) -> list[str]:
    """Return the tags that more than half of some memories have, in the order they are met."""
    counts = Counter(tag for member in members for tag in dict.fromkeys(member.tags))
    return [tag for tag, count in counts.items() if 2 * count > len(members)]


def topic(members: Sequence[Row]) -> str:
    """Return " about …" with what most of some memories are tagged with, "" for nothing."""
    tags = ", ".join(shared_tags(members))
    return f" about {_cut(tags, _MAX_TOPIC)}" if tags else ""


def with_evidence(heading: str, texts: Iterable[str]) -> str:
    """Return a heading with the first of some texts below it, each on a line of its own.

    Blank and repeated ones are left out; with none of them the heading stands alone.
    """
    lines = dict.fromkeys(" ".join(text.split()) for text in texts)
    witnesses = islice((line for line in lines if line), _WITNESSES)
    listed = "".join(f"\n- {_cut(line, _MAX_WITNESS)}" for line in witnesses)
    return f"{heading}:{listed}" if listed else f"{heading}."


def _listed(values: Iterable[str]) -> str | None:
    """Return values with commas between them; one that has a comma itself is left out."""
    return ",".join(value for value in values if "," not in value) or None


def _cut(text: str, limit: int) -> str:
    """Return a text of at most so many bytes of UTF-8, marked where something is gone."""
    stored = text.encode()
    if len(stored) <= limit:
        return text
    return stored[: limit - len("…".encode())].decode(errors="ignore") + "…"
