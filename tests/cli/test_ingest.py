"""`engram ingest`: files of JSON lines and LoCoMo-format conversations."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from importlib import import_module

import pytest

from engram import Engram
from engram.errors import Busy
from engram.ledger import Ledger

ingest = import_module("engram.cli.ingest")


def episodes(store, **options) -> list:
    with Engram(store) as memory:
        return memory.episodes(newest_first=False, limit=1000, **options).episodes


def json_lines(file, *items):
    file.write_text("".join(json.dumps(item) + "\n" for item in items))
    return file


@pytest.fixture
def lines(tmp_path):
    return json_lines(tmp_path / "e.jsonl", *({"content": f"note {n}"} for n in range(10)))


def locomo(file, *conversations):
    file.write_text(json.dumps(list(conversations), indent=1))
    return file


def turn(number, text, speaker="Kim", **more):
    return {"speaker": speaker, "dia_id": f"D{number}", "text": text, **more}


TWO = (
    {
        "sample_id": "talk-1",
        "qa": [{"question": "ignored"}],
        "conversation": {
            "speaker_a": "Kim",
            "speaker_b": "Lou",
            "session_10_date_time": "12:05 am on 1 March, 2024",
            "session_10": [turn("10:1", "The goats are back")],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [
                turn("2:1", "I bought a kayak", blip_caption="a red boat", img_url=["x"]),
                turn("2:2", "Which colour?", "Lou", blip_caption=None),
            ],
            "session_11_date_time": "without turns",
            "session_12": [],
        },
    },
    {
        "sample_id": "talk-2",
        "conversation": {
            "session_1": [turn("1:1", "Zoë sings")],
            "session_1_date_time": "12:00 pm on 31 December, 2023",
        },
    },
)


def test_json_lines_with_every_field(run, path, tmp_path):
    file = json_lines(
        tmp_path / "e.jsonl",
        {
            "content": "Ünïcode 🐝 \x00 東京",
            "actors": ["a", "b"],
            "tags": ["t"],
            "salience": 1,
            "emotional_valence": -0.25,
            "timestamp": "2026-01-01T01:00+01:00",
            "provenance": "user",
            "quarantined": True,
        },
        {"content": ""},
        {"content": "word " * 1000},
    )
    done = run("ingest", path, file)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Remembered 3 episodes in ")
    first, *rest = episodes(path)
    assert first.content == "Ünïcode 🐝 \x00 東京"
    assert (first.actors, first.tags) == (["a", "b"], ["t"])
    assert (first.salience, first.emotional_valence) == (1.0, -0.25)
    assert first.timestamp.isoformat() == "2026-01-01T00:00:00+00:00"
    assert (first.provenance, first.quarantined) == ("user", True)
    assert [len(episode.content) for episode in rest] == [0, 5000]
    assert {episode.provenance for episode in rest} == {"external"}


def test_json_lines_of_an_agent(run, path, lines):
    assert "10 episodes for 1 agent in" in run("ingest", path, lines, "--agent-id", "ana").out
    document = run("ingest", path, lines, "--agent-id", "ana", "--json").document
    assert document.pop("seconds") >= 0
    assert document == {
        "path": str(path),
        "file": str(lines),
        "format": "jsonl",
        "episodes": 10,
        "agents": [{"agent_id": "ana", "episodes": 10}],
    }
    assert {episode.agent_id for episode in episodes(path)} == {"ana"}


@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff"])
def test_a_file_without_episodes_makes_an_empty_store(run, path, tmp_path, text):
    (tmp_path / "empty").write_text(text)
    assert run("ingest", path, "empty").out.startswith("Remembered 0 episodes in ")
    assert episodes(path) == []


def test_blank_lines_a_byte_order_mark_and_a_missing_last_newline(run, path, tmp_path):
    (tmp_path / "e").write_bytes(b'\xef\xbb\xbf\n{"content": "a"}\r\n  \n{"content": "b"}')
    assert run("ingest", path, "e", "--json").document["episodes"] == 2


BAD_LINES = [
    (b'{"content": "b", "mood": 1}', "Object contains unknown field `mood`"),
    (b"{}", "missing required field `content`"),
    (b'{"content": null}', "`$.content`"),
    (b'{"content": 7}', "Expected `str`, got `int`"),
    (b'{"content": "x", "tags": "t"}', "`$.tags`"),
    (b'{"content": "x", "actors": [1]}', "`$.actors"),
    (b'{"content": "x", "salience": 1.01}', "`$.salience`"),
    (b'{"content": "x", "salience": NaN}', "JSON is malformed"),
    (b'{"content": "x", "emotional_valence": 1e999}', "`$.emotional_valence`"),
    (b'{"content": "x", "timestamp": "soon"}', "timestamp is no date"),
    (b'{"content": "x", "timestamp": 5}', "`$.timestamp`"),
    (b'{"content": "x", "provenance": "me"}', "provenance must be one of user, tool, external"),
    (b'{"content": "x", "quarantined": 1}', "`$.quarantined`"),
    (b'{"content": "\\ud800"}', ""),
    (b'{"content": "\xff"}', "UTF-8"),
    (b'{"content": "x"', "truncated"),
    (b'"just a text"', "Expected `object`, got `str`"),
    (b"[" * 100_000, ""),
    (b"secret words", "JSON is malformed"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_LINES)
def test_a_bad_line_is_named_and_nothing_is_written(run, path, tmp_path, line, reason):
    good = b'{"content": "good"}\n'
    (tmp_path / "bad.jsonl").write_bytes(good * 700 + line + b"\n" + good)
    done = run("ingest", path, "bad.jsonl")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: bad.jsonl, line 701: ")
    assert reason in done.err
    assert "secret" not in done.err
    assert not path.exists()
    assert run("ingest", path, "bad.jsonl", "--json").error["code"] == "bad_file"


def test_conversations_become_agents(run, path, tmp_path):
    file = locomo(tmp_path / "talks.json", *TWO)
    done = run("ingest", path, file)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Remembered 4 episodes for 2 agents in ")
    found = [
        (e.agent_id, e.content, e.actors, e.tags, f"{e.timestamp:%Y-%m-%d %H:%M %Z}")
        for e in episodes(path)
    ]
    assert found == [
        ("talk-1", "I bought a kayak [shares a red boat]", ["Kim"],
         ["talk-1", "session_2", "D2:1"], "2023-05-08 13:56 UTC"),
        ("talk-1", "Which colour?", ["Lou"],
         ["talk-1", "session_2", "D2:2"], "2023-05-08 13:56 UTC"),
        ("talk-2", "Zoë sings", ["Kim"], ["talk-2", "session_1", "D1:1"], "2023-12-31 12:00 UTC"),
        ("talk-1", "The goats are back", ["Kim"],
         ["talk-1", "session_10", "D10:1"], "2024-03-01 00:05 UTC"),
    ]  # fmt: skip
    answer = run("recall", path, "Who paddles?", "--agent-id", "talk-1", "--k", "1")
    assert "I bought a kayak" in answer.out


def test_conversations_under_one_agent(run, path, tmp_path):
    file = locomo(tmp_path / "talks.json", *TWO)
    document = run("ingest", path, file, "--agent-id", "me", "--json").document
    assert (document["format"], document["episodes"]) == ("locomo", 4)
    assert document["agents"] == [{"agent_id": "me", "episodes": 4}]


def conversation(**parts):
    return {"sample_id": "talk", "conversation": parts}


@pytest.mark.parametrize(
    ("content", "place", "reason"),
    [
        ([{"conversation": {}}], "", "missing required field `sample_id`"),
        ([TWO[1], TWO[1]], "", "two conversations have the same sample_id"),
        ([conversation(session_1=[turn("1", "a")])], ", talk, session_1", "date_time is missing"),
        (
            [conversation(session_1=[turn("1", "a")], session_1_date_time="8 May 2023")],
            ", talk, session_1",
            "is missing or no date (it looks like 1:56 pm on 8 May, 2023)",
        ),
        ([conversation(session_3=[{"speaker": "a"}])], ", talk, session_3", "`dia_id`"),
        ([conversation(session_3="none")], ", talk, session_3", "Expected `array`"),
        (["x"], "", "Expected `object`, got `str`"),
    ],
)
def test_a_bad_conversation_is_named_and_nothing_is_written(
    run, path, tmp_path, content, place, reason
):
    file = locomo(tmp_path / "talks.json", TWO[0], *content)
    done = run("ingest", path, file)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {file}{place}: ")
    assert reason in done.err
    assert not path.exists()


@pytest.mark.parametrize(
    "text",
    [b"[", b'[{"sample_id": "x", "qa": ' + b"[" * 100_000, b'[{"sample_id": "\xff"}]', b"[] x"],
    ids=["cut", "deep", "no text", "more"],
)
def test_what_is_no_json_is_an_error(run, path, tmp_path, text):
    (tmp_path / "talks.json").write_bytes(text)
    done = run("ingest", path, "talks.json")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: talks.json: ")
    assert not path.exists()


def test_the_format_can_be_said(run, path, lines, tmp_path):
    assert run("ingest", path, lines, "--format", "jsonl").code == 0
    wrong = run("ingest", path, lines, "--format", "locomo")
    assert (wrong.code, wrong.err.startswith(f"error: {lines}: ")) == (1, True)
    talks = locomo(tmp_path / "talks.json", *TWO)
    assert "line 1" in run("ingest", path, talks, "--format", "jsonl").err
    assert run("ingest", path, lines, "--format", "xml").code == 2


def test_files_that_cannot_be_read(run, path, tmp_path):
    done = run("ingest", path, tmp_path / "missing.jsonl")
    assert (done.code, done.out) == (1, "")
    assert done.err == f"error: {tmp_path / 'missing.jsonl'}: No such file or directory\n"
    assert run("ingest", path, tmp_path).err == f"error: {tmp_path}: Is a directory\n"
    assert run("ingest", path, "missing", "--json").error["code"] == "os_error"
    assert not path.exists()


def test_a_store_that_is_none_is_left_alone(run, tmp_path, lines):
    text = tmp_path / "text"
    text.write_text("not a store " * 1000)
    assert run("ingest", text, lines, "--json").error["code"] == "not_a_store"
    assert text.read_text() == "not a store " * 1000


@pytest.fixture
def batches_of_four(monkeypatch):
    """Make batches small and report each: call `after(batch number)` when it is committed."""
    monkeypatch.setattr(ingest, "_BATCH", 4)
    observe_many = Engram.observe_many

    def install(after):
        seen = []

        def observed(self, items):
            seen.append(len(items))
            written = observe_many(self, items)
            after(len(seen))
            return written

        monkeypatch.setattr(Engram, "observe_many", observed)
        return seen

    return install


def test_a_batch_is_one_transaction(run, path, lines, batches_of_four):
    seen = batches_of_four(lambda _: None)
    assert run("ingest", path, lines).code == 0
    assert seen == [4, 4, 2]


def test_an_interrupt_ends_after_the_batch_and_tells_what_was_kept(
    run, path, lines, batches_of_four
):
    def interrupt_second(number):
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    batches_of_four(interrupt_second)
    done = run("ingest", path, lines)
    assert (done.code, done.out) == (130, "")
    assert done.err == "error: interrupted: 8 of 10 episodes were already committed\n"
    assert len(episodes(path)) == 8
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_does_not_wait(run, path, lines, batches_of_four):
    def interrupt_twice(_):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    batches_of_four(interrupt_twice)
    done = run("ingest", path, lines, "--json")
    assert done.code == 130
    assert done.error["code"] == "interrupted"


def test_a_failure_on_the_way_tells_what_was_kept(run, path, lines, batches_of_four):
    def fail_third(number):
        if number == 2:
            message = "another connection kept the store locked"
            raise Busy(message, "try again")

    batches_of_four(fail_third)
    done = run("ingest", path, lines)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: another connection kept the store locked"
        " (try again; 4 episodes were already committed)\n"
    )


def test_episodes_belong_to_the_folders_above_their_file(run, path, tmp_path, monkeypatch):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "chat.jsonl").write_text('{"content": "tea"}\n{"content": "milk"}\n')
    assert run("ingest", path, "notes/chat.jsonl").code == 0
    (tmp_path / "link").symlink_to("notes")
    with Ledger(path) as ledger:
        for folder in ("notes", "link", "."):
            assert len(ledger.recent(str(tmp_path / folder))) == 2
        assert ledger.recent(str(tmp_path / "note")) == []


def test_what_comes_through_a_pipe_belongs_to_no_folder(run, path, monkeypatch):
    piped = io.TextIOWrapper(io.BytesIO(b'{"content": "tea"}'))
    monkeypatch.setattr(sys, "stdin", piped)
    assert run("ingest", path, "-").code == 0
    with Ledger(path) as ledger:
        assert ledger.recent("/") == []
