"""A store with something of everything in it."""

from __future__ import annotations

from datetime import UTC, datetime

from engram import ObserveInput
from engram.ledger import Ledger


def fill(open_memory, clock, **options):
    """Two agents and nobody, facts with sources and successors, a graph, recalls, reflections."""
    ann, bob, nobody = (open_memory(name, **options) for name in ("ann", "bob", None))
    for memory in (ann, bob, nobody):
        clock.advance(hours=1)
        who = memory.agent_id or "nobody"
        ids = memory.observe_many(
            [
                ObserveInput(
                    f"{who} notes {n} 暗号",
                    actors=["Zoë", who],
                    tags=[f"t{n}"],
                    salience=0.1 * n,
                    emotional_valence=-0.1 * n,
                    timestamp=datetime(2020, 1, 1 + n, tzinfo=UTC),
                    provenance=("user", "tool", "external")[n % 3],
                    quarantined=n % 2 == 1,
                    metadata={"n": n},
                )
                for n in range(5)
            ]
        )
        memory.assert_fact("Zoë", "likes", f"tea of {who}", source=ids[0], shared=who != "bob")
        memory.assert_fact("Zoë", "lives in", f"a house of {who}", confidence=0.5, source="a book")
        memory.recall("notes", 3)
        store = memory._store
        with store.writing():
            run = store.reflections.add(
                f"run-{who}", memory.agent_id, started_at=1, finished_at=2, model="m", tokens=3,
                episodes=5, last=store.episodes.key(ids[3], None),
            )  # fmt: skip
            for n, uid in enumerate(ids[:3]):
                key = store.episodes.key(uid, None)
                store.graph.mention(key, store.graph.entity("Zoë", 5 + n), 0.5, memory.agent_id, 7)
            old, new = (
                store.facts.active("Zoë", predicate, None)[-1][0]
                for predicate in ("likes", "lives in")
            )
            store.facts.supersede(old, new, memory._now())
            store._connection.execute("UPDATE fact SET reflection = ? WHERE id = ?", (run, new))
    nobody.add_alias("Zoë", "Zoe")
    nobody.forget(nobody.observe("soon forgotten"))
    for memory in (ann, bob):
        memory._store.flush()
    return ann, bob, nobody


def fill_ledger(memory, clock, **options):
    """Memories of projects with a history, checkpoints and check observations."""
    ids = [
        memory.remember("ours", project="/projects/atlas"),
        memory.remember("a file's", source_path="/projects/atlas/notes/a.md"),
        memory.remember("hidden", project="/projects/atlas"),
    ]
    with Ledger(memory._store._connection.path, clock=clock, **options) as ledger:
        ledger.hide(ids[2], reason="a doubt of Zoë's")
        for _ in range(2):
            ledger.set_status(ids[1], "challenged", reason="twice at once")
        ledger.restore(ids[1])
        for task in ("b", "a", "nul\0"):
            ledger.save_checkpoint("/projects/atlas", task, "built", decisions=["ship", "é"])
        clock.advance(seconds=1)
        ledger.save_checkpoint("/projects/atlas", "b", "tested")
        at = clock.now.timestamp()
        for name, source in (("second", "memory:nowhere"), ("first", f"memory:{ids[0]}")):
            receipt = ledger.put_evidence(
                "/projects/atlas", session_id="s", assumption_id="a", evidence_id=name,
                outcome="supported", observed_at=at, expires_at=at + 0.1,
                observation={"ü": [1, 1.0, True]}, provenance={"producer": "k", "check_type": "c"},
                source_refs=[source, "command:x"],
            )  # fmt: skip
            ledger.invalidate(receipt.id, reason="a mistake")
        ledger.restore(receipt.id)
    return ids


def everything_kept(memory, clock, ids, **options):
    """What a ledger says of all that `fill_ledger` made."""
    with Ledger(memory._store._connection.path, clock=clock, **options) as ledger:
        return (
            ledger.recent("/projects/atlas"),
            ledger.recent("/projects/atlas/notes"),
            ledger.checkpoints("/projects/atlas", limit=20),
            ledger.list_evidence("/projects/atlas"),
            [ledger.lifecycle_of(uid) for uid in ids],
        )


def everything(memory) -> tuple[list, list]:
    episodes = memory.episodes(limit=1000, cross_agent=True).episodes
    return episodes, memory.timeline("Zoë")
