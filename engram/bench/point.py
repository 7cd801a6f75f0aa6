"""What is measured at one size of store."""

from __future__ import annotations

from dataclasses import dataclass, field

from engram.bench.stats import LatencyStats  # noqa: TC001 - msgspec decodes by it

__all__ = ["Opening", "ScalePoint"]


@dataclass
class Opening:
    """A fresh process that opened the store, recalled, and looked at its own memory.

    Attributes:
        open_ms: `Engram(path)`, modules imported before.
        first_recall_ms: The first recall, k as in the run.
        recall_ms: The median of the later recalls.
        rss_mb: Its memory after them, None where the system does not tell.
        anonymous_mb: The part of it that is its own.
        file_backed_mb: The part that is pages of files, which the system may take back.
    """

    open_ms: float
    first_recall_ms: float
    recall_ms: float
    rss_mb: float | None
    anonymous_mb: float | None
    file_backed_mb: float | None


@dataclass
class ScalePoint:
    """What is measured at one size.

    Attributes:
        n_episodes: Episodes in the store.
        file_mb: All files of the store after a checkpoint, in 10^6 bytes.
        rss_mb: Memory of a fresh process after 20 recalls, the model not loaded.
        build_s: Seconds to write the episodes in batches of 500, their vectors given.
        latencies: The calls, by column.
        real_share: Which share of the vectors are real embeddings, 0 to 1.
        given_texts: How many texts stood in the file of texts as they are.
        ingest_per_s: Episodes written a second.
        upkeep_s: Seconds of `maintain()` behind that; None where this engram has none.
        files: Bytes of each file of the store, by what its name adds to the store's.
        recall_at_k: Share of the exact answers that were found, by column; without an entry the
            column is exact by construction.
        warm: Opening with the files in the page cache.
        cold: Opening with the files dropped from it; None where the system cannot.
        with_model: Opening warm, questions embedded by the model; None for one without a name.
        graph_s: Seconds to bring in the entity graph through `import_lines`.
        graph_file_mb: All files with the graph in the store.
        delete_s: Seconds to erase half the episodes.
    """

    n_episodes: int
    file_mb: float
    rss_mb: float | None
    build_s: float
    latencies: dict[str, LatencyStats] = field(default_factory=dict)
    real_share: float = 1.0
    given_texts: int = 0
    ingest_per_s: float = 0.0
    upkeep_s: float | None = None
    files: dict[str, int] = field(default_factory=dict)
    recall_at_k: dict[str, float] = field(default_factory=dict)
    warm: Opening | None = None
    cold: Opening | None = None
    with_model: Opening | None = None
    graph_s: float | None = None
    graph_file_mb: float | None = None
    delete_s: float | None = None
