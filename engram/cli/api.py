"""`engram api`: answer one JSON object per line, for a program that started this one."""

from __future__ import annotations

import os

import click

from engram.api.channel import claim
from engram.cli.settings import config_file

__all__ = ["api"]


@click.command()
@click.pass_context
def api(context: click.Context) -> None:
    """Answer requests on stdin, one JSON object per line, until it ends.

    Needs --config with an absolute path before the command. The store must be there when an
    operation needs it; nothing is made.
    """
    channel = claim()
    from engram.api.process import serve  # noqa: PLC0415
    from engram.config import load  # noqa: PLC0415
    serve(load(config_file(context, require_file=True), os.environ), channel)
