"""The real program, over its pipes."""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from bare_database import BareDatabase, hours, near
from stand_ins import WordEmbedder
from workers import environment, planted

from engram.experience import ExperienceMemory
from engram.training.messages import Artifact, Complete, Error, Insight, Metric, decode

MODULE = ["-m", "engram.training"]
COMMAND = ["-m", "engram", "train"]


def program(tmp_path, *arguments, start=MODULE, **variables):
    return subprocess.run(
        [sys.executable, *start, *map(str, arguments)],
        capture_output=True,
        cwd=tmp_path,
        env=environment(tmp_path, **variables),
    )


def said(done):
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(b"\n")
    return [decode(line) for line in done.stdout.splitlines()]


def of(messages, kind):
    return [one for one in messages if isinstance(one, kind)]


@pytest.fixture
def filled(bare):
    """Enough memories for both models; of two kinds, some judged."""
    for at in range(25):
        kind, words = (("bugfix", "crash in parser"), ("decision", "choose a queue"))[at % 2]
        bare.add(
            f"m{at}", near(at % 3), memory_type=kind, context=f"{words} {at}", action=words,
            created_at=hours(at), score=at / 25,
        )  # fmt: skip
        if at % 4 == 0:
            bare.judge(f"m{at}")
    return bare


@pytest.mark.parametrize("start", [MODULE, COMMAND], ids=["trainer", "engram train"])
def test_a_run_over_a_bare_database(filled, tmp_path, start):
    before = hashlib.sha256(filled.path.read_bytes()).hexdigest()
    done = program(tmp_path, "--database", filled.path, "--models-path", "models", start=start)
    lines = said(done)
    assert done.stdout.startswith(b'{"type":"progress","stage":"loading","percent":0.0}\n')
    assert len(of(lines, Insight)) == lines[-1].insights_generated > 0
    assert isinstance(lines[-1], Complete)
    assert len(of(lines, Complete)) == 1
    files = of(lines, Artifact)
    assert [one.path for one in files] == [
        str(tmp_path / "models" / f"{name}.onnx") for name in ("mode_classifier", "ranking_model")
    ]
    for one in files:
        assert Path(one.path).stat().st_size == one.size_bytes
        onnx.checker.check_model(onnx.load(one.path))
    assert (tmp_path / "models" / "manifest.json").exists()
    assert hashlib.sha256(filled.path.read_bytes()).hexdigest() == before
    assert done.stderr == b""


def test_models_take_what_is_promised(filled, tmp_path):
    said(program(tmp_path, "--db", filled.path, "--models-path", "models"))
    for name, columns in (("mode_classifier", None), ("ranking_model", 5)):
        session = onnxruntime.InferenceSession(tmp_path / "models" / f"{name}.onnx")
        [taken] = session.get_inputs()
        assert (taken.name, taken.type) == ("float_input", "tensor(float)")
        assert taken.shape[1] <= 500 if columns is None else taken.shape[1] == columns
        labels, chances = session.run(None, {"float_input": np.zeros((2, taken.shape[1]), "f4")})
        assert len(labels) == len(chances) == 2
        assert {type(one) for one in chances[0]} == {type(labels.tolist()[0])}


def test_the_same_database_gives_the_same_bytes(filled, tmp_path):
    runs = []
    for _ in range(2):
        done = program(tmp_path, "--db", filled.path, "--models-path", "models", "--seed", "7")
        *lines, last = done.stdout.splitlines()
        files = sorted((file.name, file.read_bytes()) for file in (tmp_path / "models").iterdir())
        runs.append((lines, json.loads(last)["insights_generated"], files))
    assert runs[0] == runs[1]


def test_models_go_to_the_home_when_no_folder_is_named(filled, tmp_path):
    lines = said(program(tmp_path, "--db", filled.path))
    assert {Path(one.path).parent for one in of(lines, Artifact)} == {
        tmp_path / ".engram" / "models"
    }


def test_a_folder_that_cannot_be_written_fails_the_training_alone(filled, tmp_path):
    (tmp_path / "models").write_text("a file")
    lines = said(program(tmp_path, "--db", filled.path, "--models-path", tmp_path / "models"))
    failures = [one.stage for one in lines if "failed: " in getattr(one, "stage", "")]
    assert [name.partition(":")[0] for name in failures] == [
        "classifier_training_failed", "ranker_training_failed",
    ]  # fmt: skip
    assert of(lines, Artifact) == []


def test_only_one_label_fails_the_ranking_model_alone(filled, tmp_path):
    filled.connection.execute("DELETE FROM feedback_tracking")
    lines = said(program(tmp_path, "--db", filled.path, "--models-path", "models"))
    [failure] = [one.stage for one in lines if "failed" in getattr(one, "stage", "")]
    assert failure.startswith("ranker_training_failed: ")
    assert len(of(lines, Artifact)) == 1


def test_nine_memories_make_no_model(bare, tmp_path):
    for at in range(9):
        bare.add(f"m{at}")
    assert of(said(program(tmp_path, "--db", bare.path)), Artifact) == []
    assert not (tmp_path / ".engram").exists()


@pytest.mark.parametrize("missing", ["sklearn", "skl2onnx", "onnx"])
def test_without_the_extra_the_models_are_left_out(filled, tmp_path, missing):
    hidden = planted(
        tmp_path,
        f"""
        import importlib.util
        find = importlib.util.find_spec
        importlib.util.find_spec = lambda name: None if name == {missing!r} else find(name)
        """,
    )
    lines = said(program(tmp_path, "--db", filled.path, **hidden))
    skipped = [one for one in lines if getattr(one, "stage", "").startswith("training_skipped")]
    assert [one.stage for one in skipped] == ["training_skipped: install engram-embedded[train]"]
    assert of(lines, Artifact) == []
    assert len(of(lines, Insight)) > 0


def test_bad_rows_are_said_on_stderr_and_as_a_metric(filled, tmp_path):
    filled.add("bad", b"abc")
    filled.add("undated", created_at="yesterday")
    done = program(tmp_path, "--db", filled.path)
    assert Metric("skipped_rows", 2.0) in said(done)
    assert b"2 memories could not be read" in done.stderr


def test_a_store_is_read(tmp_path, path, clock):
    with ExperienceMemory(path, embedder=WordEmbedder(), clock=clock) as memory:
        ids = [
            memory.store(f"parser parser parser crash {at}", f"fix {at}", "ok").id
            for at in range(3)
        ]
        lines = said(program(tmp_path, "--db", path))
        [cluster] = [one for one in of(lines, Insight) if one.insight_type == "cluster"]
        assert cluster.source_ids == ",".join(ids)


@pytest.mark.parametrize("by", ["option", "variable"])
def test_an_encrypted_store_is_read_with_its_key(tmp_path, path, clock, by):
    with ExperienceMemory(path, key="pässword", embedder=WordEmbedder(), clock=clock) as memory:
        memory.store("a", "b", "c")
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text("pässword\n", encoding="utf-8")
    given = {"ENGRAM_KEY_FILE": str(key)} if by == "variable" else {}
    options = ["--key-file", key] if by == "option" else []
    done = program(tmp_path, "--db", path, *options, **given)
    assert Metric("memory_count", 1.0) in said(done)
    key.chmod(0o644)
    done = program(tmp_path, "--db", path, *options, **given)
    assert done.returncode == 0
    assert b"others may open" in done.stderr
    assert b"ssword" not in done.stdout + done.stderr


def failure(done):
    """What a run that failed as a whole says last."""
    assert done.returncode == 1
    *before, last = [decode(line) for line in done.stdout.splitlines()]
    assert [one.stage for one in before] == ["loading"]
    assert isinstance(last, Error)
    return last.message


def test_what_cannot_be_read_is_an_error(tmp_path, bare, path, clock):
    assert "no store" in failure(program(tmp_path, "--db", "none.db"))
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "text").write_text("secret " * 1000)
    assert "not an engram store" in failure(program(tmp_path, "--db", "text"))
    bare.connection.execute("DROP TABLE q_table")
    assert "q_table" in failure(program(tmp_path, "--db", bare.path, start=COMMAND))
    missing = failure(program(tmp_path, "--db", bare.path, "--key-file", "none"))
    assert missing == "--key-file: No such file or directory"
    (tmp_path / "key").touch()
    assert "passphrase" in failure(program(tmp_path, "--db", bare.path, "--key-file", "key"))
    (tmp_path / "key").write_text("word")
    assert "not encrypted" in failure(program(tmp_path, "--db", bare.path, "--key-file", "key"))
    with ExperienceMemory(path, key="k", embedder=WordEmbedder(), clock=clock) as memory:
        memory.store("a", "b", "c")
    assert "--key-file" in failure(program(tmp_path, "--db", path))


def test_an_agent_is_named_for_a_store_alone(tmp_path, bare, path, clock):
    for agent in ("alice", "bob"):
        with ExperienceMemory(path, agent_id=agent, embedder=WordEmbedder(), clock=clock) as memory:
            memory.store("a", "b", agent)
    lines = said(program(tmp_path, "--db", path, "--agent", "alice"))
    assert Metric("memory_count", 1.0) in lines
    assert "no agents" in failure(program(tmp_path, "--db", bare.path, "--agent", "alice"))


def test_a_hash_in_the_name_of_a_folder(tmp_path):
    folder = tmp_path / "a#b?c%20d"
    folder.mkdir()
    BareDatabase(folder / "m.db").add("m")
    lines = said(program(tmp_path, "--db", folder / "m.db", "--models-path", folder / "models"))
    assert Metric("memory_count", 1.0) in lines
    assert [one.name for one in folder.iterdir()] == ["m.db"]
    assert [one.name for one in tmp_path.iterdir()] == [folder.name]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--database"],
        ["--database", "x", "--seed", "-1"],
        ["--database", "x", "--seed", "one"],
        ["--database", "x", "--no-such"],
        ["--database", "x", "more"],
        ["--database", "x", "--models-path", b"\xff"],
        ["--database", "x", "--agent", b"\xff"],
    ],
    ids=str,
)
@pytest.mark.parametrize("start", [MODULE, COMMAND], ids=["trainer", "engram train"])
def test_a_wrong_command_line_says_nothing_on_stdout(tmp_path, start, arguments):
    done = subprocess.run(
        [sys.executable, *start, *arguments],
        capture_output=True,
        cwd=tmp_path,
        env=environment(tmp_path),
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Error: " in done.stderr


def test_stdout_is_the_lines_alone_whoever_prints(filled, tmp_path):
    noisy = planted(
        tmp_path,
        """
        import atexit, os, sys
        sys.addaudithook(
            lambda event, args: event == "import" and args[0] == "numpy" and print("noise")
        )
        atexit.register(lambda: os.write(1, b"more noise"))
        """,
    )
    done = program(tmp_path, "--db", filled.path, "--models-path", "models", **noisy)
    assert isinstance(said(done)[-1], Complete)
    assert b"noise" in done.stderr


def test_a_reader_that_leaves_ends_the_run(filled, tmp_path):
    with subprocess.Popen(
        [sys.executable, *MODULE, "--db", filled.path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
    ) as running:
        running.stdout.readline()
        running.stdout.close()
        assert running.wait(60) == 1
        assert b"Traceback" not in running.stderr.read()


def test_a_full_device_ends_the_run_with_one_line(filled, tmp_path):
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            [sys.executable, *MODULE, "--db", filled.path],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(tmp_path),
        )
    assert done.returncode == 1
    assert done.stderr == b"engram-trainer: stdout: No space left on device\n"


WRITER = """
import itertools, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA synchronous = OFF")
for at in itertools.count():
    connection.execute("UPDATE memories SET score = ? / 100000.0, context = ?", (at % 100000, at))
    if not at:
        print("ready", flush=True)
"""


def test_it_reads_one_moment_while_another_process_writes(bare, tmp_path):
    bare.connection.execute("PRAGMA journal_mode = wal")
    for at in range(9):
        bare.add(f"m{at}", near(0))
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, bare.path], stdout=subprocess.PIPE
    ) as writer:
        try:
            assert writer.stdout.readline() == b"ready\n"
            runs = [said(program(tmp_path, "--db", bare.path)) for _ in range(3)]
            assert writer.poll() is None
        finally:
            writer.kill()
    for run in runs:
        [cluster] = [one for one in of(run, Insight) if one.insight_type == "cluster"]
        # All of them have the same context in every commit.
        assert cluster.context.count("\n") == 1
    assert bare.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_help_loads_nothing_heavy(tmp_path):
    code = (
        "import sys\nfrom engram.training import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as end:\n    code = end.code\n"
        "print([code, 'numpy' in sys.modules, 'sklearn' in sys.modules, 'apsw' in sys.modules])"
    )
    done = program(tmp_path, start=["-c", code])
    assert b"--models-path" in done.stdout
    assert ast.literal_eval(done.stdout.splitlines()[-1].decode()) == [0, False, False, False]
