"""The arguments that commands share, and how their values are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

from engram.errors import InvalidArgument
from engram.times import from_iso

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

__all__ = [
    "Command",
    "ManyValues",
    "agent_option",
    "json_option",
    "model_option",
    "moment_option",
    "parse_moment",
    "path_argument",
]

_Function = TypeVar("_Function", bound="Callable[..., object]")


class ManyValues(click.Option):
    """An option that takes one or more values at a time, and may be given again.

    `--tags A B`, `--tags A --tags B` and `--tags=A` all work. The values end at the next option;
    one that begins with a dash is given as `--tags=-x`. Works on a `Command` only.
    """

    def __init__(self, declarations: list[str], **attributes: object) -> None:
        super().__init__(declarations, multiple=True, **attributes)  # type: ignore[arg-type]


class Command(click.Command):
    """A command whose `ManyValues` options may be followed by several values."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Parse the command line, each of several values as if its option stood before it."""
        many = {
            name
            for parameter in self.get_params(context)
            if isinstance(parameter, ManyValues)
            for name in parameter.opts
        }
        return super().parse_args(context, _repeat_options(args, many, context))


def _repeat_options(args: list[str], many: set[str], context: click.Context) -> list[str]:
    repeated: list[str] = []
    at = 0
    while at < len(args) and args[at] != "--":
        name = args[at]
        at += 1
        if name not in many:
            repeated.append(name)
            continue
        first = at
        while at < len(args) and (args[at] == "-" or not args[at].startswith("-")):
            repeated.append(f"{name}={args[at]}")
            at += 1
        if at == first:
            raise click.BadOptionUsage(name, f"Option {name!r} needs at least one value.", context)
    return repeated + args[at:]


def parse_moment(text: str, argument: str) -> datetime:
    """Return the UTC datetime that ISO 8601 text means; without an offset it is UTC.

    A date alone is its midnight.

    Raises:
        InvalidArgument: It is no such date, or in UTC it is outside the years 1 to 9999.
    """
    try:
        return from_iso(text)
    except ValueError:
        message = f"{argument} is no date: {text!r}"
        raise InvalidArgument(
            message, "give ISO 8601, such as 2026-03-01 or 2026-03-01T09:30+02:00"
        ) from None


def _read_moment(
    context: click.Context,
    parameter: click.Parameter,
    value: str | None,
) -> datetime | None:
    return None if value is None else parse_moment(value, parameter.opts[0])


def moment_option(name: str, text: str) -> Callable[[_Function], _Function]:
    """Return a decorator that adds an option whose value is an ISO 8601 date."""
    return click.option(name, metavar="DATE", callback=_read_moment, help=text)


path_argument = click.argument("path")
agent_option = click.option("--agent-id", metavar="ID", help="Whose memory: this agent's only.")
json_option = click.option(
    # Eager: warnings about other options are printed as it says.
    "--json",
    "as_json",
    is_flag=True,
    is_eager=True,
    help="Print one JSON object.",
)
model_option = click.option(
    "--model",
    metavar="NAME",
    help="Embedding model; by default the store's own.",
)
