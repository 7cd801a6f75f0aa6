"""Re-embedding: a store changes its model while it is searched, written and interrupted."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from stand_ins import WordEmbedder

from engram import Engram
from engram.errors import Busy, InvalidArgument, ModelMismatch, ScopeError

CHILD = Path(__file__).with_name("reembed_child.py")


def old() -> WordEmbedder:
    return WordEmbedder(256, "old-256")


def new() -> WordEmbedder:
    return WordEmbedder(384, "new-384")


def fill(memory: Engram, number: int = 150) -> list[str]:
    return [memory.observe(f"note {n} about piano {n % 7}") for n in range(number)]


def vectors(memory: Engram) -> dict[str, int]:
    rows = memory._store._connection.execute(
        "SELECT m.fingerprint, count(*) FROM embedding AS v JOIN model AS m ON m.id = v.model"
        " GROUP BY 1"
    )
    with memory._store.reading():
        return dict(rows)


def best(memory: Engram, query: str, **options: object) -> str:
    return memory.recall(query, 1, mode="cosine", **options)[0].episode.content


def test_a_store_moves_to_a_model_of_another_dimension(open_memory):
    memory = open_memory(embedder=old())
    ids = fill(memory)
    steps: list[tuple[int, int]] = []
    assert memory.reembed(embedder=new(), progress=lambda *step: steps.append(step)) == 150
    assert steps == [(64, 150), (128, 150), (150, 150)]
    assert (memory.model().fingerprint, memory.model().dim) == ("new-384", 384)
    assert vectors(memory) == {"new-384": 150}
    hit = memory.recall("note 5 about piano 5", 1, mode="cosine")[0]
    assert (hit.episode.id, hit.distance) == (ids[5], 0.0)
    assert best(memory, memory.get(memory.observe("a violin")).content) == "a violin"
    assert memory.check() == []
    # The answers are those of a store that never had another model.
    fresh = open_memory(path=":memory:", embedder=new())
    fill(fresh)
    asked = [[r.distance for r in m.recall("piano 3", 20, mode="cosine")] for m in (memory, fresh)]
    assert asked[0] == asked[1]


def test_recalls_and_writes_go_on_meanwhile(open_memory):
    memory, other = open_memory(embedder=old()), open_memory(embedder=old())
    ids = fill(memory)
    added: list[str] = []

    def meanwhile(done: int, total: int) -> None:
        for each in (memory, other):
            assert best(each, "note 9 about piano 2") == "note 9 about piano 2"
            assert len(each.recall("piano", 200)) == each.count()
            assert each.model().fingerprint == "old-256"
        if len(added) < 3:
            added.append(other.observe(f"late remark {len(added)}"))
        other.forget(ids.pop())

    assert memory.reembed(embedder=new(), progress=meanwhile) == 150 - 2 + 3
    assert best(memory, "late remark 2") == "late remark 2"
    assert memory.counts().embedded == memory.count() == vectors(memory)["new-384"]


@pytest.mark.parametrize("scope", [None, "ana"])
def test_an_instance_with_the_old_model_is_told(open_memory, scope):
    memory, other = open_memory(embedder=old()), open_memory(scope, embedder=old())
    fill(memory, 3)
    other.recall("piano")
    memory.reembed(embedder=new())
    for call in (lambda: other.recall("piano"), lambda: other.observe("x")):
        with pytest.raises(ModelMismatch, match="new-384"):
            call()
    assert memory.count() == 3
    third = open_memory(embedder=new())
    assert best(third, "note 1 about piano 1") == "note 1 about piano 1"


def test_an_open_instance_reads_the_new_vectors_at_its_next_recall(open_memory):
    memory, other = open_memory(embedder=old()), open_memory(embedder=old())
    fill(memory)
    assert len(other.recall("piano", 10)) == 10
    memory.reembed(embedder=new())
    other._embedder = new()
    memory.observe("a cello")
    assert [r.episode.content for r in other.recall("a cello", 1, mode="cosine")] == ["a cello"]
    assert len(other.recall("piano", 200)) == 151


def test_an_instance_without_a_model_of_its_own_follows_the_store(path, clock, monkeypatch):
    models = {"small": WordEmbedder(256, "s"), "large": WordEmbedder(384, "l")}
    for name, model in models.items():
        model.name = name

    def resolve(name: str | None, *, stored: str | None = None) -> WordEmbedder:
        return models[name or stored or "small"]

    monkeypatch.setattr("engram.engine.session.resolve", resolve)
    monkeypatch.setattr("engram.engine.reembedding.resolve", resolve)
    with Engram(path, clock=clock) as memory, Engram(path, clock=clock) as other:
        fill(memory, 10)
        assert best(other, "note 1 about piano 1") == "note 1 about piano 1"
        assert memory.reembed("large") == 10
        assert best(other, "note 1 about piano 1") == "note 1 about piano 1"
        other.observe("later")
        assert other.model().name == "large"
        assert memory.reembed("large") == 0


def test_a_write_that_meets_the_switch_is_embedded_again(open_memory):
    memory = open_memory(embedder=old())
    fill(memory, 5)

    class Switching(WordEmbedder):
        def embed(self, texts: list[str]) -> object:
            if memory._embedder is self:
                memory.reembed(embedder=new())
            return super().embed(texts)

    memory._embedder = Switching(256, "old-256")
    memory.observe("met the switch")
    assert best(memory, "met the switch") == "met the switch"
    memory.reembed(embedder=old())
    memory._embedder = Switching(256, "old-256")
    assert best(memory, "met the switch") == "met the switch"
    assert set(vectors(memory)) == {"new-384"}


def kill_in_the_middle(path: Path, key: str, slices: int) -> None:
    process = subprocess.Popen(
        [sys.executable, str(CHILD), str(path), key, str(slices)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(CHILD.parent), *sys.path])},
    )
    assert process.stdout is not None
    for _ in range(slices):
        assert process.stdout.readline()
    process.kill()
    process.stdout.close()
    assert process.wait() == -9


@pytest.mark.parametrize("key", ["", "pass"])
def test_kill_9_loses_a_slice_at_most(path, clock, key):
    options = {"clock": clock, "key": key or None}
    with Engram(path, embedder=old(), **options) as memory:
        fill(memory, 400)
    kill_in_the_middle(path, key, 3)
    with Engram(path, embedder=old(), **options) as memory:
        assert memory.check() == []
        assert best(memory, "note 9 about piano 2") == "note 9 about piano 2"
        assert 3 * 64 <= vectors(memory)["new-384"] < 400
    kill_in_the_middle(path, key, 1)
    with Engram(path, **options) as memory:
        done = memory.reembed(embedder=new())
        assert 0 < done <= 400 - 4 * 64
        assert vectors(memory) == {"new-384": 400}
        assert memory.check() == []


def test_old_vectors_left_by_a_kill_go_with_the_next_call(open_memory, monkeypatch):
    memory = open_memory(embedder=old())
    fill(memory, 10)
    with monkeypatch.context() as patch:
        patch.setattr(Engram, "_delete_others", lambda _: None)
        memory.reembed(embedder=new())
    assert vectors(memory) == {"new-384": 10, "old-256": 10}
    assert best(memory, "note 1 about piano 1") == "note 1 about piano 1"
    assert memory.reembed(embedder=new()) == 0
    assert vectors(memory) == {"new-384": 10}


def stop(done: int, total: int) -> None:
    raise KeyboardInterrupt


def test_another_model_gives_an_unfinished_one_up(open_memory):
    memory = open_memory(embedder=old())
    fill(memory)
    third = WordEmbedder(16, "third")
    with pytest.raises(KeyboardInterrupt):
        memory.reembed(embedder=new(), progress=stop)
    assert vectors(memory) == {"old-256": 150, "new-384": 64}
    assert best(memory, "note 9 about piano 2") == "note 9 about piano 2"
    assert memory.reembed(embedder=third) == 150
    assert vectors(memory) == {"third": 150}


def test_the_models_own_name_gives_an_unfinished_one_up(open_memory):
    memory = open_memory(embedder=old())
    fill(memory)
    with pytest.raises(KeyboardInterrupt):
        memory.reembed(embedder=new(), progress=stop)
    assert memory.reembed(embedder=old()) == 0
    assert vectors(memory) == {"old-256": 150}


def test_there_and_back(open_memory):
    memory, other = open_memory(embedder=old()), open_memory(embedder=old())
    fill(memory, 20)
    other.recall("piano")
    for embedder in (new(), old()):
        memory.reembed(embedder=embedder)
    assert best(other, "note 9 about piano 2") == "note 9 about piano 2"


def test_two_at_once_with_the_same_model_share_the_work(open_memory):
    memories = [open_memory(embedder=old()) for _ in range(2)]
    fill(memories[0], 300)
    done: list[int] = []
    threads = [
        threading.Thread(target=lambda m=m: done.append(m.reembed(embedder=new())))
        for m in memories
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(done) == 300
    assert vectors(memories[0]) == {"new-384": 300}
    assert memories[1].check() == []


def test_one_with_a_third_model_stops_the_first(open_memory):
    memory, other = open_memory(embedder=old()), open_memory(embedder=old())
    fill(memory)
    third = WordEmbedder(16, "third")

    def meanwhile(done: int, total: int) -> None:
        other.reembed(embedder=third)

    with pytest.raises(Busy, match="another model"):
        memory.reembed(embedder=new(), progress=meanwhile)
    assert vectors(memory) == {"third": 150}
    assert best(other, "note 9 about piano 2") == "note 9 about piano 2"


def test_an_empty_store_takes_the_model_from_the_next_write(open_memory):
    memory = open_memory(embedder=old())
    assert memory.reembed(embedder=new()) == 0
    memory.observe("first")
    assert memory.model().fingerprint == "new-384"


def test_arguments(open_memory):
    memory = open_memory(embedder=old())
    with pytest.raises(InvalidArgument, match="either"):
        memory.reembed()
    with pytest.raises(InvalidArgument, match="either"):
        memory.reembed("x", embedder=new())
    with pytest.raises(ScopeError):
        open_memory("ana", embedder=old()).reembed(embedder=new())
    memory.observe("x")
    with pytest.raises(ModelMismatch):
        memory.reembed(embedder=WordEmbedder(16, "old-256"))
