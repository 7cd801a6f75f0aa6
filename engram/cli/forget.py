"""`engram forget`: erase an episode, a fact or all about an entity, or hide memories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from engram.cli.configured import configured_ledger, configured_store
from engram.cli.files import open_existing
from engram.cli.keys import key_option
from engram.cli.lifecycle import change, change_configured, reason_option
from engram.cli.options import agent_option, json_option
from engram.cli.output import line, print_document, warn
from engram.errors import InvalidArgument, NotFound
from engram.storage.lifecycle import EVIDENCE
from engram.storage.projects import FACT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram import Engram
    from engram.ledger import Ledger


@click.command()
@click.argument("targets", metavar="PATH | ID...", nargs=-1, required=True)
@click.option("--episode", metavar="ID", help="The episode to erase from PATH.")
@click.option("--fact", metavar="ID", help="The fact to erase from PATH.")
@click.option("--entity", metavar="NAME", help="The entity to erase, with all of every agent.")
@click.option("--sweep", is_flag=True, help="With --entity: also episodes whose text names it.")
@click.option("--erase", is_flag=True, help="With ID: erase, so that nothing can restore it.")
@reason_option
@agent_option
@key_option
@json_option
@click.pass_context
def forget(
    context: click.Context,
    targets: tuple[str, ...],
    *,
    episode: str | None,
    fact: str | None,
    entity: str | None,
    sweep: bool,
    erase: bool,
    reason: str | None,
    agent_id: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Erase from the file PATH, or hide memories of the configured store.

    With --episode, --fact or --entity it erases that and every trace of it from the store PATH. An
    entity goes with the episodes it took part in and the facts about it, under all its names,
    whichever agent they belong to.

    With ID alone it hides those memories of the configured store, so that nothing finds them until
    "engram restore", or with --erase erases them; ID may be that of a check observation.
    """
    given = [value for value in (episode, fact, entity) if value is not None]
    if len(given) > 1 or (not given and _is_store(context, targets)):
        message = "give one of --episode, --fact and --entity"
        raise InvalidArgument(message)
    if not given:
        _refuse(("--sweep", sweep), ("--agent-id", agent_id), needs="--episode, --fact or --entity")
        _forget_configured(context, targets, reason, key, erase=erase, as_json=as_json)
        return
    if len(targets) != 1:
        message = "give one PATH"
        raise InvalidArgument(message)
    if sweep and entity is None:
        message = "--sweep goes with --entity"
        raise InvalidArgument(message)
    _refuse(("--erase", erase), ("--reason", reason), needs="the ids of memories alone")
    with open_existing(targets[0], agent_id=agent_id, key=key) as memory:
        if entity is not None:
            _forget_entity(memory, entity, sweep=sweep, as_json=as_json)
        else:
            _forget_one(memory, given[0], "episode" if fact is None else "fact", as_json=as_json)


def _is_store(context: click.Context, targets: Sequence[str]) -> bool:
    """Say whether what was given looks like PATH without what to erase from it."""
    return context.find_root().obj is None and len(targets) == 1 and Path(targets[0]).is_file()


def _refuse(*options: tuple[str, object], needs: str) -> None:
    for name, value in options:
        if value:
            message = f"{name} goes with {needs}"
            raise InvalidArgument(message)


def _forget_configured(
    context: click.Context,
    memory_ids: Sequence[str],
    reason: str | None,
    key: str | None,
    *,
    erase: bool,
    as_json: bool,
) -> None:
    if not erase:
        change_configured(
            context,
            memory_ids,
            lambda ledger, uid: ledger.hide(uid, reason=reason),
            "Hidden",
            key=key,
            as_json=as_json,
        )
        return
    _refuse(("--reason", reason), needs="hiding: of what is erased nothing is kept")
    with (
        open_existing(str(configured_store(context)[0]), key=key) as memory,
        configured_ledger(context, key=key) as ledger,
    ):
        change(
            memory_ids,
            lambda uid: _erase(memory, uid),
            "Erased",
            look=lambda uid: _look(memory, ledger, uid),
            as_json=as_json,
            finish=lambda: {"wiped": _warned(wiped=memory.wipe())},
        )


def _look(memory: Engram, ledger: Ledger, uid: str) -> None:
    if uid.startswith(FACT):
        memory.why(uid.removeprefix(FACT))
    else:
        ledger.lifecycle_of(uid)


def _warned(*, wiped: bool) -> bool:
    """Return whether erased bytes are gone from the files, having warned where they are not."""
    if not wiped:
        hint = "close the other programs that have the store open, and run: engram compact"
        warn("not_wiped", "erased bytes may still be in the files of the store", hint)
    return wiped


def _erase(memory: Engram, uid: str) -> None:
    """Erase what has an id: a memory, a fact that is listed among them, a check observation."""
    if uid.startswith(FACT):
        memory.forget_fact(uid.removeprefix(FACT))
    elif uid.startswith(EVIDENCE):
        memory.forget_evidence(uid)
    else:
        memory.forget(uid)


def _forget_one(memory: Engram, uid: str, kind: str, *, as_json: bool) -> None:
    erase = memory.forget if kind == "episode" else memory.forget_fact
    try:
        erase(uid)
    except NotFound:
        message = f"{kind} not found: {uid!r}"
        raise NotFound(message) from None
    wiped = _warned(wiped=memory.wipe())
    if as_json:
        print_document({"id": uid, "deleted": True, "wiped": wiped})
    else:
        line(f"Erased {kind} {uid}")


def _forget_entity(memory: Engram, name: str, *, sweep: bool, as_json: bool) -> None:
    erased = memory.forget_entity(name, content_sweep=sweep)
    wiped = _warned(wiped=erased.wiped)
    if as_json:
        print_document(
            {
                "entity": erased.entity,
                "episodes_deleted": erased.episodes_deleted,
                "facts_deleted": erased.facts_deleted,
                "episode_ids": erased.episode_ids,
                "fact_ids": erased.fact_ids,
                "removed": erased.removed,
                "wiped": wiped,
            }
        )
        return
    line(f'Erased entity "{erased.entity}"')
    line(f"  Episodes deleted: {erased.episodes_deleted}")
    line(f"  Facts deleted:    {erased.facts_deleted}")
