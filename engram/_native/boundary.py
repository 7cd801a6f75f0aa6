"""What the kernels and their twins accept, checked once at the boundary.

Both sides call these functions, so a wrong argument fails with the same words whichever of them is
selected. Checks that read the contents of an array stay in the kernels, where they cost no
temporary arrays.
"""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "INT64_MAX", "INT64_MIN", "array", "joined", "length", "posting_ranges", "ranked_parts", "real",
    "stemmed", "whole", "word_indexes",
]  # fmt: skip

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1


def array(name: str, value: object, dtype: type[np.generic], ndim: int = 1) -> None:
    """Require a NumPy array of one element type and rank that plain pointers can walk.

    Nothing is converted: a hidden copy of a large matrix would cost more than the kernel.

    Raises:
        TypeError: `value` is not an array, or its elements have another type or byte order.
        ValueError: It has another rank, has gaps, or is not aligned.
    """
    if not isinstance(value, np.ndarray):
        message = f"{name} must be a NumPy array, not {type(value).__name__}"
        raise TypeError(message)
    if value.dtype != dtype:
        message = f"{name} must be an array of {np.dtype(dtype).name}, not {value.dtype}"
        raise TypeError(message)
    if value.ndim != ndim:
        message = f"{name} must have {ndim} dimension(s), not {value.ndim}"
        raise ValueError(message)
    if not (value.flags.c_contiguous and value.flags.aligned):
        message = f"{name} must be C-contiguous and aligned; pass a copy of it"
        raise ValueError(message)


def length(name: str, value: NDArray[np.generic], expected: int, per: str) -> None:
    """Require one element of `value` for each of the `expected` things that `per` names."""
    if len(value) != expected:
        message = f"{name} must have one element per {per}: {expected}, not {len(value)}"
        raise ValueError(message)


def whole(name: str, value: SupportsIndex, least: int, most: int | None = None) -> int:
    """Return `value` as an integer of at least `least`.

    Without `most`, what exceeds 64 bits counts as the largest 64-bit integer: a bound on a number
    of results or steps that no array can reach.

    Raises:
        TypeError: `value` is not an integer.
        ValueError: It is out of range.
    """
    try:
        number = operator.index(value)
    except TypeError:
        message = f"{name} must be an integer, not {type(value).__name__}"
        raise TypeError(message) from None
    if number < least:
        message = f"{name} must be at least {least}"
        raise ValueError(message)
    if most is not None and number > most:
        message = f"{name} must be at most {most}"
        raise ValueError(message)
    return min(number, INT64_MAX)


def real(name: str, value: float, least: float = -math.inf, most: float = math.inf) -> float:
    """Return `value` as a finite float from `least` to `most`.

    Raises:
        TypeError: `value` is not a real number.
        ValueError: It is infinite, not a number, or out of range.
    """
    if not isinstance(value, Real):
        message = f"{name} must be a real number, not {type(value).__name__}"
        raise TypeError(message)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        message = f"{name} must be finite"
        raise ValueError(message)
    if number < least:
        message = f"{name} must be at least {least:g}"
        raise ValueError(message)
    if number > most:
        message = f"{name} must be at most {most:g}"
        raise ValueError(message)
    return number


_POSTINGS: Final[tuple[tuple[str, type[np.generic]], ...]] = (
    ("rows", np.uint32),
    ("frequencies", np.uint8),
    ("large", np.int64),
    ("large_frequencies", np.uint32),
)
_INDEX: Final[tuple[tuple[str, type[np.generic]], ...]] = (
    ("lengths", np.uint32),
    ("term_bytes", np.uint8),
    ("term_ends", np.int64),
    ("starts", np.int64),
    *_POSTINGS,
)


def joined(terms: object) -> bytes:
    """Return a list of terms as one, with a zero behind each.

    Raises:
        TypeError: It is not a list of bytes objects.
        ValueError: A term has a zero in it.
    """
    if not isinstance(terms, list) or not all(type(term) is bytes for term in terms):
        message = f"bodies must be bytes objects or lists of them, not {type(terms).__name__}"
        raise TypeError(message)
    text = b"".join([term + b"\0" for term in terms])
    if text.count(0) != len(terms):
        message = "bodies must not have terms with a zero byte"
        raise ValueError(message)
    return text


def stemmed(terms: object, words: int) -> list[bytes]:
    """Return the terms of so many words.

    Raises:
        TypeError: They are no list of bytes objects.
        ValueError: There are more or fewer of them.
    """
    if not isinstance(terms, list) or not all(type(term) is bytes for term in terms):
        message = f"stems must return a list of bytes objects, not {type(terms).__name__}"
        raise TypeError(message)
    if len(terms) != words:
        message = f"stems must return one term per word: {words}, not {len(terms)}"
        raise ValueError(message)
    return terms


def word_indexes(
    parts: Sequence[tuple[Any, ...]],
    live: Sequence[NDArray[np.bool_] | None],
) -> None:
    """Require inverted indexes of words, as `tokens.invert` returns them, and a mask for each."""
    if len(live) != len(parts):
        message = f"live must have one element per part: {len(parts)}, not {len(live)}"
        raise ValueError(message)
    for part, mask in zip(parts, live, strict=True):
        if len(part) != len(_INDEX):
            message = f"parts must be tuples of {len(_INDEX)} arrays, not {len(part)}"
            raise ValueError(message)
        for (name, dtype), values in zip(_INDEX, part, strict=True):
            array(name, values, dtype)
        length("starts", part[3], len(part[2]) + 1, "term, and one for the end")
        _postings(*part[4:])
        _mask("live", mask, len(part[0]))


def ranked_parts(parts: Sequence[tuple[Any, ...]], ranges: NDArray[np.int64]) -> None:
    """Require what `postings.bm25` ranks: indexes without vocabulary, their masks, and ranges."""
    array("ranges", ranges, np.int64, 3)
    if ranges.shape[0] != len(parts) or ranges.shape[2] != 2:
        message = f"ranges must have the shape ({len(parts)}, terms, 2), not {ranges.shape}"
        raise ValueError(message)
    for part in parts:
        if len(part) != len(_POSTINGS) + 3:
            message = f"parts must be tuples of {len(_POSTINGS) + 3} values, not {len(part)}"
            raise ValueError(message)
        array("lengths", part[0], np.uint32)
        for (name, dtype), values in zip(_POSTINGS, part[1:5], strict=True):
            array(name, values, dtype)
        _postings(*part[1:5])
        _mask("live", part[5], len(part[0]))
        if getattr(part[6], "dtype", None) == np.uint32:
            array("allowed", part[6], np.uint32)
        else:
            _mask("allowed", part[6], len(part[0]))
    _within(ranges, np.array([len(part[1]) for part in parts]).reshape(-1, 1))


def posting_ranges(
    rows: NDArray[np.generic],
    frequencies: NDArray[np.generic],
    large: NDArray[np.generic],
    large_frequencies: NDArray[np.generic],
    ranges: NDArray[np.int64],
) -> None:
    """Require the postings of an index, as `tokens.invert` returns them, and ranges of them."""
    given = rows, frequencies, large, large_frequencies
    for (name, dtype), values in zip(_POSTINGS, given, strict=True):
        array(name, values, dtype)
    _postings(*given)
    array("ranges", ranges, np.int64, 2)
    if ranges.shape[1] != 2:
        message = f"ranges must have the shape (terms, 2), not {ranges.shape}"
        raise ValueError(message)
    _within(ranges, np.array(len(rows)))


def _within(ranges: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    first, end = ranges[..., 0], ranges[..., 1]
    if np.any((first < 0) | (first > end) | (end > counts)):
        message = "ranges must lie within the postings of their part"
        raise ValueError(message)


def _postings(
    rows: NDArray[np.generic],
    frequencies: NDArray[np.generic],
    large: NDArray[np.generic],
    large_frequencies: NDArray[np.generic],
) -> None:
    length("frequencies", frequencies, len(rows), "posting")
    length("large_frequencies", large_frequencies, len(large), "element of large")


def _mask(name: str, mask: NDArray[np.generic] | None, rows: int) -> None:
    if mask is not None:
        array(name, mask, np.bool_)
        length(name, mask, rows, "row")
