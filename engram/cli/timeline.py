"""`engram timeline`: what was and is believed about an entity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engram.cli.files import open_existing
from engram.cli.keys import key_option
from engram.cli.options import agent_option, json_option, moment_option, path_argument
from engram.cli.output import day, fact_document, line, print_document, statement

if TYPE_CHECKING:
    from datetime import datetime

    from engram.models import Fact


@click.command()
@path_argument
@click.argument("entity")
@moment_option("--as-of", "Only what holds at that moment.")
@moment_option("--known-at", "What the store knew at that moment.")
@agent_option
@key_option
@json_option
def timeline(
    path: str,
    entity: str,
    *,
    as_of: datetime | None,
    known_at: datetime | None,
    agent_id: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Print the facts about ENTITY in the store PATH, in the order they begin to hold.

    Superseded ones are there too. Days are in UTC.
    """
    with open_existing(path, agent_id=agent_id, key=key) as memory:
        facts = memory.timeline(entity, as_of=as_of, known_at=known_at)
    if as_json:
        asked = {"entity": entity, "as_of": as_of, "known_at": known_at, "agent_id": agent_id}
        print_document({**asked, "facts": [fact_document(fact) for fact in facts]})
        return
    line(f'Fact timeline for "{entity}"')
    for fact in facts:
        line(_row(fact))
    if not facts:
        line("  (no facts found)")


def _row(fact: Fact) -> str:
    end = "now    " if fact.valid_to is None else day(fact.valid_to)
    closed = " ← superseded" if fact.superseded_at is not None else ""
    says = f"{statement(fact)}  (conf: {fact.confidence:.2f})"
    return f"  [{day(fact.valid_from)} → {end}]  {says}{closed}"
