"""Texts that could not be embedded at first: found by words at once, by meaning later."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from answers import DIM, WORDS, answers, embedder
from plain_twin import stored
from stand_ins import Clock, WordEmbedder

from engram import Engram
from engram.cli.output import result_documents
from engram.errors import ModelMismatch
from engram.experience import ExperienceMemory
from engram.index import EpisodeIndex, distance_bounds, true_distances
from engram.storage import EpisodeFilter

pytestmark = pytest.mark.usefixtures("small_segments", "fts5_constants")


class Flaky(WordEmbedder):
    """An embedder that can be down."""

    def __init__(self, *, down: bool = False) -> None:
        super().__init__(DIM)
        self.down = down
        self.asked = 0

    def embed(self, texts: list[str]) -> np.ndarray:
        self.asked += 1
        if self.down:
            message = "no route to the embedder"
            raise ConnectionError(message)
        return super().embed(texts)


@pytest.fixture
def flaky() -> Flaky:
    return Flaky()


@pytest.fixture
def experiences(path, flaky, clock):
    with ExperienceMemory(path, embedder=flaky, clock=clock) as opened:
        yield opened


def keep(experiences: ExperienceMemory, flaky: Flaky, count: int, seed: int, share: float) -> None:
    """Store random experiences, a share of them while the embedder is down."""
    chance = random.Random(seed)
    for number in range(count):
        flaky.down = chance.random() < share
        texts = (" ".join(chance.choices(WORDS, k=3)) for _ in range(3))
        experiences.store(*texts, tags=["even"] if number % 2 else None, threshold=1.0)
    flaky.down = False


def assert_true(memory: Engram, k: int = 4000) -> None:
    """Recalls by meaning must be brute force over the stored vectors, those by words FTS5's."""
    store = memory._store
    for query in ("w1 w2", "w7 w8 don't"):
        for tags in ([], ["even"]):
            allowed = EpisodeFilter(tags=tuple(tags))
            found = memory.recall(query, k, mode="cosine", accuracy="exact", tags=tags)
            with store.reading():
                index = memory._current_index()
                index.refresh()
                ours, theirs = (s.match(query, allowed, k) for s in (index, _Words(memory)))
                every = store.episodes.matching(allowed)
                batch = store.embeddings.of(every, store.model())
                asked = stored(embedder().vector(query))
                apart = np.linalg.norm(batch.vectors.astype(np.float64) - asked, axis=1)
                best = np.full(int(every.max(initial=0)) + 1, np.inf)
                np.minimum.at(best, batch.episodes, apart)
                expected = [key for key in every[np.lexsort((every, best[every]))] if best[key] < 3]
                nearest = [episode.id for episode in store.episodes.fetch(np.array(expected[:k]))]
                np.testing.assert_allclose(true_distances(index, asked, every), best[every])
                least, most = distance_bounds(index, asked, every)
                assert (least <= best[every] + 1e-6).all()
                assert (best[every] <= most + 1e-6).all()
            assert [hit.episode.id for hit in found] == nearest
            np.testing.assert_array_equal(ours[0], theirs[0])
            np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-9)


class _Words:
    def __init__(self, memory: Engram) -> None:
        self.match = memory._store.text.search


def waiting(memory: Engram | ExperienceMemory) -> int:
    with memory._store.reading():
        return len(memory._store.embeddings.waiting(10_000))


def embed_all(experiences: ExperienceMemory, limit: int = 64) -> int:
    done = 0
    while some := experiences.embed_waiting(limit):
        done += some
    return done


# Before and after.


def test_a_kept_text_is_found_by_words_at_once_and_by_meaning_when_it_is_embedded(
    experiences, flaky, open_memory
):
    memory = open_memory(embedder=embedder())
    for number in range(20):
        memory.observe(f"w1 filler{number}")
    flaky.down = True
    kept = experiences.store("blue lamp", "w1 w1", "")
    assert not kept.indexed
    assert not experiences.get(kept.id).indexed
    assert experiences.search("lamp", limit=1).hits[0].id == kept.id
    hits = memory.recall("lamp", 3, fts_weight=0.9)
    assert hits[0].episode.id == kept.id
    assert hits[0].distance == math.inf
    assert 0 < hits[0].score <= 1
    assert json.loads(json.dumps(result_documents(hits), default=str))[0]["distance"] is None
    assert kept.id not in [hit.episode.id for hit in memory.recall("lamp", 50, mode="cosine")]
    assert kept.id not in [hit.episode.id for hit in memory.recall("lamp", 50, mode="spreading")]
    assert experiences.check() == []
    with pytest.raises(ConnectionError):
        experiences.embed_waiting()
    assert waiting(experiences) == 1
    flaky.down = False
    assert experiences.embed_waiting() == 1
    assert experiences.embed_waiting() == 0
    assert experiences.get(kept.id).indexed
    [hit] = memory.recall("blue lamp", 1, mode="cosine")
    assert (hit.episode.id, hit.distance) == (kept.id, pytest.approx(0.0))
    assert experiences.check() == []


@pytest.mark.parametrize("limit", [1, 7, 4096])
@pytest.mark.parametrize("share", [0.1, 0.6, 1.0])
def test_answers_are_the_truth_before_and_after(experiences, flaky, open_memory, share, limit):
    """In tails and in segments, in two instances that both look on."""
    memory, other = open_memory(embedder=embedder()), open_memory(embedder=embedder())
    memory.observe("w1 w2")
    keep(experiences, flaky, 60, 1, share)
    assert_true(memory)
    keep(experiences, flaky, 240, 2, share)
    for one in (memory, other):
        assert_true(one)
    before = waiting(experiences)
    assert experiences.embed_waiting(limit) == min(limit, before)
    for one in (memory, other):
        assert_true(one)
    memory.maintain()
    assert_true(memory)
    assert embed_all(experiences, 40) == max(0, before - limit)
    for one in (memory, other):
        assert_true(one)
        assert one.recall("w1 w2", 4000, mode="cosine", accuracy="high") == one.recall(
            "w1 w2", 4000, mode="cosine", accuracy="exact"
        )
    assert memory._index.segments
    memory.maintain()
    assert_true(memory)
    assert memory.check() == []


def test_a_store_of_texts_that_all_wait_goes_every_way(experiences, flaky, open_memory):
    """Segments without a vector: kept on disk, merged, thinned out, and then completed."""
    memory = open_memory(embedder=embedder())
    anchor = memory.observe("w1")
    keep(experiences, flaky, 300, 3, 1.0)
    memory.maintain()
    memory.forget(anchor)
    for uid in [one.id for one in experiences.export()][::3]:
        memory.forget(uid)
    memory.maintain()
    assert memory._index.segments
    assert [one.chunks for one in memory._index.segments] == [0] * len(memory._index.segments)
    assert memory.recall("w1 w2", 50, mode="cosine") == []
    assert memory.recall("w1 w2", 50)
    assert_true(memory)
    assert embed_all(experiences) == 200
    assert_true(memory)
    assert experiences.check() == []


def test_what_was_embedded_late_is_kept_beside_the_store(path, flaky, clock, monkeypatch):
    """Read back after closing, by whoever opens the store next, with nothing made anew."""
    with ExperienceMemory(path, embedder=flaky, clock=clock) as experiences:
        experiences.store("w1", "w2", "w3")
        keep(experiences, flaky, 300, 4, 0.3)
        with Engram(path, embedder=embedder(), clock=clock) as memory:
            memory.maintain()
            assert memory._index.segments
        assert embed_all(experiences) > 50
        with Engram(path, embedder=embedder(), clock=clock) as memory:
            assert_true(memory)
            memory.maintain()
            expected = answers(memory)
    with monkeypatch.context() as patch:
        patch.setattr(EpisodeIndex, "_add_segment", lambda *_: pytest.fail("made anew"))
        patch.setattr(EpisodeIndex, "_complete", lambda *_: pytest.fail("completed again"))
        with Engram(path, embedder=embedder(), clock=clock) as memory:
            assert answers(memory) == expected
            assert_true(memory)


def test_a_damaged_segment_is_built_anew_with_the_late_vectors(path, flaky, clock):
    with ExperienceMemory(path, embedder=flaky, clock=clock) as experiences:
        experiences.store("w1", "w2", "w3")
        keep(experiences, flaky, 300, 5, 0.3)
        with Engram(path, embedder=embedder(), clock=clock) as memory:
            memory.maintain()
        for file in Path(f"{path}-index").glob("*.segment"):
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 1
            file.write_bytes(content)
        with Engram(path, embedder=embedder(), clock=clock) as memory:
            assert_true(memory)
            embed_all(experiences)
            assert_true(memory)


def test_labels_and_forgetting_go_on_while_texts_wait(experiences, flaky, open_memory):
    memory = open_memory(embedder=embedder())
    memory.observe("w1")
    keep(experiences, flaky, 200, 6, 0.5)
    assert_true(memory)
    ids = [one.id for one in experiences.export()]
    for uid in ids[::5]:
        experiences.delete(uid)
    gone = waiting(experiences)
    assert embed_all(experiences) == gone
    for uid in ids[1::5]:
        experiences.delete(uid)
    assert_true(memory)
    memory.decay()
    assert experiences.check() == []


# Stores without a model.


def test_a_store_that_nothing_was_embedded_in_yet(experiences, flaky, open_memory, tmp_path):
    flaky.down = True
    kept = experiences.store("blue lamp", "lit it", "light")
    assert experiences.model() is None
    assert experiences.check() == []
    assert experiences.counts().embedded == 0
    memory = open_memory(embedder=embedder())
    [hit] = memory.recall("lamp")
    assert (hit.episode.id, hit.distance, hit.score) == (kept.id, math.inf, 1.0)
    assert hit.confidence is None
    assert memory.recall("lamp", min_score=0.9) == [hit]
    [scaled] = memory.recall("lamp", blending="min_max")
    assert scaled.score == 0.5
    assert memory.recall("nothing") == []
    assert memory.recall("lamp", mode="cosine") == []
    assert memory.recall("lamp", mode="spreading") == []
    assert memory.search("lamp") == []
    memory.maintain()
    memory.decay()
    memory.backup(tmp_path / "copy.engram")
    flaky.down = False
    assert experiences.embed_waiting() == 1
    assert memory.model().fingerprint == "words"
    [hit] = memory.recall("blue lamp", mode="cosine")
    assert (hit.episode.id, hit.distance) == (kept.id, pytest.approx(0.0))
    assert memory.check() == []


def test_the_first_write_of_another_model_settles_it(experiences, flaky, open_memory):
    flaky.down = True
    experiences.store("blue lamp", "lit it", "light")
    open_memory(embedder=WordEmbedder(16, "others")).observe("red lamp")
    flaky.down = False
    with pytest.raises(ModelMismatch):
        experiences.embed_waiting()
    assert waiting(experiences) == 1


def test_an_export_brings_what_waits_and_its_import_embeds_it(
    experiences, flaky, file, other, open_memory, tmp_path
):
    experiences.store("red lamp", " ", "green lamp")
    flaky.down = True
    experiences.store("blue lamp", "lit it", "light")
    exporting = open_memory(embedder=embedder())
    exporting.export_lines(file)
    target = open_memory(path=tmp_path / "third.engram", embedder=embedder())
    target.import_lines(file)
    assert waiting(target) == 0
    assert target.check() == []
    assert fields(target) == [[0, 2], [0, 1, 2]]
    assert fields(exporting) == [[0, 2]]
    # Another model: everything is embedded anew, by parts as well.
    other.import_lines(file)
    assert other.model().dim == 32
    assert fields(other) == [[0, 2], [0, 1, 2]]
    for one in (other, target):
        assert one.recall("lit it", 1, mode="cosine")[0].distance == pytest.approx(0.0, abs=1e-3)


def fields(memory: Engram) -> list[list[int]]:
    with memory._store.reading():
        keys = np.arange(1, 100)
        episodes, parts, _ = memory._store.embeddings.fields(keys, memory._store.model())
    return [parts[episodes == key].tolist() for key in sorted(set(episodes.tolist()))]


def test_reembedding_embeds_parts_and_what_waits(experiences, flaky, open_memory):
    experiences.store("red lamp", " ", "green lamp")
    open_memory(embedder=embedder()).observe("plain lamp")
    flaky.down = True
    experiences.store("blue lamp", "lit it", "light")
    new = WordEmbedder(16, "others")
    assert experiences.reembed(embedder=new) == 3
    assert waiting(experiences) == 0
    memory = open_memory(embedder=new)
    assert fields(memory) == [[0, 2], [-1], [0, 1, 2]]
    assert memory.check() == []
    assert memory.recall("lit it", 1, mode="cosine")[0].distance == pytest.approx(0.0, abs=1e-3)


def test_reembedding_a_store_without_a_model_gives_it_one(experiences, flaky, open_memory):
    flaky.down = True
    kept = experiences.store("blue lamp", "lit it", "light")
    new = WordEmbedder(16, "others")
    assert experiences.reembed(embedder=new) == 1
    [hit] = open_memory(embedder=new).recall("lit it", 1, mode="cosine")
    assert hit.episode.id == kept.id
    assert experiences.check() == []


# In the middle of it.


class Interrupting(WordEmbedder):
    """Does something while it embeds."""

    def __init__(self, meanwhile) -> None:
        super().__init__(DIM)
        self.meanwhile = meanwhile

    def embed(self, texts: list[str]) -> np.ndarray:
        once, self.meanwhile = self.meanwhile, lambda: None
        once()
        return super().embed(texts)


def test_what_is_erased_while_it_is_embedded_stays_erased(experiences, flaky, path, clock):
    flaky.down = True
    ids = [experiences.store(f"lamp {n}", "", "").id for n in range(3)]
    meanwhile = Interrupting(lambda: experiences.delete(ids[1]))
    with ExperienceMemory(path, embedder=meanwhile, clock=clock) as embedding:
        assert embedding.embed_waiting() == 2
        assert embedding.embed_waiting() == 0
        assert embedding.check() == []


def test_two_that_embed_the_same_texts_do_not_disturb_each_other(experiences, flaky, path, clock):
    flaky.down = True
    for number in range(10):
        experiences.store(f"lamp {number}", "", "")
    flaky.down = False
    with ExperienceMemory(
        path, embedder=Interrupting(lambda: experiences.embed_waiting(4)), clock=clock
    ) as slow:
        assert slow.embed_waiting(10) == 6
        assert waiting(slow) == 0
        assert slow.check() == []


def test_no_lock_is_held_while_texts_are_embedded(experiences, flaky, path, clock):
    flaky.down = True
    experiences.store("blue lamp", "", "")
    with ExperienceMemory(
        path,
        embedder=Interrupting(lambda: experiences.store("red lamp", "", "")),
        clock=clock,
        busy_timeout=0.0,
    ) as embedding:
        assert embed_all(embedding) == 2


class Picky(WordEmbedder):
    """Embeds nothing beside a text that it refuses."""

    def embed(self, texts: list[str]) -> np.ndarray:
        if any("poison" in text for text in texts):
            message = "too long"
            raise ValueError(message)
        return super().embed(texts)


def test_a_text_that_is_refused_is_in_the_way_of_no_other(experiences, flaky, path, clock):
    flaky.down = True
    for text in ("poison", "red lamp", "more poison", "blue lamp"):
        experiences.store(text, "", "")
    picky = Picky(DIM)
    with ExperienceMemory(path, embedder=picky, clock=clock) as embedding:
        assert embedding.embed_waiting() == 2
        with pytest.raises(ValueError, match="too long"):
            embedding.embed_waiting()
        assert waiting(embedding) == 2
        assert embedding.check() == []
    with Engram(path, embedder=embedder(), clock=clock) as memory:
        assert_true(memory)


def test_refused_texts_at_the_head_of_the_queue_come_last_from_then_on(
    experiences, flaky, path, clock
):
    flaky.down = True
    for text in ("poison 1", "poison 2", "poison 3", "poison 4", "red lamp", "blue lamp"):
        experiences.store(text, "", "")
    with ExperienceMemory(path, embedder=Picky(DIM), clock=clock) as embedding:
        with pytest.raises(ValueError, match="too long"):
            embedding.embed_waiting()
        assert embedding.embed_waiting() == 2
        assert waiting(embedding) == 4
        assert embedding.check() == []


def test_an_embedder_that_is_down_is_not_asked_for_each_text(experiences, flaky):
    flaky.down = True
    for number in range(30):
        experiences.store(f"lamp {number}", "", "")
    asked = flaky.asked
    with pytest.raises(ConnectionError):
        experiences.embed_waiting()
    assert flaky.asked - asked <= 4


_KILLED = """
import os, sys
import small_segments
from test_late_vectors import Flaky
from engram.experience import ExperienceMemory

class Killing(Flaky):
    def __init__(self, after):
        super().__init__()
        self.left = after
    def embed(self, texts):
        self.left -= 1
        if self.left < 0:
            os.kill(os.getpid(), 9)
        return super().embed(texts)

small_segments.shrink()
memory = ExperienceMemory(sys.argv[1], embedder=Killing(int(sys.argv[2])))
while memory.embed_waiting(16):
    memory.maintain()
"""


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_killed_between_two_rounds_nothing_is_lost(path, flaky, clock, rounds):
    with ExperienceMemory(path, embedder=flaky, clock=clock) as experiences:
        experiences.store("w1", "w2", "w3")
        keep(experiences, flaky, 150, 7, 0.6)
        left = waiting(experiences)
        here = Path(__file__)
        ran = subprocess.run(
            [sys.executable, "-c", _KILLED, str(path), str(rounds)],
            env={"PYTHONPATH": f"{here.parent}:{here.parent.parent}", "PYTHONSAFEPATH": "1"},
            check=False,
        )
        assert ran.returncode == -9
        assert waiting(experiences) == left - 16 * rounds
        assert experiences.check() == []
        with Engram(path, embedder=embedder(), clock=Clock()) as memory:
            assert_true(memory)
            embed_all(experiences)
            assert_true(memory)
            assert memory.check() == []
