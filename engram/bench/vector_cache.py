"""Vectors of texts that were embedded before, on disk by the hash of the text."""

from __future__ import annotations

import fcntl
import hashlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import numpy as np
from platformdirs import user_cache_path

from engram.embedding import embed_documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from engram.embedding import Embedder

__all__ = ["embedded"]

_BATCH = 256
_HASH = 16


def embedded(
    texts: Sequence[str], embedder: Embedder, progress: Callable[[int, int], None]
) -> NDArray[np.float16]:
    """Return the vector of each text, embedding those that never were and keeping the result.

    Of a text that is longer than the model's window the first part counts.

    Args:
        texts: The texts.
        embedder: The model.
        progress: Called with the texts that are done and all there are.

    Returns:
        float16[len(texts), dim].

    Raises:
        OSError: The user's cache folder cannot be written.
    """
    hashes = [_hash(text) for text in texts]
    with _Files.opened(embedder) as files:
        known = files.rows()
        lacking = dict(zip(hashes, texts, strict=True))
        wanted = [key for key in lacking if key not in known]
        for at in range(0, len(wanted), _BATCH):
            batch = wanted[at : at + _BATCH]
            progress(len(texts) - len(wanted) + at, len(texts))
            files.append(batch, _first_chunks([lacking[key] for key in batch], embedder))
        progress(len(texts), len(texts))
        known = files.rows()
        rows = np.array([known[key] for key in hashes])
        return np.take(files.vectors(), rows, axis=0)


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH).digest()


def _first_chunks(texts: list[str], embedder: Embedder) -> NDArray[np.float16]:
    vectors, counts = embed_documents(embedder, texts)
    first: NDArray[np.float16] = vectors[np.cumsum(counts) - counts].astype(np.float16)
    return first


class _Files:
    """The two files of a model: hashes, and vectors in the same order."""

    def __init__(self, hashes: IO[bytes], vectors: IO[bytes], dim: int) -> None:
        self._hashes = hashes
        self._vectors = vectors
        self._row = 2 * dim
        self._dim = dim

    @classmethod
    @contextmanager
    def opened(cls, embedder: Embedder) -> Iterator[_Files]:
        folder = user_cache_path("engram", appauthor=False) / "bench"
        folder.mkdir(parents=True, exist_ok=True)
        name = _hash(f"{embedder.fingerprint} {embedder.dim}").hex()
        with (folder / f"{name}.hashes").open("a+b") as hashes:
            # The file of hashes is locked by whoever reads or appends, until it is closed.
            fcntl.flock(hashes, fcntl.LOCK_EX)
            with (folder / f"{name}.f16").open("a+b") as vectors:
                files = cls(hashes, vectors, embedder.dim)
                files._mend()
                yield files

    def _mend(self) -> None:
        """Cut off what a process that was stopped left half-written."""
        rows = min(self._hashes.seek(0, 2) // _HASH, self._vectors.seek(0, 2) // self._row)
        self._hashes.truncate(rows * _HASH)
        self._vectors.truncate(rows * self._row)

    def rows(self) -> dict[bytes, int]:
        """Return the row of each hash."""
        self._hashes.seek(0)
        content = self._hashes.read()
        return {content[at : at + _HASH]: at // _HASH for at in range(0, len(content), _HASH)}

    def vectors(self) -> NDArray[np.float16]:
        """Return all vectors, mapped."""
        self._vectors.flush()
        if self._vectors.seek(0, 2) == 0:
            return np.empty((0, self._dim), np.float16)
        return np.memmap(self._vectors, np.float16, "r").reshape(-1, self._dim)

    def append(self, hashes: list[bytes], vectors: NDArray[np.float16]) -> None:
        """Add vectors, and only then the hashes that promise them."""
        self._vectors.write(vectors.tobytes())
        self._vectors.flush()
        self._hashes.write(b"".join(hashes))
        self._hashes.flush()
