"""Renewing insights through a trainer that says what a test wants it to say."""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
from dataclasses import fields
from pathlib import Path

import pytest
from fake_trainer import COMPLETE, PROGRESS, insight
from stand_ins import WordEmbedder

from engram.errors import InvalidArgument, StoreFull, TimedOut, TrainerFailed, TrainerReplyError
from engram.experience import ExperienceMemory, ImportedExperience
from engram.storage.projects import FACT


def ids(memory: ExperienceMemory) -> list[str]:
    return [one.id for one in memory.insights()]


def test_what_it_says_is_kept(experiences, fake, run):
    done = run(fake.says(PROGRESS, insight("i1", tags="perf,cache", source_ids="a,b"), COMPLETE))
    assert (done.generated, done.messages_parsed) == (1, 3)
    [kept] = experiences.insights()
    assert (kept.id, kept.context, kept.insight_type) == ("i1", "an insight", "cluster")
    assert (kept.tags, kept.source_ids, kept.score) == (("perf", "cache"), "a,b", 0.0)
    assert experiences.search("insight").hits[0].id == "i1"


def test_members_that_may_be_missing_are_null(experiences, fake, run):
    run(fake.says(insight("i1"), insight("i2", tags=None, source_ids=None), COMPLETE))
    assert [(one.tags, one.source_ids) for one in experiences.insights()] == [((), None)] * 2


def test_blank_lines_and_spaces_say_nothing(fake, run):
    said = ["", "   ", f"  {json.dumps(insight('i1'))}  \r", "", json.dumps(COMPLETE)]
    assert run(fake.says(*said)).messages_parsed == 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{broken", "not JSON"),
        ('{"stage": "loading", "percent": 1}', "not one of"),
        ('{"type": "surprise"}', "not one of"),
        ('{"type": "progress", "stage": "loading"}', "not one of"),
        ('{"type": "metric", "name": "x", "value": Infinity}', "not JSON"),
        ('{"type": "error", "message": "no"}', "error"),
        ("[]", "not one of"),
    ],
)
def test_one_line_that_is_no_message_voids_the_run(experiences, fake, run, line, reason):
    run(fake.says(insight("old"), COMPLETE))
    with pytest.raises(TrainerReplyError, match=f"line 2: .*{reason}"):
        run(fake.says(insight("new"), line, COMPLETE))
    assert ids(experiences) == ["old"]


def test_bytes_that_are_not_utf8_void_the_run(experiences, fake, run):
    with pytest.raises(TrainerReplyError, match="non-utf8 stdout"):
        run(fake.does(r"sys.stdout.buffer.write(b'\xff\n')"))


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (insight("new", insight_type="odd"), "insight_type must be one of"),
        (insight(""), "id must have 1 to"),
        (insight("é" * 51), "id must have 1 to 100 bytes"),
        (insight(f"{FACT}1"), "id must not begin with"),
        (insight("fine"), "two insights have one id"),
        *(
            (insight("new", **{part: "é" * 5001}), f"{part} exceeds maximum length")
            for part in ("context", "action", "result")
        ),
    ],
)
def test_an_insight_that_cannot_be_kept_leaves_the_old_ones(experiences, fake, run, bad, reason):
    run(fake.says(insight("old"), COMPLETE))
    with pytest.raises(TrainerReplyError, match=f"^line 3: {reason}"):
        run(fake.says(insight("fine"), "", bad, COMPLETE))
    assert ids(experiences) == ["old"]


def test_the_largest_insight_that_is_kept_can_be_imported(experiences, opened, fake, run, tmp_path):
    largest = "é" * 5000
    run(fake.says(insight("é" * 50, largest, action=largest, result=largest), COMPLETE))
    [one] = experiences.export()
    other = opened(path=tmp_path / "other.db")
    record = ImportedExperience(
        **{field.name: getattr(one, field.name) for field in fields(ImportedExperience)}
    )
    assert other.import_experiences([record]).imported == 1
    assert other.export()[0].result == largest


def test_a_size_beyond_any_file_is_no_message(experiences, fake, run):
    artifact = {"type": "artifact", "path": "/x", "size_bytes": 2**63}
    with pytest.raises(TrainerReplyError, match=r"^line 1: not one of"):
        run(fake.says(artifact, COMPLETE))
    assert experiences.training_runs()[0].failure == "trainer_reply"
    run(fake.says({**artifact, "size_bytes": 2**63 - 1}, COMPLETE))
    assert experiences.training_runs()[0].artifacts == [("/x", 2**63 - 1, None)]


def test_insights_that_cannot_be_embedded_are_kept_and_the_log_says_why(
    experiences, fake, run, monkeypatch, caplog
):
    def full(*_):
        raise StoreFull("secret")  # noqa: EM101

    monkeypatch.setattr(experiences, "embed_waiting", full)
    assert run(fake.says(insight("i1"), COMPLETE)).generated == 1
    assert caplog.messages == ["texts were not embedded: StoreFull"]


def test_what_nobody_foresaw_is_a_failed_run_too(experiences, fake, run, monkeypatch):
    def fails(*_):
        raise MemoryError

    monkeypatch.setattr("engram.experience.trainer.decode", fails)
    with pytest.raises(MemoryError):
        run(fake.says(COMPLETE))
    assert experiences.training_runs()[0].failure == "MemoryError"


def test_an_insight_does_not_take_the_id_of_another_memory(experiences, fake, run):
    other = experiences.store("context", "action", "result").id
    with pytest.raises(TrainerReplyError, match="another memory"):
        run(fake.says(insight(other), COMPLETE))
    assert experiences.get(other).memory_type == "decision"
    assert ids(experiences) == []


def test_a_run_without_insights_keeps_the_earlier_ones(experiences, fake, run):
    run(fake.says(insight("old"), COMPLETE))
    done = run(fake.does(""))
    assert (done.generated, done.messages_parsed, ids(experiences)) == (0, 0, ["old"])


def test_what_it_says_beside_insights_is_kept(experiences, fake, run, tmp_path):
    target = experiences.store("context", "action", "result").id
    model = tmp_path / "model.onnx"
    model.write_bytes(b"model")
    run(
        fake.says(
            {"type": "recommendation", "target_id": target, "action": "archive", "reasoning": "r"},
            {"type": "recommendation", "target_id": "gone", "action": "archive", "reasoning": "r"},
            {"type": "metric", "name": "cluster_count", "value": 12.0},
            {"type": "artifact", "path": str(model), "size_bytes": 5},
            {"type": "artifact", "path": str(tmp_path / "none"), "size_bytes": 7},
            COMPLETE,
        )
    )
    [one] = experiences.training_runs()
    assert one.recommendations == [(target, "archive", "r")]
    assert one.metrics == [("cluster_count", 12.0)]
    digest = "9372c470eeadd5ecd9c3c74c2b3cb633f8e2f2fad799250a0f70d652b6b825e4"
    assert one.artifacts == [(str(model), 5, digest), (str(tmp_path / "none"), 7, None)]
    assert (one.failure, one.messages, one.insights, one.duration_secs) == (None, 6, 0, 0.5)


def test_the_last_twenty_runs_are_kept(experiences, fake, run):
    trainer = fake.says(COMPLETE)
    kept = []
    for _ in range(22):
        run(trainer)
        kept.append(experiences.training_runs(1)[0].id)
    assert [one.id for one in experiences.training_runs()] == kept[:1:-1]


def test_a_trainer_takes_no_insights_from_others(experiences, path, clock, fake, run, tmp_path):
    run(fake.says(insight("a"), COMPLETE))
    with ExperienceMemory(path, embedder=WordEmbedder(), clock=clock, agent_id="ann") as ann:
        ann.generate(tmp_path / "models", trainer=fake.says(insight("b"), COMPLETE))
        assert ids(ann) == ["b"]
    assert ids(experiences) == ["a", "b"]


def test_a_failure_says_why(experiences, fake, run):
    said = {"type": "error", "message": "no table memories"}
    with pytest.raises(TrainerFailed, match="status 3: no table memories: it broke"):
        run(fake.says(insight("new"), said, after="sys.stderr.write('it broke'); sys.exit(3)"))
    assert ids(experiences) == []
    assert experiences.training_runs()[0].failure == "trainer_failed"


def test_a_trainer_that_is_killed_is_a_failure(fake, run):
    with pytest.raises(TrainerFailed, match="signal 9"):
        run(fake.does("os.kill(os.getpid(), 9)"))


def test_a_trainer_that_is_nowhere_is_a_failure(run, tmp_path):
    for name in ("no-such-trainer", str(tmp_path / "none"), "some/where"):
        with pytest.raises(TrainerFailed):
            run(name)


def test_a_trainer_is_found_on_the_path(fake, run, monkeypatch):
    fake.says(COMPLETE)
    monkeypatch.setenv("PATH", str(fake.file.parent.parent), prepend=os.pathsep)
    assert run("bin/trainer").messages_parsed == 1
    monkeypatch.setenv("PATH", str(fake.file.parent), prepend=os.pathsep)
    assert run("trainer").messages_parsed == 1


def test_a_trainer_in_a_home_is_found(fake, run, monkeypatch):
    monkeypatch.setenv("HOME", str(fake.file.parent))
    assert run(f"~/{Path(fake.says()).name}").messages_parsed == 0


def test_a_trainer_that_takes_too_long_is_killed_with_its_children(
    experiences, fake, run, tmp_path
):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    reading = os.open(gate, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(TimedOut):
        run(fake.does(f"gate = open({str(gate)!r}, 'w'); os.fork(); time.sleep(600)"), timeout=2.0)
    # Ends when nobody is left that could write.
    os.set_blocking(reading, True)
    assert os.read(reading, 1) == b""
    os.close(reading)
    assert experiences.training_runs()[0].failure == "timed_out"


def test_a_trainer_that_closes_its_output_and_goes_on_is_killed(fake, run):
    with pytest.raises(TimedOut):
        run(fake.does("os.close(1); os.close(2); time.sleep(600)"), timeout=1.0)


def test_what_a_trainer_leaves_behind_does_not_hold_up_its_result(fake, run):
    left = "if os.fork() == 0:\n    time.sleep(600)"
    assert run(fake.says(COMPLETE, after=left)).messages_parsed == 1


def test_a_trainer_reads_nothing_from_this_process(fake, run):
    assert run(fake.says(COMPLETE, after="assert sys.stdin.read() == ''")).messages_parsed == 1


@pytest.mark.parametrize("where", ["same", "other", "link"])
def test_a_second_trainer_is_refused_while_one_runs(
    experiences, opened, path, fake, run, tmp_path, where
):
    link = tmp_path / "link"
    link.symlink_to(path)
    second = experiences if where == "same" else opened(path=link if where == "link" else path)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    first = fake.says(COMPLETE, after=f"open({str(gate)!r}).read()")
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(run(first)))
    thread.start()
    # Opening it waits for the trainer, which opens it too.
    with gate.open("w"), pytest.raises(TrainerFailed, match="already"):
        second.generate(tmp_path / "other models", trainer=first)
    thread.join()
    assert results
    assert second.training_runs()[0].failure is None


def test_a_trainer_whose_owner_was_killed_still_counts(path, fake, run, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    waiting = fake.says(COMPLETE, after=f"open({str(gate)!r}).read()")
    code = (
        "from engram.embedding import DeterministicEmbedder\n"
        "from engram.experience import ExperienceMemory\n"
        f"memory = ExperienceMemory({str(path)!r}, embedder=DeterministicEmbedder())\n"
        f"memory.generate({str(tmp_path)!r}, trainer={waiting!r})\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", code])
    # Opening it waits for the trainer, which opens it too.
    with gate.open("w"):
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
        trainer = fake.says(insight("i1"), COMPLETE)
        with pytest.raises(TrainerFailed, match="already"):
            run(trainer)
    with (tmp_path / f"{path.name}-training").open() as lock:
        # Waits until the trainer is gone.
        fcntl.flock(lock, fcntl.LOCK_EX)
    assert run(trainer).generated == 1


def test_what_a_trainer_leaves_behind_does_not_keep_the_next_one_out(fake, run, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with_child = fake.says(
        COMPLETE,
        after=f"""
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.close(writing)
    open({str(gate)!r}).read()
else:
    os.close(writing)
    os.read(reading, 1)
""",
    )
    assert run(with_child).messages_parsed == 1
    with gate.open("w"):
        assert run(fake.says(COMPLETE)).messages_parsed == 1


def test_where_no_lock_can_be_there_is_no_training(path, fake, run):
    path.with_name(f"{path.name}-training").mkdir()
    with pytest.raises(TrainerFailed, match="lock"):
        run(fake.says(COMPLETE))


def test_its_last_words_are_read_whenever_they_come(experiences, fake, run, monkeypatch):
    looks = []

    class Late(selectors.DefaultSelector):
        """Looks, finds nothing, and is told of it only when the trainer has ended."""

        def select(self, timeout=None):
            looks.append(timeout)
            if len(looks) > 1:
                return super().select(timeout)
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            return []

    monkeypatch.setattr(selectors, "DefaultSelector", Late)
    done = run(fake.says(insight("a"), insight("b"), COMPLETE))
    assert (done.generated, done.messages_parsed) == (2, 3)


def test_an_artifact_that_is_no_file_has_no_digest(experiences, fake, run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    large = tmp_path / "large"
    large.touch()
    os.truncate(large, 2**24 + 1)
    paths = [str(tmp_path / "pipe"), str(large), str(tmp_path), "a\0b"]
    run(
        fake.says(
            *({"type": "artifact", "path": path, "size_bytes": 1} for path in paths), COMPLETE
        )
    )
    assert experiences.training_runs()[0].artifacts == [(path, 1, None) for path in paths]


def test_closing_ends_the_trainer(path, clock, fake, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    memory = ExperienceMemory(path, embedder=WordEmbedder(), clock=clock)
    errors: list[TrainerFailed] = []

    def generate() -> None:
        try:
            memory.generate(tmp_path, trainer=fake.does(f"open({str(gate)!r}).read()"))
        except TrainerFailed as error:
            errors.append(error)

    thread = threading.Thread(target=generate)
    thread.start()
    with gate.open("w"):
        memory.close()
        thread.join()
    assert len(errors) == 1


def test_a_store_in_memory_has_nothing_to_read(tmp_path):
    with (
        ExperienceMemory(embedder=WordEmbedder()) as memory,
        pytest.raises(InvalidArgument),
    ):
        memory.generate(tmp_path)
