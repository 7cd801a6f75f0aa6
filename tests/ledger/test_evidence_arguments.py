"""What a check observation may say, and what is refused before the store is looked at."""

from __future__ import annotations

import math

import pytest
from evidence import ATLAS, NOW, YEAR, well_formed
from hypothesis import given
from hypothesis import strategies as st
from stand_ins import Clock

from engram.errors import CannotOpen, InvalidArgument, InvalidType
from engram.ledger import Ledger

NAMED = {"producer": "x", "check_type": "y"}
LIMITS = [
    ("session_id", "x" * 200, "x" * 201),
    ("assumption_id", "𝕄" * 200, " " + "x" * 200),
    ("evidence_id", "x", "\n"),
    ("outcome", "unknown", "Supported"),
    ("outcome", "contradicted", " supported"),
    ("observed_at", NOW + 300, NOW + 300.001),
    ("observed_at", 1e-3, 0),
    ("observed_at", NOW, -1.0),
    ("observed_at", NOW, math.nan),
    ("observed_at", NOW, 10**400),
    ("expires_at", NOW + YEAR, NOW + YEAR + 0.001),
    ("expires_at", NOW + 0.001, NOW),
    ("expires_at", NOW + 1, math.inf),
    ("expires_at", NOW + 1, 10**400),
    ("observation", {"a": "x" * 4088}, {"a": "x" * 4089}),
    ("observation", {"a": "é" * 681}, {"a": "é" * 682}),
    ("observation", {"a": "𝕄" * 340}, {"a": "𝕄" * 341}),
    ("observation", {}, {"a": math.inf}),
    ("observation", {}, {"a": "\ud800"}),
    ("observation", {}, {"\udfff": 1}),
    ("observation", {}, {"a": 10**400}),
    ("provenance", NAMED | {"check_type": "y" * 200}, NAMED | {"producer": " "}),
    ("provenance", NAMED | {"a": "z" * 2008}, NAMED | {"a": "z" * 2009}),
    ("provenance", NAMED, NAMED | {"check_type": "y" * 201}),
    ("source_refs", [f"r{n}" for n in range(8)], ["r"] * 9),
    ("source_refs", ["x" * 256], ["x" * 257]),
    ("source_refs", ["memory:x"], ["memory:"]),
    ("source_refs", ["Memory:"], [" memory: "]),
    ("source_refs", ["x"], ["x", ""]),
    ("source_refs", ["x"], ["\ud800"]),
]  # fmt: skip


@pytest.mark.parametrize(("argument", "good", "bad"), LIMITS)
def test_limits_are_inclusive(ledger, put, argument, good, bad):
    changes = {"observed_at": 1e-3, "expires_at": 1} if good == 1e-3 else {}
    assert put(**(changes | {argument: good})).view.id is not None
    before = ledger.list_evidence(ATLAS)
    with pytest.raises(InvalidArgument, match=argument):
        put(**{"evidence_id": "other", argument: bad})
    assert ledger.list_evidence(ATLAS) == before


WRONG_TYPES = [
    ("session_id", 5),
    ("assumption_id", None),
    ("evidence_id", b"x"),
    ("outcome", True),
    ("observed_at", True),
    ("observed_at", "1"),
    ("expires_at", None),
    ("observation", [1]),
    ("observation", None),
    ("observation", {1: 2}),
    ("observation", {"a": {1, 2}}),
    ("provenance", "kiln"),
    ("provenance", {"producer": "x"}),
    ("provenance", {"producer": "x", "check_type": 5}),
    ("source_refs", "memory:x"),
    ("source_refs", [5]),
    ("source_refs", 5),
]


@pytest.mark.parametrize(("argument", "bad"), WRONG_TYPES)
def test_types_are_not_coerced(ledger, put, argument, bad):
    with pytest.raises(InvalidType, match=argument):
        put(**{argument: bad})
    assert ledger.list_evidence(ATLAS) == []


def test_nesting_has_a_limit(put):
    deep: object = 1
    for _ in range(200):
        deep = [deep]
    with pytest.raises(InvalidArgument, match="observation"):
        put(observation={"a": deep})


ORDER = [*well_formed(), "source_refs"]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_arguments_are_checked_in_order_and_before_the_store(tmp_path, first):
    absent = Ledger(tmp_path / "absent.engram", clock=Clock())
    with pytest.raises(InvalidType, match=ORDER[first]):
        absent.put_evidence(ATLAS, **(well_formed() | dict.fromkeys(ORDER[first:], 5.5j)))
    with pytest.raises(InvalidArgument, match="project"):
        absent.put_evidence("p", **dict.fromkeys(ORDER, 5.5j))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda one: one.get_evidence("p", ""), "project"),
        (lambda one: one.get_evidence(ATLAS, "x" * 201), "evidence"),
        (lambda one: one.get_evidence(ATLAS, 5), "evidence"),
        (lambda one: one.list_evidence("", session_id="", limit=0), "project"),
        (lambda one: one.list_evidence(ATLAS, session_id="", assumption_id=5), "session_id"),
        (lambda one: one.list_evidence(ATLAS, assumption_id=5, limit=0), "assumption_id"),
        (lambda one: one.list_evidence(ATLAS, limit=51), "limit"),
        (lambda one: one.list_evidence(ATLAS, limit=True), "limit"),
        (lambda one: one.list_evidence(ATLAS, limit="3"), "limit"),
    ],
)
def test_reads_check_before_the_store_too(tmp_path, call, argument):
    absent = Ledger(tmp_path / "absent.engram")
    with pytest.raises((InvalidArgument, InvalidType), match=argument):
        call(absent)
    for good in (
        lambda: absent.get_evidence(ATLAS, "x"),
        lambda: absent.list_evidence(ATLAS),
        lambda: absent.put_evidence(ATLAS, **well_formed(observed_at=1, expires_at=2)),
    ):
        with pytest.raises(CannotOpen):
            good()
    assert list(tmp_path.iterdir()) == []


def test_messages_never_quote(put):
    secret = "Xylophone"
    for argument, bad in (
        ("outcome", secret),
        ("session_id", secret * 100),
        ("observation", {secret: {1}}),
        ("provenance", {secret: 1}),
        ("source_refs", [secret * 100]),
    ):
        with pytest.raises((InvalidArgument, InvalidType)) as caught:
            put(**{argument: bad})
        assert secret not in str(caught.value)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)
documents = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), inner,
                          max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)  # fmt: skip


def exact(value: object) -> object:
    """A value that is equal to another one only where both are the same JSON."""
    if isinstance(value, dict):
        return {key: exact(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [exact(inner) for inner in value]
    return (type(value), repr(value))


@given(first=documents, second=documents)
def test_any_json_comes_back_and_only_the_same_is_a_repetition(ledger, put, damage, first, second):
    damage("DELETE FROM check_observation")
    receipt = put(observation=first)
    assert exact(receipt.view.observation) == exact(first)
    backwards = dict(reversed(first.items()))
    assert put(observation=backwards) == receipt
    if exact(first) == exact(second):
        assert put(observation=second) == receipt
    else:
        with pytest.raises(InvalidArgument):
            put(observation=second)
    assert exact(ledger.get_evidence(ATLAS, receipt.id).observation) == exact(first)
