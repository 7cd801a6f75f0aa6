"""Headings: who said something, and when, is embedded and searched in front of what was said."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from older import older
from stand_ins import WordEmbedder

from engram import Engram, ObserveInput
from engram.errors import InvalidArgument

MAY = datetime(2023, 5, 8, 23, 30, tzinfo=UTC)
TEXT = "I went to the harbour"


def distance(memory, query):
    """How far the nearest episode is from a text, 0.0: it is what was embedded."""
    return memory.recall(query, 1, mode="cosine")[0].distance


@pytest.mark.parametrize(
    ("actors", "at", "before"),
    [
        (["Caroline"], MAY, "Caroline (8 May 2023): "),
        (["Caroline"], MAY.astimezone(timezone(timedelta(hours=9))), "Caroline (8 May 2023): "),
        ([" Ann Lee\t", "", "Bob"], MAY, "Ann Lee, Bob (8 May 2023): "),
        (["user", "Ann"], MAY, "Ann (8 May 2023): "),
        (["王小明"], datetime(1, 12, 31, tzinfo=UTC), "王小明 (31 December 1): "),
        (["a", "b", "c", "d"], MAY, "a, b, c, d (8 May 2023): "),
        (["a", "b", "c", "d", "e"], MAY, ""),
        (["n" * 100], MAY, f"{'n' * 100} (8 May 2023): "),
        (["n" * 50, "m" * 51], MAY, ""),
        (["  "], MAY, ""),
        ([], MAY, ""),
        *(
            ([role], MAY, "")
            for role in ("user", "Assistant", "Human", " AI ", "bot", "System", "tool", "model")
        ),
        (["user", "agent"], MAY, ""),
        *(([name], MAY, f"{name} (8 May 2023): ") for name in ("Bot", "Ai", "Agent", "Model")),
    ],
)
def test_what_stands_in_front_of_a_text(memory, actors, at, before):
    uid = memory.observe(TEXT, actors=actors, timestamp=at)
    assert distance(memory, before + TEXT) == 0.0
    assert memory.get(uid).content == TEXT
    assert memory.check() == []


@pytest.mark.parametrize(
    ("query", "number"),
    [("Caroline", 1), ("CAROLINE", 1), ("小明", 2), ("May", 1), ("2020", 2), ("zoe", 3)],
)
def test_names_and_dates_are_found_as_words(memory, query, number):
    ids = [
        memory.observe(TEXT),
        memory.observe(TEXT, actors=["Caroline"], timestamp=MAY),
        memory.observe(TEXT, actors=["王小明"], timestamp=datetime(2020, 12, 1, tzinfo=UTC)),
        memory.observe(f"暗号 {TEXT}", actors=["Zoë"], timestamp=datetime(2021, 6, 1, tzinfo=UTC)),
    ]
    assert [hit.episode.id for hit in memory.recall(query, vector_weight=0)] == [ids[number]]


def test_an_erased_name_is_in_no_file(path):
    with Engram(path, embedder=WordEmbedder()) as memory:
        memory.observe_many([ObserveInput(TEXT, actors=["Xanthippe"]), ObserveInput(TEXT)])
        assert memory.forget_entity("Xanthippe").episodes_deleted == 1
    assert b"xanthip" not in path.read_bytes().lower()


def test_a_heading_stays_when_the_store_changes_its_model(memory):
    memory.observe(TEXT, actors=["Ann"], timestamp=MAY)
    memory.reembed(embedder=WordEmbedder(dim=16, fingerprint="others"))
    assert distance(memory, f"Ann (8 May 2023): {TEXT}") == 0.0


def test_a_document_without_vectors_gets_headings_anew(memory, open_memory, file, tmp_path):
    memory.observe(TEXT, actors=["Ann"], timestamp=MAY)
    memory.export_json(file)
    other = open_memory(path=tmp_path / "other.engram")
    other.import_json(file)
    assert distance(other, f"Ann (8 May 2023): {TEXT}") == 0.0
    assert other.recall("Ann", 1, vector_weight=0)[0].score > 0
    assert other.check() == []


@pytest.fixture
def old(monkeypatch, path):
    """A store of before headings."""
    with older(monkeypatch, 5), Engram(path, embedder=WordEmbedder()) as memory:
        memory.observe_many(
            [
                ObserveInput("Where to?", actors=["Ann"], timestamp=MAY),
                ObserveInput(TEXT, actors=["Bob"], timestamp=MAY),
            ]
        )
    return path


def test_what_an_older_version_wrote_is_found_as_it_was(old, open_memory):
    memory = open_memory()
    assert memory.check() == []
    assert distance(memory, TEXT) == 0.0
    assert memory.recall("harbour", 1, vector_weight=0)[0].episode.content == TEXT
    assert memory.recall("Bob", vector_weight=0) == []
    uid = memory.observe("And then?", actors=["Bob"], timestamp=MAY)
    assert [hit.episode.id for hit in memory.recall("Bob", vector_weight=0)] == [uid]
    memory.forget(memory.recall("harbour", 1)[0].episode.id)
    assert memory.check() == []


@pytest.mark.parametrize("headed", [True, False])
def test_vectors_and_the_heading_in_them_travel_together(old, open_memory, tmp_path, file, headed):
    memory = open_memory(path=tmp_path / "new.engram") if headed else open_memory()
    if headed:
        memory.observe(TEXT, actors=["Bob"], timestamp=MAY)
    memory.export_lines(file)
    assert ('"heading"' in file.read_text()) == headed
    copy = open_memory(path=tmp_path / "copy.engram")
    copy.import_lines(file)
    copy.export_lines(file.with_name("again"))
    assert file.with_name("again").read_bytes() == file.read_bytes()
    assert distance(copy, f"Bob (8 May 2023): {TEXT}" if headed else TEXT) == 0.0
    found = [hit.episode.content for hit in copy.recall("Bob", vector_weight=0)]
    assert found == ([TEXT] if headed else [])
    assert copy.check() == []


@pytest.mark.parametrize("change", [{"heading": "Eve (8 May 2023):"}, {"heading": 1}])
def test_a_heading_that_is_not_of_the_actors_is_refused(
    memory, open_memory, tmp_path, file, change
):
    memory.observe(TEXT, actors=["Ann"], timestamp=MAY)
    memory.export_lines(file)
    header, line = file.read_text().splitlines()[:2]
    file.write_text(f"{header}\n{json.dumps(json.loads(line) | change)}\n")
    copy = open_memory(path=tmp_path / "copy.engram")
    with pytest.raises(InvalidArgument, match=r"line 2\.heading must be"):
        copy.import_lines(file)
    assert copy.count() == 0


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE episode SET heading = 'Eve (8 May 2023):'",
        "UPDATE episode SET heading = 'Ann (8 May 2023):', occurred_at = 0",
        "DELETE FROM episode_label",
        "UPDATE episode SET occurred_at = 9000000000000000000",
    ],
)
def test_the_check_finds_a_heading_that_cannot_be(memory, damage):
    memory.observe(TEXT, actors=["Ann"], timestamp=MAY)
    with memory._store.writing():
        memory._store._connection.execute(damage)
    assert "1 episodes have a heading that is not of their actors and time" in memory.check()
