"""What `engram-bench` prints for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram.cli.output import line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.bench.point import Opening, ScalePoint

__all__ = ["banner", "print_point", "print_table"]

_RULE = "=" * 60


def banner(title: str) -> None:
    """Print the title of a section between two lines."""
    line(_RULE)
    line(title)
    line(_RULE)


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their heads, the first column to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = [f"{row[0]:<{widths[0]}}"]
        cells += [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        line("  ".join(cells).rstrip())


def print_point(point: ScalePoint, k: int) -> None:
    """Print all that was measured at a size."""
    banner(f"{point.n_episodes:,} episodes")
    line(f"Real vectors: {point.real_share:.0%}, texts as given: {point.given_texts:,}")
    line(f"Ingest: {point.build_s:.2f} s, {point.ingest_per_s:,.0f} episodes/s, vectors given")
    if point.upkeep_s is not None:
        line(f"Index upkeep: {point.upkeep_s:.2f} s")
    files = ", ".join(f"{name or 'store'} {size / 1e6:.1f}" for name, size in point.files.items())
    line(f"Files: {point.file_mb:.1f} MB ({files})")
    _print_opening("Warm", point.warm)
    _print_opening("Cold", point.cold)
    _print_opening("Warm, with the model", point.with_model)
    if point.graph_s is not None and point.graph_file_mb is not None:
        line(f"Graph: imported in {point.graph_s:.2f} s, files {point.graph_file_mb:.1f} MB")
    if point.delete_s is not None:
        line(f"Erasing half: {point.delete_s:.2f} s")
    line()
    print_table(
        ("", "p50 ms", "p95 ms", "p99 ms", f"recall@{k}"),
        [
            (
                name,
                f"{stats.p50_ms:.3f}",
                f"{stats.p95_ms:.3f}",
                f"{stats.p99_ms:.3f}",
                f"{point.recall_at_k[name]:.3f}" if name in point.recall_at_k else "",
            )
            for name, stats in point.latencies.items()
        ],
    )
    line()


def _print_opening(how: str, opening: Opening | None) -> None:
    if opening is None:
        return
    line(
        f"{how}: open {opening.open_ms:.1f} ms, first recall {opening.first_recall_ms:.1f} ms,"
        f" later ones {opening.recall_ms:.2f} ms; {_memory(opening)}"
    )


def _memory(opening: Opening) -> str:
    if opening.rss_mb is None:
        return "RSS unknown (install the extra 'bench')"
    if opening.anonymous_mb is None or opening.file_backed_mb is None:
        return f"RSS {opening.rss_mb:.0f} MB"
    parts = f"{opening.anonymous_mb:.0f} anonymous, {opening.file_backed_mb:.0f} of files"
    return f"RSS {opening.rss_mb:.0f} MB ({parts})"
