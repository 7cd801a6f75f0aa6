"""`engram facts`: what is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engram.cli.files import open_existing
from engram.cli.keys import key_option
from engram.cli.options import agent_option, json_option, path_argument
from engram.cli.output import day, fact_document, line, print_document, statement

if TYPE_CHECKING:
    from engram.models import Fact


@click.command()
@path_argument
@click.option("--all", "everything", is_flag=True, help="Closed and superseded ones too.")
@click.option("--limit", type=int, default=100, show_default=True, help="How many, 1 to 1000.")
@click.option("--cursor", metavar="TEXT", help="Go on behind an earlier page, which gave it.")
@agent_option
@key_option
@json_option
def facts(
    path: str,
    *,
    everything: bool,
    limit: int,
    cursor: str | None,
    agent_id: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """List the active facts in the store PATH, in the order they were recorded.

    "engram timeline" prints those about one entity.
    """
    with open_existing(path, agent_id=agent_id, key=key) as memory:
        page = memory.facts(active_only=not everything, limit=limit, cursor=cursor)
    if as_json:
        found = [fact_document(fact) for fact in page.facts]
        print_document({"path": path, "agent_id": agent_id, "facts": found, "cursor": page.cursor})
        return
    line(f"Facts in {path}")
    for fact in page.facts:
        _print(fact)
    if not page.facts:
        line("  (no facts found)")
    if page.cursor is not None:
        line(f"  … and more: --cursor {page.cursor}")


def _print(fact: Fact) -> None:
    end = "" if fact.valid_to is None else f" until {day(fact.valid_to)}"
    state = " ← superseded" if fact.superseded_at is not None else ""
    line(f"  {statement(fact)}  (conf: {fact.confidence:.2f}){state}")
    line(f"       since {day(fact.valid_from)}{end}  |  id: {fact.id}")
