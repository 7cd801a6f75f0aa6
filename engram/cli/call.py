"""`engram call`: ask a running server, for shells."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from engram.cli.options import json_option
from engram.cli.server import settings_option
from engram.errors import RequestFailed

__all__ = ["call"]


@click.command()
@click.argument("method")
@click.argument("params", default="{}")
@click.option("--socket", metavar="PATH", help="The server's socket; by default the project's.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=float,
    help="Give up after so long; by default 60, and for long work when the server does.",
)
@settings_option
@json_option
@click.pass_context
def call(
    context: click.Context,
    *,
    method: str,
    params: str,
    socket: str | None,
    timeout: float | None,
    config: str | None,
    as_json: bool,
) -> None:
    """Ask the running server for METHOD, with PARAMS as JSON, and print what it returns.

    PARAMS is an object; - reads it from stdin. What is printed is always JSON; with --json, errors
    are as well.
    """
    from engram.server.client import SocketClient  # noqa: PLC0415 - not for a mere --help
    from engram.server.methods import is_long  # noqa: PLC0415

    given = _object(params)
    file = context.find_root().obj if config is None else config
    place = Path(socket) if socket else _found(file)
    with SocketClient(place, timeout) as client:
        result = client.request(method, given, long=is_long(method, given, asks=True))
    click.echo(json.dumps(result, ensure_ascii=False).encode())


def _object(text: str) -> dict[str, Any]:
    """Return the parameters.

    Raises:
        click.UsageError: They are no JSON object that every reader reads alike.
    """
    from engram.server.frames import MAX_DEPTH  # noqa: PLC0415 - as above
    from engram.transfer.strict_json import parse_unambiguous  # noqa: PLC0415

    try:
        # Bytes of an argument that are no UTF-8 come as halves of surrogate pairs.
        said = sys.stdin.buffer.read() if text == "-" else text.encode()
        given = parse_unambiguous(said.decode(), MAX_DEPTH - 1)  # the request is around them
    except ValueError:
        given = None
    if not isinstance(given, dict):
        message = (
            "PARAMS must be a JSON object, without NaN, numbers too large for a float, members"
            f" named twice, or more than {MAX_DEPTH - 1} levels"
        )
        raise click.UsageError(message, click.get_current_context())
    return given


def _found(file: str | None) -> Path:
    """Return where the project's server listens.

    Raises:
        RequestFailed: There is no project, or its settings are refused.
    """
    from engram.server.failures import Failure  # noqa: PLC0415
    from engram.server.settings import load  # noqa: PLC0415

    try:
        return load(os.environ, Path.cwd(), None if file is None else Path(file)).socket_path
    except Failure as failure:
        raise RequestFailed(failure.code, failure.message) from None
