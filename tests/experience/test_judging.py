"""Judgements are kept, estimated where no score is given, and taught to the router."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable

import pytest

from engram import Engram, StubLLMAdapter
from engram.cognition.router import LEVELS
from engram.errors import Busy, InvalidArgument, InvalidType, LLMCallError, NotFound
from engram.experience import ExperienceMemory


@pytest.fixture
def counted_ids(monkeypatch) -> None:
    """Let the ids of searches, which exploration comes from, be the same in every run."""
    chance = random.Random(11)
    monkeypatch.setattr(
        "engram.experience.searching.uuid.uuid4",
        lambda: uuid.UUID(int=chance.getrandbits(128), version=4),
    )


def rows(memory: ExperienceMemory, sql: str) -> list[tuple]:
    with memory._store.reading():
        return memory._store._connection.execute(sql).fetchall()


def test_an_explicit_score_is_kept_as_it_is(experiences, clock):
    uid = experiences.store("red lamp", "", "").id
    for score in (0, 0.25, 1):
        judgement = experiences.judge(uid, score=score, query="not looked at")
        assert (judgement.score, judgement.reason, judgement.degraded) == (
            score,
            "explicit score",
            False,
        )
        assert experiences.get(uid).score == score
    assert rows(experiences, "SELECT count(*), max(judged_at) FROM judgement") == [
        (1, int(clock().timestamp() * 1e6))
    ]


def test_what_is_judged_or_used_is_not_indexed_anew(experiences):
    """Weak spot 19: any change of a memory wrote its words again."""
    uid = experiences.store("red lamp", "", "").id
    words = "SELECT id, block FROM episode_fts_data ORDER BY id"
    before = rows(experiences, words)
    experiences.judge(uid, score=0.5)
    experiences.search("lamp")
    assert experiences.store("red lamp", "", "").deduplicated
    assert (experiences.get(uid).score, experiences.get(uid).used_count) == (0.5, 1)
    assert rows(experiences, words) == before
    experiences.store("blue lamp", "", "")
    assert rows(experiences, words) != before


@pytest.mark.parametrize("score", [-0.001, 1.001, float("nan"), float("inf"), 1e308, 10**400])
def test_a_score_out_of_range_is_refused(experiences, score):
    """Weak spot 10: a huge score became infinity and broke the trainer."""
    uid = experiences.store("red lamp", "", "").id
    with pytest.raises(InvalidArgument, match="score"):
        experiences.judge(uid, score=score)
    assert rows(experiences, "SELECT * FROM judgement") == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [(("",), InvalidArgument), (("ж" * 51,), InvalidArgument), ((1,), InvalidType)],
)
def test_a_bad_id_is_refused_by_name(experiences, arguments, error):
    with pytest.raises(error, match="memory_id"):
        experiences.judge(*arguments, score=1)


@pytest.mark.parametrize(("name", "value"), [("score", "1"), ("score", True), ("query", 1)])
def test_a_bad_argument_is_refused_by_name(experiences, name, value):
    uid = experiences.store("red lamp", "", "").id
    with pytest.raises(InvalidType, match=name):
        experiences.judge(uid, **{name: value})


@pytest.mark.parametrize("score", [None, 0.5])
def test_what_is_not_there_or_another_agents_is_not_found(opened, open_memory, score):
    ann, bob = opened("ann"), opened("bob")
    uid = bob.store("red lamp", "", "").id
    gone = bob.store("blue chair", "", "").id
    Engram.forget(open_memory("bob"), gone)
    for memory, memory_id in ((ann, uid), (bob, gone), (bob, "ж" * 50)):
        with pytest.raises(NotFound):
            memory.judge(memory_id, score=score)


def test_insights_other_episodes_and_merged_ones_can_be_judged(experiences, open_memory):
    insight = experiences.store("red lamp", "", "", memory_type="insight").id
    plain = open_memory().observe("green lamp")
    merged = experiences.store("blue lamp", "", "").id
    lifecycle = experiences._store.lifecycle
    with experiences._store.writing():
        put = {"status": "superseded"}
        lifecycle.set(lifecycle.find(merged), merged, 0, action="merge", reason=None, columns=put)
    for uid in (insight, plain, merged):
        assert experiences.judge(uid, score=0.75).score == 0.75
        assert experiences.judge(uid, query="lamp").score == pytest.approx(0.7)
    assert rows(experiences, "SELECT score FROM judgement") == [(pytest.approx(0.7),)] * 3


def test_without_a_model_words_age_and_use_make_the_score(experiences, clock):
    uid = experiences.store("Red lamp", "switch it on", "light").id
    judgement = experiences.judge(uid)
    assert (judgement.score, judgement.degraded) == (pytest.approx(0.30), False)
    assert judgement.reason == "keyword:0.00 recency:1.00 frequency:0.00"
    clock.advance(days=30)
    judgement = experiences.judge(uid, query="red LIGHT chair switch")
    assert judgement.reason == "keyword:0.75 recency:0.37 frequency:0.00"
    assert judgement.score == pytest.approx(0.3 + 0.3 * 0.36787944)
    clock.advance(days=-3000)
    assert experiences.judge(uid).score == pytest.approx(0.30)


class Model(StubLLMAdapter):
    """Keeps what it was asked, and whether a write was possible meanwhile."""

    def __init__(self, answer: object) -> None:
        super().__init__()
        self.answer = answer
        self.asked: list[tuple[str, str]] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def judge_memory(self, query: str, text: str):
        self.asked.append((query, text))
        self.meanwhile()
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def test_a_model_judges_where_there_is_one(opened, open_memory):
    model = Model((0.8, "It fits."))
    memory = opened(llm=model)
    uid = memory.store("red lamp", "switch", "light").id
    model.meanwhile = lambda: open_memory(busy_timeout=0).observe("written meanwhile")
    judgement = memory.judge(uid, query="a lamp?")
    assert (judgement.score, judgement.reason, judgement.degraded) == (0.8, "It fits.", False)
    assert model.asked == [("a lamp?", "red lamp\nswitch\nlight")]
    assert memory.get(uid).score == 0.8
    assert memory.judge(uid, score=0.1).score == 0.1
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [LLMCallError("down"), RuntimeError("secret"), None, (float("nan"), ""), (2.0, "too much"),
     ("high", "x"), (0.5,)],
)  # fmt: skip
def test_where_the_model_fails_the_estimate_says_so(opened, answer, caplog):
    memory = opened(llm=Model(answer))
    uid = memory.store("red lamp", "", "").id
    judgement = memory.judge(uid, query="red")
    assert (judgement.score, judgement.degraded) == (pytest.approx(0.7), True)
    assert judgement.reason.startswith("keyword:1.00")
    assert "secret" not in caplog.text


def test_a_model_that_cannot_judge_is_not_asked(opened):
    class Other:
        model_name = "other"

        def extract_facts(self, episodes): ...
        def summarise(self, episodes): ...

    memory = opened(llm=Other())
    uid = memory.store("red lamp", "", "").id
    assert not memory.judge(uid).degraded


def test_what_is_erased_while_the_model_thinks_is_not_found(opened, open_memory):
    model = Model((0.8, ""))
    memory = opened(llm=model)
    uid = memory.store("red lamp", "", "").id
    model.meanwhile = lambda: open_memory().forget(uid)
    with pytest.raises(NotFound):
        memory.judge(uid)
    assert rows(memory, "SELECT * FROM judgement") == []


def test_a_judgement_settles_every_search_that_showed_the_memory(experiences, clock):
    lamp = experiences.store("red lamp", "", "").id
    chair = experiences.store("red chair", "", "").id
    for _ in range(3):
        experiences.search("red")
    pending = "SELECT count(*) FROM shown WHERE judged_at IS NULL"
    assert rows(experiences, pending) == [(6,)]
    clock.advance(seconds=5)
    experiences.judge(lamp, score=1)
    at = int(clock().timestamp() * 1e6)
    assert rows(experiences, pending) == [(3,)]
    assert rows(experiences, "SELECT DISTINCT judged_at FROM shown ORDER BY 1") == [(None,), (at,)]
    clock.advance(seconds=5)
    experiences.search("red")
    experiences.judge(lamp, score=0)
    assert rows(experiences, f"SELECT count(*) FROM shown WHERE judged_at = {at}") == [(3,)]
    assert chair


def test_a_memory_that_was_never_shown_teaches_nothing(experiences):
    uid = experiences.store("red lamp", "", "").id
    experiences.judge(uid, score=1)
    assert (
        rows(experiences, "SELECT * FROM q_table") == rows(experiences, "SELECT * FROM shown") == []
    )


def test_a_judgement_rewards_the_newest_search_that_showed_the_memory_once(experiences):
    uid = experiences.store("red lamp", "", "").id
    old, new = experiences.search("fix the lamp"), experiences.search("plan a lamp")
    experiences.judge(uid, score=0.5)
    learned = {
        (level, "plan", choice, 0.05, 1)
        for level, choice in zip(LEVELS, new.routing[1:], strict=True)
    }
    table = "SELECT router_level, state, action, value, update_count FROM q_table"
    assert set(rows(experiences, table)) == learned
    experiences.judge(uid, score=1)
    learned |= {
        (level, "debug", choice, 0.1, 1)
        for level, choice in zip(LEVELS, old.routing[1:], strict=True)
    }
    assert set(rows(experiences, table)) == learned
    # Both have their reward.
    experiences.judge(uid, score=0)
    assert set(rows(experiences, table)) == learned


@pytest.mark.usefixtures("counted_ids")
def test_choices_that_helped_come_to_be_made_and_others_avoided(opened):
    """Weak spot 13: the router never learned."""
    memory = opened()
    uid = memory.store("red lamp", "", "").id
    good = ("low_threshold", "balanced", "summarize", "proactive")

    def share_of_good(searches: int) -> list[float]:
        made = [memory.search("fix the lamp").routing[1:] for _ in range(searches)]
        return [sum(one[place] == good[place] for one in made) / searches for place in range(4)]

    # Nothing learned: "debug" begins with none of them and explores a little.
    assert max(share_of_good(100)) < 0.2
    for _ in range(600):
        routing = memory.search("fix the lamp").routing[1:]
        memory.judge(uid, score=sum(map(str.__eq__, routing, good)) / 4)
    assert min(share_of_good(100)) > 0.8
    memory.close()
    # So does another process, whose table it is too.
    memory = opened()
    assert min(share_of_good(100)) > 0.8
    values = {
        (level, action): value
        for level, action, value in rows(memory, "SELECT router_level, action, value FROM q_table")
    }
    for (level, variants), best in zip(LEVELS.items(), good, strict=True):
        known = {name: values[level, name] for name in variants if (level, name) in values}
        assert max(known, key=known.__getitem__) == best
    # Other modes learned nothing from it.
    assert memory.search("plan the lamp").routing.mode == "plan"
    assert {state for (state,) in rows(memory, "SELECT state FROM q_table")} == {"debug"}


@pytest.mark.usefixtures("counted_ids")
def test_exploring_goes_on_when_a_choice_is_known_to_be_bad(experiences):
    uid = experiences.store("red lamp", "", "").id
    for _ in range(60):
        experiences.search("fix the lamp")
        experiences.judge(uid, score=0)
    made = Counter(experiences.search("fix the lamp").routing.llm_selection for _ in range(100))
    assert len(made) > 1


def test_nothing_of_a_judgement_is_kept_while_another_connection_writes(experiences, opened):
    uid = experiences.store("red lamp", "", "").id
    experiences.search("lamp")
    other = opened(busy_timeout=0)
    with experiences._store.writing(), pytest.raises(Busy):
        other.judge(uid, score=1)
    assert (
        rows(experiences, "SELECT * FROM judgement")
        == rows(experiences, "SELECT * FROM q_table")
        == []
    )
