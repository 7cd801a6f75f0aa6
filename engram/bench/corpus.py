"""What the stores of a benchmark hold: texts, and the vectors of them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from engram.bench.sentences import decisions, long_questions, sentences
from engram.bench.vector_cache import embedded
from engram.cli.failures import BadFileError
from engram.vectors import normalise

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from engram.embedding import Embedder

__all__ = [
    "Questions",
    "Texts",
    "Vectors",
    "ask",
    "read_texts",
    "read_vectors",
    "real_vectors",
    "take_texts",
]

_HELD_OUT = 1000
_BLOCK = 4096
_EIGHT = "how can i find the"
_FIFTEEN = "what was the name of the one i mentioned when we discussed"


@dataclass(frozen=True)
class Texts:
    """Texts to store, and some of the same kind that are not stored.

    Attributes:
        stored: As many as the largest store holds.
        held_out: What the questions take their words from.
        read: How many texts of a file may be stored; 0 where there is none.
    """

    stored: list[str]
    held_out: list[str]
    read: int


def take_texts(given: list[str] | None, count: int, seed: int) -> Texts:
    """Return `count` texts: those given, and behind them halves of two given ones.

    Args:
        given: At least two texts, the last of which are held out; None generates sentences.
        count: How many to store.
        seed: Which generated sentences, which halves.
    """
    if given is None:
        return Texts(sentences(count, seed), sentences(_HELD_OUT, seed + 1), 0)
    kept = len(given) - max(1, min(_HELD_OUT, len(given) // 10))
    chance = random.Random(seed)  # noqa: S311 - text, not secrets
    stored = given[: min(kept, count)]
    stored += [_spliced(given, kept, chance) for _ in range(count - len(stored))]
    return Texts(stored, given[kept:], kept)


def _spliced(texts: list[str], kept: int, chance: random.Random) -> str:
    start, end = (texts[chance.randrange(kept)].split() for _ in range(2))
    return " ".join(start[: len(start) // 2 + 1] + end[len(end) // 2 :])


def read_texts(path: Path) -> list[str]:
    """Return the texts of a file: a JSON list of strings, or one text a line.

    Raises:
        BadFileError: It is no such list, no UTF-8 text, or has fewer than two texts.
        OSError: It cannot be read.
    """
    content = path.read_bytes()
    try:
        if path.suffix == ".json":
            texts = msgspec.json.decode(content, type=list[str])
        else:
            texts = content.decode().splitlines()
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = f"{path} is neither a JSON list of strings nor lines of UTF-8 text"
        raise BadFileError(message) from None
    texts = [text for text in texts if text.strip()]
    if len(texts) < 2:
        message = f"{path} has fewer than two texts"
        raise BadFileError(message)
    return texts


def read_vectors(path: Path, dim: int) -> NDArray[np.floating]:
    """Map a file of vectors: .npy, or float16 rows one after another.

    Returns:
        float16 or float32 [rows, dim].

    Raises:
        BadFileError: It holds vectors of another length, other numbers, or none.
        OSError: It cannot be read.
    """
    vectors: NDArray[np.floating]
    try:
        if path.suffix == ".npy":
            vectors = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            # A file that another process is writing may end within a row.
            rows = path.stat().st_size // (2 * dim)
            vectors = np.memmap(path, np.float16, "r", shape=(rows, dim))
    except ValueError:
        vectors = np.empty(0, np.float16)
    if vectors.ndim != 2 or vectors.shape[1] != dim or not len(vectors):
        message = f"{path} does not hold vectors of {dim} numbers"
        raise BadFileError(message, "they must be those of the model")
    if vectors.dtype not in (np.float16, np.float32):
        message = f"{path} must hold float16 or float32 numbers"
        raise BadFileError(message)
    return vectors


def real_vectors(
    texts: Texts,
    file: Path | None,
    embedder: Embedder,
    limit: int,
    progress: Callable[[int, int], None],
) -> NDArray[np.floating]:
    """Return the real vectors there are of the first texts.

    Args:
        texts: The texts.
        file: Where their vectors are; None embeds the texts, or takes what was embedded before.
        embedder: The model.
        limit: How many texts are embedded at most.
        progress: Called with the texts that are embedded and all that will be.

    Returns:
        Floating [rows, dim]; rows may be more or fewer than the texts.

    Raises:
        BadFileError, OSError: As for `read_vectors` and `embedded`.
    """
    if file is None:
        return embedded(texts.stored[:limit], embedder, progress)
    return read_vectors(file, embedder.dim)[: texts.read or None]


class Vectors:
    """Vectors of any number of texts: real ones, then others spread as those are.

    A vector that is made up is a real one, moved along the difference of two others: its distances
    follow the real data's own covariance. Which ones they are depends on the seed alone.

    Args:
        real: Floating [rows, dim]: unit vectors of the first texts.
        seed: Which vectors are made up.
    """

    def __init__(self, real: NDArray[np.floating], seed: int) -> None:
        self._real = real
        self._seed = seed
        self._made: tuple[int, NDArray[np.float32]] = (-1, np.empty((0, 0), np.float32))

    def real_share(self, count: int) -> float:
        """Return which share of the first `count` vectors is real, 0 to 1."""
        return min(count, len(self._real)) / count

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        """Return the vectors of the texts from `start` to before `stop`, of unit length."""
        parts = [normalise(self._real[start:stop].astype(np.float32))]
        at = max(start, len(self._real))
        while at < stop:
            block, offset = divmod(at - len(self._real), _BLOCK)
            part = self._block(block)[offset : offset + stop - at]
            parts.append(part)
            at += len(part)
        return np.concatenate(parts)

    def _block(self, number: int) -> NDArray[np.float32]:
        if self._made[0] != number:
            chance = np.random.default_rng((self._seed, number))
            i, j, k = (
                self._real[chance.integers(0, len(self._real), _BLOCK)].astype(np.float32)
                for _ in range(3)
            )
            share = chance.uniform(0.3, 0.8, (_BLOCK, 1)).astype(np.float32)
            self._made = (number, normalise(i + share * (j - k)))
        return self._made[1]


@dataclass(frozen=True)
class Questions:
    """What is asked; nothing in the store reads like it.

    Attributes:
        decisions: Short questions that no text answers by its wording.
        eight: Eight words, three of them from a text of the same kind.
        fifteen: Fifteen words, three of them from a text of the same kind.
    """

    decisions: list[str]
    eight: list[str]
    fifteen: list[str]

    @property
    def every(self) -> list[str]:
        """All of them."""
        return [*self.decisions, *self.eight, *self.fifteen]


def ask(held_out: list[str], count: int) -> Questions:
    """Return `count` questions of each kind."""
    return Questions(
        decisions(count),
        long_questions(held_out, _EIGHT, count),
        long_questions(held_out, _FIFTEEN, count),
    )
