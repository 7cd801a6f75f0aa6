"""Words from segments and tail give FTS5's answers: the same episodes, order and scores."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_ins import Clock, WordEmbedder
from storage.test_text import FOUND

from engram import Engram, ObserveInput
from engram.errors import CorruptStore
from engram.index import episode_index
from engram.storage import EpisodeFilter

pytestmark = pytest.mark.usefixtures("small_segments", "fts5_constants")


START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = [
    "piano", "budget", "Café", "cafe", "naïve", "the", "the", "the", "of", "on-call", "don't",
    "東京", "タワー", "ёлка", "ёлками", "week", "weekly", "weekdays", "x", "thermal",
]  # fmt: skip


def words_of(memory: Engram, query: str, allowed: EpisodeFilter, limit: int):
    index = memory._current_index()
    index.refresh()
    return index.match(query, allowed, limit)


def compare(memory: Engram, query: str, allowed: EpisodeFilter, limit: int) -> int:
    """Both ways must give the same; return how many episodes they gave."""
    store = memory._store
    with store.reading():
        expected, scores = store.text.search(query, allowed, limit)
        found, ours = words_of(memory, query, allowed, limit)
        same(memory._index.match_beginnings, store.text.search_beginnings, query, allowed, limit)
        every = {"every_word": True}
        same(memory._index.match, store.text.search, query, allowed, limit, **every)
        shuffled = np.random.default_rng(limit).permutation(len(found))
        weights = memory._index.weigh(list(store.text.words_of(query)), found[shuffled])
        assert weights.scores().tobytes() == ours[shuffled].tobytes()
    assert found.tolist() == expected.tolist()
    np.testing.assert_allclose(ours, scores, rtol=1e-9, atol=0.0)
    assert (found.dtype, ours.dtype) == (expected.dtype, scores.dtype)
    return len(found)


def same(ours, theirs, *asked: object, **how: object) -> None:
    (found, scores), (expected, wanted) = ours(*asked, **how), theirs(*asked, **how)
    assert found.tolist() == expected.tolist()
    np.testing.assert_allclose(scores, wanted, rtol=1e-9, atol=0.0)


def sentence(chance: random.Random) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randrange(1, 9)))


def fill(memory: Engram, count: int, seed: int = 1) -> list[str]:
    chance = random.Random(seed)
    return memory.observe_many(
        ObserveInput(
            sentence(chance), tags=[f"t{n % 3}"], timestamp=START + timedelta(hours=n)
        )
        for n in range(count)
    )  # fmt: skip


def sealed(memory: Engram) -> None:
    """Make segments of what is there, whatever its size."""
    with memory._store.reading():
        index = memory._current_index()
        index.refresh()
        index.seal()


def segments(memory: Engram) -> int:
    return len(memory._index.segments)


texts = st.lists(st.sampled_from(WORDS), min_size=0, max_size=7).map(" ".join)
filters = st.builds(
    EpisodeFilter,
    agent=st.sampled_from([None, None, "a", "b", "nobody"]),
    since=st.sampled_from([None, None, 1_767_225_600_000_000 + 3 * 3_600_000_000]),
    until=st.sampled_from([None, None, 1_767_225_600_000_000 + 9 * 3_600_000_000]),
    tags=st.sampled_from([(), (), ("t0",), ("missing",)]),
    exclude_quarantined=st.booleans(),
)
EVERY_TIME = ("the cafe Café piano on-call week", EpisodeFilter(), 5)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("observe"), st.lists(texts, min_size=1, max_size=5)),
        st.tuples(st.just("forget"), st.integers(0, 20)),
        st.tuples(st.just("forget"), st.just("half")),
        st.tuples(st.just("reopen"), st.none()),
        st.tuples(st.just("maintain"), st.none()),
        st.tuples(st.just("recall"), st.tuples(texts, filters, st.integers(1, 9))),
    ),
    min_size=2,
    max_size=25,
)


@settings(max_examples=60)
@given(steps, st.sampled_from([1, 3, 6]))
def test_any_history_gives_the_answers_of_fts5(tmp_path_factory, history, rows):
    path = tmp_path_factory.mktemp("history") / "m.engram"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(episode_index, "TAIL_ROWS", rows)
        patch.setattr(episode_index, "SEGMENT_ROWS", 2 * rows)
        run(path, history)


def item(number: int, text: str) -> ObserveInput:
    return ObserveInput(text or "-", tags=[f"t{number % 2}"], quarantined=number == 3)


def run(path: Path, history) -> None:
    clock = Clock(START)

    def opened(agent: str | None = None) -> Engram:
        return Engram(path, agent_id=agent, embedder=WordEmbedder(8), clock=clock)

    memory, writers = opened(), {name: opened(name) for name in "ab"}
    ids: list[str] = []
    for number, (what, how) in enumerate(history):
        clock.advance(hours=1)
        writer = writers["ab"[number % 2]]
        if what == "observe":
            ids += writer.observe_many(map(item, range(len(how)), how))
        elif what == "forget":
            chosen = slice(how, how + 1) if isinstance(how, int) else slice(len(ids) // 2)
            for uid in ids[chosen]:
                memory.forget(uid)
            del ids[chosen]
        elif what == "reopen":
            memory.close()
            memory = opened()
        elif what == "maintain":
            memory.maintain()
        if memory.model() is not None:
            compare(memory, *(how if what == "recall" else EVERY_TIME))
    for instance in (memory, *writers.values()):
        instance.close()


@pytest.mark.parametrize(("text", "query"), [(t, q) for t, queries in FOUND for q in queries])
def test_every_script_is_found_as_fts5_finds_it(memory, text, query):
    memory.observe_many(map(ObserveInput, [text, "an unrelated remark 12 другое 無関係", text]))
    sealed(memory)
    assert compare(memory, query, EpisodeFilter(), 9) == 2
    compare(memory, text, EpisodeFilter(), 9)


@pytest.mark.parametrize(
    "query",
    [
        "", "   ", "?!,.", "the", "the of on", "Café cafe CAFÉ", "on-call", "piano on-call",
        "don't", "unheard of", "unheard", "piano\0budget", "NEAR(piano budget)", "東京タワー",
        "x" * 9000,
        " ".join(f"w{n}" for n in range(400)), " ".join(["piano", *map(str, range(300))]),
    ],
)  # fmt: skip
def test_any_query_gives_the_answer_of_fts5(memory, query):
    fill(memory, 120)
    memory.observe("nul\0in the text piano")
    memory.observe(" ".join(f"w{n}" for n in range(0, 400, 7)))
    compare(memory, "piano", EpisodeFilter(), 5)
    assert segments(memory)
    for limit in (1, 3, 500):
        compare(memory, query, EpisodeFilter(), limit)
        compare(memory, query, EpisodeFilter(tags=("t2",)), limit)


def test_a_beginning_that_one_text_completes_many_times(memory):
    memory.observe("errors " * 200 + "errata " * 300 + "err " + "erring " * 254)
    memory.observe("errors and more")
    fill(memory, 130)
    memory.observe("err")
    for query in ("err", "erro", "error errata", "the week", "thé wee ёлк", "zzz"):
        compare(memory, query, EpisodeFilter(), 9)
    assert segments(memory)


def test_only_so_many_beginnings_of_three_characters_are_looked_for(memory):
    words = [f"word{n:02}x" for n in range(40)]
    for word in words:
        memory.observe(word)
    with memory._store.reading():
        text = memory._store.text
        assert len(text.search_beginnings(" ".join(words), EpisodeFilter(), 99)[0]) == 32
        found = text.beginnings_of("a of the don't on-call THE 東京 w")
        assert list(found) == ["the", "don", "call"]
    sealed(memory)
    for query in (" ".join(words), " ".join(word[:-1] for word in words), "wor wor word0 wo"):
        compare(memory, query, EpisodeFilter(), 99)


def test_terms_longer_than_fts5_keeps(memory):
    for end in ("", "é", "東"):
        memory.observe("z" * 32_767 + end)
        memory.observe("z" * 40_000 + end)
    sealed(memory)
    memory.observe("z" * 40_000)
    for query in ("z" * 9_999, "z" * 32_767, "z" * 32_768, "z" * 40_000, "z" * 32_767 + "é"):
        compare(memory, query, EpisodeFilter(), 9)


def test_two_instances_write_in_turn(open_memory):
    one, two = open_memory("a"), open_memory("b")
    chance = random.Random(2)
    ids: dict[Engram, list[str]] = {one: [], two: []}
    for writer in ids:
        ids[writer] += fill(writer, 120)
    for turn in range(60):
        writer = (one, two)[turn % 2]
        ids[writer].append(writer.observe(sentence(chance)))
        if turn % 5 == 4:
            writer.forget(ids[writer].pop(chance.randrange(len(ids[writer]))))
        for reader in (one, two):
            compare(reader, sentence(chance), EpisodeFilter(), 4)
            compare(reader, sentence(chance), EpisodeFilter(agent="ab"[turn % 2]), 4)
    assert segments(one)
    assert segments(two)


def test_the_forgotten_are_not_recalled_and_do_not_count(memory):
    ids = fill(memory, 200)
    compare(memory, "piano week", EpisodeFilter(), 200)
    chance = random.Random(3)
    chance.shuffle(ids)
    # 50 % and 90 % gone, and all of it.
    for share in (100, 80, 20):
        gone, ids = ids[:share], ids[share:]
        for uid in gone:
            memory.forget(uid)
        for query in ("piano week", "the cafe", "x", "ёлка"):
            compare(memory, query, EpisodeFilter(), 200)
    assert memory.recall("piano") == []
    memory.maintain()
    assert segments(memory) == 0
    again = memory.observe("the piano")
    assert [r.episode.id for r in memory.recall("piano")] == [again]
    compare(memory, "piano", EpisodeFilter(), 3)


def test_a_merge_leaves_no_word_of_the_forgotten(memory):
    ids = memory.observe_many([ObserveInput(f"secret{n} word") for n in range(150)])
    compare(memory, "secret3", EpisodeFilter(), 3)
    for uid in ids[:100]:
        memory.forget(uid)
    compare(memory, "word", EpisodeFilter(), 20)
    memory.maintain()
    terms = b"".join(bytes(one.arrays.whole("word.term_bytes")) for one in memory._index.segments)
    assert b"secret3" not in terms
    assert b"secret107" in terms
    for n in range(0, 150, 7):
        compare(memory, f"secret{n} word", EpisodeFilter(), 150)


def test_a_rolled_back_write_leaves_no_trace(memory, monkeypatch):
    fill(memory, 150)
    compare(memory, "piano", EpisodeFilter(), 9)
    with monkeypatch.context() as patch:
        patch.setattr(memory._store, "changed", interrupt)
        with pytest.raises(KeyboardInterrupt):
            memory.observe("piano piano piano")
    compare(memory, "piano", EpisodeFilter(), 99)


def test_words_cut_short_start_over(memory, monkeypatch):
    fill(memory, 150)
    compare(memory, "piano", EpisodeFilter(), 9)
    memory.observe("piano solo")
    with monkeypatch.context() as patch:
        patch.setattr(type(memory._store.text), "bodies", interrupt)
        with pytest.raises(KeyboardInterrupt):
            memory.recall("solo")
    compare(memory, "piano solo", EpisodeFilter(), 99)
    fill(memory, 200, seed=2)
    with monkeypatch.context() as patch:
        patch.setattr(memory._index, "_add_segment", interrupt)
        with pytest.raises(KeyboardInterrupt):
            memory.recall("solo")
    compare(memory, "piano solo", EpisodeFilter(), 99)


def interrupt(*_):
    raise KeyboardInterrupt


def test_an_encrypted_store_gives_the_same_answers(open_memory, path):
    memory = open_memory(key="secret")
    ids = fill(memory, 180)
    memory.forget(ids[7])
    compare(memory, "the piano", EpisodeFilter(), 30)
    assert segments(memory)
    memory.rekey("another")
    memory.observe("piano after all")
    compare(memory, "the piano all", EpisodeFilter(), 30)
    memory.rekey(None)
    compare(memory, "the piano all", EpisodeFilter(), 30)
    assert segments(memory)


def test_upkeep_and_import_keep_them_in_step(memory, file, other):
    fill(memory, 110)
    fill(other, 140, seed=9)
    compare(memory, "the piano", EpisodeFilter(), 99)
    other.export_lines(file)
    memory.import_lines(file)
    compare(memory, "the piano cafe", EpisodeFilter(), 99)
    memory.compact()
    memory.prune()
    compare(memory, "the piano cafe", EpisodeFilter(), 99)
    assert memory.check() == []


def test_threads_share_an_instance(memory):
    fill(memory, 160)

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(10):
            memory.observe(sentence(chance))
            compare(memory, sentence(chance), EpisodeFilter(), 8)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_a_damaged_text_is_ranked_as_fts5_ranks_it(memory):
    fill(memory, 150)
    with memory._store.writing():
        memory._store.text.remove([2])
        memory._store._connection.execute(
            "UPDATE episode SET search_text = NULL,"
            " content = CAST(x'7069616e6f20ff80ff' AS TEXT) WHERE id = 2"
        )
        memory._store.text.add(2, 2)
    assert compare(memory, "piano", EpisodeFilter(), 150) > 0
    with memory._store.reading():
        assert 2 in words_of(memory, "piano", EpisodeFilter(), 150)[0]
    assert segments(memory)


def test_a_damaged_row_is_named_and_not_quoted(memory, monkeypatch):
    fill(memory, 150)
    with memory._store.reading(), monkeypatch.context() as patch:
        rows = SimpleNamespace(fetchall=lambda: [(b"fine",), ("secret",)])
        patch.setattr(memory._store._connection, "execute", lambda *_: rows)
        with pytest.raises(CorruptStore) as caught:
            memory._store.text.bodies(1, 5)
    assert "secret" not in str(caught.value)


def test_words_in_memory_rank_small_stores_too(memory, monkeypatch):
    asked = []
    search = type(memory._store.text).search
    monkeypatch.setattr(
        type(memory._store.text), "search", lambda *given: asked.append(1) or search(*given)
    )
    memory.observe_many(ObserveInput("piano budget") for _ in range(96))
    memory.recall("piano budget")
    assert (len(asked), segments(memory)) == (0, 0)
    memory.observe("piano")
    memory.recall("piano budget")
    assert (len(asked), segments(memory)) == (0, 1)


def test_both_sides_of_a_recall_ask_for_the_filter_once(memory, monkeypatch):
    ids = fill(memory, 240)
    asked: list[str] = []
    find = type(memory._store.labels).episodes
    monkeypatch.setattr(
        type(memory._store.labels),
        "episodes",
        lambda self, kind, name, *keys: asked.append(name) or find(self, kind, name, *keys),
    )
    assert len(memory.recall("piano", 240, tags=["t1"])) == 80
    assert asked == ["t1"] * segments(memory)
    memory.forget(ids[1])
    assert len(memory.recall("piano", 240, tags=["t1"])) == 79
    # Labels never change and are kept; only what is new is looked up.
    assert asked == ["t1"] * segments(memory)
    assert len(memory.recall("piano", 240, tags=["t2"])) == 80
