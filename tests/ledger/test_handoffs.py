"""Session checkpoints: one for each task of a project, replaced whole, read back trimmed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.errors import CannotOpen, InvalidArgument, InvalidType
from engram.ledger import Ledger
from engram.ledger.handoffs import Checkpoint
from engram.storage.projects import Projects

ATLAS = "/projects/atlas"


def test_what_is_saved_is_what_is_taken_up(ledger, open_ledger, clock):
    saved = ledger.save_checkpoint(
        ATLAS, " release ", "\tbuilt \n", decisions=[" ship "], next_steps=("compare hashes",)
    )
    now = clock.now.timestamp()
    assert saved == Checkpoint(
        ATLAS, "release", "built", ("ship",), ("compare hashes",), (), now, now
    )
    assert open_ledger().checkpoints(ATLAS) == [saved]
    assert ledger.checkpoints(ATLAS, task="release\n") == [saved]
    assert ledger.checkpoints(ATLAS, task="Release") == []
    assert ledger.checkpoints("/projects/atlas-b") == ledger.checkpoints("/projects") == []


def test_saving_replaces_all_of_it_and_keeps_when_it_began(ledger, clock):
    first = ledger.save_checkpoint(ATLAS, "t", "one", decisions=["d"], blockers=["b"])
    clock.advance(hours=1)
    second = ledger.save_checkpoint(ATLAS, "t ", "two", next_steps=None)
    assert second == replace(
        first, summary="two", decisions=(), blockers=(), updated_at=first.updated_at + 3600
    )
    assert ledger.checkpoints(ATLAS) == [second]


def test_the_latest_come_first_and_ties_by_task(ledger, clock):
    for task in ("b", "a", "c"):
        ledger.save_checkpoint(ATLAS, task, "x")
    clock.advance(seconds=1)
    for task in ("e", "d"):
        ledger.save_checkpoint(ATLAS, task, "x")
    assert [one.task for one in ledger.checkpoints(ATLAS)] == ["d", "e", "a"]
    assert [one.task for one in ledger.checkpoints(ATLAS, limit=20)] == ["d", "e", "a", "b", "c"]
    ledger.save_checkpoint(ATLAS, "c", "again")
    assert [one.task for one in ledger.checkpoints(ATLAS, limit=1)] == ["c"]


def test_a_context_is_of_one_moment(ledger, open_ledger, memory, monkeypatch):
    """What another session saves between the two reads belongs to the next context."""
    memory.remember("before", project=ATLAS)
    ledger.save_checkpoint(ATLAS, "t", "before")
    other, newest = open_ledger(), Projects.newest

    def interrupted(*arguments: object):
        found = newest(*arguments)
        other.save_checkpoint(ATLAS, "t", "after")
        return found

    monkeypatch.setattr(Projects, "newest", interrupted)
    first, second = ledger.context(ATLAS), ledger.context(ATLAS, task="t", limit=1)
    for context, summary in ((first, "before"), (second, "after")):
        assert context.project_path == ATLAS
        assert [one.content for one in context.memories] == ["before"]
        assert [one.summary for one in context.checkpoints] == [summary]


def test_clearing_takes_one_task_of_one_project(ledger):
    for project, task in ((ATLAS, "a"), (ATLAS, "b"), ("/other", "a")):
        ledger.save_checkpoint(project, task, "x")
    assert ledger.clear_checkpoint(ATLAS, " a ") is True
    assert ledger.clear_checkpoint(ATLAS, "a") is False
    assert [one.task for one in ledger.checkpoints(ATLAS)] == ["b"]
    assert [one.task for one in ledger.checkpoints("/other")] == ["a"]


def test_one_project_under_any_spelling(ledger, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    saved = ledger.save_checkpoint(f"{tmp_path}/link/./", "t", "x")
    assert saved.project_path == str((tmp_path / "real").resolve())
    assert ledger.checkpoints(f"{tmp_path}/real") == [saved]


def test_any_character_but_lone_surrogates_is_kept(ledger):
    text = "nul\0 in\u2028the 𝕄iddle é"
    saved = ledger.save_checkpoint(ATLAS, text, text, decisions=[text], blockers=["\0"])
    assert (saved.task, saved.summary, saved.decisions) == (text, text, (text,))
    assert ledger.checkpoints(ATLAS, task=text) == [saved]
    assert ledger.clear_checkpoint(ATLAS, "nul") is False


LONG = {"task": 200, "summary": 4000}


@pytest.mark.parametrize("argument", LONG)
@pytest.mark.parametrize("character", ["x", "é", "𝕄"])
def test_lengths_are_code_points_with_the_space_around(ledger, argument, character):
    given_texts = {"task": "t", "summary": "s"}
    most = LONG[argument]
    saved = ledger.save_checkpoint(ATLAS, **(given_texts | {argument: character * most}))
    assert ledger.checkpoints(ATLAS) == [saved]
    for bad in (character * (most + 1), " " + character * most, "", " \n", "\u2003"):
        with pytest.raises(InvalidArgument, match=argument):
            ledger.save_checkpoint(ATLAS, **(given_texts | {argument: bad}))
    assert ledger.checkpoints(ATLAS) == [saved]


@pytest.mark.parametrize("argument", ["decisions", "next_steps", "blockers"])
def test_lists_are_eight_texts_of_five_hundred(ledger, argument):
    saved = ledger.save_checkpoint(ATLAS, "t", "s", **{argument: ["x" * 500] * 8})
    assert getattr(ledger.checkpoints(ATLAS)[0], argument) == ("x" * 500,) * 8
    for bad in (["x"] * 9, ["x" * 501], [""], [" "], ["\ud800"]):
        with pytest.raises(InvalidArgument, match=argument):
            ledger.save_checkpoint(ATLAS, "t", "s", **{argument: bad})
    for bad in ("text", 5, [1], [None], [["x"]]):
        with pytest.raises(InvalidType, match=argument):
            ledger.save_checkpoint(ATLAS, "t", "s", **{argument: bad})
    assert ledger.checkpoints(ATLAS) == [saved]


WRONG = [
    (lambda one: one.save_checkpoint("p", "", "", decisions=5), "project"),
    (lambda one: one.save_checkpoint(ATLAS, "", "", decisions=5), "task"),
    (lambda one: one.save_checkpoint(ATLAS, "t", None, decisions=5), "summary"),
    (lambda one: one.save_checkpoint(ATLAS, "t", "s", decisions=5, next_steps=5), "decisions"),
    (lambda one: one.save_checkpoint(ATLAS, "t", "s", next_steps=5, blockers=5), "next_steps"),
    (lambda one: one.save_checkpoint(ATLAS, "t", "s", blockers=5), "blockers"),
    (lambda one: one.clear_checkpoint("p", ""), "project"),
    (lambda one: one.clear_checkpoint(ATLAS, 5), "task"),
    (lambda one: one.checkpoints("p", task=""), "project"),
    (lambda one: one.checkpoints(ATLAS, task="", limit=0), "task"),
    (lambda one: one.checkpoints(ATLAS, limit=0), "limit"),
    (lambda one: one.checkpoints(ATLAS, limit=21), "limit"),
    (lambda one: one.checkpoints(ATLAS, limit=True), "limit"),
    (lambda one: one.checkpoints(ATLAS, limit=3.0), "limit"),
]


@pytest.mark.parametrize(("call", "argument"), WRONG)
def test_arguments_are_checked_in_order_and_before_the_store(tmp_path, call, argument):
    """A mistake of the caller's never looks like an outage."""
    absent = Ledger(tmp_path / "absent.engram")
    with pytest.raises((InvalidArgument, InvalidType), match=argument):
        call(absent)
    assert list(tmp_path.iterdir()) == []


def test_without_a_store_nothing_is_made(tmp_path):
    absent = Ledger(tmp_path / "absent.engram")
    for call in (
        lambda: absent.save_checkpoint(ATLAS, "t", "s"),
        lambda: absent.clear_checkpoint(ATLAS, "t"),
        lambda: absent.checkpoints(ATLAS),
    ):
        with pytest.raises(CannotOpen):
            call()
    assert list(tmp_path.iterdir()) == []


BAD_ROWS = [
    ("task", "x" * 201),
    ("task", " "),
    ("summary", "x" * 4001),
    ("summary", ""),
    ("decisions", '["' + "x" * 501 + '"]'),
    ("next_steps", "[1]"),
    ("blockers", "[" + ",".join(['"x"'] * 9) + "]"),
    ("blockers", "{}"),
    ("blockers", "["),
    ("blockers", '["\\ud800"]'),
    ("task", b"\xff"),
    ("summary", b"\xffA"),
    ("decisions", b'["\xff"]'),
]


@pytest.mark.parametrize(("column", "value"), BAD_ROWS)
def test_a_bad_row_takes_no_place_among_the_three(ledger, clock, damage, column, value):
    tasks = ["a", "b", "c", "d"]
    for task in tasks:
        ledger.save_checkpoint(ATLAS, task, "x")
    clock.advance(seconds=1)
    for number in range(3):
        task = f"bad{number}"
        ledger.save_checkpoint(ATLAS, task, "x")
        # Keys differ, so that three of them can be as bad.
        bad = value + value[:1] * number if column == "task" else value
        damage(
            f"UPDATE session_checkpoint SET {column} = CAST(? AS TEXT) WHERE task = ?", bad, task
        )
    assert [one.task for one in ledger.checkpoints(ATLAS)] == ["a", "b", "c"]
    if column != "task":
        assert ledger.checkpoints(ATLAS, task="bad0") == []
        assert ledger.save_checkpoint(ATLAS, "bad0", "good").summary == "good"


def test_other_namespaces_are_other_checkpoints(ledger, damage):
    mine = ledger.save_checkpoint(ATLAS, "t", "mine")
    damage(
        "INSERT INTO session_checkpoint SELECT 'codex', project_path, task, 'theirs', decisions,"
        " next_steps, blockers, created_at, updated_at FROM session_checkpoint",
    )
    assert ledger.checkpoints(ATLAS) == ledger.checkpoints(ATLAS, task="t") == [mine]
    assert ledger.clear_checkpoint(ATLAS, "t")
    assert damage("SELECT summary FROM session_checkpoint") == [("theirs",)]


def test_reads_go_along_an_index(ledger, plans):
    [newest] = plans(lambda: ledger.checkpoints(ATLAS))
    assert "SEARCH" in newest
    assert "session_checkpoint_by_time (namespace=? AND project_path=?)" in newest
    [one] = plans(lambda: ledger.checkpoints(ATLAS, task="t"))
    assert "SEARCH" in one
    assert "(namespace=? AND project_path=? AND task=?)" in one


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["save", "save", "save", "clear", "tick"]),
            st.sampled_from(["/a", "/a/b", "/a-b"]),
            st.sampled_from(["t", " t", "T", "tt", "ü", "t\0"]),
            st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5),
        ),
        max_size=25,
    )
)
def test_any_history_is_that_of_a_dictionary(ledger, clock, steps):
    for project in ("/a", "/a/b", "/a-b"):
        for old in ledger.checkpoints(project, limit=20):
            ledger.clear_checkpoint(project, old.task)
    twin: dict[tuple[str, str], tuple[str, float, float]] = {}
    for verb, project, task, text in steps:
        now, key = clock.now.timestamp(), (project, task.strip())
        if verb == "tick":
            clock.advance(seconds=1)
        elif verb == "clear":
            assert ledger.clear_checkpoint(project, task) is (twin.pop(key, None) is not None)
        elif text.strip():
            ledger.save_checkpoint(project, task, text, decisions=[text])
            twin[key] = (text.strip(), twin.get(key, (0, now))[1], now)
    for project in ("/a", "/a/b", "/a-b"):
        mine = [(task, *rest) for (owner, task), rest in twin.items() if owner == project]
        expected = sorted(mine, key=lambda one: (-one[3], one[0].encode()))
        found = ledger.checkpoints(project, limit=20)
        assert [(one.task, one.summary, one.created_at, one.updated_at) for one in found] == (
            expected
        )
        assert all(one.decisions == (one.summary,) for one in found)
