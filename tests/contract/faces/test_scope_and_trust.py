"""Whose a memory is, and where it is from."""

from __future__ import annotations

import pytest
from contract.faces.behaviours import shows


@pytest.fixture
def theirs(shared, name, word):
    """A memory that the same face kept for another agent, and nobody's."""
    return shared.writer(name, "ana").remember(word), shared.writer(name).remember(word)


@shows("scope.find")
def test_only_ones_own_is_found(shared, name, word, theirs):
    face = shared.face(name, "ben")
    own = shared.writer(name, "ben").remember(f"{word} of his own")
    assert {found.id for found in face.find(word, 20)} & {own, *theirs} == {own}


@shows("scope.get")
def test_only_ones_own_is_read(shared, name, theirs):
    for uid in theirs:
        with shared.face(name, "ben").refuses("missing"):
            shared.face(name, "ben").get(uid)


@shows("scope.erase")
def test_only_ones_own_is_erased(shared, name, word, theirs):
    for uid in theirs:
        with shared.face(name, "ben").refuses("missing"):
            shared.face(name, "ben").erase(uid)
        assert shared.operator.get(uid).content == word


@shows("trust.kept")
def test_where_it_is_from_is_told(face, word):
    sources = {
        face.remember(f"{word} {source}", provenance=source): source
        for source in ("user", "tool", "external")
    }
    assert {found.id: found.provenance for found in face.find(word, 3)} == sources


@shows("trust.unlike")
@pytest.mark.parametrize("source", ["boss", "unknown", ""])
def test_a_source_that_does_not_exist_is_refused(face, word, source):
    with face.refuses("choice"):
        face.remember(word, provenance=source)


@shows("trust.quarantine")
def test_quarantine_is_told(face, word):
    marked = {
        face.remember(f"{word} read", quarantined=True): True,
        face.remember(f"{word} heard", quarantined=False): False,
    }
    assert {found.id: found.quarantined for found in face.find(word, 2)} == marked
