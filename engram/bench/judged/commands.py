"""`engram-bench longmemeval`, `locomo` and `ir`: whether recall finds what was judged relevant."""

from __future__ import annotations

import tempfile
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engram.cli.failures import BadFileError, MissingFileError
from engram.cli.options import json_option
from engram.cli.output import print_document

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.bench.judged.data import DataSet
    from engram.bench.judged.reading import Content
    from engram.bench.judged.running import Plan

__all__ = ["ir", "locomo", "longmemeval"]

_MODES = ("hybrid", "cosine", "text", "spreading")
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class _Modes(click.ParamType):  # type: ignore[type-arg] # generic in newer releases only
    """Ways to ask, separated by commas."""

    name = "modes"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[str]:
        modes = str(value).split(",")
        if not set(modes) <= set(_MODES):
            self.fail(f"{value!r} are not of {', '.join(_MODES)}", param, ctx)
        return modes


class _Shares(click.ParamType):  # type: ignore[type-arg] # generic in newer releases only
    """Numbers from 0 to 1, separated by commas."""

    name = "shares"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[float]:
        try:
            shares = [float(part) for part in str(value).split(",")]
        except ValueError:
            shares = [-1.0]
        if not all(0.0 <= share <= 1.0 for share in shares):
            self.fail(f"{value!r} are not numbers from 0 to 1", param, ctx)
        return shares


_DATA = (click.option("--data", type=_FILE, help="The data set, packed by gzip or not."),)
_GRANULARITY = (
    click.option(
        "--granularity",
        type=click.Choice(("turn", "session")),
        default="turn",
        show_default=True,
        help="What one episode is.",
    ),
)
_USER_ONLY = (click.option("--user-only", is_flag=True, help="Leave out what the assistant said."),)
_WITHOUT_SPEAKERS = (
    click.option("--without-speakers", is_flag=True, help="Do not say who said what."),
)
_ASKING = (
    click.option(
        "--modes",
        type=_Modes(),
        default="hybrid",
        show_default=True,
        help="Of hybrid, cosine, text and spreading, separated by commas.",
    ),
    click.option(
        "--weights",
        type=_Shares(),
        help="Hybrid with these shares of meaning as well, such as 0.3,0.5.",
    ),
    click.option(
        "--vary",
        metavar="NAME=VALUE",
        multiple=True,
        help="Hybrid with this attribute of `engram.Blending` as well; may be given often.",
    ),
    click.option(
        "--candidates",
        type=click.IntRange(min=1),
        help="Candidates each side puts forward; by default as many as a recall's.",
    ),
    click.option("--model", metavar="NAME", help="Embedding model; by default a new store's."),
    click.option(
        "--sample", type=click.IntRange(min=1), help="Ask about so many, of every kind its share."
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Which the sample is."),
    click.option("--limit", type=click.IntRange(min=1), help="Ask only the first so many."),
    click.option(
        "--records",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Keep what each question got in this file.",
    ),
    click.option("--resume", is_flag=True, help="Go on with the file of --records."),
    click.option("--overwrite", is_flag=True, help="Replace the file of --records."),
    click.option(
        "--from-records", type=_FILE, help="Ask nothing: print the figures of this file of records."
    ),
    click.option(
        "--cache",
        type=click.Path(file_okay=False, path_type=Path),
        help="Keep vectors in this folder; by default in the user's cache.",
    ),
    json_option,
)


def _with(*groups: tuple[Any, ...]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed([each for group in groups for each in group]):
            command = option(command)
        return command

    return with_options


@click.command()
@_with(_DATA, _GRANULARITY, _USER_ONLY, _WITHOUT_SPEAKERS, _ASKING)
def longmemeval(**options: Any) -> None:
    """Ask the questions of a LongMemEval file, each of its own haystack.

    The file is the official one, or one of sessions and questions that are all asked of the same
    haystack.
    """
    from engram.bench.judged.conversations import longmemeval as read  # noqa: PLC0415

    _measure("longmemeval", read, options)


@click.command()
@_with(_DATA, _GRANULARITY, _WITHOUT_SPEAKERS, _ASKING)
def locomo(**options: Any) -> None:
    """Ask the questions of a LoCoMo file, each of its own conversation."""
    from engram.bench.judged.conversations import locomo as read  # noqa: PLC0415

    _measure("locomo", read, options)


@click.command()
@_with(_DATA, _ASKING)
def ir(**options: Any) -> None:
    """Ask the queries of a collection of documents with judgements."""
    from engram.bench.judged.documents import collection as read  # noqa: PLC0415

    _measure("ir", read, options)


def _measure(name: str, read: Callable[[Content], DataSet], options: dict[str, Any]) -> None:
    file, records = options["from_records"], options["records"]
    _check(options)
    if file is not None:
        _print(name, file, as_json=options["as_json"])
        return
    plan = _plan(name, read, options)
    if records is not None:
        _run(plan, records, options)
        return
    with tempfile.TemporaryDirectory(prefix="engram-bench-") as folder:
        _run(plan, Path(folder) / "records.jsonl", options)


def _check(options: dict[str, Any]) -> None:
    if (options["data"] is None) == (options["from_records"] is None):
        message = "give one of --data and --from-records"
        raise click.UsageError(message)
    if (options["resume"] or options["overwrite"]) and options["records"] is None:
        message = "--resume and --overwrite need --records"
        raise click.UsageError(message)
    if options["resume"] and options["overwrite"]:
        message = "give one of --resume and --overwrite"
        raise click.UsageError(message)
    _check_files(options["data"], options["records"])


def _check_files(data: Path | None, records: Path | None) -> None:
    """Refuse to write over the data or, where links lead, one file as two."""
    from engram.bench.judged.records import times_file  # noqa: PLC0415 - see `engram.cli.files`

    if data is None or records is None:
        return
    there = [file for file in (data, records, times_file(records)) if file.exists()]
    if any(one.samefile(other) for one, other in combinations(there, 2)):
        message = "--data, --records and the file of times beside it must be three files"
        raise click.UsageError(message)


def _plan(name: str, read: Callable[[Content], DataSet], options: dict[str, Any]) -> Plan:
    from engram import embedding  # noqa: PLC0415 - heavy, see `engram.cli.files`
    from engram.bench.judged import reading, running  # noqa: PLC0415

    ways = running.variants(
        options["modes"], options["weights"] or [], options["vary"], options["candidates"]
    )
    content = reading.read(options["data"])
    return running.Plan(
        name,
        content.sha256,
        read(content),
        running.cached(embedding.resolve(options["model"]), options["cache"]),
        ways,
        granularity=options.get("granularity", "turn"),
        user_only=options.get("user_only", False),
        without_speakers=options.get("without_speakers", False),
        sample=options["sample"],
        seed=options["seed"],
        limit=options["limit"],
    )


def _run(plan: Plan, records: Path, options: dict[str, Any]) -> None:
    from engram.bench.judged.running import run  # noqa: PLC0415

    if not records.parent.is_dir():
        message = f"there is no folder {records.parent}"
        raise MissingFileError(message)
    run(plan, records, resume=options["resume"], overwrite=options["overwrite"])
    _print(plan.name, records, as_json=options["as_json"])


def _print(name: str, records: Path, *, as_json: bool) -> None:
    from engram.bench.judged.printing import print_summary  # noqa: PLC0415
    from engram.bench.judged.summary import json_of  # noqa: PLC0415

    document = json_of(records)
    if document["set"] != name:
        message = f"{records} has records of another set than {name}"
        raise BadFileError(message)
    if as_json:
        print_document(document)
    else:
        print_summary(document)
