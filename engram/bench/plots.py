"""The results of a run over sizes, drawn, and how a figure becomes a file."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from engram.bench.point import ScalePoint

__all__ = ["can_draw", "draw", "draw_figure"]

_DRAWN = (
    "cosine",
    "hybrid",
    "hybrid_15_terms",
    "as_of_now",
    "filtered_1_percent",
    "scoped_1000",
    "spreading",
    "observe",
    "recall_with_embedding",
)


def can_draw() -> bool:
    """Return whether matplotlib is installed; it is optional."""
    return find_spec("matplotlib") is not None


def draw(points: Sequence[ScalePoint], folder: Path) -> list[Path]:
    """Draw latency, memory and file size against the number of episodes.

    Returns:
        The PNG files, which are replaced.
    """
    sizes = [point.n_episodes for point in points]

    def latencies(axes: Any) -> None:
        for name in _DRAWN:
            values = [point.latencies[name].p50_ms for point in points if name in point.latencies]
            if len(values) == len(sizes):
                axes.plot(sizes, values, marker="o", label=name)

    def memory(axes: Any) -> None:
        for label, name in (("all", "rss_mb"), ("anonymous", "anonymous_mb")):
            values = [getattr(point.warm, name, None) for point in points]
            if None not in values:
                axes.plot(sizes, values, marker="o", label=label)

    def files(axes: Any) -> None:
        axes.plot(sizes, [point.file_mb for point in points], marker="o", label="all files")

    return [
        _draw_growth(folder / "latency.png", "median of a call, ms", latencies),
        _draw_growth(folder / "memory.png", "memory of a fresh process, MB", memory),
        _draw_growth(folder / "file-size.png", "files, MB", files),
    ]


def _draw_growth(file: Path, what: str, plot: Callable[[Any], None]) -> Path:
    return draw_figure(file, plot, xscale="log", yscale="log", xlabel="episodes", ylabel=what)


def draw_figure(file: Path, plot: Callable[[Any], None], **settings: object) -> Path:
    """Draw one pair of axes with a legend into a PNG file, which is replaced.

    Args:
        file: Where it goes.
        plot: Draws on the axes.
        settings: Of the axes, as matplotlib's `Axes.set` takes them.

    Returns:
        The file.
    """
    # The drawing back end needs no display, and no global state is touched.
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    plot(axes)
    axes.set(**settings)
    axes.grid(visible=True, which="both", alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        figure.legend(fontsize="small", loc="outside right upper")
    figure.savefig(file, dpi=120)
    return file
