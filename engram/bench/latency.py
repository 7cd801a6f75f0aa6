"""`engram-bench latency`: how long single calls take, embedding included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from engram.bench.report import banner, print_table
from engram.bench.sentences import simple_sentence
from engram.bench.stats import WARM_UPS, LatencyStats, call_times
from engram.cli.options import json_option
from engram.cli.output import print_document
from engram.cli.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engram.embedding import Embedder

__all__ = ["latency", "time_calls"]

EPISODES = 200
ANSWERS = 5

_BATCH = 64


@click.command()
@click.option(
    "--n",
    "count",
    type=click.IntRange(min=2),
    default=EPISODES,
    show_default=True,
    help="Episodes to write.",
)
@click.option(
    "--k", type=click.IntRange(1, 4096), default=ANSWERS, show_default=True, help="Answers."
)
@json_option
def latency(*, count: int, k: int, as_json: bool) -> None:
    """Time observe and recall in memory, with the model a new store gets."""
    document = time_calls(count, k, show=not as_json)
    if as_json:
        print_document(document)


def time_calls(count: int = EPISODES, k: int = ANSWERS, *, show: bool) -> dict[str, Any]:
    """Return what the command measures as a JSON document.

    Args:
        count: Episodes to write.
        k: Answers.
        show: Print a banner and a table.
    """
    from engram.embedding import resolve  # noqa: PLC0415 - heavy, see `engram.cli.files`

    embedder = resolve(None)
    if show:
        banner(f"Latency: {count} episodes in memory, k={k}")
    with progress_bar("Measuring") as progress:
        rows = _measured(embedder, count, k, progress)
    document: dict[str, Any] = {
        "n": count,
        "k": k,
        "rows": {name: msgspec.to_builtins(stats) for name, stats in rows.items()},
    }
    if show:
        print_table(
            ("", "p50 ms", "p99 ms", "mean ms", "per second"),
            [
                (
                    name,
                    f"{stats.p50_ms:.2f}",
                    f"{stats.p99_ms:.2f}",
                    f"{stats.mean_ms:.2f}",
                    f"{stats.throughput_per_sec:,.0f}",
                )
                for name, stats in rows.items()
            ],
        )
    return document


def _measured(
    embedder: Embedder, count: int, k: int, progress: Callable[[int, int], None]
) -> dict[str, LatencyStats]:
    from engram import Engram, ObserveInput  # noqa: PLC0415

    total = count + WARM_UPS + 2 * (count // 2 + WARM_UPS)
    done = 0

    def counted(texts: list[str]) -> Iterator[str]:
        nonlocal done
        for text in texts:
            yield text
            done += 1
            progress(done, total)

    texts = [simple_sentence(at) for at in range(count + WARM_UPS)]
    with Engram(embedder=embedder) as memory:
        rows = {"observe": call_times(memory.observe, counted(texts))}
    with Engram(embedder=embedder) as memory:
        for at in range(0, count, _BATCH):
            memory.observe_many(
                [ObserveInput(text) for text in texts[at : min(at + _BATCH, count)]]
            )
        # Each mode has its own questions, so that every one is embedded.
        for mode, first in (("cosine", 0), ("spreading", count)):
            asked = [simple_sentence(first + at) for at in range(count // 2 + WARM_UPS)]
            rows[f"recall_{mode}"] = call_times(
                lambda text, mode=mode: memory.recall(text, k, mode=mode),  # type: ignore[misc] # inferred
                counted(asked),
            )
    return rows
