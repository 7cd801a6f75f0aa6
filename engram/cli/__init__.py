"""The `engram` command: one module per command, and here what they share the way out through.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 a handled failure, 2 a wrong
command line or invalid settings, 130 interrupted. A command is imported when it runs, see
`engram.cli.commands`, and what is heavy when the command needs it.
"""

from __future__ import annotations

import io
import os
import sys

import click

from engram._version import __version__
from engram.cli.commands import COMMANDS, Commands, Elsewhere
from engram.cli.output import report_failure, report_interrupt, report_usage
from engram.errors import EngramError

__all__ = ["Commands", "main", "run"]

_INTERRUPTED = 130
_IN_UTF_8 = ["-X", "utf8"]


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--config", metavar="FILE", help="Settings, for the commands that read them.")
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def engram(context: click.Context, config: str | None) -> None:
    """Embedded memory for AI agents, in one SQLite file.

    Every command but api, server and train takes --json: one JSON object on stdout, errors as one
    JSON line on stderr.
    """
    # Read by `engram.cli.settings`.
    context.obj = config
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(1)


for name, (place, summary) in COMMANDS.items():
    engram.add_command(Elsewhere(name, place, summary))


def main(argv: list[str] | None = None) -> None:
    """Run one `engram` command and exit with its code.

    Args:
        argv: The arguments without the program's name; None takes those of the process.
    """
    run(engram, "engram", argv)


def run(commands: click.Group, name: str, argv: list[str] | None) -> None:
    """Run one command of a group, report what fails, and exit with its code.

    Args:
        commands: The group.
        name: The program's name.
        argv: The arguments without it; None takes those of the process.
    """
    if argv is None:
        _read_in_utf_8()
    arguments = sys.argv[1:] if argv is None else argv
    # Stored text is any Unicode; a terminal of a smaller charset shows the rest as escapes.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    as_json = "--json" in arguments
    try:
        code = commands.main(arguments, prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        report_usage(error, as_json=as_json)
        sys.exit(error.exit_code)
    except click.Abort as interrupt:
        report_interrupt(interrupt, as_json=as_json)
        sys.exit(_INTERRUPTED)
    except (EngramError, OSError) as error:
        report_failure(error, as_json=as_json)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _read_in_utf_8() -> None:
    """Start this process anew in Python's UTF-8 mode if it misread its arguments.

    Under a locale of a smaller charset with that mode switched off, text in UTF-8 arrives as lone
    surrogates. Decoding it would not do: no file could be opened by such a name.
    """
    if sys.orig_argv[1:3] != _IN_UTF_8 and any(map(_is_misread, sys.argv[1:])):
        command = [sys.executable, *_IN_UTF_8, *sys.orig_argv[1:]]
        os.execv(sys.executable, command)  # noqa: S606 - itself


def _is_misread(argument: str) -> bool:
    """Return whether an argument is UTF-8 that Python took for bytes without meaning."""
    if not any("\udc80" <= character <= "\udcff" for character in argument):
        return False
    try:
        os.fsencode(argument).decode()
    except UnicodeDecodeError:
        return False
    return True
