"""Embedding what episodes are made of: of an experience each part, of any other its text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engram.embedding import embed_documents
from engram.tracing import stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from engram.embedding import Embedder
    from engram.storage import Texts


class Parts(NamedTuple):
    """The vectors of some episodes.

    Attributes:
        vectors: float32[m, dim], unit length, the chunks of all episodes in order.
        counts: int64[n], chunks of each episode.
        fields: int64[m], which part of an experience each chunk is of, -1: of none.
    """

    vectors: NDArray[np.float32]
    counts: NDArray[np.int64]
    fields: NDArray[np.int64]


def embed_parts(embedder: Embedder, texts: Sequence[Texts]) -> Parts:
    """Embed what some episodes are made of.

    Args:
        embedder: Any embedder; what it raises comes as it is.
        texts: What of each episode is embedded.

    Raises:
        InvalidType, InvalidArgument: As documented on `embed_documents`.
    """
    fields = [field for one in texts for field, _ in one]
    with stage("embed"):
        vectors, chunks = embed_documents(embedder, [text for one in texts for _, text in one])
    owners = np.repeat(np.arange(len(texts)), [len(one) for one in texts])
    return Parts(
        vectors,
        np.bincount(owners, chunks, len(texts)).astype(np.int64),
        np.repeat(np.array(fields, dtype=np.int64), chunks),
    )
