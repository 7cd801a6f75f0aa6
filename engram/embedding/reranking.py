"""What a reranker is, and which one a name means on this machine."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal, Protocol

from engram.embedding.cross_encoder import CrossEncoder
from engram.embedding.late_interaction import LateInteraction
from engram.embedding.resolution import local_cross_encoder
from engram.embedding.threads import thread_count
from engram.errors import ModelMissing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from engram.embedding.location import LocalModel
    from engram.embedding.protocol import Embedder

__all__ = ["Reranker", "local_reranker", "resolve_reranker"]


class Reranker(Protocol):
    """Says how well texts answer a query, by reading both."""

    @property
    def name(self) -> str:
        """The model's name, in the registry or its folder's."""

    @property
    def kind(self) -> Literal["cross_encoder", "late_interaction"]:
        """How it reads: query and text together, or each by itself and then token by token."""

    @property
    def output(self) -> Literal["raw_logit", "normalized_score"]:
        """What `scores` returns: any real numbers, or numbers in 0..1."""

    @property
    def reason(self) -> str:
        """Why it is this one, for people."""

    def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the model's own output for each text, float64[n]; more is better."""

    def calibrated(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn what `scores` returned into 0..1, order kept: what answers is mostly above 0.6."""


def local_reranker(name: str) -> CrossEncoder:
    """Return a cross-encoder that is on this machine, loading nothing yet and fetching nothing.

    Args:
        name: As for `resolve_reranker`.

    Raises:
        ModelMissing: It is not here.
        ModelCorrupt: A description beside it in a folder cannot be read.
        InvalidArgument: `ENGRAM_THREADS` is set and no positive whole number.
    """
    return _shared(local_cross_encoder(name), thread_count())


def resolve_reranker(name: str, embedder: Embedder) -> Reranker:
    """Return the reranker to use, loading nothing yet and fetching nothing.

    Args:
        name: A cross-encoder: a name of the registry, or a folder with an ONNX file and
            `tokenizer.json`. Taken if it is on this machine.
        embedder: Whose vectors are compared otherwise; any embedder will do.

    Returns:
        The cross-encoder, or the late interaction of the embedder. `reason` says which and why.

    Raises:
        ModelCorrupt: A description beside a cross-encoder in a folder cannot be read.
        InvalidArgument: `ENGRAM_THREADS` is set and no positive whole number.
    """
    try:
        return local_reranker(name)
    except ModelMissing:
        reason = f"no cross-encoder {name} is on this machine"
        return LateInteraction(
            embedder, reason=f"{reason}, so vectors of the embedder are compared"
        )


@lru_cache(maxsize=2)
def _shared(local: LocalModel, threads: int) -> CrossEncoder:
    """Return the process's one cross-encoder for these files: a model is loaded once, then kept."""
    return CrossEncoder(local, threads=threads)
