"""`engram-bench compare` and `engram-bench plot`: what can be done with records that are there."""

from __future__ import annotations

from pathlib import Path

import click

from engram.cli.options import json_option
from engram.cli.output import line, print_document
from engram.errors import InvalidArgument, MissingExtra

__all__ = ["compare", "plot"]

_RECORDS = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("first", type=_RECORDS)
@click.argument("second", type=_RECORDS)
@click.option("--label", help="Which answers of the first; by default hybrid, or what comes first.")
@click.option("--second-label", help="Which answers of the second; by default the same.")
@json_option
def compare(
    *, first: Path, second: Path, label: str | None, second_label: str | None, as_json: bool
) -> None:
    """Say by how much the SECOND records are better than the FIRST, question by question.

    Differences come with paired 95 % intervals and with the questions won and lost. The same file
    may be given twice, to compare two labels of one run.
    """
    # NumPy and msgspec are heavy, see `engram.cli.files`.
    from engram.bench.judged.comparison import comparison  # noqa: PLC0415
    from engram.bench.judged.printing import print_comparison  # noqa: PLC0415
    from engram.bench.judged.records import read  # noqa: PLC0415

    one, other = read(first), read(second)
    label = label or one.labels[0]
    document = comparison(one, other, label, second_label or label)
    if as_json:
        print_document(document)
    else:
        print_comparison(document)


@click.command()
@click.argument("records", type=_RECORDS)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="The folder for the plots; by default the current one.",
)
@json_option
def plot(*, records: Path, out: Path, as_json: bool) -> None:
    """Draw recall against the number of answers, and by type of question, as PNG files."""
    from engram.bench.judged.drawing import draw  # noqa: PLC0415 - as above
    from engram.bench.judged.summary import json_of  # noqa: PLC0415
    from engram.bench.plots import can_draw  # noqa: PLC0415

    if not can_draw():
        message = "plots need matplotlib"
        raise MissingExtra(message, "run: pip install 'engram-embedded[bench]'")
    document = json_of(records)
    if "turn_mrr" not in document["groups"]["all"]:
        message = "records of documents have no sessions and turns to draw"
        raise InvalidArgument(message)
    out.mkdir(parents=True, exist_ok=True)
    files = [str(file) for file in draw(document, out)]
    if as_json:
        print_document({"files": files})
        return
    for file in files:
        line(f"Drew {file}")
