"""Searches find what a look at every memory finds, and say so when words had to do alone."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from plain_twin import embedded
from small_segments import LIMITS
from stand_ins import Clock, WordEmbedder

from engram import Engram
from engram.errors import Closed, InvalidArgument, InvalidType, ModelMismatch, ModelMissing
from engram.retrieval.fusion import Fusion
from engram.storage import EpisodeFilter

pytestmark = pytest.mark.usefixtures("fts5_constants")

TYPES = ("decision", "pattern", "bugfix", "context", "antipattern", "insight")
# Some of them begin as others do.
WORDS = [f"wo{n}" for n in range(40)]


@pytest.fixture(params=["whole", "segments"])
def parts(request, monkeypatch) -> None:
    if request.param == "segments":
        for module, name, value in LIMITS:
            monkeypatch.setattr(module, name, value)


class Failing(WordEmbedder):
    """An embedder that cannot embed queries; episodes were embedded by its twin."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def embed(self, texts: list[str]) -> np.ndarray:
        raise self.error


def ids(found) -> list[str]:
    return [hit.id for hit in found.hits]


@dataclass(frozen=True)
class Row:
    key: int
    id: str
    agent: str | None
    at: int
    texts: tuple[str, str, str]
    kind: str | None
    tags: tuple[str, ...]
    project: str | None
    hidden: bool


class Twin:
    """A store of random experiences and other episodes, and the same in a list."""

    def __init__(self, opened, open_memory, clock: Clock, count: int, seed: int) -> None:
        self.chance = random.Random(seed)
        self.rows: list[Row] = []
        self.faces = {agent: (opened(agent), open_memory(agent)) for agent in (None, "ann", "bob")}
        self.store = self.faces[None][0]._store
        for key in range(1, count + 1):
            clock.advance(seconds=self.chance.choice([0, 1, -2]))
            self.rows.append(self._row(key, clock))

    def text(self) -> str:
        return " ".join(self.chance.choices(WORDS, k=self.chance.randint(1, 5)))

    def _row(self, key: int, clock: Clock) -> Row:
        some = self.chance.choice
        agent, tags = (
            some([None, "ann", "bob"]),
            tuple(self.chance.sample(["T0", "t0", "Straße", "t1"], k=2)),
        )
        experiences, memory = self.faces[agent]
        hidden = some([True, False, False, False])
        at = int(clock().timestamp() * 1e6)
        if some([True, False, False]):
            texts = (self.text(), "", "")
            uid = memory.observe(texts[0], tags=tags, quarantined=hidden, timestamp=clock())
            return Row(key, uid, agent, at, texts, None, tags, None, hidden)
        texts = (self.text(), self.text(), self.text())
        kind, project = some(TYPES), some([None, "p", "q"])
        uid = experiences.store(*texts, memory_type=kind, tags=tags, project=project).id
        if hidden:
            lifecycle = self.store.lifecycle
            with self.store.writing():
                place, put = lifecycle.find(uid), {"status": "archived"}
                lifecycle.set(place, uid, at, action="archive", reason=None, columns=put)
        return Row(key, uid, agent, at, texts, kind, tags, project, hidden)

    def matching(self, agent, tags, types, project) -> list[Row]:
        return [
            row
            for row in self.rows
            if agent in (None, row.agent)
            and {tag.casefold() for tag in tags} <= {tag.casefold() for tag in row.tags}
            and (not types or row.kind in types)
            and (project is None or row.kind == "insight" or row.project == project)
            and not row.hidden
        ]

    def by_meaning(self, query: str, rows: list[Row]) -> list[int]:
        def distance(row: Row) -> float:
            # One that is no experience is embedded whole, and has no other parts.
            return min(
                float(np.linalg.norm(embedded(text) - embedded(query)))
                for text in row.texts
                if text
            )

        return [key for _, key in sorted((distance(row), row.key) for row in rows)]

    def by_words(self, query: str, rows: list[Row]) -> list[int]:
        with self.store.reading():
            found, _ = self.store.text.search(query, EpisodeFilter(), 10**6)
            longer, _ = self.store.text.search_beginnings(query, EpisodeFilter(), 10**6)
        asked, keys = query.split(), {row.key: row for row in rows}
        said = {key: " ".join(row.texts).split() for key, row in keys.items()}
        exact = [key for key in found.tolist() if key in keys]
        assert set(exact) == {key for key in keys if {*asked} & {*said[key]}}
        begins = [key for key in longer.tolist() if key in keys and key not in exact]
        assert {*exact, *begins} == {
            key for key in keys if any(one.startswith(tuple(asked)) for one in said[key])
        }
        return exact + begins

    def search(self, query, limit, agent, tags, types, project, fusion) -> list[tuple[str, float]]:
        least = 1.0 if project is None else fusion.other_project_weight
        rows = self.matching(agent, tags, types, project if least == 0 else None)
        depth = min(fusion.depth(limit, least or 1.0), len(self.rows))
        scores: dict[int, float] = {}
        for weight, ranking in (
            (fusion.vector_weight, self.by_meaning(query, rows)),
            (fusion.sparse_weight, self.by_words(query, rows)),
        ):
            for rank, key in enumerate(ranking[:depth], 1):
                scores[key] = scores.get(key, 0.0) + weight / (fusion.rrf_k + rank)
        for row in rows:
            if project is not None and row.kind != "insight" and row.project != project:
                scores[row.key] = scores.get(row.key, 0.0) * fusion.other_project_weight
        best = sorted(rows, key=lambda row: (-scores.get(row.key, 0.0), -row.at, row.id))
        return [(row.id, scores[row.key]) for row in best[:limit]]


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(("count", "runs", "seed"), [(12, 60, 1), (45, 60, 2), (330, 60, 3)])
def test_a_search_finds_what_a_look_at_every_memory_finds(
    opened, open_memory, clock, count, runs, seed
):
    twin = Twin(opened, open_memory, clock, count, seed)
    some = twin.chance.choice
    for _ in range(runs):
        agent, limit = some([None, "ann", "bob"]), some([0, 1, 2, 5, 10, 40, 10**6, 2**64 - 1])
        tags = some([(), (), ["t0"], ["STRASSE"], ["T1", "t0"], ["none"]])
        types = some([None, None, ["insight"], ["decision", "bugfix"], ["context"]])
        project = some([None, None, "p", "q", "nobody's"])
        fusion = Fusion(other_project_weight=some([0, 0.5, 0.5, 0.9, 1]), rrf_k=some([1, 60]))
        query = some(["", twin.text(), twin.text(), "unheard"])
        found = twin.faces[agent][0].search(
            query, limit=limit, tags=tags, memory_types=types, project=project, fusion=fusion
        )
        expected = twin.search(query, limit, agent, tags, types or (), project, fusion)
        assert ids(found) == [uid for uid, _ in expected]
        assert [hit.score for hit in found.hits] == pytest.approx([s for _, s in expected])
        everything = twin.matching(
            agent, tags, types or (), None if fusion.other_project_weight else project
        )
        assert len(found.hits) == min(limit, len(everything))
        assert not found.degraded


def test_a_hit_says_all_of_the_memory(experiences, open_memory):
    one = experiences.store(
        "red lamp", "turn it on", "light", memory_type="bugfix", tags=["b", "A"]
    )
    other = open_memory().observe("a red lamp", tags=["c"])
    hits = {hit.id: hit for hit in experiences.search("red lamp").hits}
    hit = hits[one.id]
    assert (hit.memory_type, hit.context, hit.action, hit.result, hit.tags) == (
        *("bugfix", "red lamp", "turn it on", "light", ("b", "A")),
    )
    hit = hits[other]
    assert (hit.memory_type, hit.context, hit.action, hit.result, hit.tags) == (
        *("context", "a red lamp", "", "", ("c",)),
    )


def test_ten_are_found_unless_another_number_is_asked_for(experiences):
    for number in range(12):
        experiences.store(f"lamp {number}", "", "")
    assert (
        len(experiences.search("lamp").hits)
        == len(experiences.search("lamp", limit=None).hits)
        == 10
    )
    assert experiences.search("lamp", limit=0).hits == []
    assert len(experiences.search("lamp", limit=11).hits) == 11


def test_of_two_memories_with_one_score_the_newer_is_first_then_the_lower_id(experiences, clock):
    only_meaning = experiences.store("red", "", "").id
    clock.advance(seconds=1)
    only_words = [experiences.store("green lamp " + word * 30, "", "").id for word in "xy"]
    # Alike in both rankings but for their order: with equal weights the scores are equal.
    fusion = Fusion(vector_weight=1.0, sparse_weight=1.0)
    found = experiences.search("lamp", fusion=fusion)
    scores = {hit.id: hit.score for hit in found.hits}
    order = sorted(scores, key=lambda uid: (-scores[uid], uid == only_meaning, uid))
    assert ids(found) == order
    assert set(only_words) < set(order)


def test_a_project_counts_in_full_and_so_do_insights(experiences):
    other = experiences.store("red lamp", "", "", project="q").id
    nobodys = experiences.store("red lamp on", "", "").id
    own = experiences.store("red lamp off blue", "", "", project="p").id
    insight = experiences.store("lamp green tall", "", "", memory_type="insight", project="q").id
    assert ids(experiences.search("red lamp"))[:2] == [other, nobodys]
    assert ids(experiences.search("red lamp", project="p")) == [own, insight, other, nobodys]
    hard = Fusion(other_project_weight=0)
    assert ids(experiences.search("red lamp", project="p", fusion=hard)) == [own, insight]
    only = experiences.search("lamp", project="p", fusion=hard, memory_types=["decision"])
    assert ids(only) == [own]


def test_quarantined_memories_are_never_found(experiences, open_memory):
    open_memory().observe("red lamp", quarantined=True)
    seen = experiences.store("blue", "", "").id
    assert ids(experiences.search("red lamp")) == [seen]


@pytest.mark.parametrize(
    "error",
    [ModelMissing("gone"), RuntimeError("broken"), ValueError("x"), MemoryError(), OSError()],
)
def test_without_the_embedder_words_find_alone(experiences, opened, error):
    lamp = experiences.store("red lamp", "", "").id
    experiences.store("blue chair", "", "")
    for memory in (opened(embedder=Failing(error)), experiences):
        memory._embedder = Failing(error)
        found = memory.search("lamp")
        assert (ids(found), found.degraded) == ([lamp], True)
        assert found.hits[0].score == pytest.approx(0.3 / 61)
        assert memory.search("").hits == memory.search("unheard").hits == []


def test_with_segments_too_words_find_alone(experiences, monkeypatch):
    for module, name, value in LIMITS:
        monkeypatch.setattr(module, name, value)
    uids = [experiences.store(f"lamp{n} x", "", "").id for n in range(120)]
    experiences.search("x")
    assert experiences._index.segments
    experiences._embedder = Failing(RuntimeError())
    found = experiences.search("lamp7 lamp119")
    assert (set(ids(found)[:2]), found.degraded) == ({uids[7], uids[119]}, True)
    assert set(ids(found)[2:]) < set(uids[70:80])
    assert set(ids(experiences.search("lamp7", limit=50))) == {uids[7], *uids[70:80]}
    assert ids(experiences.search("la", limit=50)) == []


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("auth", {"full", "mixed"}), ("AUTHENT", {"full", "mixed"}), ("au", set()),
        ("русск", {"russian"}), ("auth-error", {"full", "errors", "mixed"}),
        ("error", {"errors", "mixed"}), ("cafe", {"accent"}), ("authenticationx", set()),
        ("東京", {"tokyo"}), ("東京タ", {"tokyo"}),
    ],
)  # fmt: skip
def test_a_word_finds_longer_ones_that_begin_so(experiences, query, wanted):
    texts = {
        "full": "authentication", "errors": "two errors", "russian": "русские слова",
        "mixed": "Authenticated ERRORLESS", "accent": "Caféteria", "tokyo": "東京タワー",
    }  # fmt: skip
    for number in range(120):
        experiences.store(f"filler{number} x", "", "")
    named = {experiences.store(text, "", "").id: name for name, text in texts.items()}
    experiences.search("x")
    experiences._embedder = Failing(OSError())
    found = experiences.search(query)
    assert {named[uid] for uid in ids(found)} == wanted
    assert experiences.search(query).hits == found.hits


@pytest.mark.usefixtures("parts")
def test_exact_words_come_first_and_filters_hold_for_the_others(experiences):
    def words(count: int) -> str:
        return " ".join(f"other{n}" for n in range(count))

    longer = [experiences.store(f"authentic {n}", "", "", tags=["t"]).id for n in range(130)]
    exact = [experiences.store(f"auth {words(n)}", "", "").id for n in range(5)]
    experiences.search("x")
    experiences._embedder = Failing(OSError())
    found = ids(experiences.search("auth", limit=135))
    assert (found[:5], set(found[5:])) == (exact, set(longer))
    assert ids(experiences.search("auth", limit=7)) == found[:7]
    only = ids(experiences.search("auth", limit=10, tags=["T"]))
    assert (len(only), set(only) <= set(longer)) == (10, True)
    assert ids(experiences.search("auth", tags=["none"])) == []


def test_other_searches_know_exact_words_only(experiences, open_memory):
    experiences.store("authentication", "", "")
    memory = open_memory()
    assert memory.recall("auth", vector_weight=0.0, fts_weight=1.0) == []
    [hit] = memory.recall("authentication", vector_weight=0.0, fts_weight=1.0)
    assert hit.score == 1.0


def test_the_answer_does_not_depend_on_how_many_are_asked_for(experiences):
    """Up to 25 both rankings are as long: no memory loses its place in one of them."""
    for n in range(70):
        experiences.store(f"beta x{n} y{n} z{n}", "", "")
    # The nearest by meaning, and by words behind all others.
    last = experiences.store("beta", " ".join(f"w{n}" for n in range(400)), "").id
    fusion = Fusion(vector_weight=0.9, sparse_weight=0.1)
    whole = experiences.search("beta", limit=25, fusion=fusion).hits
    assert last in {hit.id for hit in whole[:9]}
    for limit in range(25):
        assert experiences.search("beta", limit=limit, fusion=fusion).hits == whole[:limit]


@pytest.mark.parametrize(
    ("embedder", "degraded"), [(WordEmbedder(), False), (Failing(OSError()), True)]
)
def test_in_an_empty_store_only_the_embedder_can_fail(opened, embedder, degraded):
    found = opened(embedder=embedder).search("lamp")
    assert (found.hits, found.degraded) == ([], degraded)


def test_while_nothing_is_embedded_words_find_alone(experiences):
    uid = experiences.store("red lamp", "", "").id
    # As left by a store whose embedder never worked.
    with experiences._store.writing():
        execute = experiences._store._connection.execute
        execute("DELETE FROM embedding")
        execute("UPDATE model SET role = NULL")
    found = experiences.search("lamp")
    assert (ids(found), found.degraded) == ([uid], True)
    assert experiences.search("chair").degraded


def test_another_model_is_an_error(experiences, opened):
    other = opened()
    experiences.store("red lamp", "", "")
    other._embedder = WordEmbedder(fingerprint="other")
    with pytest.raises(ModelMismatch):
        other.search("lamp")


def test_the_same_search_gives_the_same_answer_whatever_was_learned(experiences, opened):
    for number in range(30):
        experiences.store(f"fix the lamp {number % 7}", f"try {number}", "ok", tags=["t"])
    first = experiences.search("fix the lamp 3", limit=8)
    for turn in range(20):
        found = experiences.search("fix the lamp 3", limit=8)
        assert found.hits == first.hits
        assert found.query_id != first.query_id
        experiences.judge(found.hits[turn % 8].id, score=turn % 2)
    assert opened().search("fix the lamp 3", limit=8).hits == first.hits


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"query": 1}, InvalidType), ({"query": "ж" * 2501}, InvalidArgument),
        ({"limit": -1}, InvalidArgument), ({"limit": 1.5}, InvalidType),
        ({"limit": 2**64}, InvalidArgument), ({"limit": True}, InvalidType),
        ({"mode": 1}, InvalidType),
        ({"project": 1}, InvalidType), ({"tags": "t"}, InvalidType), ({"tags": [1]}, InvalidType),
        ({"memory_types": ["other"]}, InvalidArgument), ({"fusion": 1}, InvalidType),
    ],
)  # fmt: skip
def test_a_bad_argument_is_refused_by_name_and_nothing_is_noted(experiences, arguments, error):
    name = next(iter(arguments))
    with pytest.raises(error, match=name) as raised:
        experiences.search(**{"query": "lamp", **arguments})
    assert "ж" not in str(raised.value)
    with experiences._store.reading():
        assert experiences._store._connection.execute("SELECT count(*) FROM routing").get == 0


def test_a_query_may_be_as_long_as_documented(experiences):
    uid = experiences.store("ж" * 2500, "", "").id
    assert ids(experiences.search("ж" * 2500)) == [uid]
    assert ids(experiences.search("\ud800 lamp")) == [uid]


def test_the_mode_is_the_one_named_or_the_one_spoken_of(experiences):
    def mode(query: str, named: str | None = None) -> str:
        return experiences.search(query, mode=named).routing.mode

    assert mode("fix the lamp") == mode("fix it", "unknown") == mode("lamp", "DeBug") == "debug"
    assert mode("fix the lamp", "plan") == "plan"
    assert mode("lamp") == mode("") == mode("lamp", "") == "routine"


class Meeting(WordEmbedder):
    """An embedder that answers queries only when two are asked at once."""

    def __init__(self) -> None:
        super().__init__()
        self.barrier = threading.Barrier(2)

    def embed_documents(self, texts):
        return super().embed(list(texts)), np.ones(len(texts), dtype=np.int64)

    def embed_query(self, text):
        self.barrier.wait(timeout=60)
        return super().embed([text])[0]


def test_two_searches_embed_at_once(opened):
    memory = opened(embedder=Meeting())
    lamp, chair = (memory.store(text, "", "").id for text in ("red lamp", "blue chair"))
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(memory.search, ["red lamp", "blue chair"]))
    assert [ids(one)[0] for one in found] == [lamp, chair]
    assert not any(one.degraded for one in found)


def test_a_write_is_possible_while_a_query_is_embedded(opened):
    class Writing(WordEmbedder):
        def embed(self, texts):
            if texts == ["lamp"]:
                with Engram(memory._store._connection.path, embedder=WordEmbedder()) as other:
                    other.observe("a lamp")
            return super().embed(texts)

    memory = opened(embedder=Writing())
    memory.store("chair", "", "")
    assert memory.search("lamp").hits[0].context == "a lamp"


def test_what_is_found_counts_as_recalled(experiences, open_memory):
    for number in range(6):
        experiences.store(f"lamp {number}", "", "")
    for _ in range(10):
        experiences.search("lamp", limit=6)
    experiences.close()
    with open_memory()._store.reading() as _, open_memory() as memory:
        count = memory._store._connection.execute("SELECT count(*) FROM access_log").get
    assert count == 60


def test_a_closed_memory_says_so(experiences):
    experiences.store("lamp", "", "")
    experiences.search("lamp")
    experiences.close()
    with pytest.raises(Closed):
        experiences.search("lamp")
    experiences._embedder = Failing(RuntimeError())
    with pytest.raises(Closed):
        experiences.search("lamp")
