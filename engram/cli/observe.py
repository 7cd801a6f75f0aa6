"""`engram observe`: remember one episode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engram.cli.files import open_or_make
from engram.cli.keys import key_option
from engram.cli.options import (
    Command,
    ManyValues,
    agent_option,
    json_option,
    model_option,
    moment_option,
    path_argument,
)
from engram.cli.output import episode_document, line, print_document
from engram.provenance import DEFAULT_PROVENANCE, PROVENANCES

if TYPE_CHECKING:
    from datetime import datetime

    from engram.models import Episode


@click.command(cls=Command)
@path_argument
@click.argument("content")
@click.option("--actors", cls=ManyValues, metavar="NAME...", help="Who took part.")
@click.option("--tags", cls=ManyValues, metavar="TAG...", help="Labels to filter by.")
@click.option("--salience", type=float, default=0.5, show_default=True, help="From 0 to 1.")
@click.option("--valence", type=float, default=0.0, show_default=True, help="From -1 to 1.")
@moment_option("--timestamp", "When it happened; by default now.")
@click.option(
    "--provenance",
    type=click.Choice(PROVENANCES),
    default=DEFAULT_PROVENANCE,
    show_default=True,
    help="Where the text comes from.",
)
@agent_option
@model_option
@key_option
@json_option
def observe(
    path: str,
    content: str,
    *,
    actors: tuple[str, ...],
    tags: tuple[str, ...],
    salience: float,
    valence: float,
    timestamp: datetime | None,
    provenance: str,
    agent_id: str | None,
    model: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Remember CONTENT in the store PATH, which is made when missing."""
    with open_or_make(path, agent_id=agent_id, model=model, key=key) as memory:
        episode = memory.get(
            memory.observe(
                content,
                actors=actors,
                tags=tags,
                salience=salience,
                emotional_valence=valence,
                timestamp=timestamp,
                provenance=provenance,
            )
        )
    if as_json:
        print_document(episode_document(episode))
    else:
        _print(episode)


def _print(episode: Episode) -> None:
    line(f"Observed: {episode.id}")
    line(f'  "{episode.content}"')
    if episode.actors:
        line(f"  actors: {', '.join(episode.actors)}")
    if episode.tags:
        line(f"  tags: {', '.join(episode.tags)}")
