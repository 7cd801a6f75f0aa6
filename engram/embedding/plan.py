"""How texts become chunks and chunks become batches: pure arithmetic over lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MAX_ROWS", "MAX_TOKENS", "batches", "chunk_spans"]

MAX_ROWS = 8
"""Chunks per batch. On a CPU more rows buy nothing and padding costs."""
MAX_TOKENS = 1536
"""Padded tokens per batch: bounds memory, where 256 long rows took 21 GB."""

_MAX_OVERLAP = 32


def chunk_spans(length: int, window: int) -> list[tuple[int, int]]:
    """Split `length` tokens into overlapping chunks of at most `window` tokens.

    All chunks have the same size: a short last chunk would be a vector of hardly any context.

    Args:
        length: Tokens of the text, without special tokens; zero gives one empty chunk.
        window: Tokens a chunk may have, at least one.

    Returns:
        Half-open spans in order. Together they cover every token, and neighbours share at least
        `min(32, window // 8)` tokens, so a phrase at a seam is whole in one of them.
    """
    if length <= window:
        return [(0, length)]
    overlap = min(_MAX_OVERLAP, window // 8)
    chunks = -(-(length - overlap) // (window - overlap))
    size = -(-(length + (chunks - 1) * overlap) // chunks)
    starts = [i * (length - size) // (chunks - 1) for i in range(chunks)]
    return [(start, start + size) for start in starts]


def batches(
    lengths: Sequence[int], *, max_rows: int = MAX_ROWS, max_tokens: int = MAX_TOKENS
) -> list[list[int]]:
    """Group rows of similar length, so that little is padded and a batch has bounded memory.

    Args:
        lengths: Tokens of each row.
        max_rows: Rows a batch may have.
        max_tokens: Rows times the longest row that a batch may have; a single row always may.

    Returns:
        Indices into `lengths`, each exactly once: longest rows first, equal ones in their order.
        The longest come first because the memory of the largest batch is then taken once.
    """
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    planned: list[list[int]] = []
    for row in order:
        if planned:
            batch = planned[-1]
            padded = (len(batch) + 1) * lengths[batch[0]]
            if len(batch) < max_rows and padded <= max_tokens:
                batch.append(row)
                continue
        planned.append([row])
    return planned
