"""One store, many users: threads of one instance, instances of one process, processes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from stand_ins import WordEmbedder
from turns import Other

from engram import Engram, ObserveInput

OTHER = """
import sys
from stand_ins import WordEmbedder
from engram import Engram
with Engram(sys.argv[1], embedder=WordEmbedder()) as memory:
    for line in sys.stdin:
        verb, _, rest = line.strip().partition(" ")
        if verb == "observe":
            print(memory.observe(rest), flush=True)
        elif verb == "forget":
            memory.forget(rest)
            print("done", flush=True)
        else:
            print(len(memory.recall(rest, 50)), flush=True)
"""


def test_processes_see_each_others_commits_at_their_next_call(memory, path):
    memory.observe("mine first")
    with Other(path, OTHER) as other:
        assert other.ask("recall first") == "1"
        for number in range(5):
            theirs = other.ask(f"observe theirs {number}")
            for mode in ("hybrid", "cosine"):
                assert memory.recall(f"theirs {number}", 1, mode=mode)[0].episode.id == theirs
            mine = memory.observe(f"mine {number}")
            assert other.ask("recall mine") == str(2 + number + 1)
            memory.forget(theirs)
            assert other.ask("recall mine") == str(2 + number)
            assert other.ask("forget " + mine) == "done"
            memory.observe(f"kept {number}")
        assert memory.count() == 6
    assert memory.check() == []


def test_two_processes_write_at_once_without_a_lock_error(path, memory):
    with Other(path, OTHER) as one, Other(path, OTHER) as two:
        with ThreadPoolExecutor() as threads:
            for other in (one, two):
                threads.submit(
                    lambda other=other: [other.ask(f"observe x {n}") for n in range(100)]
                )
            for number in range(100):
                memory.observe(f"y {number}")
        assert memory.count() == 300
    assert len(memory.recall("x y", 400)) == 300
    assert memory.check() == []


def test_threads_share_an_instance(memory):
    failures: list[BaseException] = []
    start = threading.Barrier(8)

    def work(name: int) -> None:
        try:
            start.wait()
            for number in range(30):
                uid = memory.observe(f"thread {name} note {number}")
                assert memory.recall(f"thread {name} note {number}", 300)
                assert memory.get(uid).content.startswith("thread")
                if number % 3 == 0:
                    memory.forget(uid)
        except BaseException as error:  # noqa: BLE001 - reported below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert memory.count() == 8 * 20
    assert len(memory.recall("note", 1000, mode="cosine")) == 8 * 20
    assert memory.check() == []


def test_instances_share_nothing_but_the_file(open_memory):
    first, second = open_memory(), open_memory()
    uid = first.observe("shared")
    assert [r.episode.id for r in second.recall("shared")] == [uid]
    first.close()
    second.observe("goes on")
    assert second.count() == 2
    in_memory = [Engram(embedder=WordEmbedder()) for _ in range(2)]
    in_memory[0].observe("private")
    assert [memory.count() for memory in in_memory] == [1, 0]


def test_a_reader_of_a_large_write_sees_all_of_it_or_nothing(open_memory, path):
    writer, reader = open_memory(), open_memory()
    seen: set[int] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(len(reader.recall("batch", 1000)))
        seen.add(len(reader.recall("batch", 1000)))

    thread = threading.Thread(target=read)
    thread.start()
    for _ in range(4):
        writer.observe_many([ObserveInput("batch") for _ in range(250)])
    done.set()
    thread.join()
    assert seen <= {0, 250, 500, 750, 1000}
    assert 1000 in seen


def test_the_access_log_waits_for_fifty_results_or_the_end(open_memory):
    memory, other = open_memory("a"), open_memory("a")
    memory.observe_many([ObserveInput(f"note {n}") for n in range(20)])

    def logged() -> int:
        return other._store._connection.execute("SELECT count(*) FROM access_log").get

    for _ in range(2):
        memory.recall("note", 20)
    assert logged() == 0
    memory.recall("note", 20)
    assert logged() == 60
    memory.recall("note", 5)
    memory.close()
    assert logged() == 65
    assert other._store._connection.execute(
        "SELECT DISTINCT query, (SELECT name FROM agent WHERE id = agent) FROM recall_log"
    ).fetchall() == [("note", "a")]


def test_a_recall_that_is_interrupted_while_it_catches_up_loses_nothing(open_memory, monkeypatch):
    reader, writer = open_memory(), open_memory()
    writer.observe("first")
    assert len(reader.recall("first")) == 1
    writer.observe_many([ObserveInput(f"second {n}") for n in range(20)])
    tail = reader._index.tail
    append = tail.append

    def interrupted(*given: object) -> None:
        append(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(tail, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reader.recall("second")
    monkeypatch.undo()
    for mode in ("hybrid", "cosine"):
        found = [r.episode.id for r in reader.recall("second", 100, mode=mode)]
        assert len(found) == len(set(found)) == 21
