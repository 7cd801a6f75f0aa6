"""The built-in reranker: token by token, with no model but the embedder's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from engram.embedding.cache import LONGEST_TEXT, LongestUnused
from engram.embedding.embedder import OnnxEmbedder
from engram.embedding.protocol import embed_documents, embed_query
from engram.embedding.registry import Calibration
from engram.embedding.sentences import sentence_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from engram.embedding.protocol import Embedder

    Parts = tuple[NDArray[np.float16], ...]
    """The pieces of a text, each with the vectors, of length one, of what it consists of."""

__all__ = ["LateInteraction"]

_CHUNKS = 4
_SENTENCES = 32
_KEPT_BYTES = 64 << 20
_KEPT_QUERIES = 16
_OF_TOKENS = Calibration(slope=11.5, centre=0.42)
_OF_SENTENCES = Calibration(slope=10.0, centre=0.47)

# How near a query comes to these is how near it comes to nothing in particular.
_BACKGROUND = (
    "The train to the coast leaves twice a day, and on Sundays once.",
    "She planted beans behind the house and watered them every evening.",
    "The committee will publish its annual budget before the end of the month.",
    "Add two eggs and a pinch of salt, then stir until the dough is smooth.",
    "The bridge was closed because of strong wind.",
    "He learned to play the violin when he was nine years old.",
    "Restart the server and clear the cache if the page does not load.",
    "Light from the nearest star takes more than four years to arrive.",
    "Our team lost the final by a single point.",
    "The museum shows maps and letters from the seventeenth century.",
    "Please send the signed contract back by Friday.",
    "Most birds in this forest leave before the first snow.",
    "The patient was given a lower dose and recovered within a week.",
    "I would rather walk than wait for the bus.",
    "Prices for wheat and oil rose again last year.",
    "The function returns an error if the file cannot be opened.",
    "They painted the kitchen yellow and sold the old table.",
    "Water boils at a lower temperature in the mountains.",
    "My sister called to say that the baby sleeps through the night.",
    "The film is too long, but the music is wonderful.",
    "A judge may order a new trial if evidence was withheld.",
    "Remember to lock the shed and feed the cat.",
    "Students write an essay about a book of their choice.",
    "The engine needs oil after ten thousand kilometres.",
)


class LateInteraction:
    """Scores a text by how near the query's tokens come to the text's.

    Each token of the query is compared with all tokens of a piece of the text, and the best cosine
    counts; the mean over the query's tokens is the piece's, the best piece's is the text's. With an
    embedder that gives no token vectors, the query as a whole is compared with the text and each of
    its sentences. What a query's tokens reach in any text at all is measured on a few sentences
    about nothing in particular and taken off, so that a score means the same for all queries and
    for embedders whose vectors are all near each other.

    Pieces are the embedder's chunks, of which the first four count, or the first 32 sentences. The
    vectors of the texts scored last are kept, up to 64 MiB. Safe to share between threads.

    Args:
        embedder: Any embedder.
        reason: Why this reranker is used, for people.
    """

    kind: Literal["late_interaction"] = "late_interaction"
    output: Literal["normalized_score"] = "normalized_score"

    def __init__(self, embedder: Embedder, *, reason: str) -> None:
        self._embedder = embedder
        self.reason = reason
        self._documents: LongestUnused[Parts] = LongestUnused(
            _KEPT_BYTES, lambda parts: sum(part.nbytes for part in parts)
        )
        self._queries: LongestUnused[NDArray[np.float32]] = LongestUnused(_KEPT_QUERIES)

    def __repr__(self) -> str:
        return f"LateInteraction({self.name!r})"

    @property
    def name(self) -> str:
        """The embedder's name, or its fingerprint where it has none."""
        name = getattr(self._embedder, "name", None)
        return name if isinstance(name, str) and name else self._embedder.fingerprint

    def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return how well each text answers the query, float64[n] in 0..1.

        Of a text, the first 16,384 characters count.

        Raises:
            InvalidType: The embedder returned no numbers.
            InvalidArgument: The embedder returned the wrong shape, or numbers that are not finite.
            ModelCorrupt: The embedder's model is not the one the registry names, or cannot be read.
        """
        asked = self._asked(query)
        if not texts or not len(asked):
            return np.zeros(len(texts), np.float64)
        read = [text[:LONGEST_TEXT] for text in texts]
        parts = self._parts([*read, *_BACKGROUND])
        anywhere = np.mean([_nearness(asked, parts[text]) for text in _BACKGROUND])
        near = np.array([_nearness(asked, parts[text]) for text in read])
        # An affine change of all cosines that leaves one at one cancels out here.
        standing = (near - anywhere) / max(1e-6, 1.0 - anywhere)
        by = self._calibration()
        scores: NDArray[np.float64] = 0.5 + 0.5 * np.tanh(0.5 * by.slope * (standing - by.centre))
        return scores

    def calibrated(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what `scores` returned: it is calibrated already."""
        return np.clip(np.asarray(raw, np.float64), 0.0, 1.0)

    def _calibration(self) -> Calibration:
        if isinstance(self._embedder, OnnxEmbedder):
            return self._embedder.local.model.late_interaction or _OF_TOKENS
        return _OF_SENTENCES

    def _asked(self, query: str) -> NDArray[np.float32]:
        """Return the query's vectors, float32[tokens, dim] or float32[1, dim]."""
        found = self._queries.get(query)
        if found is None:
            if isinstance(self._embedder, OnnxEmbedder):
                found = self._embedder.query_token_vectors(query)
            else:
                found = embed_query(self._embedder, query)[np.newaxis]
            self._queries.put(query, found)
        return found

    def _parts(self, texts: Sequence[str]) -> dict[str, Parts]:
        """Return the vectors of each text's pieces."""
        kept = {text: self._documents.get(text) for text in texts}
        found = {text: parts for text, parts in kept.items() if parts is not None}
        missing = [text for text in kept if text not in found]
        pieces_of = self._pieces(missing) if missing else []
        for text, pieces in zip(missing, pieces_of, strict=True):
            found[text] = tuple(piece.astype(np.float16) for piece in pieces)
            self._documents.put(text, found[text])
        return found

    def _pieces(self, texts: list[str]) -> list[list[NDArray[np.float32]]]:
        if isinstance(self._embedder, OnnxEmbedder):
            return self._embedder.token_vectors(texts, _CHUNKS)
        given = [[text, *_sentences(text)] for text in texts]
        vectors, counts = embed_documents(self._embedder, [each for text in given for each in text])
        ends = np.cumsum(counts).tolist()
        pieces: list[list[NDArray[np.float32]]] = []
        at = start = 0
        for text in given:
            at += len(text)
            pieces.append(list(vectors[start : ends[at - 1], np.newaxis]))
            start = ends[at - 1]
        return pieces


def _sentences(text: str) -> list[str]:
    spans = sentence_spans(text)[:_SENTENCES]
    return [text[start:end] for start, end in spans] if len(spans) > 1 else []


def _nearness(asked: NDArray[np.float32], parts: Parts) -> float:
    """Return the mean of the best cosines within the best part; 0 if there is nothing in any."""
    means = [(asked @ part.T).max(axis=1).mean() for part in parts if len(part)]
    return float(max(means, default=0.0))
