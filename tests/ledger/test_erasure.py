"""Erasing reaches what a ledger keeps: lists, histories, checkpoints, observations, paths."""

from __future__ import annotations

import json

import pytest
from files import every_byte

from engram.ledger import Ledger

TRACES = ("Xylophone", "xylophone", "Quetzalcoatl", "questioned", "Hieronymus", "hieronymus",
          "暗号", "金糸", "Ornithology", "Nickname")  # fmt: skip


@pytest.mark.parametrize("key", [None, "pass"])
@pytest.mark.parametrize(
    ("name", "spelled"),
    [("Xylophone", "xYlophone"), ("Müller", "Mu\u0308ller"), ("金糸雀", "金糸雀")],
)
def test_a_sweep_leaves_no_byte_of_what_a_ledger_keeps(
    open_memory, clock, path, key, name, spelled
):
    memory = open_memory(key=key)
    memory.remember("kept", project="/projects/atlas")
    swept = memory.remember("x", project=f"/{spelled} z")
    memory.remember("y", source_path=f"/notes/{spelled}/a.md")
    with Ledger(path, key=key, clock=clock) as ledger:
        reasons = [memory.remember(f"reason {n}", project="/projects/atlas") for n in range(2)]
        ledger.invalidate(reasons[0], reason=f"so said\n{spelled}")
        ledger.invalidate(reasons[1], reason="no matter")
        ledger.invalidate(swept, reason="of no matter either")
        kept = ledger.save_checkpoint("/projects/atlas", "kept", "vaXylophonely", blockers=["x"])
        for task, summary, items in (
            (f"ask {spelled}", "s", []),
            ("in the summary", f"met\n{spelled}.", []),
            ("in a list", "s", ["x", f"line\n{spelled}\n"]),
        ):
            ledger.save_checkpoint("/projects/atlas", task, summary, next_steps=items)
        ledger.save_checkpoint(f"/home/{spelled}", "in the path", "s")
        at = clock.now.timestamp()

        def put(number: int, **changes: object) -> str:
            contents = {
                "session_id": "s", "assumption_id": "a", "evidence_id": f"e{number}",
                "outcome": "supported", "observed_at": at, "expires_at": at + 9,
                "observation": {}, "provenance": {"producer": "k", "check_type": "c"},
            }  # fmt: skip
            return ledger.put_evidence("/projects/atlas", **(contents | changes)).id

        gone = [
            put(number, **changes)
            for number, changes in enumerate(
                [
                    {"session_id": f"with {spelled}"},
                    {"assumption_id": spelled},
                    {"evidence_id": f"{spelled}-1"},
                    {"observation": {"a": [{"b": f"line\n{spelled}"}]}},
                    {"observation": {f"{spelled}": 1}},
                    {"provenance": {"producer": spelled, "check_type": "c"}},
                    {"source_refs": [f"file:///{spelled}"]},
                ]
            )
        ]
        ledger.hide(gone[0], reason="a mistake")
        stays = put(9)
        assert memory.forget_entity(name).removed == {}
        result = memory.forget_entity(name, content_sweep=True)
        removed = result.removed
        assert (removed["session_checkpoint"], removed["check_observation"]) == (4, 7)
        # Of the memory that goes, of the observation, and the one that names them.
        assert removed["lifecycle_change"] == 3
        assert result.episodes_deleted == 2
        assert result.wiped
        content = every_byte(path)
        for trace in (spelled, json.dumps(spelled)[1:-1], name):
            assert trace.encode() not in content.replace(b"vaXylophonely", b""), trace
        assert (b"vaXylophonely" in content) == (key is None)
        assert ledger.checkpoints("/projects/atlas", limit=20) == [kept]
        assert [one.id for one in ledger.list_evidence("/projects/atlas")] == [stays]
        assert [len(ledger.lifecycle_of(uid)) for uid in reasons] == [0, 1]
        assert ledger.recent("/projects/atlas")[-1].content == "kept"
    assert memory.check() == []


def test_what_only_a_ledger_knows_is_wiped_as_well(memory, clock, path):
    """Nothing of the store's own goes here: the mark of the erasure is that of the text."""
    with Ledger(path, clock=clock) as ledger:
        ledger.save_checkpoint("/projects/atlas", "t", "with Xylophone")
    assert memory.forget_entity("xylophone", content_sweep=True).removed == {
        "session_checkpoint": 1
    }
    assert b"ylophone" not in every_byte(path)


def test_a_sweep_reaches_the_paths_of_facts(memory, path):
    """A fact is of its source's project, and stays so when the source is forgotten."""
    source = memory.remember("x", project="/Xylophone/atlas")
    other = memory.remember("y", project="/projects/atlas")
    fact = memory.assert_fact("sky", "is", "blue", source=source)
    memory.assert_fact("sea", "is", "blue", source=other)
    memory.forget(source)
    assert memory.forget_entity("xylophone", content_sweep=True).fact_ids == [fact]
    assert b"ylophone" not in every_byte(path)
    assert memory.check() == []


def test_an_erased_memory_takes_its_lists_and_its_history_along(memory, clock, path):
    uids = [
        memory.remember("x", source_path="/Xylophone/Quetzalcoatl/a.md"),
        memory.remember("y", project="/Xylophone", metadata={"k": 1}),
    ]
    listed = memory._store._connection
    with Ledger(path, clock=clock) as ledger:
        for uid in uids:
            ledger.set_status(uid, "Ornithology", reason="Hieronymus")
            ledger.restore(uid)
        for uid in uids:
            memory.forget(uid)
        with memory._store.reading():
            for table in ("project_memory", "lifecycle_change"):
                assert listed.execute(f"SELECT count(*) FROM {table}").get == 0
    assert memory.check() == []
    memory.close()
    content = every_byte(path)
    for trace in TRACES:
        assert trace.encode() not in content, trace
