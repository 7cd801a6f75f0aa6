"""An embedder without a model: for tests, and for machines that are to search by words.

It adds up bytes. What its vectors are near to is texts with the same bytes at the same places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engram.vectors import normalise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["DETERMINISTIC", "DeterministicEmbedder"]

DETERMINISTIC: Final = "deterministic"
"""Its name, as `resolve` knows it."""

_DIM: Final = 1024
_FLOOR: Final = 1e-10


class DeterministicEmbedder:
    """Turns the UTF-8 bytes of a text into a vector of 1,024 numbers.

    Byte i adds its value, 255 being 1, to number i modulo 1,024; the vector is then scaled to
    length one. That of the empty text is zero.

    Attributes:
        name: The name by which `resolve` returns it.
        fingerprint: The same.
        dim: 1,024.
    """

    name = DETERMINISTIC
    fingerprint = DETERMINISTIC
    dim = _DIM

    def __repr__(self) -> str:
        return "DeterministicEmbedder()"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector per text, in order: float32[n, 1024]."""
        vectors = np.array([_summed(text) for text in texts]).reshape(len(texts), _DIM)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return normalise((vectors / np.maximum(lengths, _FLOOR)).astype(np.float32))


def _summed(text: str) -> NDArray[np.float64]:
    said = np.frombuffer(text.encode(errors="surrogatepass"), dtype=np.uint8)
    padded = np.zeros(-(-len(said) // _DIM) * _DIM, dtype=np.float64)
    padded[: len(said)] = said / 255.0
    total: NDArray[np.float64] = padded.reshape(-1, _DIM).sum(axis=0)
    return total
