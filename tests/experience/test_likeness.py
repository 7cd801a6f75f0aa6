"""Groups of alike experiences, compared with a search through all pairs."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.cognition.likeness import Vocabulary
from engram.cognition.similar import similar
from engram.storage.consolidations import Candidate

THRESHOLD = 0.9
_WORDS = st.sampled_from(["a", "b", "c", "d", "e", "f", "v1", "v2", "早", "\N{FIRE}"])
_PART = st.lists(_WORDS, max_size=6).map(" ".join)
_VECTOR = st.sampled_from([(1.0, 0.0), (0.95, 0.312), (0.8, 0.6), (0.0, 0.0)])
_EXPERIENCE = st.tuples(
    st.tuples(_PART, _PART, _PART),
    st.one_of(st.none(), st.tuples(_VECTOR, _VECTOR, _VECTOR)),
    st.sampled_from(["decision", "decision", "bugfix"]),
    st.sampled_from([None, None, "web"]),
)


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text)) or ({text.strip()} if text.strip() else set())


def likeness(one, other) -> float | None:
    """How alike two are, None where they are not: the definition, word for word."""
    (texts, vectors, *kind), (others, other_vectors, *other_kind) = one, other
    if kind != other_kind:
        return None
    shares, cosines = [], []
    for part, (text, against) in enumerate(zip(texts, others, strict=True)):
        mine, theirs = words(text), words(against)
        if not mine and not theirs:
            continue
        if {w for w in mine ^ theirs if any(map(str.isdigit, w))}:
            return None
        shares.append(len(mine & theirs) / len(mine | theirs))
        if vectors and other_vectors and any(vectors[part]) and any(other_vectors[part]):
            cosines.append(
                float(np.dot(np.float32(vectors[part]), np.float32(other_vectors[part])))
            )
    if not shares or min(shares) <= 0.5:
        return None
    if len(cosines) < len(shares):
        return min(shares) if min(shares) >= 0.9 else None
    cosine = min(1.0, round(min(cosines), 5))
    return cosine if cosine >= THRESHOLD else None


@settings(max_examples=300)
@given(st.lists(_EXPERIENCE, max_size=25), st.sampled_from([1, 2, 5, 2048]))
def test_groups_are_those_of_a_search_through_all_pairs(experiences, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engram.cognition.similar._BLOCK", block)
        compare(experiences)


def compare(experiences):
    expected: dict[int, list[int]] = {}
    for number, one in enumerate(experiences):
        alike = [(likeness(one, experiences[other]), other) for other in expected]
        found = [(value, -other) for value, other in alike if value is not None]
        if found:
            expected[-max(found)[1]].append(number)
        else:
            expected[number] = []
    vocabulary = Vocabulary()
    ranked = [
        (
            Candidate(n, f"m{n}", None, 0, kind, project, bytes(16), 0, 0.0, None, orphaned=False),
            vocabulary.read(texts),
        )
        for n, (texts, _, kind, project) in enumerate(experiences)
    ]
    stored = {
        n: np.array(vectors, dtype=np.float32)
        for n, (_, vectors, *_) in enumerate(experiences)
        if vectors is not None
    }
    groups = similar(
        ranked,
        vocabulary,
        lambda keys: {key: stored[key] for key in keys if key in stored},
        THRESHOLD,
    )
    assert {group.survivor.key: [one.key for one in group.others] for group in groups} == {
        survivor: members for survivor, members in expected.items() if members
    }
    for group in groups:
        survivor = experiences[group.survivor.key]
        every = [likeness(experiences[one.key], survivor) for one in group.others]
        assert abs(group.similarity - min(every)) < 1e-6
