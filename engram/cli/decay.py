"""`engram decay`: compute importance anew."""

from __future__ import annotations

import click

from engram.cli.files import open_existing
from engram.cli.keys import key_option
from engram.cli.options import agent_option, json_option, path_argument
from engram.cli.output import counted, line, print_document


@click.command()
@path_argument
@agent_option
@key_option
@json_option
def decay(path: str, *, agent_id: str | None, key: str | None, as_json: bool) -> None:
    """Compute the importance of the episodes in the store PATH anew; nothing is erased."""
    with open_existing(path, agent_id=agent_id, key=key) as memory:
        updated = memory.decay()
    if as_json:
        print_document({"path": path, "agent_id": agent_id, "updated": updated})
    else:
        line(f"Updated the importance of {counted(updated, 'episode')}")
