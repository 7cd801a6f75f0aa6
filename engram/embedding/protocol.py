"""What an embedder is, and the two calls through which the engine uses one.

The engine never trusts an embedder's output: whatever comes back, from ours or from a stranger's,
passes through `embed_documents` or `embed_query` and leaves as finite, unit-length float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

import numpy as np

from engram.errors import InvalidArgument, InvalidType
from engram.vectors import normalise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "DocumentEmbedder",
    "Embedder",
    "check_embedder",
    "embed_documents",
    "embed_query",
]


@runtime_checkable
class Embedder(Protocol):
    """Anything that turns texts into vectors; plain attributes satisfy the two properties."""

    @property
    def dim(self) -> int:
        """How many numbers a vector has."""

    @property
    def fingerprint(self) -> str:
        """What changes whenever the vectors of the same text would change."""

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Return one vector per text, in order: float32[n, dim]."""


@runtime_checkable
class DocumentEmbedder(Embedder, Protocol):
    """An embedder that tells documents from queries and splits what exceeds its window."""

    def embed_documents(self, texts: list[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the chunks' vectors in text order, float32[m, dim], and the chunks per text."""

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector to search with: float32[dim]."""


def check_embedder(embedder: object) -> int:
    """Return the dimension of an embedder, or say what it lacks.

    Raises:
        InvalidType: `dim`, `fingerprint` or `embed` is missing or of the wrong type.
        InvalidArgument: `dim` is not positive, or `fingerprint` is empty.
    """
    dim = getattr(embedder, "dim", None)
    fingerprint = getattr(embedder, "fingerprint", None)
    if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)):
        message = f"embedder.dim must be an int, not {type(dim).__name__}"
        raise InvalidType(message)
    if not isinstance(fingerprint, str):
        message = f"embedder.fingerprint must be a str, not {type(fingerprint).__name__}"
        raise InvalidType(message)
    if not callable(getattr(embedder, "embed", None)):
        message = "embedder has no method embed(texts)"
        raise InvalidType(message)
    if dim < 1 or not fingerprint:
        message = "embedder.dim must be positive and embedder.fingerprint not empty"
        raise InvalidArgument(message)
    return int(dim)


def embed_documents(
    embedder: Embedder, texts: Sequence[str]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Embed texts to be stored.

    Args:
        embedder: A `DocumentEmbedder` decides itself how many chunks a text has; any other
            embedder gives one vector per text.
        texts: n texts, in order; none at all is fine and does not call the embedder.

    Returns:
        The chunks' vectors in text order, float32[m, dim], each of length one (an all-zero vector
        stays as it is); and the number of chunks of each text, int64[n], each at least one.

    Raises:
        InvalidType: The embedder is none, a text is no string, or what the embedder returned
            cannot be read as numbers.
        InvalidArgument: What the embedder returned has the wrong shape or is not finite.
    """
    dim = check_embedder(embedder)
    listed = [_text(text) for text in texts]
    if not listed:
        return np.empty((0, dim), np.float32), np.empty(0, np.int64)
    own = _document_embedder(embedder)
    if own is None:
        return _rows(embedder.embed(listed), len(listed), dim), np.ones(len(listed), np.int64)
    returned: object = own.embed_documents(listed)
    if not isinstance(returned, tuple) or len(returned) != 2:
        message = f"embed_documents must return (vectors, counts), not {type(returned).__name__}"
        raise InvalidType(message)
    counts = _counts(returned[1], len(listed))
    return _rows(returned[0], int(counts.sum()), dim), counts


def embed_query(embedder: Embedder, text: str) -> NDArray[np.float32]:
    """Embed a text to search with.

    Args:
        embedder: A `DocumentEmbedder` may treat queries specially (a prefix, say).
        text: The query; any string, the empty one included.

    Returns:
        float32[dim] of length one, or all zeros if the embedder says so.

    Raises:
        InvalidType: The embedder is none, the text is no string, or what the embedder returned
            cannot be read as numbers.
        InvalidArgument: What the embedder returned has the wrong shape or is not finite.
    """
    dim = check_embedder(embedder)
    _text(text)
    own = _document_embedder(embedder)
    if own is None:
        return _only(_rows(embedder.embed([text]), 1, dim))
    vector = _numbers(own.embed_query(text))
    if vector.shape != (dim,):
        message = f"embed_query returned shape {vector.shape} where ({dim},) was expected"
        raise InvalidArgument(message)
    return _only(_rows(vector[np.newaxis], 1, dim))


def _document_embedder(embedder: Embedder) -> DocumentEmbedder | None:
    # What isinstance would ask a runtime protocol, at a hundredth of its cost per call.
    if hasattr(embedder, "embed_documents") and hasattr(embedder, "embed_query"):
        return cast("DocumentEmbedder", embedder)
    return None


def _only(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    vector: NDArray[np.float32] = vectors[0]
    return vector


def _text(value: object) -> str:
    if not isinstance(value, str):
        message = f"a text to embed must be a str, not {type(value).__name__}"
        raise InvalidType(message)
    return value


def _numbers(value: object) -> NDArray[np.float32]:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        message = f"the embedder returned {type(value).__name__}, which is no array of numbers"
        raise InvalidType(message) from error
    if array.dtype.kind not in "fiu":
        message = f"the embedder returned values of dtype {array.dtype}, not real numbers"
        raise InvalidType(message)
    with np.errstate(over="ignore"):  # what overflows float32 is refused below, as infinite
        return array.astype(np.float32)


def _rows(value: object, rows: int, dim: int) -> NDArray[np.float32]:
    vectors = _numbers(value)
    if vectors.shape != (rows, dim):
        message = f"the embedder returned shape {vectors.shape} where ({rows}, {dim}) was expected"
        raise InvalidArgument(message)
    if not np.isfinite(vectors).all():
        message = f"the embedder returned NaN or infinite values in shape {vectors.shape}"
        raise InvalidArgument(message)
    return normalise(vectors)


def _counts(value: object, texts: int) -> NDArray[np.int64]:
    counts = np.asarray(value)
    if counts.dtype.kind not in "iu":
        message = f"the embedder returned chunk counts of dtype {counts.dtype}, not integers"
        raise InvalidType(message)
    if counts.shape != (texts,) or (counts < 1).any():
        message = f"the embedder must return {texts} chunk counts, each at least one"
        raise InvalidArgument(message)
    return counts.astype(np.int64)
