"""`engram export`: write what a store holds to a file of text."""

from __future__ import annotations

import click

from engram.cli.files import open_existing
from engram.cli.keys import key_option
from engram.cli.options import agent_option, json_option, path_argument
from engram.cli.output import line, print_counts, print_document
from engram.cli.progress import progress_bar


@click.command("export")
@path_argument
@click.argument("dest")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(("lines", "json")),
    default="lines",
    show_default=True,
    help="All there is, or the exchange format without vectors and logs.",
)
@agent_option
@key_option
@json_option
def export_file(
    path: str,
    dest: str,
    *,
    file_format: str,
    agent_id: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Write what the store PATH holds to the file DEST, which is replaced.

    The file is plain text, also when the store is encrypted.
    """
    with open_existing(path, agent_id=agent_id, key=key) as memory:
        if file_format == "json":
            counts = memory.export_json(dest)["counts"]
        else:
            with progress_bar("Exporting") as show:
                counts = memory.export_lines(dest, progress=show)
    if as_json:
        scope = {"path": path, "dest": dest, "format": file_format, "agent_id": agent_id}
        print_document({**scope, "counts": counts})
        return
    line(f"Exported {path} to {dest}")
    print_counts(counts)
