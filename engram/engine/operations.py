"""Which calls of an `Engram` are traced, and what is recorded of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engram.tracing import Operation, fields, length

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["OPERATIONS"]


def _found(results: Sequence[Any]) -> Mapping[str, str | bool | int | float]:
    """Describe the results of a recall, and how it was answered."""
    described: dict[str, str | bool | int | float] = {"engram.results": len(results)}
    if results:
        certificate = results[0].certificate
        described |= {
            "engram.strategy": certificate.strategy,
            "engram.exact": certificate.exact,
            "engram.matching": certificate.matching,
            "engram.considered": certificate.considered,
        }
    return described


_PLAIN: Final = Operation()

OPERATIONS: Final = {
    "observe": _PLAIN,
    "observe_many": Operation(describe=length("episodes")),
    "remember": _PLAIN,
    "recall": Operation(("k", "mode", "accuracy"), _found, finds=True),
    "recall_memories": Operation(("k", "kind", "mode", "accuracy"), _found, finds=True),
    "search": Operation(("k",), length("results"), finds=True),
    "search_explained": Operation(
        ("k",), lambda result: {"engram.results": len(result[0])}, finds=True
    ),
    "get": _PLAIN,
    "accesses": _PLAIN,
    "episodes": Operation(("limit",), fields("episodes")),
    "count": _PLAIN,
    "forget": _PLAIN,
    "forget_many": Operation(describe=lambda result: {"engram.episodes": result}),
    "forget_entity": Operation(
        ("content_sweep",), fields("episodes_deleted", "facts_deleted", "wiped")
    ),
    "assert_fact": _PLAIN,
    "get_fact": _PLAIN,
    "facts": Operation(("limit",), fields("facts")),
    "why": _PLAIN,
    "trust_of": Operation(describe=length("facts")),
    "timeline": Operation(describe=length("facts")),
    "contradictions": Operation(describe=length("contradictions")),
    "forget_fact": _PLAIN,
    "forget_evidence": _PLAIN,
    "add_alias": _PLAIN,
    "declare_predicate": _PLAIN,
    "decay": Operation(describe=lambda result: {"engram.episodes": result}),
    "prune": Operation(("preview",), length("episodes")),
    "reflect": Operation(
        ("dry_run", "window"),
        fields(
            "episodes_processed",
            "episodes_waiting",
            "facts_extracted",
            "contradictions_resolved",
            "cost_tokens",
            "pruned",
        ),
    ),
    "compress": Operation(
        ("max_episodes", "batch_size"),
        fields("summaries_created", "episodes_removed", "cost_tokens"),
    ),
    "list_agents": Operation(describe=length("agents")),
    "counts": Operation(describe=fields("episodes", "facts", "entities", "reflections")),
    "check": Operation(describe=length("problems")),
    "reembed": Operation(describe=lambda result: {"engram.episodes": result}),
    "compact": _PLAIN,
    "wipe": Operation(describe=lambda result: {"engram.wiped": result}),
    "maintain": _PLAIN,
    "backup": _PLAIN,
    "rekey": _PLAIN,
    "export_json": _PLAIN,
    "import_json": Operation(("merge",)),
    "export_lines": _PLAIN,
    "import_lines": Operation(("merge",)),
    "import_store": Operation(("merge",)),
    "import_memories": Operation(("merge",)),
}
"""The calls of an `Engram`. Which agent is asked and by whom is never recorded, nor any text."""
