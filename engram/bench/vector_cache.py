"""Vectors of texts that were embedded before, on disk by the hash of the text."""

from __future__ import annotations

import fcntl
import hashlib
import os
from threading import Lock
from typing import IO, TYPE_CHECKING

import numpy as np
from platformdirs import user_cache_path

from engram.embedding import OnnxEmbedder, embed_documents

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from engram.embedding import Embedder

__all__ = ["CachedEmbedder", "VectorCache", "cache_folder", "embedded"]

_BATCH = 64
_ENTRY = np.dtype([("hash", "V32"), ("chunks", "<u4")])


def cache_folder() -> Path:
    """Return the folder for vectors in the user's cache."""
    return user_cache_path("engram", appauthor=False) / "bench"


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
    cache = VectorCache(cache_folder(), embedder.fingerprint, embedder.dim)
    cache.fill(texts, lambda wanted: embed_documents(embedder, wanted), progress)
    vectors = np.empty((len(texts), embedder.dim), np.float16)
    for at in range(0, len(texts), _BATCH):
        found, counts = cache.get(texts[at : at + _BATCH])
        vectors[at : at + _BATCH] = found[np.cumsum(counts) - counts]
    return vectors


class VectorCache:
    """Two files of a model: the hash and number of chunks of each text, and the chunks' vectors.

    They only grow, and several processes may use them at a time. Where one of them is cut short,
    what is not whole any more is dropped. Safe to share between threads.

    Args:
        folder: Where they are; it is made when missing.
        fingerprint: The model's.
        dim: Numbers in a vector.

    Raises:
        OSError: The folder cannot be written.
    """

    def __init__(self, folder: Path, fingerprint: str, dim: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(f"{fingerprint} {dim}".encode()).hexdigest()[:32]
        self._entries_file = folder / f"{name}.entries"
        self._vectors_file = folder / f"{name}.f32"
        self._dim = dim
        self._lock = Lock()
        self._forget()
        self._catch_up()

    def fill(
        self,
        texts: Sequence[str],
        embed: Callable[[list[str]], tuple[NDArray[np.float32], NDArray[np.int64]]],
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> None:
        """Embed the texts that never were, and keep the vectors as it goes.

        Args:
            texts: The texts.
            embed: Returns the vectors of the chunks of texts, and each text's number of chunks.
            progress: Called with the texts that are done and all there are.

        Raises:
            OSError: The files cannot be written.
        """
        self._catch_up()
        wanted = [text for text in dict.fromkeys(texts) if _hash(text) not in self._known]
        for at in range(0, len(wanted), _BATCH):
            progress(len(texts) - len(wanted) + at, len(texts))
            batch = wanted[at : at + _BATCH]
            self.put(batch, *embed(batch))
        progress(len(texts), len(texts))

    def put(
        self, texts: Sequence[str], vectors: NDArray[np.float32], counts: NDArray[np.int64]
    ) -> None:
        """Keep vectors that were computed; texts that have some already keep those.

        Args:
            texts: n texts.
            vectors: float32[m, dim], in the order of the texts.
            counts: int64[n], how many of them each text has.

        Raises:
            ValueError: The shapes do not fit together.
            OSError: The files cannot be written.
        """
        if vectors.shape != (int(counts.sum()), self._dim) or len(counts) != len(texts):
            message = f"vectors of shape {vectors.shape} do not fit {len(texts)} texts"
            raise ValueError(message)
        self._append([_hash(text) for text in texts], vectors, counts)

    def get(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the chunks' vectors in text order, and the number of chunks of each text.

        Raises:
            KeyError: A text has none.
        """
        with self._lock:
            places = [self._known[_hash(text)] for text in texts]
            rows = [row for start, count in places for row in range(start, start + count)]
            found = np.array(self._mapped()[rows], np.float32).reshape(-1, self._dim)
        return found, np.array([count for _, count in places], np.int64)

    def _catch_up(self) -> None:
        self._append([], np.empty((0, self._dim), np.float32), np.empty(0, np.int64))

    def _append(
        self, hashes: list[bytes], vectors: NDArray[np.float32], counts: NDArray[np.int64]
    ) -> None:
        """Read on, and add vectors and only then the entries that promise them."""
        with (
            self._lock,
            self._entries_file.open("a+b") as entries,
            self._vectors_file.open("a+b") as kept,
        ):
            fcntl.flock(entries, fcntl.LOCK_EX)
            self._read_on(entries, kept)
            starts = np.cumsum(counts) - counts
            new = {
                one: slice(start, start + count)
                for one, start, count in zip(hashes, starts.tolist(), counts.tolist(), strict=True)
                if one not in self._known
            }
            if not new:
                return
            kept.write(b"".join(vectors[place].astype("<f4").tobytes() for place in new.values()))
            kept.flush()
            os.fsync(kept.fileno())
            lengths = [place.stop - place.start for place in new.values()]
            made = np.array(list(zip(new, lengths, strict=True)), _ENTRY)
            entries.write(made.tobytes())
            entries.flush()
            self._learn(made)

    def _read_on(self, entries: IO[bytes], kept: IO[bytes]) -> None:
        """Learn what other processes added, and cut off what is not whole.

        That is what a process that was killed half wrote, and entries whose vectors are not all
        there: their texts are embedded again.
        """
        whole = entries.seek(0, 2) // _ENTRY.itemsize * _ENTRY.itemsize
        there = kept.seek(0, 2) // (self._dim * 4)
        if whole < self._read or there < self._rows:
            self._forget()
        entries.seek(self._read)
        added = np.frombuffer(entries.read(whole - self._read), _ENTRY)
        ends = self._rows + np.cumsum(added["chunks"], dtype=np.int64)
        self._learn(added[: np.searchsorted(ends, there, side="right")])
        entries.truncate(self._read)
        kept.truncate(self._rows * self._dim * 4)

    def _forget(self) -> None:
        self._read = 0
        # Of each hash, where its vectors begin and how many there are.
        self._known: dict[bytes, tuple[int, int]] = {}
        self._rows = 0
        self._vectors: NDArray[np.float32] = np.empty((0, self._dim), np.float32)

    def _learn(self, entries: NDArray[np.void]) -> None:
        for one, chunks in zip(entries["hash"].tolist(), entries["chunks"].tolist(), strict=True):
            self._known[one] = self._rows, chunks
            self._rows += chunks
        self._read += entries.nbytes

    def _mapped(self) -> NDArray[np.float32]:
        if len(self._vectors) < self._rows:
            shape = (self._rows, self._dim)
            self._vectors = np.memmap(self._vectors_file, "<f4", "r", shape=shape)
        return self._vectors


class CachedEmbedder(OnnxEmbedder):
    """The same model, which reads no document twice: its vectors are kept on disk.

    It is one of its kind, so that the engine does with it what it does with the model. The vector
    of a text is always the one that was kept first.

    Args:
        embedder: The model.
        folder: Where vectors are kept.

    Raises:
        OSError: The folder cannot be written.
    """

    def __init__(self, embedder: OnnxEmbedder, folder: Path) -> None:
        super().__init__(embedder.local, threads=embedder.threads)
        self._kept = VectorCache(folder, self.fingerprint, self.dim)

    def embed_documents(
        self, texts: Sequence[str]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the chunks' vectors in text order, and the number of chunks of each text.

        Raises:
            ModelCorrupt: A model file is not the one the registry names, or cannot be read.
            OSError: The cache cannot be written.
        """
        self._kept.fill(texts, super().embed_documents)
        return self._kept.get(texts)

    def put(
        self, texts: Sequence[str], vectors: NDArray[np.float32], counts: NDArray[np.int64]
    ) -> None:
        """Keep vectors that this model computed elsewhere, as `VectorCache.put` does."""
        self._kept.put(texts, vectors, counts)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
