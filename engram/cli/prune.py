"""`engram prune`: erase the episodes that faded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engram.cli.files import open_existing
from engram.cli.keys import key_option
from engram.cli.options import agent_option, json_option, path_argument
from engram.cli.output import counted, day, episode_document, line, print_document

if TYPE_CHECKING:
    from engram.models import Episode

_SHOWN = 60


@click.command()
@path_argument
@click.option("--threshold", type=float, help="Erase what is less important; by default 0.1.")
@click.option("--yes", is_flag=True, help="Erase; without it, only show what would be erased.")
@agent_option
@key_option
@json_option
def prune(
    path: str,
    *,
    threshold: float | None,
    yes: bool,
    agent_id: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Show the episodes of the store PATH that faded, and with --yes erase them."""
    with open_existing(path, agent_id=agent_id, key=key) as memory:
        ids = memory.prune(preview=not yes, threshold=threshold)
        faded = [] if yes else [memory.get(uid) for uid in ids]
    if as_json:
        shown = None if yes else [episode_document(episode) for episode in faded]
        scope = {"path": path, "agent_id": agent_id, "threshold": threshold}
        print_document({**scope, "erased": yes, "ids": ids, "episodes": shown})
        return
    if yes:
        line(f"Erased {counted(len(ids), 'episode')}")
        return
    for episode in faded:
        _print(episode)
    line(f"{counted(len(ids), 'episode')} would be erased; --yes erases")


def _print(episode: Episode) -> None:
    text = " ".join(episode.content.split())
    text = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    line(f"  {episode.id}  {day(episode.timestamp)}  {text}")
