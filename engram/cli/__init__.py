"""The `engram` command: one module per command, and here what they share the way out through.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 a handled failure, 2 a wrong
command line, 130 interrupted. Nothing heavy is imported until a command needs it.
"""

from __future__ import annotations

import io
import sys

import click

from engram._version import __version__
from engram.cli.assert_fact import assert_fact
from engram.cli.backup import backup
from engram.cli.compact import compact
from engram.cli.compress import compress
from engram.cli.contradictions import contradictions
from engram.cli.decay import decay
from engram.cli.demo import demo
from engram.cli.events import events
from engram.cli.export_file import export_file
from engram.cli.facts import facts
from engram.cli.failures import Interrupted
from engram.cli.forget import forget
from engram.cli.import_file import import_file, import_store
from engram.cli.ingest import ingest
from engram.cli.inspect import inspect
from engram.cli.list_agents import list_agents
from engram.cli.maintain import maintain
from engram.cli.models import models
from engram.cli.observe import observe
from engram.cli.output import report_failure, report_interrupt, report_usage
from engram.cli.prune import prune
from engram.cli.recall import recall
from engram.cli.reembed import reembed
from engram.cli.reflect import reflect
from engram.cli.rekey import rekey
from engram.cli.timeline import timeline
from engram.cli.verify import verify
from engram.cli.why import why
from engram.errors import EngramError

__all__ = ["Commands", "main", "run"]

_INTERRUPTED = 130


class Commands(click.Group):
    """The group of all commands; a Ctrl-C leaves it without click's empty line on stderr."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command, or several."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def engram(context: click.Context) -> None:
    """Embedded memory for AI agents, in one SQLite file.

    Every command takes --json: one JSON object on stdout, errors as one JSON line on stderr.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(1)


for command in (
    *(observe, recall, inspect, forget, list_agents, ingest),
    *(assert_fact, facts, timeline, why, contradictions),
    *(reflect, compress, decay, prune),
    *(export_file, import_file, import_store),
    *(backup, rekey, compact, maintain, reembed, verify),
    *(events, models, demo),
):
    engram.add_command(command)


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
