"""The event log: the envelope, the chain, and what happens when writing it fails."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from engram import Engram, ObserveInput, StubLLMAdapter, events
from engram.errors import InvalidArgument, NotFound
from engram.events import (
    AGENT_ID_MAX_LENGTH,
    ENV_EVENTS_PATH,
    EVENT_SEVERITY,
    SCHEMA,
    SOURCE,
    EventLog,
    canonicalize,
    chain_hash,
    is_canonical_agent_id,
    resolve_events_path,
    verify,
)

AGENT = "agent://acme.example/alice"
WRITER = Path(__file__).with_name("events_writer.py")

# The envelope's JSON schema, as far as it says more than "object": name -> pattern, or a type.
TEXT = {"source": r".+", "type": r".+", "severity": r"info|low|medium|high|critical",
        "ts": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "run_id": r".*",
        "prev_hash": r"sha256:[0-9a-f]{64}"}  # fmt: skip
AGENT_IDS = {
    "v0.2": (r"agent://[a-z0-9.-]+/[a-z0-9._/-]+", 255),
    "v1.0": (r"(claimed:)?agent://[a-z0-9.-]+/[a-z0-9._/-]+", 263),
}


def violations(event: dict[str, object], version: str = "v0.2") -> list[str]:
    """Return where an event breaks the schema; no member beyond those we write is allowed."""
    pattern, longest = AGENT_IDS[version]
    rules = TEXT | {"agent_id": pattern, "schema": rf"taipanbox\.dev/agent-event/{version}"}
    found = [name for name in ("schema", "ts", "source", "type", "agent_id") if name not in event]
    found += [name for name in event if name not in {*rules, "data"}]
    for name, rule in rules.items():
        value = event.get(name, "")
        if name in event and not (isinstance(value, str) and re.fullmatch(rule, value)):
            found.append(name)
    if len(str(event.get("agent_id"))) > longest or not isinstance(event.get("data"), dict):
        found.append("agent_id or data")
    return found


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.ndjson"


@pytest.fixture
def log(file: Path) -> EventLog:
    return EventLog(str(file))


# The envelope.


def test_a_line_is_the_documented_envelope(file, clock):
    clock.now = datetime(2026, 3, 1, 14, 0, 0, 123_987, timezone(timedelta(hours=2)))
    log = EventLog(file, clock=clock)
    log.emit("memory_written", AGENT, {"memory_id": "m", "kind": "episodic"})
    log.emit("contradiction_found", AGENT, {"memory_id": "é"}, run_id="r")
    first, second = file.read_bytes().splitlines(keepends=True)
    assert first == (
        b'{"schema":"taipanbox.dev/agent-event/v0.2","ts":"2026-03-01T12:00:00.123Z",'
        b'"source":"engram","type":"memory_written","severity":"info",'
        b'"agent_id":"agent://acme.example/alice","data":{"memory_id":"m","kind":"episodic"}}\n'
    )
    assert list(json.loads(second)) == [
        "schema", "ts", "source", "type", "severity", "agent_id", "data", "run_id", "prev_hash"
    ]  # fmt: skip
    assert b'"data":{"memory_id":"\\u00e9"}' in second
    assert json.loads(second)["severity"] == "medium"
    assert json.loads(second)["prev_hash"] == chain_hash(json.loads(first))


def test_unknown_types_are_info(log, file):
    log.emit("something_else", AGENT, {})
    assert lines(file)[0]["severity"] == "info"
    assert (SCHEMA, SOURCE) == ("taipanbox.dev/agent-event/v0.2", "engram")
    assert EVENT_SEVERITY["contradiction_found"] == "medium"


def test_what_a_memory_emits_fits_the_schema_and_its_successor(open_memory, file):
    memory = open_memory(AGENT, events_path=file)
    uid = memory.observe("the canary sings", actors=["Tweety"], tags=["birds"])
    memory.observe_many([ObserveInput("x canary", metadata={"k": "v"}), ObserveInput("y")])
    memory.forget(uid)
    found = lines(file)
    assert [(e["type"], e["data"]["kind"]) for e in found] == [
        *[("memory_written", "episodic")] * 3, ("memory_forgotten", "episodic")
    ]  # fmt: skip
    assert found[0]["data"]["memory_id"] == found[3]["data"]["memory_id"] == uid
    for event in found:
        assert violations(event) == []
        assert violations(event | {"schema": "taipanbox.dev/agent-event/v1.0"}, "v1.0") == []
    text = file.read_text()
    assert not any(word in text for word in ("canary", "Tweety", "birds"))
    assert verify(file) == []


def test_every_kind_of_event_fits_the_schema(open_memory, file, clock):
    facts = [
        {"subject": "Ann", "predicate": "lives in", "object": place, "confidence": 0.9}
        for place in ("Riga", "Oslo")
    ]
    models = [StubLLMAdapter([fact], summary="a summary") for fact in facts]
    for model in models:
        memory = open_memory(AGENT, events_path=file, llm=model)
        memory.declare_predicate("lives in", multi=False)
        memory.observe("Ann moved")
        memory.reflect()
        clock.advance(days=1)
    memory.forget_fact(memory.assert_fact("Bob", "likes", "tea"))
    memory.observe_many([ObserveInput("faded", timestamp=clock.now, salience=0.0)] * 3)
    memory.compress(max_episodes=0, importance_threshold=0.2)
    memory.observe("a walk", actors=["Bob"])
    memory.forget_entity("Bob")
    memory.observe("dull", salience=0.0)
    clock.advance(days=60)
    memory.prune()
    found = lines(file)
    assert {event["type"] for event in found} == EVENT_SEVERITY.keys()
    assert {frozenset(event["data"]) for event in found} == {
        frozenset(members.split())
        for members in (
            "memory_id kind",
            "memory_id kind entity",
            "memory_id kind replaced_by",
            "reflection_run_id episodes_processed facts_extracted contradictions_resolved",
            "memory_id conflicting_memory_id",
        )
    }
    for event in found:
        assert violations(event) == []
        assert event["severity"] == EVENT_SEVERITY[event["type"]]
        assert ("run_id" in event) == (event["type"] in ("reflection_run", "contradiction_found"))
    assert verify(file) == []


def test_an_import_is_logged_once_it_is_committed(open_memory, file, tmp_path, clock):
    memory = open_memory(AGENT)
    uids = [memory.observe("a note"), memory.assert_fact("Bob", "likes", "tea")]
    memory.export_json(tmp_path / "dump.json")
    other = open_memory(AGENT, path=tmp_path / "other", events_path=file)
    other.import_json(tmp_path / "dump.json")
    with pytest.raises(ValueError, match="id"):
        other.import_json(tmp_path / "dump.json")
    assert [(e["type"], e["data"]["memory_id"]) for e in lines(file)] == [
        ("memory_written", uid) for uid in uids
    ]
    assert verify(file) == []


# Agent ids.


@pytest.mark.parametrize(
    ("agent_id", "canonical"),
    [
        (AGENT, True),
        ("agent://a/b/c_d.e-f", True),
        ("agent://A/b", False),
        ("agent://a/b\n", False),
        ("agent://a/", False),
        ("claimed:agent://a/b", False),
        ("alice", False),
        ("", False),
        ("agent://a/" + "b" * (AGENT_ID_MAX_LENGTH - 10), True),
        ("agent://a/" + "b" * (AGENT_ID_MAX_LENGTH - 9), False),
    ],
)
def test_which_agent_ids_are_canonical(agent_id, canonical):
    assert is_canonical_agent_id(agent_id) is canonical


@pytest.mark.parametrize("agent_id", [None, ""])
def test_events_without_an_agent_are_counted_and_dropped(log, file, agent_id):
    log.emit_many("memory_written", agent_id, [{}, {}])
    assert log.skipped_empty_agent_id == 2
    assert not file.exists()


def test_odd_agent_ids_are_written_and_warned_about_once(log, file, caplog):
    for agent_id in ("alice", "bob", "alice"):
        log.emit_many("memory_written", agent_id, [{}, {}])
    assert log.nonconforming_agent_id == 6
    assert len(lines(file)) == 6
    assert [r.levelname for r in caplog.records if r.name == "engram.events"] == ["WARNING"] * 2
    caplog.clear()
    for number in range(100):
        log.emit("memory_written", f"agent {number}", {})
    assert len(caplog.records) == 62
    assert verify(file) == []


def test_nothing_to_write_makes_no_file(log, file):
    log.emit_many("memory_written", AGENT, [])
    assert not file.exists()


# Canonical form and hashes.

VECTORS = [
    (
        {"b": {"z": 1, "a": [True, None, {"y": "", "x": 0}]}, "a": 2},
        b'{"a":2,"b":{"a":[true,null,{"x":0,"y":""}],"z":1}}',
    ),
    (
        {"text": "Zoë 暗号 \u20ac \x07\n", "\U0001f600": 1, "\ufb33": 2},
        '{"text":"Zoë 暗号 € \\u0007\\n","\U0001f600":1,"\ufb33":2}'.encode(),
    ),
    (
        {"f": [12.5, 1.0, -0.0, 1e21, 1e-7, 333333333.33333329, 4.50, 2e-3]},
        b'{"f":[12.5,1,0,1e+21,1e-7,333333333.3333333,4.5,0.002]}',
    ),
    (
        {
            "on_behalf_of": ["user://b", "agent://a/b"],
            "delegation_proof": {"jti": "1", "jkt": "2", "iss": "3", "exp": 1_800_000_000},
            "agent_id": AGENT,
        },
        (
            b'{"agent_id":"agent://acme.example/alice","delegation_proof":{"exp":1800000000,'
            b'"iss":"3","jkt":"2","jti":"1"},"on_behalf_of":["user://b","agent://a/b"]}'
        ),
    ),
]


@pytest.mark.parametrize(("envelope", "expected"), VECTORS)
def test_the_canonical_form(envelope, expected):
    given = {**envelope, "prev_hash": "sha256:" + "0" * 64}
    before = json.dumps(given)
    assert canonicalize(given) == canonicalize(envelope) == expected
    assert json.dumps(given) == before


def test_the_hash_of_a_known_event():
    assert chain_hash({"a": 1}) == (
        "sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
    )


@pytest.mark.parametrize("data", [{"a": float("nan")}, {"a": 2**53}, {"a": "\ud800"}, {1: 2}])
def test_an_event_without_a_json_form_is_refused(log, file, data):
    with pytest.raises(InvalidArgument):
        log.emit_many("memory_written", AGENT, [{"fine": 1}, data])
    assert not file.exists()


# The chain.


def test_the_chain_goes_on_across_instances_and_versions(file):
    old = {"schema": "taipanbox.dev/agent-event/v0.1", "ts": "2025-01-01T00:00:00.000Z",
           "source": "engram", "type": "memory_written", "severity": "info", "agent_id": AGENT,
           "data": {}}  # fmt: skip
    file.write_text(json.dumps(old) + "\n")
    one, other = EventLog(file), EventLog(file)
    for number in range(6):
        (one, other)[number % 2].emit("memory_written", AGENT, {"n": number})
    assert lines(file)[1]["prev_hash"] == chain_hash(old)
    assert len(lines(file)) == 7
    assert verify(file) == []


def test_two_processes_share_one_chain(file):
    writers = [
        subprocess.Popen([sys.executable, WRITER, file, name, "200"], stdout=subprocess.DEVNULL)
        for name in ("one", "two")
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len({event["data"]["memory_id"] for event in lines(file)}) == 400
    assert verify(file) == []


def test_threads_share_one_chain(log, file):
    def write(name: int) -> None:
        for number in range(50):
            log.emit("memory_written", AGENT, {"memory_id": f"{name}-{number}"})

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(file)) == 200
    assert verify(file) == []


def test_a_killed_writer_leaves_a_sound_log(file, log):
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, WRITER, file, "one", "100000"], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        for _ in range(20):
            writer.stdout.readline()
        writer.kill()
        writer.wait()
        writer.stdout.close()
        log.emit("memory_written", AGENT, {})
        assert verify(file) == []


def test_a_torn_line_is_taken_back_wherever_it_was_cut(file):
    whole = EventLog(file)
    whole.emit("memory_written", AGENT, {"n": 0})
    before = file.read_bytes()
    whole.emit("memory_written", AGENT, {"n": 1, "text": "x" * 5000})
    torn = file.read_bytes()[len(before) :]
    for cut in [*range(1, 60), 3000, 4096, len(torn) - 2, len(torn) - 1]:
        file.write_bytes(before + torn[:cut])
        assert verify(file) != []
        EventLog(file).emit("memory_written", AGENT, {"n": 2})
        assert verify(file) == [], cut
        # All that was missing from the last one is the end of its line: it is kept.
        assert len(lines(file)) == (3 if cut == len(torn) - 1 else 2)


def test_text_that_is_no_event_is_not_lost(file, log):
    file.write_bytes(b"a note of somebody's")
    log.emit("memory_written", AGENT, {})
    note, event = file.read_bytes().splitlines()
    assert note == b"a note of somebody's"
    assert "prev_hash" not in json.loads(event)


@pytest.mark.parametrize(
    "tail",
    [b"", b"\n \n", b"nonsense\n", b"[1]\n", b'{"a": 1e999}\n', b'{"a":1,"a":2}\n', b"\xff\n",
     b"[" * 100_000 + b"\n", b'{"a":9007199254740993}\n', b'{"a":"' + b"x" * 2**20 + b'"}\n'],
    ids=["empty", "blank", "text", "list", "infinite", "twice", "bytes", "deep", "big", "long"],
)  # fmt: skip
def test_a_tail_that_cannot_be_named_starts_a_chain(file, log, tail):
    file.write_bytes(tail)
    log.emit("memory_written", AGENT, {})
    written = file.read_bytes()
    assert written.startswith(tail)
    assert "prev_hash" not in json.loads(written[len(tail) :])


def test_blank_lines_and_long_lines_are_passed_over(file, log):
    log.emit("memory_written", AGENT, {"n": "x" * 900_000})
    file.write_bytes(file.read_bytes() + b"\n\n")
    log.emit("memory_written", AGENT, {})
    assert verify(file) == []


def test_a_file_that_was_moved_away_starts_afresh(file, log):
    log.emit("memory_written", AGENT, {})
    file.rename(file.with_suffix(".1"))
    log.emit("memory_written", AGENT, {})
    assert "prev_hash" not in lines(file)[0]
    assert verify(file) == []


# Verification.


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda ls: [ls[0].replace(b'"n":0', b'"n":9'), *ls[1:]], "line 2: prev_hash is not"),
        (lambda ls: [ls[0], *ls[2:]], "line 2: prev_hash is not"),
        (lambda ls: ls[1:], "line 1: it names an event before it"),
        (lambda ls: [ls[0], ls[2], ls[1], ls[3]], "line 2: prev_hash is not"),
        (lambda ls: [*ls[:2], b"nonsense\n", *ls[2:]], "line 3: it is no JSON object"),
        (lambda ls: [*ls[:2], *ls[:1], *ls[2:]], "line 3: it starts a new chain"),
        (lambda ls: [ls[0].replace(b"v0.2", b"v9.9")], "line 1: its schema is none"),
        (lambda ls: [ls[0].replace(b'"engram"', b'""')], "line 1: source is missing"),
        (lambda ls: [*ls[:3], ls[3][:-1]], "line 4: it has no end"),
        (lambda ls: [*ls[:3], ls[3].replace(b'"n":3', b'"n":3,"n":3')], "line 4: it is no JSON"),
    ],
)
def test_verify_finds(file, log, change, problem):
    for number in range(4):
        log.emit("memory_written", AGENT, {"n": number})
    assert verify(file) == []
    file.write_bytes(b"".join(change(file.read_bytes().splitlines(keepends=True))))
    assert any(found.startswith(problem) for found in verify(file)), verify(file)


def test_verify_reads_what_there_is(file, tmp_path):
    file.write_bytes(b"")
    assert verify(file) == []
    with pytest.raises(FileNotFoundError):
        verify(tmp_path / "missing")


# Failures.


def test_a_failing_write_is_one_warning_and_no_line(log, file, caplog, monkeypatch):
    log.emit("memory_written", AGENT, {"n": 0})
    before = file.read_bytes()
    write, parts = os.write, iter([30])

    def fill(descriptor: int, content: memoryview) -> int:
        for length in parts:
            return write(descriptor, content[:length])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(events.os, "write", fill)
        log.emit_many("memory_written", AGENT, [{"n": 1}, {"n": 2}])
    assert file.read_bytes() == before
    assert [(r.name, r.levelno) for r in caplog.records] == [("engram.events", logging.WARNING)]
    log.emit("memory_written", AGENT, {"n": 3})
    assert [event["data"]["n"] for event in lines(file)] == [0, 3]
    assert verify(file) == []


def test_a_memory_does_not_mind_a_log_it_cannot_write(open_memory, tmp_path, caplog):
    for place in (tmp_path / "no folder" / "events", tmp_path):
        memory = open_memory(AGENT, events_path=place)
        uid = memory.observe("a note")
        assert memory.get(uid).content == "a note"
    assert len(caplog.records) == 2


def test_a_log_that_stays_locked_is_given_up(log, file, caplog, monkeypatch):
    fcntl = events.fcntl
    file.touch()
    monkeypatch.setattr(events, "_LOCK_SECONDS", 0.0)
    with file.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        log.emit("memory_written", AGENT, {})
    assert file.read_bytes() == b""
    assert len(caplog.records) == 1


def test_a_pipe_is_refused_and_not_waited_for(tmp_path, caplog):
    os.mkfifo(tmp_path / "pipe")
    EventLog(tmp_path / "pipe").emit("memory_written", AGENT, {})
    assert len(caplog.records) == 1


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_an_impossible_path_is_refused(path):
    with pytest.raises(InvalidArgument):
        EventLog(path)


def test_fsync_only_where_it_was_asked_for(open_memory, path, file, monkeypatch):
    synced: list[int] = []
    monkeypatch.setattr(events.os, "fsync", synced.append)
    open_memory(AGENT, events_path=file).observe("a")
    assert synced == []
    open_memory(AGENT, events_path=file, durability="full").observe("b")
    assert len(synced) == 1


# The memory.


def test_nothing_is_emitted_for_what_was_not_committed(open_memory, file, monkeypatch):
    memory = open_memory(AGENT, events_path=file)
    uid = memory.observe("kept")
    before = file.read_bytes()
    with pytest.raises(InvalidArgument):
        memory.observe_many([ObserveInput("a"), ObserveInput("b", salience=2.0)])
    with pytest.raises(NotFound):
        memory.forget("unknown")

    def fail(*_: object, **__: object) -> None:
        message = "the disk caught fire"
        raise RuntimeError(message)

    with monkeypatch.context() as patch:
        patch.setattr(memory._store.text, "add", fail)
        patch.setattr(memory._store.text, "remove", fail)
        for call in (
            lambda: memory.observe("a"),
            lambda: memory.observe_many([ObserveInput("b"), ObserveInput("c")]),
            lambda: memory.forget(uid),
        ):
            with pytest.raises(RuntimeError):
                call()
    assert file.read_bytes() == before
    assert memory.count() == 1


def test_the_path_comes_from_the_argument_then_the_environment(monkeypatch, tmp_path, clock):
    monkeypatch.delenv(ENV_EVENTS_PATH, raising=False)
    assert resolve_events_path(None) is None
    monkeypatch.setenv(ENV_EVENTS_PATH, "")
    assert resolve_events_path(None) is None
    monkeypatch.setenv(ENV_EVENTS_PATH, "env")
    assert resolve_events_path(None) == "env"
    assert resolve_events_path(Path("given")) == "given"
    assert resolve_events_path("") is None


def test_the_environment_turns_events_on(open_memory, file, monkeypatch):
    open_memory(AGENT).observe("a")
    assert not file.exists()
    monkeypatch.setenv(ENV_EVENTS_PATH, str(file))
    open_memory(AGENT).observe("b")
    assert len(lines(file)) == 1
    open_memory(AGENT, events_path="").observe("c")
    open_memory().observe("d")
    assert len(lines(file)) == 1


def test_events_carry_the_memorys_clock(open_memory, file, clock):
    memory: Engram = open_memory(AGENT, events_path=file)
    clock.now = datetime(2031, 5, 5, tzinfo=UTC)
    memory.observe("a")
    assert lines(file)[0]["ts"] == "2031-05-05T00:00:00.000Z"
