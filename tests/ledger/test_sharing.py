"""Processes that keep evidence in one store at once."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest
from turns import Other

from engram.errors import CorruptStore

PUTTER = """
import json, sys
from stand_ins import Clock
from engram.ledger import Ledger

def put(ledger, project, name, value):
    at = Clock().now.timestamp()
    receipt = ledger.put_evidence(
        project, session_id="s", assumption_id="a", evidence_id=name, outcome="supported",
        observed_at=at, expires_at=at + 60, observation={"value": value},
        provenance={"producer": "p", "check_type": "c"},
    )
    return receipt.id

with Ledger(sys.argv[1], clock=Clock()) as ledger:
    for line in sys.stdin:
        verb, who = line.split()
        ids = []
        for number in range(40):
            ids.append(put(ledger, "/same", f"e{number}", number))
            ids.append(put(ledger, "/own", f"{who}-{number}", number))
            ledger.save_checkpoint("/same", f"task {number % 4}", who)
        refused = 0
        for number in range(40):
            try:
                put(ledger, "/race", f"e{number}", who)
            except ValueError:
                refused += 1
        print(json.dumps([sorted(set(ids)), refused]), flush=True)
"""


def test_three_processes_put_at_once(memory, path, ledger):
    with ExitStack() as stack:
        others = [stack.enter_context(Other(path, PUTTER)) for _ in range(3)]
        for number, other in enumerate(others):
            other.process.stdin.write(f"go w{number}\n")
            other.process.stdin.flush()
        answers = [json.loads(other.process.stdout.readline()) for other in others]
    shared = set.intersection(*(set(ids) for ids, _ in answers))
    assert len(shared) == 40
    assert all(len(ids) == 80 for ids, _ in answers)
    # Of three that say different things about one name, one is stored and two are told.
    assert sum(refused for _, refused in answers) == 80
    assert ledger.totals().evidence == 40 + 3 * 40 + 40
    assert {one.id for one in ledger.list_evidence("/same", limit=50)} == shared
    assert len(ledger.list_evidence("/race", limit=50)) == 40
    assert len(ledger.checkpoints("/same", limit=20)) == 4
    assert memory.check() == []


def test_a_failure_drops_only_the_connection_that_failed(ledger):
    following = []

    def fail_late(store):
        with ledger._dropping(store):
            # Meanwhile another thread: the path names another file, or a failure of its own.
            ledger.close()
            following.append(ledger._opened()[0])
            message = "of the one that is closed"
            raise CorruptStore(message)

    failed, _ = ledger._opened()
    with pytest.raises(CorruptStore):
        fail_late(failed)
    assert [ledger._opened()[0]] == following
    with pytest.raises(CorruptStore):
        fail_late(following[0])
    assert ledger._opened()[0] is following[1]


@pytest.mark.parametrize("call", ["checkpoints", "clear_checkpoint"])
def test_a_connection_that_another_thread_closed_is_opened_anew(ledger, monkeypatch, call):
    opened = ledger._opened

    def closed_at_once():
        monkeypatch.setattr(ledger, "_opened", opened)
        found = opened()
        ledger.close()
        return found

    monkeypatch.setattr(ledger, "_opened", closed_at_once)
    assert not getattr(ledger, call)("/p", **({"task": "t"} if call != "checkpoints" else {}))


def test_what_one_writes_the_other_sees_at_once(open_ledger, path):
    first = open_ledger()
    second = open_ledger()
    assert second.checkpoints("/p") == []
    saved = first.save_checkpoint("/p", "t", "x")
    assert second.checkpoints("/p") == [saved]
    assert second.clear_checkpoint("/p", "t")
    assert first.checkpoints("/p") == []
