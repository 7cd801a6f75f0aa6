"""What may reorder a recall's best results: reranking, feedback and diversity."""

from __future__ import annotations

import gc
import threading
from types import FunctionType, ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pair_models import pair_model, pair_tokenizer
from stand_ins import WordEmbedder

from engram import Blending, Engram, ObserveInput
from engram.embedding import LateInteraction
from engram.embedding.location import model_cache
from engram.errors import ModelMissing
from engram.models import FactResult, SearchResult

NOTES = [
    "The quarterly report lists costs for paper, ink and coffee.",
    "We asked where the silver key was and nobody knew.",
    "Grandmother put it under the beehive: the silver key.",
    "A silver spoon and a brass key are in the drawer.",
    "Her bicycle was stolen in March.",
]
QUESTION = "Where did grandmother hide the silver key?"
WORDS = ["tea", "coffee", "berlin", "paris", "alice", "bob", "piano", "cat"]
READ = Blending(rerank="late_interaction", rerank_weight=1.0)

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


def filled(contents: list[str], **options: object) -> Engram:
    memory = Engram(**({"embedder": WordEmbedder()} | options))
    for content in contents:
        memory.observe(content)
    return memory


def contents(results: list) -> list[str]:
    return [one.episode.content for one in results]


class Inverted(LateInteraction):
    """Finds worst what the other finds best."""

    def scores(self, query: str, texts: list[str]) -> np.ndarray:
        return 1.0 - super().scores(query, texts)


class Shuffled(LateInteraction):
    """Says of each text what the other says of another."""

    def scores(self, query: str, texts: list[str]) -> np.ndarray:
        return np.roll(super().scores(query, texts), 2)


# Reranking


def test_the_packaged_model_reads_again_and_an_inverted_or_shuffled_one_changes_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rankings = []
    for reranker in (LateInteraction, Inverted, Shuffled):
        monkeypatch.setattr("engram.engine.reranking.LateInteraction", reranker)
        memory = filled(NOTES, embedder=None)
        rankings.append(contents(memory.recall(QUESTION, k=1, blending=READ)))
    assert rankings[0] == [NOTES[2]]
    assert NOTES[2] not in rankings[1] + rankings[2]


def test_what_is_not_among_the_first_k_is_read_too() -> None:
    """An answer far down comes first: the cut is after the reading, not before."""
    asked = "alpha beta gamma"
    decoys = [f"alpha beta gamma decoy{number} other{number}" for number in range(9)]
    memory = filled([*decoys, "alpha beta gamma delta. " + "so much more of other words " * 3])
    last = contents(memory.recall(asked, k=10))[-1]
    assert last not in contents(memory.recall(asked, k=9))

    class Last(LateInteraction):
        def scores(self, query: str, texts: list[str]) -> np.ndarray:
            return np.where([text.startswith(last[:23]) for text in texts], 0.9, 0.1)

    memory._rerankers[None] = memory._embedder, Last(memory._embedder, reason="a test")
    assert contents(memory.recall(asked, k=1, blending=READ)) == [last]
    unread = Blending(rerank="late_interaction", rerank_top=9, rerank_weight=1.0)
    assert contents(memory.recall(asked, k=1, blending=unread)) != [last]


@settings(max_examples=25)
@given(st.lists(texts, max_size=12), texts, st.integers(1, 12), st.integers(1, 12))
def test_only_the_first_change_places_and_without_weight_none_does(
    made: list[str], asked: str, k: int, top: int
) -> None:
    with filled(made) as memory:
        plain = [one.episode.id for one in memory.recall(asked, k=k)]
        wide = [one.episode.id for one in memory.recall(asked, k=max(k, top))]
        for weight in (0.0, 0.5, 1.0):
            blending = Blending(rerank="late_interaction", rerank_top=top, rerank_weight=weight)
            found = [one.episode.id for one in memory.recall(asked, k=k, blending=blending)]
            assert len(found) == len(plain)
            assert set(found[:top]) <= set(wide[:top])
            assert found[top:] == plain[top:]
            if weight == 0.0:
                assert found == plain


def test_scores_fall_and_confidences_stay_with_their_episodes() -> None:
    memory = filled(NOTES, embedder=None)
    sure = {one.episode.id: one.confidence for one in memory.recall(QUESTION, k=5)}
    results = memory.recall(QUESTION, k=5, blending=READ)
    scores = [one.score for one in results]
    assert scores == sorted(scores, reverse=True)
    assert {one.episode.id: one.confidence for one in results} == sure
    floor = sorted(sure.values())[2]
    kept = memory.recall(QUESTION, k=5, blending=READ, min_score=floor)
    assert [one.episode.id for one in kept] == [
        one.episode.id for one in results if one.confidence >= floor
    ]


def test_a_floor_for_scores_is_for_those_after_the_reading() -> None:
    memory = filled(NOTES)
    blending = Blending(method="min_max", rerank="late_interaction")
    scores = [one.score for one in memory.recall("silver key", k=5, blending=blending)]
    floor = scores[1]
    kept = memory.recall("silver key", k=5, blending=blending, min_score=floor)
    assert [one.score for one in kept] == [score for score in scores if score >= floor]


def test_others_write_while_the_model_reads(open_memory) -> None:
    memory, other = open_memory(), open_memory()
    for note in NOTES:
        memory.observe(note)

    class Waiting(LateInteraction):
        def scores(self, query: str, texts: list[str]) -> np.ndarray:
            # Both through the same connection, which a transaction would keep to itself.
            writers = [
                threading.Thread(target=one.observe, args=("new",)) for one in (memory, other)
            ]
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join(30)
                assert not writer.is_alive()
            return super().scores(query, texts)

    memory._rerankers[None] = memory._embedder, Waiting(memory._embedder, reason="a test")
    assert len(memory.recall("silver key", k=3, blending=READ)) == 3
    assert memory.count() == len(NOTES) + 2


def test_a_cross_encoder_on_this_machine_is_asked(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    blending = Blending(rerank="cross_encoder", rerank_weight=1.0)
    # By this model a "d" is worth most, and a "b" less than nothing.
    made = ["a b", "a c", "a d", "a a"]
    memory = filled(made)
    for recall in (memory.recall, memory.recall_memories):
        with pytest.raises(ModelMissing, match="cross-encoder"):
            recall("a b", k=4, blending=blending)
    assert memory.search("a b")[0].content == "a b"  # a search compares vectors then
    folder = model_cache() / "BAAI--bge-reranker-base"
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "model.onnx").write_bytes(pair_model())
    (folder / "tokenizer.json").write_bytes(pair_tokenizer())
    found = contents(memory.recall("a b", k=4, blending=blending))
    assert found == ["a d", "a a", "a c", "a b"]


def test_facts_are_read_like_episodes() -> None:
    memory = filled(NOTES, embedder=None)
    memory.assert_fact("grandmother", "hid the silver key in", "the old clock")
    plain = memory.recall_memories(QUESTION, k=6)
    reread = memory.recall_memories(QUESTION, k=6, blending=READ)
    assert len(plain) == len(reread) == 6
    assert isinstance(reread[0], FactResult)
    assert [one.score for one in reread] == sorted((o.score for o in reread), reverse=True)
    assert reread[0].score > reread[1].score


def test_other_modes_and_a_store_without_vectors_read_nothing(monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(LateInteraction, "scores", refuse)
    memory = filled(NOTES)
    for mode in ("cosine", "spreading"):
        assert memory.recall("key", mode=mode, blending=READ) == memory.recall("key", mode=mode)
    assert filled([]).recall("key", blending=READ) == []


@pytest.mark.parametrize("method", ["complete", "min_max", "reciprocal_rank"])
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("top", [1, 3, 20])
def test_the_best_of_what_was_read_keeps_the_best_score(
    method: str, weight: float, top: int
) -> None:
    memory = filled(NOTES, embedder=None)
    best = memory.recall(QUESTION, k=1, blending=method)[0].score
    assert best == 1.0 or method == "min_max"
    for further in ({"rerank": "late_interaction"}, {"feedback": weight}):
        blending = Blending(method, rerank_weight=weight, rerank_top=top, **further)
        assert memory.recall(QUESTION, k=5, blending=blending)[0].score == pytest.approx(best)


def test_one_result_that_is_read_has_the_best_score() -> None:
    memory = filled(["Ana feeds the bees."], embedder=None)
    for blending in (READ, Blending(rerank="late_interaction"), Blending(feedback=1.0)):
        assert [one.score for one in memory.recall("bees", blending=blending)] == [1.0]


def texts_in(root: object) -> list[str]:
    """Return all texts that an object leads to, code aside."""
    seen: set[int] = set()
    left, found = [root], []
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, (type, ModuleType, FunctionType)):
            continue
        seen.add(id(one))
        if isinstance(one, (str, bytes)):
            found.append(one if isinstance(one, str) else one.decode("latin-1"))
        else:
            left += gc.get_referents(one)
    return found


@pytest.mark.parametrize("erase", ["forget", "forget_many", "forget_entity", "prune"])
def test_what_was_read_is_nowhere_once_it_is_erased(erase: str) -> None:
    memory = filled(["vault doors are heavy"], embedder=None)
    id_ = memory.observe("the pin of the vault is kumquat", actors=["Zebulon"])
    memory.recall("vault", blending=READ)
    memory.search("Zebulon vault kumquat")
    assert memory._rerankers
    if erase == "prune":
        memory.prune(threshold=1e9)
    else:
        named = {"forget": id_, "forget_many": [id_], "forget_entity": "Zebulon"}[erase]
        getattr(memory, erase)(named)
    assert not memory._rerankers
    left = texts_in(memory)
    assert ":memory:" in left
    assert memory._embedder.name in left
    assert not [text for text in left if "kumquat" in text or "Zebulon" in text]


# Diversity


def test_a_copy_gives_way_to_what_is_new() -> None:
    memory = filled(["tea with alice in berlin", "tea with alice in berlin", "tea with bob", "cat"])
    asked = "tea with alice"
    plain = contents(memory.recall(asked, k=2))
    assert plain == ["tea with alice in berlin"] * 2
    unlike = contents(memory.recall(asked, k=2, blending=Blending(diversity=0.9)))
    assert unlike == ["tea with alice in berlin", "tea with bob"]


@settings(max_examples=25)
@given(st.lists(texts, max_size=12), texts, st.integers(1, 12), st.floats(0.0, 1.0))
def test_the_best_is_first_and_a_short_answer_is_the_beginning_of_a_longer_one(
    made: list[str], asked: str, k: int, diversity: float
) -> None:
    with filled(made) as memory:
        plain = [one.episode.id for one in memory.recall(asked, k=64)]
        found = memory.recall(asked, k=64, blending=Blending(diversity=diversity))
        longest = [one.episode.id for one in found]
        assert sorted(longest) == sorted(plain)
        found = memory.recall(asked, k=k, blending=Blending(diversity=diversity))
        ids = [one.episode.id for one in found]
        assert ids == longest[:k]
        assert ids[:1] == plain[:1]
        if diversity == 0.0:
            assert ids == plain[:k]


def test_a_short_answer_from_many_is_the_beginning_of_a_longer_one() -> None:
    random = np.random.default_rng(4)
    memory = Engram(embedder=WordEmbedder())
    memory.observe_many([ObserveInput(" ".join(random.choice(WORDS, 6))) for _ in range(400)])
    for blending in (Blending(diversity=0.5), Blending(diversity=0.5, rerank="late_interaction")):
        longest = memory.recall("tea with alice", k=64, blending=blending)
        for k in (1, 5, 20, 40):
            assert memory.recall("tea with alice", k=k, blending=blending) == longest[:k]
        assert len({one.episode.id for one in longest}) == 64
        more = memory.recall("tea with alice", k=300, blending=blending)
        scores = [one.score for one in more[64:]]
        assert scores == sorted(scores, reverse=True)
        assert len({one.episode.id for one in more}) == 300


def test_what_is_below_the_floor_takes_no_place() -> None:
    memory = filled(["tea with alice", "tea with alice", "piano in paris"])
    results = memory.recall("tea with alice", k=3)
    floor = results[1].confidence
    unlike = Blending(diversity=1.0)
    kept = memory.recall("tea with alice", k=3, blending=unlike, min_score=floor)
    assert contents(kept) == ["tea with alice"] * 2


def test_facts_and_episodes_are_alike_too() -> None:
    memory = filled(["bob drinks tea", "alice"])
    memory.assert_fact("bob", "drinks", "tea")
    asked, weights = "bob drinks tea with alice", {"vector_weight": 1.0, "fts_weight": 0.0}
    plain = memory.recall_memories(asked, k=2, **weights)
    assert {type(one) for one in plain} == {SearchResult, FactResult}
    unlike = memory.recall_memories(asked, k=2, blending=Blending(diversity=1.0), **weights)
    assert unlike[0] == plain[0]
    assert contents(unlike[1:]) == ["alice"]


# Feedback


def test_the_words_of_the_best_find_what_the_query_does_not_say() -> None:
    made = [
        "wing flutter at transonic speed",
        "wing flutter near transonic flow",
        "wing flutter in transonic tunnels",
        "transonic transonic flow",
        "a wing of the old museum",
        *(f"cat number {number}" for number in range(12)),
    ]
    memory = filled(made)
    only_words = {"vector_weight": 0.3, "fts_weight": 0.7, "k": 8}
    plain = contents(memory.recall("wing flutter", **only_words))
    again = contents(memory.recall("wing flutter", blending=Blending(feedback=0.9), **only_words))
    assert plain.index("transonic transonic flow") > plain.index("a wing of the old museum")
    assert again.index("transonic transonic flow") < again.index("a wing of the old museum")


def test_in_long_texts_the_words_they_share_are_found() -> None:
    random = np.random.default_rng(3)
    syllables = [first + second for first in "bcdfglmnprst" for second in "aeiou"]

    def words(count: int) -> str:
        return " ".join("".join(random.choice(syllables, 4)) for _ in range(count))

    memory = Engram(embedder=WordEmbedder())
    memory.observe_many([ObserveInput(words(400)) for _ in range(30)])
    memory.observe_many([ObserveInput("volcano " * 30 + words(400))])
    memory.observe_many([ObserveInput(f"volcano magma lava {words(400)}") for _ in range(4)])
    memory.observe_many([ObserveInput(f"{one} volcano {words(400)}") for one in ("tin", "magma")])
    weights = {"vector_weight": 0.0, "fts_weight": 1.0, "k": 7}
    found = contents(memory.recall("volcano", blending=Blending(feedback=0.8), **weights))
    assert all("magma" in text for text in found[:5])


@pytest.mark.parametrize("feedback", [0.3, 0.6, 1.0])
def test_a_few_memories_that_have_nothing_to_do_with_it_do_not_vouch_for_each_other(
    feedback: float,
) -> None:
    answer = "Zebras sleep standing."
    memory = filled([answer, *(f"Invoice {number} paid by bank" for number in range(4))])
    found = memory.recall("zebras", blending=Blending(feedback=feedback))
    assert found == memory.recall("zebras")
    assert contents(found)[0] == answer


def test_without_a_share_of_words_there_is_no_second_look() -> None:
    memory = filled(NOTES)
    weights = {"vector_weight": 1.0, "fts_weight": 0.0}
    plain = memory.recall("silver key", **weights)
    assert memory.recall("silver key", blending=Blending(feedback=1.0), **weights) == plain


@pytest.mark.parametrize("method", ["complete", "min_max", "reciprocal_rank"])
@given(made=st.lists(texts, max_size=8), asked=texts)
@settings(max_examples=15)
def test_all_of_it_together_returns_what_there_is(method: str, made: list[str], asked: str) -> None:
    blending = Blending(method, feedback=0.3, diversity=0.3, rerank="late_interaction")
    with filled(made) as memory:
        memory.assert_fact("alice", "plays", "piano")
        found = memory.recall_memories(asked, k=4, blending=blending)
        assert len(found) == min(4, len(made) + 1)
        assert all(0.0 <= one.score <= 1.0 for one in found)
