"""`engram why`: where a fact comes from."""

from __future__ import annotations

import click

from engram.cli.files import open_existing
from engram.cli.keys import key_option
from engram.cli.options import agent_option, json_option, path_argument
from engram.cli.output import line, print_document
from engram.errors import NotFound


@click.command()
@path_argument
@click.argument("fact_id", metavar="ID")
@agent_option
@key_option
@json_option
def why(path: str, fact_id: str, *, agent_id: str | None, key: str | None, as_json: bool) -> None:
    """Print what the fact ID of the store PATH rests on."""
    with open_existing(path, agent_id=agent_id, key=key) as memory:
        try:
            reasons = memory.why(fact_id)
        except NotFound:
            message = f"fact not found: {fact_id!r}"
            raise NotFound(message) from None
    if as_json:
        print_document({"id": fact_id, **reasons})
        return
    line(str(reasons["fact"]).replace("\n", "\n  "))
    for name in ("confidence", "provenance", "quarantined", "shared"):
        line(f"  {name + ':':16}{_shown(reasons[name])}")
    for name in ("agent_id", "extracted_from", "extracted_by", "model"):
        if reasons[name]:
            line(f"  {name.replace('_', ' ') + ':':16}{_shown(reasons[name])}")


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value)
    return f"{value:.2f}" if isinstance(value, float) else str(value)
