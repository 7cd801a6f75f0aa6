"""Items in the lossless format: all of them travel, and what no store could hold stays out."""

from __future__ import annotations

import json

import pytest
from stand_ins import WordEmbedder

from engram.errors import EngramError, InvalidArgument
from engram.items import ItemMemory, ItemPut


@pytest.fixture
def exported(path, clock, file, open_memory):
    for agent in ("ann", None):
        with ItemMemory(path, embedder=WordEmbedder(), clock=clock, agent_id=agent) as items:
            items.put(
                [
                    ItemPut(("a", "ü"), "k", {"n": [1, None]}, ["tea time", "ball game"], 600),
                    ItemPut(("a",), "none", {"who": agent}),
                ]
            )
    assert open_memory().export_lines(file)["item"] == 4
    return file


@pytest.mark.parametrize("embedder", [WordEmbedder(), WordEmbedder(48, "other")])
def test_items_travel_with_all_they_are(exported, tmp_path, clock, open_memory, path, embedder):
    """Also where every text is embedded anew: each by itself."""
    there = tmp_path / "there.engram"
    with open_memory(path=there, embedder=embedder) as memory:
        assert memory.import_lines(exported)["item"] == 4
        assert memory.import_lines(exported, merge=True)["item"] == 0
        assert memory.check() == []
    for agent in ("ann", None):
        with (
            ItemMemory(path, embedder=WordEmbedder(), clock=clock, agent_id=agent) as old,
            ItemMemory(there, embedder=embedder, clock=clock, agent_id=agent) as new,
        ):
            assert new.search() == old.search()
            [found, last] = new.search(query="ball game")
            assert (found.score, last.score) == (pytest.approx(1.0, abs=1e-3), None)
    clock.advance(seconds=600)
    with ItemMemory(there, embedder=embedder, clock=clock) as new:
        assert [one.key for one in new.search()] == ["none"]


def test_a_value_that_is_written_another_way_is_found_by_its_members(
    exported, tmp_path, open_memory
):
    text = exported.read_text(encoding="utf-8")
    for who in ("ann", None):
        plain = json.dumps(json.dumps({"who": who}, separators=(",", ":")))
        assert plain in text
        text = text.replace(plain, json.dumps(f'{{ "wh\\u006f" : {json.dumps(who)} }}'))
    exported.write_text(text, encoding="utf-8")
    there = tmp_path / "there.engram"
    with open_memory(path=there) as memory:
        memory.import_lines(exported)
    with ItemMemory(there, embedder=WordEmbedder(), agent_id="ann") as items:
        assert [one.key for one in items.search(filter={"who": "ann"})] == ["none"]


def test_a_name_that_is_taken_stays_taken(exported, tmp_path, clock, open_memory):
    there = tmp_path / "there.engram"
    with ItemMemory(there, embedder=WordEmbedder(), clock=clock) as items:
        items.put([ItemPut(("a",), "none", {"mine": 1})])
        with open_memory(path=there) as memory:
            with pytest.raises(InvalidArgument, match="holds this id already"):
                memory.import_lines(exported)
            assert memory.count() == 0
            assert memory.import_lines(exported, merge=True)["item"] == 3
            assert memory.check() == []
        assert items.get(("a",), "none").value == {"mine": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"namespace": "{}"},
        {"namespace": '["a", "b"]'},
        {"namespace": "[1]"},
        {"namespace": "["},
        {"value": "[]"},
        {"value": '{"a": NaN}'},
        {"value": '{"a": 1, "a": 2}'},
        {"parts": "[]"},
        {"parts": "[1]"},
        {"parts": "[-1]"},
        {"parts": '["x"]'},
        {"parts": None},
        {"lifetime": 0},
        {"expires_at": None},
        {"key": 5},
        {"owner": 3},
    ],
)
def test_what_no_store_holds_is_refused(exported, tmp_path, open_memory, change):
    lines = exported.read_text(encoding="utf-8").splitlines()
    at = next(n for n, line in enumerate(lines) if '"kind":"item"' in line)
    record = {name: v for name, v in (json.loads(lines[at]) | change).items() if v is not None}
    lines[at] = json.dumps(record)
    exported.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with open_memory(path=tmp_path / "there.engram") as memory:
        with pytest.raises(EngramError):
            memory.import_lines(exported)
        assert memory.count() == 0
