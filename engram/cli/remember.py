"""`engram remember`: keep something for a project, in the configured store."""

from __future__ import annotations

from pathlib import Path

import click

from engram.cli.configured import open_configured
from engram.cli.keys import key_option
from engram.cli.options import json_option
from engram.cli.output import line, print_document
from engram.models import MEMORY_TYPES


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--project", metavar="FOLDER", help="The project's folder, an absolute path.")
@click.option("--source-path", metavar="FILE", help="The file it came from.")
@click.option(
    "--source",
    metavar="WHO",
    default="human",
    show_default=True,
    help="Who says it; only a human's words are trusted as the user's own.",
)
@click.option("--layer", metavar="NAME", default="episodic", show_default=True, help="Its layer.")
@click.option(
    "--type",
    "memory_type",
    type=click.Choice(MEMORY_TYPES),
    help="Its type; by default that of the metadata or the layer.",
)
@click.option("--importance", type=float, default=0.5, show_default=True, help="From 0 to 1.")
@click.option("--metadata", metavar="JSON", help="A JSON object to keep with it.")
@click.option("--id", "memory_id", metavar="ID", help="Its id; by default a new one.")
@click.option("--created-at", metavar="TIME", help="ISO 8601 or Unix seconds; by default now.")
@click.option("--status", metavar="NAME", help="Any but active keeps it out of all searches.")
@key_option
@json_option
@click.pass_context
def remember(
    context: click.Context,
    words: tuple[str, ...],
    *,
    project: str | None,
    source_path: str | None,
    source: str,
    layer: str,
    memory_type: str | None,
    importance: float,
    metadata: str | None,
    memory_id: str | None,
    created_at: str | None,
    status: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Remember WORDS in the configured store, which is made when missing.

    The memory belongs to --project, or else to every folder above --source-path.
    """
    with open_configured(context, key=key) as memory:
        uid = memory.remember(
            " ".join(words),
            project=project,
            # A shell means its own folder by a relative path.
            source_path=None if source_path is None else Path(source_path).absolute(),
            source_type=source if ":" in source else f"remember:{source}",
            layer=layer,
            memory_type=memory_type,
            importance=importance,
            metadata=None if metadata is None else _read_json(metadata),
            memory_id=memory_id,
            created_at=None if created_at is None else _read_time(created_at),
            status=status,
        )
    if as_json:
        print_document({"id": uid})
    else:
        line(f"Remembered: {uid}")


def _read_json(text: str) -> dict[str, object]:
    from engram.transfer.strict_json import members, parse  # noqa: PLC0415 - needed now only

    return members(parse(text, "--metadata"), "--metadata")


def _read_time(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
