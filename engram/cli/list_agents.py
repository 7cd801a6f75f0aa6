"""`engram list-agents`: who has episodes in a store."""

from __future__ import annotations

import click

from engram.cli.files import open_existing
from engram.cli.keys import key_option
from engram.cli.options import json_option, path_argument
from engram.cli.output import line, print_document


@click.command("list-agents")
@path_argument
@key_option
@json_option
def list_agents(path: str, *, key: str | None, as_json: bool) -> None:
    """List the agents that have episodes in the store PATH."""
    with open_existing(path, key=key) as memory:
        agents = memory.list_agents()
    if as_json:
        print_document({"path": path, "agents": agents})
        return
    line(f"Agents in {path}")
    for agent in agents:
        line(f"  {agent}")
    if not agents:
        line("  (no agents found — store has no agent-scoped episodes)")
