"""Random webs of evidence against the definition: what rests on something broken is unknown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from stand_ins import Clock

from engram.ledger.evidence import CheckObservation, UnknownEvidence
from engram.storage.observations import Payload

PROJECT = "/projects/web"
NOW = Clock().now.timestamp()
NAMES = "abcdef"
IDS = {name: Payload(PROJECT, name, *[""] * 8).id for name in NAMES}
FATE = {
    "hidden": "source_forgotten",
    "invalid": "source_inactive",
    "stale": "source_stale",
    "missing": "source_missing",
    "altered": "source_unavailable",
}


def test_what_many_cite_is_read_once(ledger, memory):
    episode = memory.observe("cited by all")
    base = None
    for number in range(10):
        base = ledger.put_evidence(
            PROJECT,
            session_id="s",
            assumption_id="a",
            evidence_id=f"e{number}",
            outcome="supported",
            observed_at=NOW,
            expires_at=NOW + 5,
            observation={},
            provenance={"producer": "p", "check_type": "c"},
            source_refs=[f"memory:{episode}", *([f"memory:{base.id}"] if base else [])],
        )
    asked = []
    connection = ledger._opened()[0]._connection._connection
    connection.exec_trace = lambda _, sql, bindings: asked.append((sql, bindings)) or True
    assert all(one.state == "supported" for one in ledger.list_evidence(PROJECT))
    connection.exec_trace = None
    assert sum("FROM episode" in sql for sql, _ in asked) == 1
    # The list itself, the nine that are cited, and the memory as if it were one of them.
    single = [bindings for sql, bindings in asked if "FROM check_observation" in sql]
    assert len(single) == len(set(single)) == 11


nodes = st.fixed_dictionaries(
    {
        "outcome": st.sampled_from(["supported", "supported", "contradicted", "unknown"]),
        "fate": st.sampled_from(["live"] * 8 + list(FATE)),
        "cites": st.sets(st.sampled_from(NAMES), max_size=3),
    }
)


def reasons(web: dict[str, dict], name: str) -> set[str]:
    """All that breaks a record: each step from one to another that can be walked from it."""
    found: set[str] = set()
    reached, waiting = {name}, [name]
    while waiting:
        citing = web[waiting.pop()]
        for source in citing["cites"]:
            cited = web[source]
            if cited["fate"] != "live":
                found.add(FATE[cited["fate"]])
                continue
            if citing["outcome"] == "supported" and cited["outcome"] == "contradicted":
                found.add("source_inactive")
            elif citing["outcome"] == "supported" and cited["outcome"] == "unknown":
                found.add("source_unavailable")
            if source not in reached:
                reached.add(source)
                waiting.append(source)
    return found


@given(web=st.fixed_dictionaries(dict.fromkeys(NAMES, nodes)))
def test_any_web_is_judged_by_its_definition(ledger, damage, web):
    damage("DELETE FROM check_observation")
    for name, node in web.items():
        if node["fate"] != "missing":
            receipt = ledger.put_evidence(
                PROJECT,
                session_id="s",
                assumption_id="a",
                evidence_id=name,
                outcome=node["outcome"],
                observed_at=NOW - 10,
                expires_at=NOW - 5 if node["fate"] == "stale" else NOW + 5,
                observation={},
                provenance={"producer": "p", "check_type": "c"},
                source_refs=[f"memory:{IDS[source]}" for source in node["cites"]],
            )
            assert receipt.id == IDS[name]
    for name, node in web.items():
        if node["fate"] == "hidden":
            ledger.hide(IDS[name])
        elif node["fate"] == "invalid":
            ledger.invalidate(IDS[name])
        elif node["fate"] == "altered":
            damage("UPDATE check_observation SET session_id = 'x' WHERE id = ?", IDS[name])
    listed = {one.id: one for one in ledger.list_evidence(PROJECT)}
    for name, node in web.items():
        view = ledger.get_evidence(PROJECT, IDS[name])
        if node["fate"] in ("live", "stale"):
            expected = reasons(web, name)
            if expected:
                assert isinstance(view, UnknownEvidence)
                assert view.reason in expected
            else:
                assert isinstance(view, CheckObservation)
                assert view.state == ("stale" if node["fate"] == "stale" else node["outcome"])
            shown = listed.pop(IDS[name])
            assert (shown.id, shown.state, shown.eligible) == (view.id, view.state, view.eligible)
        else:
            assert not view.eligible
    assert listed == {}
