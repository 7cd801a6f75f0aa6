"""`engram stats`: the figures of a store, for people, programs and collectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engram._version import __version__
from engram.cli.files import open_existing
from engram.cli.inspect import counts_document
from engram.cli.keys import key_option
from engram.cli.options import agent_option, json_option, path_argument
from engram.cli.output import line, minute, print_counts, print_document, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engram.models import Counts


@click.command()
@path_argument
@agent_option
@key_option
@json_option
@click.option("--prometheus", is_flag=True, help="Print Prometheus's text format.")
def stats(
    path: str, *, agent_id: str | None, key: str | None, as_json: bool, prometheus: bool
) -> None:
    """Print figures of the store PATH, with --prometheus for a collector.

    With --agent-id, episodes and reflections are the agent's; facts and entities are the file's.
    """
    if as_json and prometheus:
        message = "--json and --prometheus exclude each other"
        raise click.UsageError(message)
    with open_existing(path, agent_id=agent_id, key=key) as memory:
        counts = memory.counts()
    if as_json:
        document = counts_document(path, counts.store_bytes, agent_id, counts)
        print_document({**document, "index_bytes": counts.index_bytes})
    elif prometheus:
        click.echo("".join(_exposition(counts, agent_id)).encode(), nl=False)
    else:
        _print(path, counts)


def _print(path: str, counts: Counts) -> None:
    line(f"Figures of {path}  ({size_text(counts.store_bytes)})")
    print_counts(
        {
            "episodes": counts.episodes,
            "episodes with vectors": counts.embedded,
            "facts": counts.facts,
            "active facts": counts.active_facts,
            "entities": counts.entities,
            "reflections": counts.reflections,
        }
    )
    last = counts.last_reflection
    line(f"  last reflection: {'never' if last is None else minute(last)}")
    line(f"  index: {size_text(counts.index_bytes)}")


def _exposition(counts: Counts, agent_id: str | None) -> Iterator[str]:
    """Yield the lines of version 0.0.4 of the format."""
    own = "" if agent_id is None else _label("agent_id", agent_id)
    last = counts.last_reflection
    gauges = [
        ("episodes", "Episodes.", counts.episodes, own),
        ("episodes_embedded", "Episodes that have vectors.", counts.embedded, own),
        ("reflections", "Runs of reflection.", counts.reflections, own),
        (
            "last_reflection_timestamp_seconds",
            "When the last run of reflection ended.",
            None if last is None else last.timestamp(),
            own,
        ),
        ("facts", "Facts, superseded ones included.", counts.facts, ""),
        (
            "facts_active",
            "Facts that are neither closed nor superseded.",
            counts.active_facts,
            "",
        ),
        ("entities", "Named entities.", counts.entities, ""),
        ("store_bytes", "Size of the database.", counts.store_bytes, ""),
        ("index_bytes", "Size of the index's files beside it.", counts.index_bytes, ""),
        ("build_info", "The version that measured; always 1.", 1, _label("version", __version__)),
    ]
    for name, text, value, labels in gauges:
        if value is not None:
            head = f"# HELP engram_{name} {text}\n# TYPE engram_{name} gauge\n"
            yield f"{head}engram_{name}{labels} {value}\n"


def _label(name: str, value: str) -> str:
    escaped = value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return f'{{{name}="{escaped}"}}'
