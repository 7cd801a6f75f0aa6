"""Which texts of a value `EngramStore` searches."""

from __future__ import annotations

import pytest
from stand_ins import WordEmbedder

from engram import Engram
from engram.adapters.langgraph import EngramStore


@pytest.mark.parametrize("blank", ["", " ", "\n\t", None])
def test_a_blank_text_is_not_searched(path, blank):
    with EngramStore(path, embedder=WordEmbedder(), index={"fields": ["text", "more"]}) as store:
        store.put(("a",), "blank", {"text": blank})
        store.put(("a",), "tea", {"text": "green tea", "more": blank})
        found = [(one.key, one.score is None) for one in store.search(("a",), query="whale")]
        assert found == [("tea", False), ("blank", True)]
    with Engram(path, embedder=WordEmbedder()) as memory:
        assert [one.content for one in memory.episodes().episodes] == ["green tea"]
