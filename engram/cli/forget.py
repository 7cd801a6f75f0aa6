"""`engram forget`: erase an episode."""

from __future__ import annotations

import click

from engram.cli.failures import UnsupportedError
from engram.cli.files import open_existing
from engram.cli.options import agent_option, json_option, path_argument
from engram.cli.output import line, print_document
from engram.errors import InvalidArgument, NotFound


@click.command()
@path_argument
@click.option("--episode", metavar="ID", help="The episode to erase.")
@click.option("--entity", metavar="NAME", help="Not in this version yet.")
@agent_option
@json_option
def forget(
    path: str, *, episode: str | None, entity: str | None, agent_id: str | None, as_json: bool
) -> None:
    """Erase an episode: its text, vectors, labels and every trace of it in the file PATH."""
    if (episode is None) == (entity is None):
        message = "give either --episode or --entity"
        raise InvalidArgument(message)
    if episode is None:
        message = "this version of engram cannot forget an entity yet"
        raise UnsupportedError(message, "recall its episodes and forget each")
    with open_existing(path, agent_id=agent_id) as memory:
        try:
            memory.forget(episode)
        except NotFound:
            message = f"episode not found: {episode!r}"
            raise NotFound(message) from None
    if as_json:
        print_document({"id": episode, "deleted": True})
    else:
        line(f"Erased episode {episode}")
