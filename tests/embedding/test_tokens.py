from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engram.embedding.digest import contains
from engram.embedding.tokens import TextTokens

if TYPE_CHECKING:
    from pathlib import Path

    from engram.embedding import LocalModel


@pytest.fixture(scope="module")
def tokens(packaged_local: LocalModel) -> TextTokens:
    return TextTokens(packaged_local.tokenizer)


def test_stored_truncation_and_padding_are_off(tokens: TextTokens) -> None:
    assert len(tokens.encode("word " * 1000)) == 1000
    assert len(tokens.encode("word")) == 1
    assert len(tokens.encode("")) == 0


def test_the_frame_is_the_models(tokens: TextTokens) -> None:
    assert tokens.specials == 2
    assert tokens.padding_id == 0
    assert tokens.framed(tokens.encode("hello")).tolist() == [101, 7592, 102]


def test_a_needle_across_two_blocks_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for at in (0, (1 << 20) - 4, (1 << 20) - 9, (1 << 20) * 2 - 1):
        path.write_bytes(bytes(at) + b"a needle!" + bytes(50))
        assert contains(path, b"a needle!")
    assert not contains(path, b"another")
