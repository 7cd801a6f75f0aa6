"""`engram server`: serve a project's store on a Unix socket."""

from __future__ import annotations

import os
from pathlib import Path

import click

from engram.cli.output import note

__all__ = ["server", "settings_option"]

settings_option = click.option(
    "--config",
    metavar="FILE",
    help="Settings to read in place of the user's and the project's; also before the command.",
)


@click.command()
@settings_option
@click.pass_context
def server(context: click.Context, *, config: str | None) -> None:
    """Serve the project's store on a Unix socket, until SIGTERM or Ctrl-C.

    The project is ENGRAM_PROJECT_DIR, or the first folder from here upwards that has a folder
    .engram. The socket appears when the server is ready.
    """
    from engram.reporting import take_over  # noqa: PLC0415
    from engram.server.failures import Failure  # noqa: PLC0415 - heavy, with what is below
    from engram.server.process import serve  # noqa: PLC0415
    from engram.server.settings import load  # noqa: PLC0415

    take_over()
    file = context.find_root().obj if config is None else config
    try:
        code = serve(load(os.environ, Path.cwd(), None if file is None else Path(file)))
    except Failure as failure:
        note(f"engram: {failure}")
        code = 1
    context.exit(code)
