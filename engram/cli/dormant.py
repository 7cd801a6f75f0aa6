"""`engram dormant`: what searches might have shown of memories that nobody asked about for long."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from engram.cli.keys import key_option
from engram.cli.options import json_option
from engram.cli.output import line, minute, print_document
from engram.cli.settings import loaded
from engram.errors import CannotOpen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engram.config import DormantRecall
    from engram.ledger import Ledger
    from engram.storage.dormancy import DormantEvent


@click.group()
def dormant() -> None:
    """Review, inspect and judge what searches might have shown of dormant memories.

    Works on the store of the settings, see --config.
    """


@dormant.command("review")
@click.option("--limit", default=20, show_default=True, help="How many at most, 1 to 100.")
@key_option
@json_option
@click.pass_context
def review_command(context: click.Context, *, limit: int, key: str | None, as_json: bool) -> None:
    """List the newest evaluations, newest first; no memory is shown and nothing changes."""
    with _ledger(context, key) as (ledger, settings):
        found = ledger.review_dormant(limit, settings=settings)
    if as_json:
        print_document({"events": [asdict(event) for event in found]})
        return
    for event in found:
        line(_row(event))
    if not found:
        line("  (no evaluations)")


@dormant.command("inspect")
@click.argument("event")
@key_option
@json_option
@click.pass_context
def inspect_command(context: click.Context, event: str, *, key: str | None, as_json: bool) -> None:
    """Show the memory of the evaluation EVENT, which rests anew from then on."""
    with _ledger(context, key) as (ledger, settings):
        shown = ledger.inspect_dormant(event, settings=settings)
    if as_json:
        print_document(asdict(shown))
        return
    # Later lines of a text are indented, so that none can pass for one of these.
    content = shown.content.replace("\n", "\n       ")
    line(f"       {content}")
    line(f"       {shown.connection}")
    line(f"       source: {shown.source_type}  |  id: {shown.memory_id}")
    line(f"       {shown.note}")


@dormant.command("feedback")
@click.argument("event")
@click.argument("category", type=click.Choice(["useful", "irrelevant", "dismissed"]))
@key_option
@json_option
@click.pass_context
def feedback_command(
    context: click.Context, event: str, category: str, *, key: str | None, as_json: bool
) -> None:
    """Say what the memory of the inspected evaluation EVENT was worth, once and for good."""
    with _ledger(context, key) as (ledger, settings):
        ledger.judge_dormant(event, category, settings=settings)
    if as_json:
        print_document({"event_id": event, "feedback": category})
    else:
        line(f"noted: {category}")


@contextmanager
def _ledger(context: click.Context, key: str | None) -> Iterator[tuple[Ledger, DormantRecall]]:
    """Yield the ledger of the configured store, and the rules of dormant recall."""
    from engram.ledger import Ledger  # noqa: PLC0415 - help needs no store

    settings = loaded(context).settings
    if settings.backend != "sqlite":
        message = "storage_backend names a kind of store that this engine does not have"
        raise CannotOpen(message, "set it to sqlite")
    with Ledger(settings.db_path, key=key) as ledger:
        yield ledger, settings.dormant_recall


def _row(event: DormantEvent) -> str:
    when = minute(datetime.fromtimestamp(event.created_at, UTC))
    looked = f"{event.candidate_count} looked at"
    if event.relevance is None or event.bonus is None:
        return f"  {event.sequence:5d}  {when}  none, {looked}  |  event: {event.id}"
    state = event.feedback or ("shown" if event.shown_at is not None else "unshown")
    return (
        f"  {event.sequence:5d}  {when}  [{event.relevance:.3f} + {event.bonus:.3f}] {state},"
        f" {looked}  |  event: {event.id}  |  memory: {event.memory_id}"
    )
