"""Runs of the commands over small data sets: what they record, and go on from."""

from __future__ import annotations

import ast
import json
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from judged_files import composed, conversation, documents, official, write

import engram
from engram.bench.judged import asking, running
from engram.bench.judged.conversations import longmemeval
from engram.bench.judged.data import DataSet
from engram.bench.judged.reading import read
from engram.embedding import resolve

PLAIN = ("--model", "deterministic")
# Kills the process when it makes sure for the n-th time that a line is on the disk.
KILLED = """
import os, signal, sys
from engram.bench import main
real, left = os.fsync, int(sys.argv[1])
def fsync(number):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    real(number)
os.fsync = fsync
main(sys.argv[2:])
"""
SETS = {
    "longmemeval": official(6),
    "composed": composed(6),
    "locomo": [conversation("conv-1"), conversation("conv-2")],
    "ir": documents(),
}


def command(name: str) -> str:
    return "longmemeval" if name == "composed" else name


@pytest.fixture(params=SETS)
def name(request, tmp_path) -> str:
    write(tmp_path / "data.json", SETS[request.param])
    return request.param


def lines(file: str) -> list[dict]:
    return [json.loads(line) for line in Path(file).read_text().splitlines()]


def asked(name: str, *more: str) -> tuple[str, ...]:
    given = ("--data", "data.json", "--modes", "hybrid,text")
    return (command(name), *given, *PLAIN, *more)


def test_two_runs_write_the_same_bytes(run, name):
    for file in ("a", "b"):
        assert run(*asked(name, "--records", file)).code == 0
    assert Path("a").read_bytes() == Path("b").read_bytes()
    header, *records = lines("a")
    assert (header["set"], header["model"]) == (command(name), "deterministic")
    assert {one["question"] for one in records} == {
        one["question"] for one in lines("a.times.jsonl")
    }
    assert all(set(one["answers"]) == {"hybrid", "text"} for one in records)


@pytest.mark.parametrize("syncs", [1, 2, 4])
def test_a_run_that_was_killed_goes_on_to_the_same_bytes(run, name, syncs):
    assert run(*asked(name, "--records", "whole")).code == 0
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(syncs), *asked(name, "--records", "killed")],
        capture_output=True,
    )
    assert killed.returncode == -signal.SIGKILL
    assert Path("killed").read_bytes() != Path("whole").read_bytes()
    assert run(*asked(name, "--records", "killed", "--resume")).code == 0
    assert Path("killed").read_bytes() == Path("whole").read_bytes()
    assert [one["question"] for one in lines("killed.times.jsonl")] == [
        one["question"] for one in lines("whole.times.jsonl")
    ]


def test_a_torn_line_is_dropped_wherever_it_ends(run, tmp_path):
    write(tmp_path / "data.json", official(2))
    assert run(*asked("longmemeval", "--records", "whole")).code == 0
    whole = Path("whole").read_bytes()
    for end in (0, 1, len(whole) // 3, len(whole) - 1, len(whole)):
        Path("torn").write_bytes(whole[:end])
        assert run(*asked("longmemeval", "--records", "torn", "--resume")).code == 0
        assert Path("torn").read_bytes() == whole


def test_records_of_other_settings_are_not_gone_on_with(run, tmp_path):
    write(tmp_path / "data.json", official(3))
    assert run(*asked("longmemeval", "--records", "kept")).code == 0
    kept = Path("kept").read_bytes()
    for more in ((), ("--resume", "--user-only"), ("--resume", "--limit", "2")):
        refused = run(*asked("longmemeval", "--records", "kept", "--json", *more))
        assert (refused.code, refused.error["code"]) == (1, "file_exists")
        assert Path("kept").read_bytes() == kept
    Path("kept").write_bytes(kept.replace(b'"question"', b'"answered"'))
    refused = run(*asked("longmemeval", "--records", "kept", "--resume", "--json"))
    assert refused.error["code"] == "bad_file"
    assert run(*asked("longmemeval", "--records", "kept", "--overwrite")).code == 0
    assert Path("kept").read_bytes() == kept


def test_figures_of_records_are_those_of_the_run(run, name):
    direct = run(*asked(name, "--records", "kept"))
    again = run(command(name), "--from-records", "kept")
    assert (again.code, again.out) == (0, direct.out)
    documents = [
        run(*asked(name, "--records", "kept", "--resume", "--json")).document,
        run(command(name), "--from-records", "kept", "--json").document,
    ]
    assert documents[0] == documents[1]
    assert documents[0]["set"] == command(name)


def test_the_evidence_is_found(run, tmp_path):
    write(tmp_path / "data.json", official(4))
    assert run(*asked("longmemeval", "--records", "kept")).code == 0
    for record in lines("kept")[1:]:
        assert (record["turns"], record["sessions"]) == (6, 3)
        gold = f"answer_{record['question'][1:]}_1"
        assert record["answers"]["text"][0][:2] == [f"{gold}#1", gold]
        assert record["gold_turns"] == [f"{gold}#3"]


def test_a_session_can_be_one_episode(run, tmp_path):
    write(tmp_path / "data.json", official(2))
    more = ("--records", "kept", "--granularity", "session")
    assert run(*asked("longmemeval", *more)).code == 0
    record = lines("kept")[1]
    assert (record["turns"], record["sessions"]) == (3, 3)
    assert (record["gold_turns"], record["gold_sessions"]) == ([], ["answer_0_1"])
    assert record["answers"]["text"][0][:2] == ["answer_0_1", "answer_0_1"]


def test_a_sweep_of_weights(run, tmp_path):
    write(tmp_path / "data.json", documents())
    more = ("--weights", "0.3,1", "--records", "kept")
    assert run(*asked("ir", *more)).code == 0
    record = lines("kept")[1]
    assert set(record["answers"]) == {"hybrid", "text", "hybrid v0.3/f0.7", "hybrid v1/f0"}
    assert record["grades"] == {"a": 2}


def test_changes_of_the_blending_are_ways_of_their_own(run, tmp_path):
    write(tmp_path / "data.json", official(2))
    vary = ("--vary", "conversation=0", "--vary", "method=min_max", "--vary", "rerank_top=5")
    more = ("--candidates", "60", "--records", "kept")
    assert run(*asked("longmemeval", *vary, *more)).code == 0
    header, *records = lines("kept")
    labels = [f"hybrid {change}" for change in vary[1::2]]
    assert all(set(one["answers"]) == {"hybrid", "text", *labels} for one in records)
    ways = header["settings"]["variants"]
    assert {way["candidate_limit"] for way in ways.values()} == {60}
    changed = [ways[label]["blending"] for label in labels]
    assert [one["conversation"] for one in changed] == [0, 0.4, 0.4]
    assert [one["method"] for one in changed] == ["complete", "min_max", "complete"]
    assert changed[2]["rerank_top"] == 5
    assert records[0]["answers"]["hybrid"] != records[0]["answers"]["hybrid conversation=0"]


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        ("weather=1", "invalid_argument", "conversation"),
        ("conversation", "invalid_type", "conversation"),
        ("conversation=2", "invalid_argument", "conversation"),
        ("method=magic", "invalid_argument", "reciprocal_rank"),
        ("rerank_top=1.5", "invalid_type", "rerank_top"),
    ],
)
def test_a_change_to_nothing_is_refused_before_anything_is_written(
    run, tmp_path, change, code, named
):
    write(tmp_path / "data.json", official(1))
    more = ("--vary", change, "--records", "kept", "--json")
    refused = run(*asked("longmemeval", *more))
    assert (refused.code, refused.error["code"]) == (1, code)
    assert named in refused.error["message"]
    assert not Path("kept").exists()


def test_turns_without_speakers(run, tmp_path, monkeypatch):
    given: list[engram.ObserveInput] = []
    real = engram.Engram.observe_many

    def observe_many(self: engram.Engram, items: list[engram.ObserveInput]) -> list[str]:
        given.extend(items)
        return real(self, items)

    monkeypatch.setattr(engram.Engram, "observe_many", observe_many)
    write(tmp_path / "data.json", [conversation("conv-1")])
    assert run(*asked("locomo", "--without-speakers", "--records", "kept")).code == 0
    assert len(given) == 4
    assert all(not item.actors for item in given)
    assert lines("kept")[0]["settings"]["without_speakers"]


def test_progress_reaches_the_end_of_what_is_left(tmp_path, monkeypatch):
    shown: list[tuple[int, int]] = []

    @contextmanager
    def progress_bar(_what: str, total: int):
        yield lambda done, known: shown.append((done, known))
        assert shown[-1] == (total, total)

    monkeypatch.setattr(running, "progress_bar", progress_bar)
    data = longmemeval(read(write(tmp_path / "data.json", official(3))))
    run_into(tmp_path / "a", data)
    assert shown == sorted(shown)
    kept = (tmp_path / "a").read_bytes().splitlines(keepends=True)
    (tmp_path / "a").write_bytes(b"".join(kept[:2]))
    shown.clear()
    run_into(tmp_path / "a", data, resume=True)
    assert (tmp_path / "a").read_bytes() == b"".join(kept)
    assert {total for _, total in shown} == {2 * (7 + 1)}


@pytest.mark.parametrize(
    "more",
    [
        ("--modes", "psychic"),
        ("--weights", "0.5,2"),
        ("--weights", "half"),
        ("--resume",),
        ("--resume", "--overwrite", "--records", "kept"),
        ("--from-records", "data.json"),
        ("--sample", "0"),
    ],
)
def test_a_wrong_command_line_exits_with_2(run, tmp_path, more):
    write(tmp_path / "data.json", documents())
    assert run("ir", "--data", "data.json", *more).code == 2
    assert not Path("kept").exists()


@pytest.mark.parametrize("more", [(), ("--overwrite",), ("--resume",)], ids=str)
@pytest.mark.parametrize("link", [None, "symlink_to", "hardlink_to"])
@pytest.mark.parametrize("as_times", [False, True], ids=["records", "times"])
def test_the_data_is_never_written_over(run, tmp_path, link, as_times, more):
    data = write(tmp_path / "data.times.jsonl", official(1))
    kept = data.read_bytes()
    records = "data" if as_times else "data.times.jsonl"
    if link:
        records = "other"
        getattr(tmp_path / f"other{'.times.jsonl' if as_times else ''}", link)(data)
    given = ("longmemeval", "--data", data, *PLAIN, "--records", records, *more)
    before = sorted(tmp_path.iterdir())
    assert run(*given).code == 2
    assert (data.read_bytes(), sorted(tmp_path.iterdir())) == (kept, before)


def test_records_and_times_are_two_files(run, tmp_path):
    write(tmp_path / "data.json", official(1))
    Path("a").write_text("kept")
    Path("a.times.jsonl").symlink_to("a")
    assert run(*asked("longmemeval", "--records", "a", "--overwrite")).code == 2
    assert Path("a").read_text() == "kept"


@pytest.mark.parametrize("other", ["longmemeval", "locomo", "ir"])
def test_records_of_another_set_are_refused(run, name, other):
    assert run(*asked(name, "--records", "kept")).code == 0
    printed = run(other, "--from-records", "kept", "--json")
    if other == command(name):
        assert printed.document["set"] == other
    else:
        assert (printed.code, printed.error["code"]) == (1, "bad_file")


def test_where_nothing_is_answerable_there_is_nothing_to_measure(run, tmp_path):
    write(tmp_path / "data.json", [official(1)[0] | {"question_id": "q0_abs"}])
    document = run(*asked("longmemeval", "--json")).document
    group = document["groups"]["all"]
    assert (group["n"], group["turn_mrr"], group["interval"]) == (0, None, {})
    assert document["groups"]["all_with_abstention"]["n"] == 1
    assert run(*asked("longmemeval")).code == 0


def test_a_file_of_another_set_is_refused_before_anything_is_written(run, tmp_path):
    write(tmp_path / "data.json", documents())
    refused = run(*asked("longmemeval", "--records", "kept", "--json"))
    assert (refused.code, refused.error["code"]) == (1, "bad_file")
    assert not Path("kept").exists()


def run_into(file: Path, data: DataSet, *, resume: bool = False) -> None:
    embedder = resolve("deterministic")
    ways = running.variants(["hybrid"])
    plan = running.Plan("longmemeval", "", data, embedder, ways)
    running.run(plan, file, resume=resume, overwrite=False)


def test_what_asks_cannot_see_what_is_right(tmp_path, monkeypatch):
    """Labels that raise while a store is filled or asked do not change what is recorded."""
    inside = False

    class Watched(dict):
        def __getitem__(self, key: object) -> object:
            assert not inside, "what asks read the labels"
            return super().__getitem__(key)

    def watched(method):
        def call(*arguments: object) -> object:
            nonlocal inside
            inside = True
            try:
                return method(*arguments)
            finally:
                inside = False

        return call

    data = longmemeval(read(write(tmp_path / "data.json", official(3))))
    run_into(tmp_path / "a", data)
    monkeypatch.setattr(asking.Store, "__init__", watched(asking.Store.__init__))
    monkeypatch.setattr(asking.Store, "ask", watched(asking.Store.ask))
    object.__setattr__(data, "labels", Watched(data.labels))
    run_into(tmp_path / "b", data)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_no_name_that_tells_evidence_reaches_the_store(tmp_path, monkeypatch):
    given: list[engram.ObserveInput] = []
    real = engram.Engram.observe_many

    def observe_many(self: engram.Engram, items: list[engram.ObserveInput]) -> list[str]:
        given.extend(items)
        return real(self, items)

    monkeypatch.setattr(engram.Engram, "observe_many", observe_many)
    data = longmemeval(read(write(tmp_path / "data.json", official(1))))
    run_into(tmp_path / "a", data)
    assert [(item.actors, item.tags) for item in given[-2:]] == [
        (["assistant"], ["session 3"]),
        (["user"], ["session 3"]),
    ]
    assert not any("answer" in repr(item) for item in given)


def test_what_asks_uses_public_names_alone():
    tree = ast.parse(Path(asking.__file__).read_text(encoding="utf-8"))
    public = {name for name in engram.__all__ if not name.startswith("_")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = {alias.name.partition(".")[0] for alias in node.names}
            assert names <= sys.stdlib_module_names, names
        elif isinstance(node, ast.ImportFrom) and node.module == "engram":
            assert {alias.name for alias in node.names} <= public
        elif isinstance(node, ast.ImportFrom) and node.module == "engram.embedding":
            assert {alias.name for alias in node.names} == {"Embedder"}
        elif isinstance(node, ast.ImportFrom):
            assert node.module.partition(".")[0] in sys.stdlib_module_names, node.module
        elif isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_") or (
                isinstance(node.value, ast.Name) and node.value.id == "self"
            ), node.attr


def test_the_engine_knows_no_label():
    """What recalls never names a field in which data sets keep what is right."""
    labels = re.compile(r"question_type|has_answer|answer_session_ids|single-session|multi-session")
    package = Path(engram.__file__).parent
    for room in ("engine", "index", "retrieval", "storage", "embedding", "_native"):
        for file in (package / room).rglob("*.py"):
            assert not labels.search(file.read_text(encoding="utf-8")), file
