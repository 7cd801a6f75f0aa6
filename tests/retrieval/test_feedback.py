"""The words that the best candidates share."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engram.retrieval.feedback import further_words, telling_terms


@given(st.integers(0, 5), st.integers(0, 12), st.integers(0, 999))
def test_the_terms_worth_most_are_taken(texts: int, terms: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    frequencies = random.integers(0, 3, size=(texts, terms)).astype(np.float32)
    rarity = random.integers(0, 4, size=terms).astype(np.float64)
    worth = {
        term: rarity[term] * having if having > 1 else 0.0
        for term in range(terms)
        for having in [sum(frequencies[text, term] > 0 for text in range(texts))]
    }
    expected = sorted((t for t in worth if worth[t] > 0), key=lambda t: (-worth[t], t))
    assert telling_terms(frequencies, rarity).tolist() == expected[:5]


def test_words_of_several_texts_that_are_in_no_form_in_the_query_are_further_ones() -> None:
    def words_of(text: str) -> dict[str, str]:
        return {word.lower().removesuffix("s"): word for word in reversed(text.split())}

    texts = ["Wings Tunnels flutter call", "flutters wing", "tunnel flutter"]
    assert further_words(texts, "the wing", words_of) == ["flutter", "Tunnels"]
