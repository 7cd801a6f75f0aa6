from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from contract.faces.face import Face
from contract.faces.place import Place


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The store that all faces share; tests tell their memories apart by a word of their own."""
    place = Place(tmp_path_factory.mktemp("p"))
    yield place
    place.close()


@pytest.fixture
def new_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Place]]:
    with ExitStack() as stack:

        def made(folder: Path | None = None) -> Place:
            place = Place(folder or tmp_path_factory.mktemp("p"))
            stack.callback(place.close)
            return place

        yield made


@pytest.fixture
def word(request: pytest.FixtureRequest) -> str:
    """A word that no other test has."""
    digest = hashlib.blake2b(request.node.nodeid.encode(), digest_size=8).hexdigest()
    return "w" + digest.translate(str.maketrans("0123456789abcdef", "bcdfghjklmnpqrst"))


@pytest.fixture
def face(shared: Place, name: str) -> Face:
    """The face that the test is run with."""
    return shared.face(name)


@pytest.fixture
def writer(shared: Place, name: str) -> Face:
    """The same in a session that reads nothing, or the library where the face only reads."""
    return shared.writer(name)
