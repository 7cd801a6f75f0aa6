"""The numbers of failures: those that requests can cause, each caused, and nothing quoted.

Start-up has its own: 6001 and 6002 in `test_settings`, 6003, 6012, 6016, 6017, 6020 and 6022 in
`test_methods_about`, `test_migrating` and there, 6006 with the tests of the listener. 1001 is here,
1000 and 2002 need a damaged disk or a language model, 2001 and 6018 to 6019 are with the methods
that cause them. Of the reference server's numbers these are never sent: 2000, 3000 and 5000; 1003,
1004; 2003 to 2007, for a text that cannot be embedded is kept; 3001 to 3003, for an index is made
anew; 4001 to 4003; 5001 to 5005; 6004, 6005, 6009 and 6021.
"""

from __future__ import annotations

import sqlite3

import pytest
from engram_server import DETERMINISTIC, RefusedError, record, texts
from hypothesis import example, given
from hypothesis import strategies as st

from engram import errors
from engram.server import failures
from engram.server.methods import METHODS, Import, Records, checked, converted
from engram.server.refusals import failure_of

MISSING = {
    "memory_store": "context",
    "memory_search": "query",
    "memory_judge": "memory_id",
    "memory_delete": "id",
    "memory_import": "version",
    "memory_train_delete": "id",
    "memory_consolidate_undo": "run_id",
}
IGNORING = {
    "memory_status",
    "memory_export",
    "memory_train_list",
    "memory_train_generate",
    "memory_reembed",
}


def test_an_unknown_method_is_named(shared):
    with pytest.raises(RefusedError) as refusal:
        shared.ask("memory_guess")
    assert refusal.value.message == "[6007] dispatch error: unknown method: memory_guess"
    for name in ("", "SECRET words", "x" * 1000, "MEMORY_STATUS "):
        with pytest.raises(RefusedError) as refusal:
            shared.ask(name)
        assert refusal.value.message == "[6007] dispatch error: unknown method"


@pytest.mark.parametrize("method", MISSING)
def test_a_missing_parameter_is_named(shared, method):
    for params in ({}, None, {"unknown": "SECRET"}):
        with pytest.raises(RefusedError) as refusal:
            shared.given(method, params)
        assert refusal.value.code == 6007
        assert refusal.value.message == (
            f"[6007] dispatch error: missing field `{MISSING[method]}`"
        )


@pytest.mark.parametrize("method", sorted(METHODS))
def test_parameters_are_an_object(shared, method):
    for params in ([], [1], "SECRET", 5, True):
        if method in IGNORING:
            if method != "memory_train_generate":
                assert shared.given(method, params) is not None
            continue
        with pytest.raises(RefusedError, match=r"^\[6007\] dispatch error: .*params") as refusal:
            shared.given(method, params)
        assert "SECRET" not in refusal.value.message


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("memory_store", {"context": "", "action": 5}),
        ("memory_store", texts(0) | {"result": None}),
        ("memory_store", texts(0) | {"project": ["SECRET"]}),
        ("memory_store", texts(0) | {"memory_type": {"SECRET": 1}}),
        ("memory_search", {"query": 5}),
        ("memory_search", {"query": "q", "limit": -1}),
        ("memory_search", {"query": "q", "limit": 1.5}),
        ("memory_search", {"query": "q", "limit": "SECRET"}),
        ("memory_search", {"query": "q", "limit": True}),
        ("memory_search", {"query": "q", "tags": "SECRET"}),
        ("memory_search", {"query": "q", "tags": [1]}),
        ("memory_search", {"query": "q", "mode": 1}),
        ("memory_judge", {"memory_id": 7}),
        ("memory_judge", {"memory_id": "m", "query": 7}),
        ("memory_config", {"action": 7}),
        ("memory_import", {"version": 1, "memories": "SECRET"}),
        ("memory_import", {"memories": [], "version": -1}),
        ("memory_import", {"version": 1, "memories": ["SECRET"]}),
        ("memory_consolidate_log", {"limit": -1}),
        ("memory_insights", {"action": "delete", "id": 5}),
        ("memory_migrate_apply", {"all": "SECRET"}),
    ],
)
def test_a_parameter_of_another_type_is_named(shared, method, params):
    name = list(params)[-1]
    with pytest.raises(RefusedError, match=rf"^\[6007\] dispatch error: .*{name}") as refusal:
        shared.given(method, params)
    assert "SECRET" not in refusal.value.message


def test_unknown_parameters_are_ignored(shared):
    assert shared.ask("memory_search", query="q", limit=0, nobody="knows")["results"] == []


SECRETS = st.sampled_from(["SECRET", "SECRET'`", "SECRET - at `$.id`"])
NAMES = st.one_of(
    SECRETS, st.sampled_from(["id", "query", "memories", "version", "context", "tags", "limit"])
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | SECRETS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)


def refusal_of(method: str, params: object) -> failures.Failure | None:
    try:
        found = checked(method, params)
        if isinstance(found, Import):
            converted({"memories": found.memories}, Records)
    except failures.Failure as failure:
        return failure
    return None


@given(method=st.sampled_from(sorted(METHODS)), params=ANYTHING)
@example(method="memory_delete", params={"id": {"SECRET": 1}})
def test_what_is_refused_is_not_quoted(method, params):
    failure = refusal_of(method, params)
    if failure is not None:
        assert failure.code == 6007
        assert "SECRET" not in failure.message
        assert len(failure.message) < 300


def test_a_locked_store(start):
    server = start(f"{DETERMINISTIC}[server]\nrequest_timeout_secs = 2\n")
    server.ask("memory_store", **texts(1))
    with sqlite3.connect(server.store) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RefusedError, match=r"^\[1001\] database unavailable: "):
            server.ask("memory_store", **texts(2))
        other.rollback()
    other.close()
    assert server.ask("memory_store", **texts(2))["indexed"]


def test_every_kind_of_error_has_a_number():
    expected = {
        errors.StoreFull: failures.STORAGE,
        errors.CorruptStore: failures.STORAGE,
        errors.CannotOpen: failures.STORAGE,
        errors.Busy: failures.DATABASE_UNAVAILABLE,
        errors.Closed: failures.DATABASE_UNAVAILABLE,
        errors.NotFound: failures.NOT_FOUND,
        errors.ModelMissing: failures.EMBEDDING_UNAVAILABLE,
        errors.ModelCorrupt: failures.EMBEDDING_UNAVAILABLE,
        errors.ModelMismatch: failures.MODEL_MISMATCH,
        errors.LLMCallError: failures.LLM_UNAVAILABLE,
        errors.LLMReplyError: failures.LLM_UNAVAILABLE,
        errors.InvalidArgument: failures.DISPATCH,
        errors.InvalidType: failures.DISPATCH,
        errors.ScopeError: failures.DISPATCH,
        errors.TrainerFailed: failures.TRAINER_FAILED,
        errors.TimedOut: failures.TRAINER_TIMEOUT,
        errors.TrainerReplyError: failures.TRAINER_OUTPUT,
    }
    for kind, code in expected.items():
        failure = failure_of(kind("it is so", "do that"))
        assert failure.code == code
        assert failure.message.startswith(f"[{code}] ")
        assert failure.message.endswith("it is so (do that)")


def test_the_catalogue_has_what_the_document_has(shared):
    listed = {
        "memory_store",
        "memory_search",
        "memory_judge",
        "memory_status",
        "memory_config",
        "memory_export",
        "memory_import",
        "memory_consolidate_preview",
        "memory_consolidate",
        "memory_consolidate_apply",
        "memory_train_generate",
        "memory_train_list",
        "memory_train_delete",
        "memory_delete",
        "memory_consolidate_log",
        "memory_insights",
        "memory_reembed",
        "memory_migrate_preview",
        "memory_migrate_apply",
    }
    assert listed <= set(METHODS)


def test_a_whole_import_may_be_large(server):
    memories = [record(f"m{number}", number % 27, project=str(number)) for number in range(500)]
    assert server.ask("memory_import", version=1, memories=memories)["imported"] == 500
    assert server.ask("memory_export")["count"] == 500
