"""What clusters and chains of memories say."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from engram.training.insights import insight, topic, with_evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.training.messages import Insight
    from engram.training.rows import Row


def cluster_insight(members: Sequence[Row], agent: str | None) -> Insight:
    """Return what memories whose contexts are alike, of an agent or anybody, say together."""
    types = Counter(member.memory_type for member in members).most_common()
    counted = ", ".join(f"{count} {name}" for name, count in types)
    heading = f"Found a cluster of {len(members)} memories{topic(members)} ({counted})"
    return insight(
        "cluster",
        members,
        agent,
        context=with_evidence(heading, (member.context for member in members)),
        action=with_evidence("What was done", (member.action for member in members)),
        result=with_evidence("What came of it", (member.result for member in members)),
    )


def chain_insight(chain: Sequence[Row], agent: str | None) -> Insight:
    """Return what memories that followed from each other, of an agent or anybody, say together."""
    root = chain[0]
    heading = f"Found a causal chain of {len(chain)} memories{topic(chain)}"
    return insight(
        "causal",
        chain,
        agent,
        context=with_evidence(heading, (member.context for member in chain)),
        action=with_evidence(f"Began with a {root.memory_type}", [root.action]),
        result=" -> ".join(member.id for member in chain),
    )
