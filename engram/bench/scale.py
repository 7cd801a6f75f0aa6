"""`engram-bench scale`: what recall, memory and disk cost as a store grows."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
import numpy as np

from engram.bench.plots import can_draw, draw
from engram.bench.report import print_point
from engram.cli.options import json_option
from engram.cli.output import line, note, print_document
from engram.cli.progress import progress_bar
from engram.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.bench.measuring import Plan
    from engram.bench.results import Results

__all__ = ["scale"]

_SMALLEST = 10
_SEED = 0


class _Sizes(click.ParamType):  # type: ignore[type-arg] # generic in newer releases only
    """Numbers of episodes, separated by commas."""

    name = "sizes"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int]:
        try:
            sizes = sorted({int(part) for part in str(value).split(",")})
        except ValueError:
            sizes = [0]
        if sizes[0] < _SMALLEST:
            self.fail(f"{value!r} are not numbers of at least {_SMALLEST}", param, ctx)
        return sizes


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


_OPTIONS = (
    click.option(
        "--sizes",
        type=_Sizes(),
        default="1000,10000,100000",
        show_default=True,
        help="Numbers of episodes, separated by commas.",
    ),
    click.option("--k", type=click.IntRange(1, 4096), default=10, show_default=True),
    click.option(
        "--queries",
        type=click.IntRange(min=1),
        default=50,
        show_default=True,
        help="Questions of each kind.",
    ),
    click.option(
        "--texts",
        type=_FILE,
        help="A JSON list of texts, or one a line; without it sentences are generated.",
    ),
    click.option("--vectors", type=_FILE, help="The vectors of --texts: .npy, or rows of float16."),
    click.option(
        "--real",
        type=click.IntRange(min=1),
        default=100_000,
        show_default=True,
        help="Without --vectors: embed so many texts at most, and make up the other vectors.",
    ),
    click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        help="Keep results and plots in this folder, and go on with what is there.",
    ),
    click.option(
        "--accuracy",
        type=click.Choice(("exact", "high", "fast")),
        help="How exact recall is to be.",
    ),
    click.option(
        "--memory-budget",
        type=click.IntRange(min=0),
        metavar="BYTES",
        help="How much memory the indexes may take.",
    ),
    click.option("--deleted", is_flag=True, help="Measure with half of the episodes erased, too."),
    click.option("--concurrent", is_flag=True, help="Measure while a process writes, too."),
    json_option,
)


@dataclass(frozen=True)
class _Request:
    """The options of the command."""

    sizes: list[int]
    k: int
    queries: int
    texts: Path | None
    vectors: Path | None
    real: int
    out: Path | None
    accuracy: str | None
    memory_budget: int | None
    deleted: bool
    concurrent: bool
    as_json: bool


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@_with_options
def scale(**options: Any) -> None:
    """Build a store of each size and measure it.

    Vectors are computed beforehand and cached, so that the figures are the store's; one column
    times recall with the model. Where vectors are made up, the share of real ones is told.
    """
    request = _Request(**options)
    if request.vectors is not None and request.texts is None:
        message = "--vectors are those of --texts"
        raise InvalidArgument(message, "give --texts too")
    with tempfile.TemporaryDirectory(prefix="engram-bench-") as folder:
        # Beside the results the stores lie on a disk, which a folder for temporary files may not.
        results = _run(request, request.out or Path(folder))
    if request.as_json:
        print_document(msgspec.to_builtins(results))


def _run(request: _Request, out: Path) -> Results:
    from engram.bench import results as kept  # noqa: PLC0415 - heavy, see `engram.cli.files`
    from engram.bench.measuring import measure  # noqa: PLC0415

    out.mkdir(parents=True, exist_ok=True)
    file = out / "scale.json"
    plan, settings = _planned(request, out)
    results = kept.load(file, settings)
    for size in request.sizes:
        if size not in results.sizes():
            with progress_bar(f"Writing and measuring {size:,} episodes") as plan.progress:
                results.add(measure(plan, size))
            kept.save(file, results)
        if not request.as_json:
            print_point(next(p for p in results.points if p.n_episodes == size), request.k)
    if request.out is not None:
        _draw(results, out, as_json=request.as_json)
    return results


def _draw(results: Results, out: Path, *, as_json: bool) -> None:
    if can_draw():
        for file in draw(results.points, out):
            if not as_json:
                line(f"Drew {file}")
    elif not as_json:
        note(
            "there are no plots: matplotlib is missing (run: pip install 'engram-embedded[bench]')"
        )


def _planned(request: _Request, out: Path) -> tuple[Plan, dict[str, Any]]:
    """Return what to measure, and what makes it this run and no other."""
    from engram.bench import corpus  # noqa: PLC0415
    from engram.bench.measuring import Plan  # noqa: PLC0415
    from engram.embedding import embed_query, resolve  # noqa: PLC0415

    options, recall_options = _new_options(request)
    embedder = resolve(None)
    given = None if request.texts is None else corpus.read_texts(request.texts)
    texts = corpus.take_texts(given, max(request.sizes), _SEED)
    with progress_bar("Embedding") as show:
        real = corpus.real_vectors(texts, request.vectors, embedder, request.real, show)
    questions = corpus.ask(texts.held_out, request.queries)
    asked = np.stack([embed_query(embedder, question) for question in questions.every])
    plan = Plan(
        texts=texts,
        vectors=corpus.Vectors(real, _SEED),
        questions=questions,
        asked=asked,
        embedder=embedder,
        k=request.k,
        seed=_SEED,
        options=options,
        recall_options=recall_options,
        deleted=request.deleted,
        concurrent=request.concurrent,
        folder=out,
        progress=lambda _done, _total: None,
    )
    return plan, {
        "model": embedder.fingerprint,
        "given_texts": 0 if given is None else len(given),
        "real_vectors": request.real if request.vectors is None else len(real),
        **_settings(request),
    }


def _settings(request: _Request) -> dict[str, Any]:
    """Return the options that change what is measured, files by their names."""
    named = ("k", "queries", "accuracy", "memory_budget", "deleted", "concurrent")
    return {
        "seed": _SEED,
        "texts": None if request.texts is None else request.texts.name,
        "vectors": None if request.vectors is None else request.vectors.name,
        **{name: getattr(request, name) for name in named},
    }


def _new_options(request: _Request) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments for `Engram` and for `recall`."""
    options: dict[str, Any] = {}
    if request.memory_budget is not None:
        options["memory_budget"] = request.memory_budget
    recall_options: dict[str, Any] = {}
    if request.accuracy is not None:
        recall_options["accuracy"] = request.accuracy
    return options, recall_options
