"""The forms in which the protocol has results."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engram.experience import Found, Preview, Stored, TrainingRun
    from engram.storage.triplets import Experience

EXPORT_VERSION: Final = 1


def tags_text(tags: Iterable[str]) -> str | None:
    """Return tags as the protocol spells them: the text of a JSON array; None for no tags."""
    listed = list(tags)
    return json.dumps(listed, ensure_ascii=False, separators=(",", ":")) if listed else None


def record(one: Experience) -> dict[str, object]:
    """Return an experience with the 15 members of an exported one."""
    return {
        "id": one.id,
        "memory_type": one.memory_type,
        "context": one.context,
        "action": one.action,
        "result": one.result,
        "score": one.score,
        "tags": tags_text(one.tags),
        "project": one.project,
        "parent_id": one.parent_id,
        "source_ids": one.source_ids,
        "insight_type": one.insight_type,
        "created_at": one.created_at,
        "updated_at": one.updated_at,
        "used_count": one.used_count,
        "last_used_at": one.last_used_at,
    }


def stored(one: Stored) -> dict[str, object]:
    """Return what became of a memory that was to be stored."""
    said: dict[str, object] = {
        "id": one.id,
        "indexed": one.indexed,
        "deduplicated": one.deduplicated,
    }
    return said | ({"merged_into": one.id} if one.deduplicated else {})


def found(result: Found) -> dict[str, object]:
    """Return what a search found, under the names of the document and of the reference server."""
    hits = [dataclasses.asdict(hit) | {"tags": tags_text(hit.tags)} for hit in result.hits]
    return {
        "results": hits,
        "memories": hits,
        "count": len(hits),
        "degraded": result.degraded,
        "query_id": result.query_id,
        "routing": plain(result.routing),
    }


def recommendations(runs: Iterable[TrainingRun]) -> dict[str, object]:
    """Return what the newest run of the trainer recommends; nothing for none."""
    newest = training(runs) or {"recommendation_count": 0, "recommendations": []}
    return {name: newest[name] for name in ("recommendation_count", "recommendations")}


def insights(listed: Iterable[Experience]) -> dict[str, object]:
    """Return a list of insights."""
    records = [record(one) for one in listed]
    return {"insights": records, "count": len(records)}


def preview(seen: Preview) -> dict[str, object]:
    """Return what a consolidation would look at."""
    said: dict[str, object] = plain(seen)
    return said | {"duplicates": seen.duplicates, "stale": seen.stale, "garbage": seen.garbage}


def training(runs: Iterable[TrainingRun]) -> dict[str, object] | None:
    """Return the newest run of the trainer and what it said beside its insights, None for none."""
    newest = next(iter(runs), None)
    if newest is None:
        return None
    names = {
        "recommendations": ("target_id", "action", "reasoning"),
        "metrics": ("name", "value"),
        "artifacts": ("path", "size_bytes", "sha256"),
    }
    said: dict[str, object] = plain(newest)
    return said | {
        member: [dict(zip(keys, one, strict=True)) for one in getattr(newest, member)]
        for member, keys in names.items()
    }


def plain(value: Any) -> Any:
    """Return records with named members, and sequences of them, as what JSON has forms for."""
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value
