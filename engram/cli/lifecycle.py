"""`engram set-status`, `invalidate` and `restore`: whether memories are to be found."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from engram.cli.configured import configured_ledger
from engram.cli.keys import key_option
from engram.cli.options import json_option
from engram.cli.output import line, print_document
from engram.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engram.ledger import Ledger

__all__ = ["change", "change_configured", "invalidate", "reason_option", "restore", "set_status"]

reason_option = click.option("--reason", metavar="TEXT", help="Why, for the memory's history.")
_ids_argument = click.argument("memory_ids", metavar="ID...", nargs=-1, required=True)


def change(
    memory_ids: Sequence[str],
    do: Callable[[str], object],
    done: str,
    *,
    look: Callable[[str], object],
    as_json: bool,
    finish: Callable[[], dict[str, object]] = dict,
) -> None:
    """Change memories one after the other, once all are found, and say so.

    Args:
        memory_ids: Their ids.
        do: Changes one.
        done: What has become of each then.
        look: Looks for one.
        as_json: Print one JSON object.
        finish: Ends it; returns what else to print.

    Raises:
        NotFound: Nothing has one of the ids; nothing is changed.
    """
    ids = list(dict.fromkeys(memory_ids))
    for uid in ids:
        _named(look, uid)
    for uid in ids:
        _named(do, uid)
        if not as_json:
            line(f"{done}: {uid}")
    more = finish()
    if as_json:
        print_document({"ids": ids, "state": done.lower(), **more})


def change_configured(
    context: click.Context,
    memory_ids: Sequence[str],
    do: Callable[[Ledger, str], object],
    done: str,
    *,
    key: str | None,
    as_json: bool,
) -> None:
    """Change memories of the configured store by its ledger; arguments are those of `change`."""
    with configured_ledger(context, key=key) as ledger:
        change(memory_ids, partial(do, ledger), done, look=ledger.lifecycle_of, as_json=as_json)


def _named(step: Callable[[str], object], uid: str) -> None:
    """Take a step with a memory; say which one is not found."""
    try:
        step(uid)
    except NotFound as error:
        message = f"memory not found: {uid!r}"
        raise NotFound(message, error.hint) from None


@click.command("set-status")
@click.argument("memory_id", metavar="ID")
@click.argument("status")
@reason_option
@key_option
@json_option
@click.pass_context
def set_status(
    context: click.Context,
    memory_id: str,
    status: str,
    *,
    reason: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Give the memory ID of the configured store a STATUS; any but "active" hides it.

    Such as challenged, merged or superseded. ID may be that of a check observation.
    """
    change_configured(
        context,
        [memory_id],
        lambda ledger, uid: ledger.set_status(uid, status, reason=reason),
        f"Status {status}",
        key=key,
        as_json=as_json,
    )


@click.command()
@_ids_argument
@reason_option
@key_option
@json_option
@click.pass_context
def invalidate(
    context: click.Context,
    memory_ids: tuple[str, ...],
    *,
    reason: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Say of memories of the configured store that they are not true, which hides them.

    ID may be that of a check observation.
    """
    change_configured(
        context,
        memory_ids,
        lambda ledger, uid: ledger.invalidate(uid, reason=reason),
        "Invalidated",
        key=key,
        as_json=as_json,
    )


@click.command()
@_ids_argument
@reason_option
@key_option
@json_option
@click.pass_context
def restore(
    context: click.Context,
    memory_ids: tuple[str, ...],
    *,
    reason: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Take back what forget, set-status and invalidate did to memories of the configured store.

    What was erased does not come back. ID may be that of a check observation.
    """
    change_configured(
        context,
        memory_ids,
        lambda ledger, uid: ledger.restore(uid, reason=reason),
        "Restored",
        key=key,
        as_json=as_json,
    )
