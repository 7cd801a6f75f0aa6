"""`engram-bench latency`: how long single calls take, embedding included."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

__all__ = ["latency"]

_BATCH = 64


@click.command()
@click.option(
    "--n",
    "count",
    type=click.IntRange(min=2),
    default=200,
    show_default=True,
    help="Episodes to write.",
)
@click.option("--k", type=click.IntRange(1, 4096), default=5, show_default=True, help="Answers.")
@json_option
@click.pass_context
def latency(context: click.Context, *, count: int, k: int, as_json: bool) -> dict[str, object]:
    """Time observe and recall in memory, with the model a new store gets."""
    from engram.embedding import resolve  # noqa: PLC0415 - heavy, see `engram.cli.files`

    embedder = resolve(None)
    if not as_json:
        banner(f"Latency: {count} episodes in memory, k={k}")
    with progress_bar("Measuring") as show:
        rows = _measured(embedder, count, k, show)
    document: dict[str, object] = {
        "n": count,
        "k": k,
        "rows": {name: msgspec.to_builtins(stats) for name, stats in rows.items()},
    }
    if not as_json:
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
    elif context.info_name == "latency":
        print_document(document)
    return document


def _measured(
    embedder: Embedder, count: int, k: int, show: Callable[[int, int], None]
) -> dict[str, LatencyStats]:
    from engram import Engram, ObserveInput  # noqa: PLC0415

    total = count + WARM_UPS + 2 * (count // 2 + WARM_UPS)
    done = 0

    def counted(texts: list[str]) -> Iterator[str]:
        nonlocal done
        for text in texts:
            yield text
            done += 1
            show(done, total)

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
