"""Which calls of an `ExperienceMemory` are traced, and what is recorded of each."""

from __future__ import annotations

from typing import Final

from engram.tracing import Operation, fields, length

__all__ = ["OPERATIONS"]

_PLAIN: Final = Operation()

OPERATIONS: Final = {
    "store": Operation(describe=fields("indexed", "deduplicated")),
    "get": _PLAIN,
    "delete": _PLAIN,
    "insights": Operation(describe=length("results")),
    "delete_insight": _PLAIN,
    "status": _PLAIN,
    "search": Operation(
        ("limit",),
        lambda found: {"engram.results": len(found.hits), "engram.degraded": found.degraded},
        finds=True,
    ),
    "judge": _PLAIN,
    "prune_feedback": _PLAIN,
    "preview": _PLAIN,
    "analyse": _PLAIN,
    "consolidate": Operation(("dry_run",)),
    "consolidation_log": Operation(("limit",), length("steps")),
    "undo": Operation(describe=lambda steps: {"engram.steps": steps}),
    "generate": Operation(describe=fields("generated", "messages_parsed")),
    "training_runs": _PLAIN,
    "embed_waiting": Operation(("limit",)),
    "export": Operation(describe=length("experiences")),
    "import_experiences": Operation(describe=fields("imported", "skipped", "refused")),
    "reembed": Operation(describe=lambda episodes: {"engram.episodes": episodes}),
}
"""The calls of an `ExperienceMemory`; their spans begin with "engram.experience."."""
