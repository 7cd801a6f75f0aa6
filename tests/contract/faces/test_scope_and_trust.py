"""Whose a memory is, and where it is from."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from contract.faces.behaviours import reason, shows


@pytest.fixture
def theirs(shared, name, word):
    """A memory that the same face kept for another agent, and nobody's."""
    return shared.face(name, "ana").remember(word), shared.face(name).remember(word)


@shows("scope.find")
def test_only_ones_own_is_found(shared, name, word, theirs):
    face = shared.face(name, "ben")
    own = face.remember(f"{word} of his own")
    assert {found.id for found in face.find(word, 20)} & {own, *theirs} == {own}


@shows("scope.get")
def test_only_ones_own_is_read(shared, name, theirs):
    for uid in theirs:
        with shared.face(name, "ben").refuses("missing"):
            shared.face(name, "ben").get(uid)


@shows("scope.erase")
def test_only_ones_own_is_erased(shared, name, word, theirs):
    face = shared.face(name, "ben")
    says = reason(type(face), "erase.unknown") is None
    for uid in theirs:
        with face.refuses("missing") if says else nullcontext():
            face.erase(uid)
        assert shared.operator.get(uid).content == word


@shows("trust.told")
def test_where_it_is_from_is_told(shared, face, word):
    sources = {
        shared.operator.observe(f"{word} {source}", provenance=source): source
        for source in ("user", "tool", "external")
    }
    assert {found.id: found.provenance for found in face.find(word, 3)} == sources


@shows("trust.marked")
def test_quarantine_is_told(shared, face, word):
    marked = {
        shared.operator.observe(f"{word} {mark}", quarantined=mark): mark for mark in (True, False)
    }
    assert {found.id: found.quarantined for found in face.find(word, 2)} == marked


@shows("trust.declared")
@pytest.mark.parametrize("source", ["user", "tool", "external"])
def test_the_source_that_is_declared_is_kept(shared, face, word, source):
    assert shared.operator.get(face.remember(word, provenance=source)).provenance == source


@shows("trust.unlike")
@pytest.mark.parametrize("source", ["boss", "unknown", ""])
def test_a_source_that_does_not_exist_is_refused(face, word, source):
    with face.refuses("choice"):
        face.remember(word, provenance=source)


@shows("trust.quarantine")
def test_who_had_read_untrusted_words_says_so(shared, face, word):
    assert shared.operator.get(face.remember(word, quarantined=True)).quarantined


@pytest.fixture
def session(new_place, name):
    """The face in a session that has just begun; it was given the user's trust."""
    return new_place().face(name)


@shows("trust.lowered")
def test_nobody_can_claim_more_trust(session, word):
    with session.refuses("choice"):
        session.remember(word, provenance="user")
    assert mark(session, session.remember(word)) == ("user", False)
    assert mark(session, session.remember(word, provenance="tool")) == ("tool", True)


@shows("trust.clean")
def test_the_user_s_own_words_leave_a_session_clean(session, word):
    for _ in range(2):
        uid = session.remember(word)
        assert uid in {found.id for found in session.find(word)}
        assert mark(session, uid) == ("user", False)


@shows("trust.session")
def test_after_other_words_all_is_quarantined(session, word):
    session.place.operator.observe(word, provenance="external")
    assert session.find(word)
    for _ in range(2):
        provenance, quarantined = mark(session, session.remember(word))
        assert (provenance != "user", quarantined) == (True, True)


def mark(face, uid):
    kept = face.place.operator.get(uid)
    return kept.provenance, kept.quarantined
