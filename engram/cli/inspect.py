"""`engram inspect`: how much a store holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engram.cli.files import open_existing, size_of
from engram.cli.keys import key_option
from engram.cli.options import agent_option, json_option, path_argument
from engram.cli.output import line, minute, print_document, size_text

if TYPE_CHECKING:
    from engram.models import Counts


@click.command()
@path_argument
@agent_option
@key_option
@json_option
def inspect(path: str, *, agent_id: str | None, key: str | None, as_json: bool) -> None:
    """Print how many episodes, facts, entities and reflections the store PATH holds."""
    with open_existing(path, agent_id=agent_id, key=key) as memory:
        counts, model = memory.counts(), memory.model()
    size = size_of(path)
    if as_json:
        embedding = model and {
            "name": model.name,
            "fingerprint": model.fingerprint,
            "dim": model.dim,
        }
        print_document({**counts_document(path, size, agent_id, counts), "model": embedding})
        return
    line()
    line(f"Store: {path}  ({size_text(size)})")
    if agent_id is not None:
        line(f"Agent: {agent_id}")
        line("  Episodes, vec index and reflections are this agent's;")
        line("  facts and entities are counted over the whole file.")
    _print_counts(counts)
    if model is not None:
        line(f"  Model:          {model.name or model.fingerprint} ({model.dim} dimensions)")


def _print_counts(counts: Counts) -> None:
    superseded = counts.facts - counts.active_facts
    last = counts.last_reflection
    reflected = "never run" if last is None else f"last: {minute(last)}"
    line(f"  Episodes:       {counts.episodes:6d}   (vec index: {counts.embedded})")
    line(
        f"  Facts:          {counts.facts:6d}"
        f"   (active: {counts.active_facts}, superseded: {superseded})"
    )
    line(f"  Entities:       {counts.entities:6d}")
    line(f"  Reflections:    {counts.reflections:6d}   ({reflected})")


def counts_document(
    path: str, size: int, agent_id: str | None, counts: Counts
) -> dict[str, object]:
    """Return what a store holds under the keys the JSON output promises.

    Args:
        path: The store, as it was named.
        size: Its bytes.
        agent_id: Whose counts they are; None: everybody's.
        counts: The counts.
    """
    return {
        "path": path,
        "size_bytes": size,
        "agent_id": agent_id,
        "episodes": counts.episodes,
        "vector_index_size": counts.embedded,
        "facts_total": counts.facts,
        "facts_active": counts.active_facts,
        "facts_superseded": counts.facts - counts.active_facts,
        "entities": counts.entities,
        "reflections": counts.reflections,
        "last_reflection": counts.last_reflection,
    }
