"""Writing: what is kept, what is refused, and that a refused write leaves nothing."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum, StrEnum

import numpy as np
import pytest
from stand_ins import WordEmbedder

from engram import ObserveInput
from engram.errors import EngramError, InvalidArgument, InvalidType, ModelMismatch


def test_everything_said_comes_back(memory):
    at = datetime(2024, 3, 1, 12, 30, 15, 250, tzinfo=UTC)
    uid = memory.observe(
        "Alice joined Globex\0 日本語 😀\r\n",
        actors=["Alice", "Bob", "Alice"],
        tags=["work", "", "émigré"],
        salience=0.9,
        emotional_valence=-0.25,
        timestamp=at,
        provenance="user",
        quarantined=True,
    )
    episode = memory.get(uid)
    assert episode.id == uid
    assert len(uid) == 36
    assert episode.content == "Alice joined Globex\0 日本語 😀\r\n"
    assert episode.actors == ["Alice", "Bob", "Alice"]
    assert episode.tags == ["work", "", "émigré"]
    assert (episode.salience, episode.emotional_valence) == (0.9, -0.25)
    assert episode.timestamp == at
    assert episode.timestamp.tzinfo is UTC
    assert (episode.provenance, episode.quarantined) == ("user", True)
    assert (episode.importance_score, episode.summary_of, episode.agent_id) == (1.0, [], None)


class Source(str, Enum):  # noqa: UP042 - it shows itself as "Source.USER"
    USER = "user"


class Speaker(StrEnum):
    BOB = "Bob"


def test_members_of_enumerations_are_their_values(memory):
    source = Source.USER
    uid = memory.observe(source, actors=[Speaker.BOB], tags=[source], provenance=source)
    episode = memory.get(uid)
    assert (episode.content, episode.actors, episode.tags) == ("user", ["Bob"], ["user"])
    assert episode.provenance == "user"


def test_defaults_are_the_documented_ones(memory, clock):
    episode = memory.get(memory.observe("x"))
    assert (episode.actors, episode.tags, episode.provenance) == ([], [], "external")
    assert (episode.salience, episode.emotional_valence, episode.quarantined) == (0.5, 0.0, False)
    assert episode.timestamp == clock.now


def test_many_are_remembered_in_order_and_share_one_now(memory, clock):
    ids = memory.observe_many([ObserveInput(str(n)) for n in range(100)])
    episodes = [memory.get(uid) for uid in ids]
    assert [e.content for e in episodes] == [str(n) for n in range(100)]
    assert {e.timestamp for e in episodes} == {clock.now}
    assert memory.observe_many([]) == []
    assert memory.observe_many(iter([ObserveInput("one more")]))


GOOD = {"content": "fine"}


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"content": None}, InvalidType),
        ({"content": b"bytes"}, InvalidType),
        ({"content": "\ud800"}, InvalidArgument),
        ({"content": "x", "provenance": "unknown"}, InvalidArgument),
        ({"content": "x", "provenance": "User"}, InvalidArgument),
        ({"content": "x", "provenance": 1}, InvalidType),
        ({"content": "x", "salience": float("nan")}, InvalidArgument),
        ({"content": "x", "salience": -0.01}, InvalidArgument),
        ({"content": "x", "salience": 1.01}, InvalidArgument),
        ({"content": "x", "salience": "0.5"}, InvalidType),
        ({"content": "x", "salience": True}, InvalidType),
        ({"content": "x", "emotional_valence": float("inf")}, InvalidArgument),
        ({"content": "x", "emotional_valence": -1.5}, InvalidArgument),
        ({"content": "x", "emotional_valence": None}, InvalidType),
        ({"content": "x", "timestamp": "2024-01-01"}, InvalidType),
        ({"content": "x", "timestamp": 0}, InvalidType),
        ({"content": "x", "actors": "Alice"}, InvalidType),
        ({"content": "x", "actors": [None]}, InvalidType),
        ({"content": "x", "tags": ["\udcff"]}, InvalidArgument),
        ({"content": "x", "tags": 5}, InvalidType),
        ({"content": "x", "quarantined": 1}, InvalidType),
    ],
)
def test_a_bad_item_is_refused_and_nothing_is_written(memory, bad, error):
    with pytest.raises(error) as single:
        memory.observe(**bad)
    with pytest.raises(error, match=r"items\[1\]|provenance"):
        memory.observe_many([ObserveInput(**GOOD), ObserveInput(**bad)])
    assert memory.count() == 0
    assert isinstance(single.value, EngramError)
    assert "2024-01-01" not in str(single.value), "error texts do not quote values"


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"content": 3}, "items[1].content must be a str, not int"),
        ({"actors": ["Ann", 5]}, "each of items[1].actors must be a str, not int"),
        ({"tags": ["é", "\ud800"]}, "each of items[1].tags holds lone surrogates"),
        ({"actors": "Ann"}, "items[1].actors must be a list of str, not str"),
        ({"salience": float("nan")}, "items[1].salience must be a finite number"),
        ({"salience": 1.5}, "items[1].salience must be between 0 and 1"),
        ({"metadata": [1]}, "items[1].metadata must be a mapping, not list"),
        ({"quarantined": None}, "items[1].quarantined must be a bool, not NoneType"),
    ],
)
def test_a_refusal_says_which_item_and_what_of_it(memory, bad, words):
    with pytest.raises(EngramError) as refused:
        memory.observe_many([ObserveInput(**GOOD), ObserveInput(**GOOD | bad)])
    assert str(refused.value).startswith(words)
    assert memory.count() == 0


@pytest.mark.parametrize("items", ["text", ObserveInput("x"), [{"content": "x"}], ["x"]])
def test_only_observe_inputs_are_items(memory, items):
    with pytest.raises(InvalidType):
        memory.observe_many(items)
    assert memory.count() == 0


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/Los_Angeles"])
def test_naive_times_are_utc_wherever_the_machine_stands(memory, monkeypatch, zone):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for naive in (datetime(2026, 3, 8, 2, 30), datetime(2026, 11, 1, 1, 30), datetime(1, 1, 1)):  # noqa: DTZ001
            got = memory.get(memory.observe("x", timestamp=naive)).timestamp
            assert got == naive.replace(tzinfo=UTC)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_offsets_are_converted_and_the_ends_of_time_kept(memory):
    est, pakistan = timezone(timedelta(hours=-5)), timezone(timedelta(hours=5))
    episode = memory.get(memory.observe("x", timestamp=datetime(2026, 1, 1, tzinfo=est)))
    assert episode.timestamp == datetime(2026, 1, 1, 5, tzinfo=UTC)
    for moment in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
        assert memory.get(memory.observe("x", timestamp=moment)).timestamp == moment
    for beyond in (datetime.max.replace(tzinfo=est), datetime.min.replace(tzinfo=pakistan)):
        with pytest.raises(InvalidArgument):
            memory.observe("x", timestamp=beyond)


def test_str_subclasses_are_text(memory):
    class Name(str):
        __slots__ = ()

    episode = memory.get(memory.observe(Name("hello"), actors=[Name("Al")], tags=(Name("t"),)))
    assert (episode.content, episode.actors, episode.tags) == ("hello", ["Al"], ["t"])


def test_numpy_numbers_are_numbers(memory):
    episode = memory.get(
        memory.observe("x", salience=np.float32(0.5), emotional_valence=np.int64(1))
    )
    assert (episode.salience, episode.emotional_valence) == (0.5, 1.0)
    assert len(memory.recall("x", np.int64(3))) == 1


def test_a_huge_text_is_kept_whole(memory):
    text = "word " * 300_000
    assert memory.get(memory.observe(text)).content == text
    assert memory.recall("word")[0].episode.content == text


class BadEmbedder(WordEmbedder):
    def __init__(self, answer: object) -> None:
        super().__init__()
        self.answer = answer

    def embed(self, texts: list[str]) -> object:
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [
        np.full((1, 32), np.nan, dtype=np.float32),
        np.full((1, 32), np.inf, dtype=np.float32),
        np.zeros((2, 32), dtype=np.float32),
        np.zeros((1, 31), dtype=np.float32),
        np.zeros(32, dtype=np.float32),
        "vectors",
        None,
    ],
)
def test_an_embedder_that_answers_nonsense_is_refused(open_memory, answer):
    memory = open_memory(embedder=BadEmbedder(answer))
    with pytest.raises((InvalidArgument, InvalidType)):
        memory.observe("x")
    assert memory.count() == 0


def test_a_store_belongs_to_one_model(open_memory):
    open_memory().observe("written with words")
    with pytest.raises(ModelMismatch, match="reembed"):
        open_memory(embedder=WordEmbedder(fingerprint="other"))
    with pytest.raises(ValueError, match=r"32 dimensions.*48 dimensions"):
        open_memory(embedder=WordEmbedder(dim=48, fingerprint="wider"))
    # Nothing needs the model until something is embedded.
    reader = open_memory(embedder=None)
    assert reader.count() == 1
    for call in (lambda: reader.observe("x"), lambda: reader.recall("x")):
        with pytest.raises(ModelMismatch, match="embedder="):
            call()
    assert len(open_memory().recall("words")) == 1


def test_the_model_is_checked_at_the_write_too(open_memory):
    first, second = open_memory(), open_memory(embedder=WordEmbedder(fingerprint="other"))
    first.observe("the file was empty when both opened it")
    with pytest.raises(ModelMismatch):
        second.observe("too late")
    assert first.count() == 1
