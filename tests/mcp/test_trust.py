"""The session's trust against a plain twin, over random conversations."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.errors import InvalidArgument
from engram.mcp.trust import Returned, Session, check_claim
from engram.provenance import PROVENANCES

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TRUSTED_LEAST_FIRST = ("external", "tool", "user")

memories = st.builds(
    Returned,
    st.text("ab", min_size=1, max_size=3),
    st.sampled_from([*PROVENANCES, "unknown", "from elsewhere"]),
    st.booleans(),
)
reads = st.tuples(st.just("recall"), st.lists(memories, max_size=3))
writes = st.tuples(st.sampled_from([None, "tool", "external"]), st.booleans())


class Twin:
    """The documented rules, each where it stands."""

    def __init__(self, ceiling: str, untrusted: bool) -> None:
        self.ceiling = ceiling
        self.cause = ("started",) if untrusted else None

    def write(self, given: str | None, read_untrusted: bool) -> tuple[str, bool]:
        if given is not None:
            self.cause = self.cause or ("labelled", given)
        if read_untrusted:
            self.cause = self.cause or ("read",)
        stored = min(self.ceiling, given or "user", key=TRUSTED_LEAST_FIRST.index)
        if self.cause and stored == "user":
            stored = "external"
        return stored, self.cause is not None

    def read(self, found: list[Returned]) -> None:
        for one in found:
            if one.provenance != "user" or one.quarantined:
                self.cause = self.cause or ("returned", one.memory_id)


@given(
    st.sampled_from(PROVENANCES),
    st.booleans(),
    st.lists(st.one_of(reads, writes), max_size=12),
)
def test_a_session_follows_the_documented_rules(ceiling, untrusted, steps):
    session = Session(ceiling, untrusted=untrusted, clock=lambda: NOW)
    twin = Twin(ceiling, untrusted)
    reasons = []
    for first, second in steps:
        if first == "recall":
            session.returning(first, second)
            twin.read(second)
        else:
            mark = session.writing("remember", first, read_untrusted=second)
            assert mark == twin.write(first, second)
            # Nothing that a caller says makes a write more trusted than its server.
            assert TRUSTED_LEAST_FIRST.index(mark.provenance) <= TRUSTED_LEAST_FIRST.index(ceiling)
        state = session.state()
        assert state["untrusted"] is (twin.cause is not None)
        if state["untrusted"]:
            reasons.append(state["reason"])
    assert len(set(reasons)) <= 1
    if twin.cause and twin.cause[0] == "returned":
        assert session.state()["cause"]["memory_id"] == twin.cause[1]
    if twin.cause and twin.cause[0] == "labelled":
        assert session.state()["cause"]["provenance"] == twin.cause[1]


def test_no_reason_quotes_what_a_store_calls_its_sources():
    session = Session(clock=lambda: NOW)
    session.returning("recall", [Returned("id", "canary-47", quarantined=False)])
    assert session.state() == {
        "untrusted": True,
        "reason": "recall returned a memory of provenance unknown",
        "cause": {
            "tool": "recall",
            "memory_id": "id",
            "provenance": "unknown",
            "quarantined": False,
            "at": "2026-01-01T00:00:00+00:00",
        },
    }


@pytest.mark.parametrize("given", ["user", "unknown", "", "User", " tool"])
def test_no_other_claim_is_taken(given):
    with pytest.raises(InvalidArgument):
        check_claim(given)


def test_there_is_one_first_cause_whoever_comes_first():
    session = Session("user", clock=lambda: NOW)
    start = threading.Barrier(8)

    def read(number: int) -> None:
        start.wait()
        session.returning("recall", [Returned(str(number), "tool", quarantined=False)])

    threads = [threading.Thread(target=read, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first = session.state()
    session.returning("why", [Returned("later", "external", quarantined=True)])
    assert session.state() == first
