"""Make `engram/retrieval/near_words.tsv`: English words that are near each other in meaning.

Run from a checkout with an environment that has engram:

    python benchmarks/make_near_words.py

The words are those of the vocabulary of the packaged model, all-MiniLM-L6-v2, of each stem the most
frequent, which that vocabulary has first. How near two are is the cosine of what the model makes of
each by itself. Numbers and dates are left out, for others of them are near and never meant; so are
stop words, and words that are an insult or that make one of whom they are near to.

A line has the stem of a word, as the store's full text has it, and up to `MOST` words that are at
least `LEAST` near, the nearest first, each with its cosine in hundredths.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from engram import Engram
from engram.embedding import resolve
from engram.retrieval.near_words import LEAST
from engram.storage.stop_words import STOP_WORDS

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "engram/retrieval/near_words.tsv"
TOKENIZER = ROOT / "engram/embedding/models/all-MiniLM-L6-v2/tokenizer.json"
MOST = 4

COUNTED = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
    hundred thousand million billion dozen first second third fourth fifth sixth seventh eighth
    ninth tenth eleventh twelfth twentieth half quarter double triple monday tuesday wednesday
    thursday friday saturday sunday weekday january february march april may june july august
    september october november december mon tue wed thu fri sat sun jan feb mar apr jun jul aug sep
    sept oct nov dec
"""
INSULTS = "clit cum fag hooker islamist negro nigger porn pornographic pornography sexy slut whore"
LEFT_OUT = STOP_WORDS.union(COUNTED.split(), INSULTS.split())


def words() -> dict[str, str]:
    """Return the words by their stems."""
    vocabulary = Tokenizer.from_file(str(TOKENIZER)).get_vocab()
    known = [one for one in vocabulary if re.fullmatch("[a-z]{3,}|go|tv|ad", one)]
    found: dict[str, str] = {}
    with Engram() as memory, memory._store.reading():  # noqa: SLF001 - as it is searched
        for word in sorted(set(known) - LEFT_OUT, key=vocabulary.__getitem__):
            for stem in memory._store.text.words_of(word):  # noqa: SLF001
                found.setdefault(stem, word)
    return dict(sorted(found.items()))


def lines(found: dict[str, str]) -> list[str]:
    """Return the lines of the table."""
    stems, spelled = list(found), list(found.values())
    vectors = resolve(None).embed(spelled)
    made = []
    for at, stem in enumerate(stems):
        near = vectors @ vectors[at]
        near[at] = -1.0
        nearest = [
            f"{spelled[other]} {near[other] * 100:.0f}"
            for other in np.argsort(-near, kind="stable")[:MOST]
            if near[other] >= LEAST
        ]
        if nearest:
            made.append("\t".join((stem, *nearest)))
    return made


if __name__ == "__main__":
    TABLE.write_text("\n".join(lines(words())) + "\n", encoding="ascii")
