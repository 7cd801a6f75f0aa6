"""`engram contradictions`: the facts that cannot both hold."""

from __future__ import annotations

import click

from engram.cli.files import open_existing
from engram.cli.keys import key_option
from engram.cli.options import agent_option, json_option, path_argument
from engram.cli.output import day, fact_document, line, print_document, statement


@click.command()
@path_argument
@agent_option
@key_option
@json_option
def contradictions(path: str, *, agent_id: str | None, key: str | None, as_json: bool) -> None:
    """Print the pairs of active facts in the store PATH that cannot both hold."""
    with open_existing(path, agent_id=agent_id, key=key) as memory:
        pairs = memory.contradictions()
    if as_json:
        found = [[fact_document(fact) for fact in pair] for pair in pairs]
        print_document({"path": path, "agent_id": agent_id, "contradictions": found})
        return
    line(f"Contradictions in {path}")
    for pair in pairs:
        for fact in pair:
            line(f"  {statement(fact)}")
            known = f"conf: {fact.confidence:.2f}  |  since {day(fact.valid_from)}"
            line(f"       {known}  |  id: {fact.id}")
        line()
    if not pairs:
        line("  (no contradictions found)")
