"""Storing keeps every text once, whatever the embedder does and whoever else is writing."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from small_segments import LIMITS
from stand_ins import WordEmbedder

from engram import Engram
from engram.errors import InvalidArgument, InvalidType, ModelMismatch, ModelMissing, NotFound
from engram.experience import ExperienceMemory
from engram.ledger import Ledger
from engram.storage import MEMORY_TYPES

TEXTS = ("the login failed", "renew the token", "users stay signed in")


class Turned(WordEmbedder):
    """Each text that has an angle after "@" is at that angle from the others."""

    def vector(self, text: str) -> np.ndarray:
        words, at, angle = text.partition("@")
        if not at:
            return super().vector(text)
        one, other = super().vector(words + "x"), super().vector("another")
        other -= one * (one @ other)
        turn = np.radians(float(angle))
        return np.cos(turn) * one + np.sin(turn) * other / np.linalg.norm(other)


class Failing(WordEmbedder):
    """Raises when it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error

    def embed(self, texts: list[str]) -> np.ndarray:
        if self.error is not None:
            raise self.error
        return super().embed(texts)


class Broken(WordEmbedder):
    def embed(self, texts: list[str]) -> np.ndarray:
        return np.full((len(texts), self.dim), np.nan)


def test_it_comes_back_as_it_was_given(experiences):
    texts = ("ctx \U0001f600\nwith a line ", "", "\0é\n")
    stored = experiences.store(*texts, memory_type="bugfix", tags=" a ,b", project=" any text")
    assert (stored.indexed, stored.deduplicated) == (True, False)
    found = experiences.get(stored.id)
    assert (found.context, found.action, found.result) == texts
    assert (found.memory_type, found.tags, found.project) == ("bugfix", ("a", "b"), " any text")
    assert (found.score, found.used_count, found.last_used_at) == (0.0, 0, None)
    assert found.created_at == found.updated_at == "2026-01-01T00:00:00Z"
    assert experiences.check() == []


def test_it_is_an_episode_of_the_project_that_is_a_path(experiences, open_memory, tmp_path):
    folder = tmp_path / "atlas"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    for project in (str(folder), str(tmp_path / "link"), "atlas", "~", "/\0", None):
        experiences.store("a", "b", "c", project=project)
    rows = experiences._store._connection.execute(
        "SELECT project_path, project_conflict, source_type, provenance, agent FROM episode"
    ).fetchall()
    assert [row[0] for row in rows] == [str(folder), str(folder), None, None, None, None]
    assert {row[1:] for row in rows} == {(0, "socket", "external", None)}
    assert open_memory().count() == 6


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"context": "é" * 5001}, InvalidArgument),
        ({"action": "x" * 10_001}, InvalidArgument),
        ({"result": "x" * 10_001}, InvalidArgument),
        ({"context": None}, InvalidType),
        ({"action": "\ud800"}, InvalidArgument),
        ({"memory_type": "opinion"}, InvalidArgument),
        ({"memory_type": 1}, InvalidType),
        ({"tags": [1]}, InvalidType),
        ({"project": 1}, InvalidType),
        ({"threshold": 0.0}, InvalidArgument),
        ({"threshold": 1.5}, InvalidArgument),
        ({"threshold": float("nan")}, InvalidArgument),
    ],
)
def test_what_is_refused_leaves_nothing(experiences, change, error):
    arguments = {"context": "a", "action": "b", "result": "c", **change}
    with pytest.raises(error, match=next(iter(change))):
        experiences.store(**arguments)
    assert experiences.status().episodes == 0


def test_the_longest_texts_are_kept(experiences):
    texts = ["é" * 5000, "x" * 10_000, "\n" * 10_000]
    found = experiences.get(experiences.store(*texts).id)
    assert [found.context, found.action, found.result] == texts


# Deduplication.


def test_the_same_texts_are_kept_once(experiences, clock):
    first = experiences.store(*TEXTS, tags=["a"])
    clock.advance(hours=1)
    again = experiences.store(*TEXTS, tags=["b", "a"])
    assert (again.id, again.indexed, again.deduplicated) == (first.id, True, True)
    [found] = experiences.export()
    assert (found.used_count, found.last_used_at) == (1, "2026-01-01T01:00:00Z")
    assert found.tags == ("a", "b")
    assert found.updated_at == "2026-01-01T00:00:00Z"


def test_tags_that_come_twice_stay_so(experiences):
    experiences.store(*TEXTS, tags=["a", "a", "b"])
    experiences.store(*TEXTS, tags=["b", "c", "c"])
    [found] = experiences.export()
    assert found.tags == ("a", "a", "b", "c")


def test_other_types_projects_and_agents_are_others(opened):
    ann, bob, operator = opened("ann"), opened("bob"), opened()
    # The operator's come first: an agent that never wrote has none of them.
    for memory in (operator, ann, bob):
        for memory_type in MEMORY_TYPES:
            for project in (None, "one", "two"):
                stored = memory.store(*TEXTS, memory_type=memory_type, project=project)
                assert not stored.deduplicated
    for memory in (ann, bob, operator):
        for project in (None, "one", "two"):
            assert memory.store(*TEXTS, project=project).deduplicated
    assert len(ann.export()) == 18
    assert len(operator.export()) == 54


def test_nothing_like_it_is_of_an_agent_that_never_wrote(opened):
    nobodys = opened().store(*TEXTS).id
    like_it = "  ".join(TEXTS[0].split()), *TEXTS[1:]
    stored = opened("ann").store(*like_it)
    assert (stored.deduplicated, stored.id == nobodys) == (False, False)
    assert opened("bob").store(*TEXTS).id not in {nobodys, stored.id}
    assert [one.used_count for one in opened().export()] == [0, 0, 0]


@pytest.mark.parametrize(("angle", "same"), [(10, True), (17, True), (19, False)])
@pytest.mark.parametrize("part", range(3))
def test_all_parts_must_mean_the_same(opened, part, angle, same):
    # cos 18.19° is 0.95.
    memory = opened(embedder=Turned())
    texts = ["c@0", "a@0", "r@0"]
    first = memory.store(*texts)
    texts[part] = f"{texts[part][0]}@{angle}"
    again = memory.store(*texts)
    assert (again.id == first.id) == again.deduplicated == same


def test_the_threshold_is_the_callers(opened):
    memory = opened(embedder=Turned())
    memory.store("c@0", "a@0", "r@0")
    assert not memory.store("c@10", "a@0", "r@0", threshold=0.99).deduplicated
    assert memory.store("c@3", "a@0", "r@0", threshold=0.99).deduplicated
    assert not memory.store("c@0 ", "a@0", "r@0", threshold=1.0).deduplicated
    assert memory.store("c@0", "a@0", "r@0", threshold=1.0).deduplicated


def test_the_best_of_several_is_used_and_of_equals_the_oldest(opened):
    memory = opened(embedder=Turned())
    ids = [memory.store(f"c@{a}", "a@0", "r@0", threshold=1.0).id for a in (14, 8, 0)]
    assert memory.store("c@5", "a@0", "r@0").id == ids[1]
    assert memory.store("c@4", "a@0", "r@0", memory_type="pattern").deduplicated is False
    equal = [memory.store(f"d@{a}", "a@0", "r@0", threshold=1.0).id for a in ("5", "5 ", " 5")]
    assert memory.store("d@0", "a@0", "r@0").id == equal[0]


def test_a_blank_part_is_like_no_other(experiences):
    experiences.store(TEXTS[0], "", TEXTS[2])
    assert not experiences.store(TEXTS[0], TEXTS[1], TEXTS[2]).deduplicated
    assert experiences.store(TEXTS[0], " \n", TEXTS[2]).deduplicated
    assert not experiences.store("", " ", "").deduplicated
    assert not experiences.store("", "", "").deduplicated
    assert experiences.store("", "", "").deduplicated


@pytest.mark.parametrize("status", ["superseded", "archived", "forgotten", "quarantined"])
def test_what_no_search_finds_is_not_used_again(experiences, status):
    first = experiences.store(*TEXTS)
    column = {"forgotten": "forgotten_at = 1", "quarantined": "quarantined = 1"}
    with experiences._store.writing():
        experiences._store._connection.execute(
            f"UPDATE episode SET {column.get(status, f'status = {status!r}')}"
        )
        experiences._store.changed("lifecycle", 1, 1, 0)
    second = experiences.store(*TEXTS)
    assert not second.deduplicated
    assert experiences.store(*TEXTS).id == second.id != first.id


def test_a_plain_episode_is_no_experience(experiences, open_memory):
    open_memory().observe("\n".join(TEXTS))
    assert not experiences.store(*TEXTS).deduplicated


def test_hundreds_that_share_a_part_hide_no_duplicate(opened, monkeypatch):
    for module, name, value in LIMITS:
        monkeypatch.setattr(module, name, value)
    memory = opened(embedder=Turned())
    rng = np.random.default_rng(3)
    for n in range(200):
        memory.store("shared", f"a@{n}", f"r{n}", project=str(n % 2))
    for n in rng.permutation(200)[:40].tolist():
        assert memory.store("shared", f"a@{n}", f"r{n} ", project=str(n % 2)).deduplicated
        assert not memory.store("shared", f"a@{n}", f"r{n} ", project="x").deduplicated


def test_many_threads_keep_one(experiences):
    start = threading.Barrier(32)

    def store(n: int) -> str:
        start.wait()
        # Some differ in bytes and not in words.
        return experiences.store(TEXTS[0], TEXTS[1], TEXTS[2] + " " * (n % 3)).id

    with ThreadPoolExecutor(32) as pool:
        ids = set(pool.map(store, range(32)))
    [found] = experiences.export()
    assert ids == {found.id}
    assert found.used_count == 31


WRITER = """
import sys
from engram.experience import ExperienceMemory
from engram.ledger import Ledger
sys.path.insert(0, sys.argv[2])
from stand_ins import WordEmbedder
with ExperienceMemory(sys.argv[1], embedder=WordEmbedder()) as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(40):
        memory.store(f"context {n}", "action", "result")
"""


def test_processes_keep_one(path, experiences, pytestconfig):
    experiences.store("x", "y", "z")
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(pytestconfig.rootpath / "tests")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    for one in started:
        assert one.stdout.readline() == b"ready\n"
    for one in started:
        one.stdin.write(b"go\n")
        one.stdin.flush()
    for one in started:
        one.communicate(timeout=120)
        assert one.returncode == 0
    found = [one for one in experiences.export() if one.context != "x"]
    assert sorted(one.context for one in found) == sorted(f"context {n}" for n in range(40))
    assert {one.used_count for one in found} == {2}


# Without an embedder.

ERRORS = [ModelMissing("gone"), RuntimeError("onnx"), InvalidArgument("odd"), MemoryError()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_text_is_kept_when_embedding_fails(opened, error):
    embedder = Failing(error)
    memory = opened(embedder=embedder)
    first = memory.store(*TEXTS, tags=["a"])
    assert (first.indexed, first.deduplicated) == (False, False)
    again = memory.store(*TEXTS, tags=["b"])
    assert (again.id, again.indexed, again.deduplicated) == (first.id, False, True)
    found = memory.get(first.id)
    assert (found.context, found.tags, found.indexed) == (TEXTS[0], ("a", "b"), False)
    status = memory.status()
    assert (status.memory_count, status.indexed_count, status.waiting) == (1, 0, 1)
    embedder.error = None
    assert memory.store("other", "one", "").indexed
    assert memory.embed_waiting() == 1
    assert memory.get(first.id).indexed
    assert memory.store(TEXTS[0] + " ", TEXTS[1], TEXTS[2]).id == first.id
    assert memory.check() == []


def test_a_broken_embedder_costs_no_text(opened):
    memory = opened(embedder=Broken())
    stored = memory.store(*TEXTS)
    assert not stored.indexed
    assert memory.get(stored.id).context == TEXTS[0]


def test_another_model_is_an_error(experiences, opened, path):
    experiences.store(*TEXTS)
    other = opened(path=path.with_name("other.engram"), embedder=WordEmbedder(16, "other"))
    other.store(*TEXTS)
    with ExperienceMemory(path.with_name("other.engram")) as follows:
        # Nobody can load an embedder that was passed as an object.
        with pytest.raises(ModelMismatch):
            follows.store("a", "b", "c")
        assert follows.status().episodes == 1


# Reading and deleting.


def test_insights_are_listed_and_deleted_as_such(experiences):
    plain = experiences.store(*TEXTS)
    ids = [experiences.store(f"i{n}", "a", "r", memory_type="insight").id for n in range(3)]
    assert [one.id for one in experiences.insights()] == ids
    with pytest.raises(InvalidArgument, match=f"memory {plain.id} is not an insight"):
        experiences.delete_insight(plain.id)
    with pytest.raises(NotFound):
        experiences.delete_insight("unknown")
    experiences.delete_insight(ids[1])
    assert [one.id for one in experiences.insights()] == [ids[0], ids[2]]
    assert experiences.get(plain.id).id == plain.id


def test_only_what_an_agent_sees_is_its_to_read_and_delete(opened, path, clock):
    ann, bob, operator = opened("ann"), opened("bob"), opened()
    uid = ann.store(*TEXTS, memory_type="insight").id
    for call in (bob.get, bob.delete, bob.delete_insight):
        with pytest.raises(NotFound):
            call(uid)
    assert bob.export() == bob.insights() == []
    assert [one.id for one in operator.insights()] == [uid]
    with Engram(path, embedder=WordEmbedder(), clock=clock, agent_id="ann") as memory:
        episode = memory.observe("an episode")
    ann.delete(episode)
    operator.delete(uid)
    assert ann.status().episodes == 0


def test_status_counts(experiences, open_memory, opened):
    empty = experiences.status()
    assert set(vars_of(empty).values()) == {0}
    ids = [experiences.store(f"c{n}", f"a{n}", f"r{n}").id for n in range(6)]
    memory = open_memory()
    memory.observe("an episode")
    memory.observe("a quarantined one", quarantined=True)
    memory.assert_fact("Ann", "likes", "tea")
    opened("ann").store("of", "ann", "here")
    with experiences._store.writing():
        run = experiences._store._connection.execute
        run("UPDATE episode SET status = 'superseded' WHERE id = 1")
        run("UPDATE episode SET status = 'archived' WHERE id = 2")
        run("UPDATE episode SET forgotten_at = 1 WHERE id = 3")
        run("INSERT INTO routing VALUES (1, x'00', '', '', '', '', '', 3, '[]', 0)")
        run("INSERT INTO routing VALUES (2, x'01', '', '', '', '', '', 3, '[]', 0)")
        run("INSERT INTO shown (episode, routing) VALUES (4, 1), (4, 2), (5, 1), (6, 1)")
        run("INSERT INTO judgement VALUES (5, 0.5, 1), (6, 0.5, NULL)")
    assert vars_of(experiences.status()) == {
        "memory_count": 6,
        "indexed_count": 4,
        "pending_judgments": 2,
        "index_size": 5,
        "waiting": 0,
        "episodes": 9,
        "facts": 1,
        "quarantined": 1,
    }
    own = opened("ann").status()
    assert (own.memory_count, own.episodes, own.quarantined, own.pending_judgments) == (1, 1, 0, 0)
    assert [one.id for one in experiences.export()[:-1]] == [ids[1], *ids[3:]]


def vars_of(status) -> dict[str, int]:
    return {name: getattr(status, name) for name in status.__slots__}


def test_a_status_counts_as_every_face_counts_it(experiences, path, clock):
    active = experiences.store("red lamp", "", "").id
    hidden = experiences.store("blue chair", "", "").id
    with Ledger(path, clock=clock) as ledger:
        ledger.set_status(active, "active")
        ledger.set_status(hidden, "superseded")
    assert experiences.get(active).indexed
    assert not experiences.get(hidden).indexed
    experiences.close()
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT id, indexed, superseded_by FROM memories").fetchall()
    assert rows == [(active, 1, None)]
