"""What the trainer reads from a store of experiences."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from bare_database import START
from damage import damage
from stand_ins import WordEmbedder

from engram import errors
from engram.experience import ExperienceMemory
from engram.times import to_micros
from engram.training.rows import read_corpus

HOUR = 3_600_000_000
ZERO = to_micros(START)


@pytest.fixture
def experiences(path, clock):
    with ExperienceMemory(path, embedder=WordEmbedder(), clock=clock) as memory:
        yield memory


def snapshot(folder):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


def test_a_store_reads_as_it_was_filled(experiences, path, clock):
    first = experiences.store("red green", "did", "got", memory_type="bugfix", tags=["b", "a,c"])
    clock.advance(hours=1)
    second = experiences.store("blue", "", "")
    corpus = read_corpus(path)
    assert [row.id for row in corpus.rows] == [first.id, second.id]
    row = corpus.rows[0]
    assert (row.memory_type, row.context, row.action, row.result) == (
        "bugfix", "red green", "did", "got",
    )  # fmt: skip
    assert (row.tags, row.score, row.used_count, row.judged) == (("b", "a,c"), 0.0, 0, False)
    assert (row.created, row.last_used, row.parent_id) == (ZERO, None, None)
    assert corpus.rows[1].created == ZERO + HOUR
    expected = [WordEmbedder().vector(text) for text in ("red green", "blue")]
    assert np.allclose(corpus.vectors, expected, atol=2e-3)
    assert corpus.owners.tolist() == [0, 1]
    assert corpus.skipped == 0


def test_of_an_agent_only_its_own_memories_are_read(path, clock):
    given = {"embedder": WordEmbedder(), "clock": clock}
    ids = {}
    for name in ("alice", "bob", None):
        with ExperienceMemory(path, agent_id=name, **given) as memory:
            ids[name] = [memory.store(f"{name} {at}", "did", "got").id for at in range(2)]
    for name in ("alice", "bob"):
        corpus = read_corpus(path, agent=name)
        assert [row.id for row in corpus.rows] == ids[name]
        assert len(corpus.vectors) == len(corpus.others[0].vectors) == 2
        assert corpus.skipped == 0
    assert read_corpus(path, agent="nobody").rows == []
    assert len(read_corpus(path).rows) == 6


def test_a_database_of_the_reference_server_has_no_agents(bare):
    bare.add("m")
    with pytest.raises(errors.InvalidArgument, match="no agents"):
        read_corpus(bare.path, agent="alice")


def test_of_a_context_in_several_chunks_the_mean_counts(experiences, path):
    stored = experiences.store("one two three", "did", "got")
    plain = read_corpus(path)
    extra = WordEmbedder().vector("four").astype("<f2").tobytes()
    damage(experiences, "UPDATE embedding SET chunk = chunk + 10 WHERE field > 0")
    experiences._store._connection.execute(
        "INSERT INTO embedding (episode, chunk, model, vector, field)"
        " SELECT episode, chunk + 1, model, ?, 0 FROM embedding WHERE field = 0",
        (extra,),
    )
    corpus = read_corpus(path)
    both = plain.vectors[0] + WordEmbedder().vector("four")
    assert corpus.rows[0].id == stored.id
    assert np.allclose(corpus.vectors, both / np.linalg.norm(both), atol=2e-3)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE episode SET status = 'superseded' WHERE id = 2",
        "UPDATE episode SET status = 'archived' WHERE id = 2",
        "UPDATE episode SET forgotten_at = 1 WHERE id = 2",
        "UPDATE episode SET invalidated_at = 1 WHERE id = 2",
        "UPDATE episode SET quarantined = 1 WHERE id = 2",
        "UPDATE experience SET memory_type = 'insight' WHERE episode = 2",
    ],
)
def test_what_hides_in_a_store_is_left_out(experiences, path, sql):
    ids = [experiences.store(text, "", "").id for text in ("a", "b", "c")]
    experiences._store._connection.execute(sql)
    corpus = read_corpus(path)
    assert [row.id for row in corpus.rows] == [ids[0], ids[2]]
    assert corpus.owners.tolist() == [0, 1]
    assert corpus.skipped == 0


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE episode SET content = CAST(x'ff410a0a' AS TEXT) WHERE id = 2",
        "UPDATE episode SET uid = 7 WHERE id = 2",
        "UPDATE episode SET uid = CAST(x'ff41' AS TEXT) WHERE id = 2",
        'UPDATE experience SET given_times = \'{"updated_at": "once"}\' WHERE episode = 2',
        "UPDATE experience SET memory_type = CAST(x'ff' AS TEXT) WHERE episode = 2",
        "UPDATE experience SET parent = 7 WHERE episode = 2",
        "UPDATE embedding SET vector = x'00' WHERE episode = 2",
        "UPDATE episode SET occurred_at = 9223372036854775807 WHERE id = 2",
        "UPDATE label SET name = CAST(x'ff' AS TEXT)",
    ],
)
def test_damage_in_a_store_costs_one_row(experiences, path, sql):
    ids = [
        experiences.store(text, "", "", tags=["t"] if text == "b" else None).id for text in "abc"
    ]
    damage(experiences, sql)
    corpus = read_corpus(path)
    assert corpus.skipped == 1
    assert {ids[0], ids[2]} <= {row.id for row in corpus.rows}
    assert {ids[0], ids[2]} <= {corpus.rows[at].id for at in corpus.owners}


def test_times_as_an_import_spelled_them(experiences, path):
    experiences.store("a", "", "")
    damage(
        experiences,
        "UPDATE experience SET given_times ="
        ' \'{"created_at": "2025-06-01T12:00:00+02:00", "last_used_at": "2025-06-02"}\'',
    )
    [row] = read_corpus(path).rows
    assert row.created == to_micros(START.replace(year=2025, month=6, hour=10))
    assert row.last_used == to_micros(START.replace(year=2025, month=6, day=2))
    assert row.updated == ZERO


def test_a_store_that_is_open_is_read_and_left(experiences, path):
    experiences.store("a", "", "")
    before = snapshot(path.parent)
    assert len(read_corpus(path).rows) == 1
    # The index of the log's pages is shared memory.
    after = snapshot(path.parent)
    assert before.keys() == after.keys()
    assert before[path.name] == after[path.name]
    experiences.store("b", "", "")
    assert len(read_corpus(path).rows) == 2


def test_an_encrypted_store_needs_its_key(path, clock):
    with ExperienceMemory(path, key="secret", embedder=WordEmbedder(), clock=clock) as memory:
        memory.store("a", "", "")
    before = snapshot(path.parent)
    assert len(read_corpus(path, "secret").rows) == 1
    for key in (None, "other"):
        with pytest.raises(errors.NotAStore):
            read_corpus(path, key)
    assert snapshot(path.parent) == before


def test_stores_of_other_versions_are_refused(experiences, path):
    experiences.store("a", "", "")
    experiences._store._connection.execute("PRAGMA user_version = 3")
    with pytest.raises(errors.NotAStore, match="older"):
        read_corpus(path)
    experiences._store._connection.execute("PRAGMA user_version = 999")
    with pytest.raises(errors.StoreTooNew):
        read_corpus(path)
