"""The `engram-bench` command and its subcommands."""

from __future__ import annotations

import click

from engram._version import __version__
from engram.bench.cost import cost, count_tokens
from engram.bench.judged.commands import ir, locomo, longmemeval
from engram.bench.judged.compare import compare, plot
from engram.bench.latency import latency, time_calls
from engram.bench.scale import scale
from engram.cli import Commands
from engram.cli.options import json_option
from engram.cli.output import print_document

__all__ = ["engram_bench"]


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def engram_bench(context: click.Context) -> None:
    """Measure what engram costs on this machine, and what it finds.

    Every command takes --json: one JSON object on stdout, errors as one JSON line on stderr.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(1)


@click.command("all")
@json_option
def everything(*, as_json: bool) -> None:
    """Run latency and cost, as they run by themselves."""
    documents: dict[str, object] = {
        "latency": time_calls(show=not as_json),
        "cost": count_tokens(show=not as_json),
    }
    if as_json:
        print_document(documents)


for command in (latency, scale, cost, longmemeval, locomo, ir, compare, plot, everything):
    engram_bench.add_command(command)
