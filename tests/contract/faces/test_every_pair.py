"""What one face writes, every other finds."""

from __future__ import annotations

import pytest
from contract.faces.behaviours import PAIRS


@pytest.mark.parametrize(("name", "reader"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_what_one_writes_the_other_finds(shared, name, reader, word):
    text = f"{word} is what {name} tells {reader}"
    uid = shared.writer(name).remember(text)
    [found] = [one for one in shared.face(reader).find(word) if one.id == uid]
    assert found.text.strip() == text
