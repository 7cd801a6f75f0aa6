"""The settings of an invocation: which file they come from, and how a bad one is reported."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from engram.errors import InvalidSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engram.config import Loaded

__all__ = ["config_file", "home_file", "loaded"]

_NAME: Final = "config.yaml"


def loaded(context: click.Context, *, require_file: bool = False) -> Loaded:
    """Return the settings of this invocation, checked.

    Clients of the Hugging Face hub in this process find the token that they name.

    Args:
        context: The command's.
        require_file: As for `config_file`.

    Raises:
        click.UsageError: There is no such file, or the settings are invalid; the text names the
            setting and the rule.
    """
    from engram.config import load  # noqa: PLC0415 - most commands read no settings

    try:
        settings = load(config_file(context, require_file=require_file), os.environ)
    except InvalidSettings as error:
        raise click.UsageError(str(error), context) from None
    settings.share_token(os.environ)
    return settings


def config_file(context: click.Context, *, require_file: bool = False) -> Path | None:
    """Return the settings file of this invocation: that of --config, or the first one found.

    Args:
        context: The command's.
        require_file: Only an absolute path given by --config will do, for a process that outlives
            the folder it was started in.

    Returns:
        The file as it was named; None when none was named and none found.

    Raises:
        click.UsageError: There is no such file, or it may not be named so.
    """
    given = context.find_root().obj
    if given is None and not require_file:
        return next((path for path in _usual_places() if _is_file(path)), None)
    if given is None:
        message = "--config is needed before the command: the absolute path of a settings file"
        raise click.UsageError(message, context)
    if require_file and not given.startswith("/"):
        message = "--config must be an absolute path"
        raise click.UsageError(message, context)
    if not _is_file(Path(given)):
        message = "--config must name a file that exists"
        raise click.UsageError(message, context)
    return Path(given)


def home_file() -> Path:
    """Return where a user's own settings are."""
    return Path(os.path.expanduser("~"), ".config", "engram", _NAME)  # noqa: PTH111 - never raises


def _usual_places() -> Iterator[Path]:
    yield Path(_NAME)
    yield Path(__file__).parents[2] / _NAME
    yield home_file()


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises where it may not look
