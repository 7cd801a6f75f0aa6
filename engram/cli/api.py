"""`engram api`: answer one JSON object per line, for a program that started this one."""

from __future__ import annotations

import click

from engram.channel import claim
from engram.cli.keys import key_option
from engram.cli.settings import loaded

__all__ = ["api"]


@click.command()
@key_option
@click.pass_context
def api(context: click.Context, *, key: str | None) -> None:
    """Answer requests, one JSON object per line, until stdin ends.

    Needs --config before the command, with an absolute path. Makes no store; one that is made
    meanwhile is found.
    """
    channel = claim()
    # After that, for a library may print when it is imported.
    from engram.api.process import serve  # noqa: PLC0415

    serve(loaded(context, require_file=True), channel, key)
