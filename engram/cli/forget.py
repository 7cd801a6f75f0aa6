"""`engram forget`: erase an episode, a fact, or all there is about an entity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engram.cli.files import open_existing
from engram.cli.keys import key_option
from engram.cli.options import agent_option, json_option, path_argument
from engram.cli.output import line, print_document, warn
from engram.errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    from engram import Engram


@click.command()
@path_argument
@click.option("--episode", metavar="ID", help="The episode to erase.")
@click.option("--fact", metavar="ID", help="The fact to erase.")
@click.option("--entity", metavar="NAME", help="The entity to erase, with all of every agent.")
@click.option("--sweep", is_flag=True, help="With --entity: also episodes whose text names it.")
@agent_option
@key_option
@json_option
def forget(
    path: str,
    *,
    episode: str | None,
    fact: str | None,
    entity: str | None,
    sweep: bool,
    agent_id: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Erase an episode, a fact or an entity, and every trace of it in the file PATH.

    An entity goes with the episodes it took part in and the facts about it, under all its names,
    whichever agent they belong to.
    """
    given = [value for value in (episode, fact, entity) if value is not None]
    if len(given) != 1:
        message = "give one of --episode, --fact and --entity"
        raise InvalidArgument(message)
    if sweep and entity is None:
        message = "--sweep goes with --entity"
        raise InvalidArgument(message)
    with open_existing(path, agent_id=agent_id, key=key) as memory:
        if entity is not None:
            _forget_entity(memory, entity, sweep=sweep, as_json=as_json)
        else:
            _forget_one(memory, given[0], "episode" if fact is None else "fact", as_json=as_json)


def _forget_one(memory: Engram, uid: str, kind: str, *, as_json: bool) -> None:
    erase = memory.forget if kind == "episode" else memory.forget_fact
    try:
        erase(uid)
    except NotFound:
        message = f"{kind} not found: {uid!r}"
        raise NotFound(message) from None
    if as_json:
        print_document({"id": uid, "deleted": True})
    else:
        line(f"Erased {kind} {uid}")


def _forget_entity(memory: Engram, name: str, *, sweep: bool, as_json: bool) -> None:
    erased = memory.forget_entity(name, content_sweep=sweep)
    if not erased.wiped:
        hint = "close the other programs that have the store open, and run: engram compact"
        warn("not_wiped", "erased bytes may still be in the files of the store", hint)
    if as_json:
        print_document(
            {
                "entity": erased.entity,
                "episodes_deleted": erased.episodes_deleted,
                "facts_deleted": erased.facts_deleted,
                "episode_ids": erased.episode_ids,
                "fact_ids": erased.fact_ids,
                "removed": erased.removed,
                "wiped": erased.wiped,
            }
        )
        return
    line(f'Erased entity "{erased.entity}"')
    line(f"  Episodes deleted: {erased.episodes_deleted}")
    line(f"  Facts deleted:    {erased.facts_deleted}")
