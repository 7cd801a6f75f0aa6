"""The settings of the profile "memory": those of the server, and the options before them."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engram.mcp.options import IN_MEMORY
from engram.server.failures import Failure
from engram.server.settings import KEY_FILE, load

if TYPE_CHECKING:
    from engram.mcp.options import Options
    from engram.server.settings import ServerSettings

__all__ = ["settings_of"]


def settings_of(options: Options) -> ServerSettings:
    """Return the settings that a server is started with.

    Raises:
        ClickException: There is no project, or a setting is refused.
    """
    environ = dict(os.environ)
    if options.db != IN_MEMORY:
        environ["ENGRAM_DB_PATH"] = options.db
    if options.key is not None:
        environ.pop(KEY_FILE, None)
    try:
        settings = load(environ, Path.cwd(), listens=False)
    except Failure as failure:
        raise click.ClickException(failure.message) from None
    if options.key is not None:
        settings = dataclasses.replace(settings, key=options.key)
    if options.agent_id is not None:
        process = dataclasses.replace(settings.server, agent=options.agent_id)
        settings = dataclasses.replace(settings, server=process)
    return settings
