"""Words near in meaning: a text with "children" has a little of what a query for "kids" asks.

A table of English words (`near_words.tsv`, made by `benchmarks/make_near_words.py`) says which are
near, and how near. It knows inflections that share no stem ("went" and "go"), other spellings, and
words of like meaning; numbers, and words of other languages, have none.
"""

from __future__ import annotations

from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.index import WordWeights
    from engram.retrieval.hybrid import Source

LEAST: Final = 0.65
"""The cosine of two words from which on they are near; there the one counts nothing for the other,
at 1 as much as itself."""

ASKED: Final = 64
"""Words of a query that have near ones, the first; all of these together are as many as a query may
have."""


def likeness(
    source: Source, keys: NDArray[np.int64], words: WordWeights
) -> NDArray[np.float64] | None:
    """Return how near to each word of the query some texts have another one, float64[n, t].

    A near word that is more common than the query's counts less, by the ratio of what finding each
    says. Of a long query the first `ASKED` words have near ones.

    Args:
        source: What is searched.
        keys: Of the texts, int64[n].
        words: What the query's words weigh in them.

    Returns:
        0 to 1; None where no word is near to one of the query's.
    """
    asked = source.terms
    near = [(at, *one) for at, stem in enumerate(islice(asked, ASKED)) for one in near_words(stem)]
    spelled = dict.fromkeys(word for _, word, _ in near)
    # Each word of the table has one stem.
    stems = dict(zip(spelled, source.stems(" ".join(spelled)), strict=True))
    near = [(at, stems[word], share) for at, word, share in near if stems[word] not in asked]
    if not near:
        return None
    columns = {
        stem: column for column, stem in enumerate(dict.fromkeys(stem for _, stem, _ in near))
    }
    others = source.weigh(keys, columns)
    alike = np.zeros(words.frequencies.shape)
    for at, stem, share in near:
        column = columns[stem]
        rarity = min(1.0, others.rarity[column] / words.rarity[at])
        has = others.frequencies[:, column] > 0
        np.maximum(alike[:, at], share * rarity, out=alike[:, at], where=has)
    return alike


def near_words(stem: str) -> list[tuple[str, float]]:
    """Return the words that are near to those with a stem, and how near, 0 to 1, nearest first."""
    pairs = (pair.split(" ") for pair in _table().get(stem, "").split("\t") if pair)
    return [(word, (int(cosine) / 100 - LEAST) / (1.0 - LEAST)) for word, cosine in pairs]


@cache
def _table() -> dict[str, str]:
    """Return the rest of the table's lines by their stems; read at the first use."""
    text = Path(__file__).with_name("near_words.tsv").read_text(encoding="ascii")
    return dict(line.split("\t", 1) for line in text.splitlines())
