"""The embedder that runs an ONNX model on this machine's CPU."""

from __future__ import annotations

from hashlib import sha256
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

from engram.embedding.cache import LongestUnused
from engram.embedding.digest import check_sha256
from engram.embedding.loading import LoadedOnce
from engram.embedding.plan import chunk_spans
from engram.embedding.session import ModelSession, run_in_batches
from engram.embedding.threads import thread_count
from engram.embedding.tokens import TextTokens
from engram.vectors import normalise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from engram.embedding.location import LocalModel

__all__ = ["OnnxEmbedder"]

QUERY_CHARACTERS = 10_000
"""Of a query, how many characters are embedded: about half a second's work."""

_Result = TypeVar("_Result")

_CACHED_TEXTS = 256
_KEPT_TOKENS = 64
"""Of a query with more tokens, their vectors are not kept."""
_WINDOW_TEXTS = 2048
_WINDOW_CHARACTERS = 1_000_000


class OnnxEmbedder:
    """Embeds texts with a model found by `resolve`.

    Nothing is opened until the first text: constructing one is free, and `name`, `dim` and
    `fingerprint` are known from the registry. Safe to share between threads; a process forked
    from one that has used it loads the model anew.

    A text longer than the model's window becomes several overlapping chunks: no token is left
    out. The vector of a text does not depend on the texts it is embedded together with, beyond
    the rounding of float32 (none was measured), nor on the number of threads.

    Args:
        local: The model and its files.
        threads: Threads within an operator; None means `ENGRAM_THREADS`, or else the usable CPUs,
            at most four. With two or more, two batches are under way at a time.
        cached_texts: How many texts' vectors are kept, for documents and for queries each.

    Raises:
        InvalidArgument: `ENGRAM_THREADS` is set and no positive whole number.
    """

    def __init__(
        self, local: LocalModel, *, threads: int | None = None, cached_texts: int = _CACHED_TEXTS
    ) -> None:
        self._local = local
        self._model = local.model
        self._threads = thread_count() if threads is None else threads
        self._documents: LongestUnused[NDArray[np.float32]] = LongestUnused(cached_texts)
        # The vector of a query, and those of its tokens.
        self._queries: LongestUnused[tuple[NDArray[np.float32], NDArray[np.float32]]] = (
            LongestUnused(cached_texts)
        )
        self._load = LoadedOnce(self._opened)

    def __repr__(self) -> str:
        return f"OnnxEmbedder({self.name!r}, source={self._local.source!r})"

    @property
    def name(self) -> str:
        """The name to give `resolve` for this model: the registry's, or its folder's."""
        return self._model.name

    @property
    def local(self) -> LocalModel:
        """The model's description and files."""
        return self._local

    @property
    def threads(self) -> int:
        """Threads within an operator."""
        return self._threads

    @property
    def dim(self) -> int:
        """Numbers in a vector; loads the model only if nothing but the model says it."""
        return self._model.dim or self._load()[1].dim

    @property
    def fingerprint(self) -> str:
        """The name and a hash of all that decides the vectors: files, pooling, window, prefix.

        Raises:
            OSError: The registry has no checksum of a file, and it cannot be read.
        """
        model = self._model
        decisive = [
            model.name,
            model.onnx.sha256 or check_sha256(self._local.onnx, ""),
            model.tokenizer.sha256 or check_sha256(self._local.tokenizer, ""),
            model.pooling,
            model.max_tokens,
            model.window,
            model.query_prefix,
        ]
        return f"{model.name}:{sha256(msgspec.json.encode(decisive)).hexdigest()[:16]}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as documents, one vector each.

        Args:
            texts: n texts.

        Returns:
            float32[n, dim], rows of length one; that of a long text is the normalised mean of its
            chunks' vectors.

        Raises:
            ModelCorrupt: A model file is not the one the registry names, or cannot be read.
        """
        vectors, counts = self.embed_documents(texts)
        starts = np.cumsum(counts) - counts
        return _summed(vectors, starts) if len(counts) else vectors

    def embed_documents(
        self, texts: Sequence[str]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Embed texts as documents, one vector per chunk.

        Equal texts are embedded once. Memory beyond the result is bounded by the longest text and
        the window of about a million characters that is worked on at a time.

        Args:
            texts: n texts.

        Returns:
            The chunks' vectors in text order, float32[m, dim], rows of length one; and the number
            of chunks of each text, int64[n], each at least one.

        Raises:
            ModelCorrupt: A model file is not the one the registry names, or cannot be read.
        """
        found: dict[str, NDArray[np.float32]] = {}
        missing: list[str] = []
        for text in dict.fromkeys(texts):
            cached = self._documents.get(text)
            if cached is None:
                missing.append(text)
            else:
                found[text] = cached
        for window in _windows(missing):
            for text, chunks in zip(window, self._embed_window(window), strict=True):
                found[text] = chunks
                self._documents.put(text, chunks)
        counts = np.array([len(found[text]) for text in texts], np.int64)
        empty = np.empty((0, self.dim), np.float32)
        return np.concatenate([empty, *(found[text] for text in texts)]), counts

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a text to search with: the model's query prefix comes before it.

        A query is an answer's size, not a document's: of a longer one the first
        `QUERY_CHARACTERS` characters count.

        Returns:
            float32[dim] of length one; for a text beyond the window the normalised mean of its
            chunks' vectors.

        Raises:
            ModelCorrupt: A model file is not the one the registry names, or cannot be read.
        """
        return self._query(text)[0].copy()

    def token_vectors(
        self, texts: Sequence[str], chunks: int | None = None
    ) -> list[list[NDArray[np.float32]]]:
        """Return the vectors of each text's tokens, from which pooling makes those of its chunks.

        Special tokens have none. Nothing is kept: they take a hundred times the room of a text's
        vector.

        Args:
            texts: n texts.
            chunks: Of each text, only that many chunks; None means all.

        Returns:
            For each text and each of its chunks float32[tokens, dim], rows of length one. A text
            without any token has one chunk of no rows.

        Raises:
            ModelCorrupt: A model file is not the one the registry names, or cannot be read.
        """
        tokens, session = self._load()
        rows, counts = self._rows(tokens, texts, chunks)
        order, results = self._run(rows, session.token_vectors, session.max_rows)
        found = dict(zip(order, chain.from_iterable(results), strict=True))
        bare = iter([tokens.bare(found[at]) for at in range(len(rows))])
        return [list(islice(bare, count)) for count in counts]

    def query_token_vectors(self, text: str) -> NDArray[np.float32]:
        """Return the vectors of the tokens of a text to search with, float32[tokens, dim].

        The model reads the text behind its query prefix, and of a long one the first
        `QUERY_CHARACTERS` characters. Neither the prefix nor punctuation has vectors, unless there
        is nothing else.

        Raises:
            ModelCorrupt: A model file is not the one the registry names, or cannot be read.
        """
        return self._query(text, of_tokens=True)[1].copy()

    def _query(
        self, text: str, *, of_tokens: bool = False
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the vector of a query and those of its tokens, of one run of the model.

        Args:
            text: The query.
            of_tokens: Whether the latter are needed: those of a long query are not kept.
        """
        text = text[:QUERY_CHARACTERS]
        found = self._queries.get(text)
        if found is None or (of_tokens and len(found[1]) == 0):
            found = self._read_query(text)
            vector, own = found
            # A copy: a view would keep what it is a part of.
            kept = own if len(own) <= _KEPT_TOKENS else own[:0].copy()
            self._queries.put(text, (vector, kept))
        return found

    def _read_query(self, text: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        tokens, session = self._load()
        prefix = self._model.query_prefix
        # The space at the prefix's end belongs to the token that follows.
        skipped = len(tokens.encode(prefix.rstrip())) if prefix else 0
        rows, _ = self._rows(tokens, [prefix + text])
        order, results = self._run(rows, session.both, session.max_rows)
        read = dict(zip(order, chain.from_iterable(results), strict=True))
        chunks = np.stack([read[at][0] for at in range(len(rows))])
        own = np.concatenate([tokens.bare(read[at][1]) for at in range(len(rows))])[skipped:]
        telling = tokens.has_letters(np.concatenate([tokens.bare(row) for row in rows])[skipped:])
        return _summed(chunks, np.zeros(1, np.int64))[0], own[telling] if telling.any() else own

    def _embed_window(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the chunk vectors of each text, float32[chunks, dim]."""
        tokens, session = self._load()
        rows, counts = self._rows(tokens, texts)
        order, results = self._run(rows, session.vectors, session.max_rows)
        vectors = np.empty((len(rows), session.dim), np.float32)
        vectors[order] = np.concatenate(results)
        ends = np.cumsum(counts)
        # Copies: a view in the cache would keep the whole window alive.
        return [vectors[end - count : end].copy() for end, count in zip(ends, counts, strict=True)]

    def _run(
        self,
        rows: list[NDArray[np.int64]],
        model: Callable[[list[NDArray[np.int64]]], _Result],
        max_rows: int,
    ) -> tuple[list[int], list[_Result]]:
        """Run one method of the session over rows of token ids, as `run_in_batches` does."""
        return run_in_batches(
            [len(row) for row in rows],
            lambda batch: model([rows[at] for at in batch]),
            max_rows=max_rows,
            threads=self._threads,
        )

    def _rows(
        self, tokens: TextTokens, texts: Sequence[str], chunks: int | None = None
    ) -> tuple[list[NDArray[np.int64]], list[int]]:
        """Return the token ids of the first chunks, in text order, and how many each text has."""
        rows: list[NDArray[np.int64]] = []
        counts: list[int] = []
        for text in texts:
            ids = tokens.encode(text)
            spans = chunk_spans(len(ids), max(1, self._model.window - tokens.specials))[:chunks]
            rows += [tokens.framed(ids[start:stop]) for start, stop in spans]
            counts.append(len(spans))
        return rows, counts

    def _opened(self) -> tuple[TextTokens, ModelSession]:
        """Return the tokenizer and the session, once the files are checked."""
        check_sha256(self._local.onnx, self._model.onnx.sha256)
        check_sha256(self._local.tokenizer, self._model.tokenizer.sha256)
        tokens = TextTokens(self._local.tokenizer)
        return tokens, ModelSession(self._model, self._local.onnx, tokens.padding_id, self._threads)


def _summed(vectors: NDArray[np.float32], starts: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the normalised sum, which is the normalised mean, of each run of vectors."""
    return normalise(np.add.reduceat(vectors, starts, axis=0))


def _windows(texts: list[str]) -> Iterator[list[str]]:
    """Split texts into runs that are short enough to hold all their tokens at once."""
    window: list[str] = []
    characters = 0
    for text in texts:
        full = len(window) == _WINDOW_TEXTS or characters + len(text) > _WINDOW_CHARACTERS
        if window and full:
            yield window
            window, characters = [], 0
        window.append(text)
        characters += len(text)
    if window:
        yield window
