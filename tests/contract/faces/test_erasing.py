"""What is erased is gone: from every face, and from the files. What is hidden can come back."""

from __future__ import annotations

import pytest
from contract.faces.behaviours import reason, shows
from contract.faces.registry import FACES
from files import every_byte


@pytest.fixture
def project(tmp_path):
    return str(tmp_path)


@pytest.fixture
def two(shared, writer, word, project):
    """A memory that the face kept itself, and one that the library kept for a project."""
    return writer.remember(f"{word} goes"), shared.operator.remember(f"{word} too", project=project)


def found(shared, word, project, among):
    """Which of some memories each way of each face leads to."""
    ways = {}
    for face in map(shared.face, FACES):
        ways[face.about] = {one.id for one in face.find(word)} & among
        if "listed" in vars(type(face)):
            ways[f"{face.about}, listed"] = {one.id for one in face.listed(project)} & among
    return ways


@shows("erase.gone")
def test_what_is_erased_no_face_finds(shared, face, writer, word, project, two):
    left = writer.remember(f"{word} stays")
    every = {*two, left}
    before = found(shared, word, project, every)
    assert set().union(*before.values()) == every
    for each in map(shared.face, FACES):
        if reason(type(each), "pairs.found") is None:
            assert before[each.about] == every
    eraser = face if "erase" in face.verbs() else writer
    gone = two if reason(type(face), "pairs.found") is None else two[:1]
    for uid in gone:
        eraser.erase(uid)
        for each in map(shared.face, FACES):
            if reason(type(each), "get.unknown") is None:
                with each.refuses("missing"):
                    each.get(uid)
    after = found(shared, word, project, every)
    assert after == {way: ids - {*gone} for way, ids in before.items()}


@shows("erase.name")
def test_all_that_names_somebody_is_erased(shared, face, word, project, two):
    every = {*two, shared.operator.observe("It was somebody", actors=[word])}
    assert any(found(shared, word, project, every).values())
    face.erase_named(word)
    assert not any(found(shared, word, project, every).values())
    with shared.face("python").refuses("missing"):
        shared.face("python").get(max(every))


@shows("erase.bytes")
def test_what_is_erased_is_in_no_file(new_place, name, word):
    place = new_place()
    face = place.face(name)
    uid = face.remember(f"{word} is to go")
    face.remember("This is to stay")
    for reader in (face, place.face("python")):
        assert reader.find(f"who is {word}")[0].id == uid
    face.erase(uid)
    place.close()
    assert b"This is to stay" in every_byte(place.store)
    assert word.encode() not in every_byte(place.store)


@shows("erase.unknown")
@pytest.mark.parametrize("erased", [False, True], ids=["never", "no more"])
def test_what_is_not_there_cannot_be_erased(face, word, erased):
    uid = "01890a5d-ac96-774b-bcce-b302099a8057"
    if erased:
        uid = face.remember(word)
        face.erase(uid)
    with face.refuses("missing"):
        face.erase(uid)


@shows("hide.restored")
def test_what_is_hidden_comes_back(shared, face, word, project, two):
    before = found(shared, word, project, {*two})
    assert set().union(*before.values()) == {*two}
    for uid in two:
        face.hide(uid)
    assert not any(found(shared, word, project, {*two}).values())
    for uid in two:
        face.restore(uid)
    assert found(shared, word, project, {*two}) == before
