"""Listing: every episode on exactly one page, in the order of event time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from engram import ObserveInput
from engram.errors import InvalidArgument, InvalidType

START = datetime(2026, 1, 1, tzinfo=UTC)


def walk(memory, **options):
    cursor = None
    while True:
        page = memory.episodes(cursor=cursor, **options)
        yield from page.episodes
        cursor = page.cursor
        if cursor is None:
            return


@pytest.mark.parametrize("size", [1, 2, 7, 20, 1000])
@pytest.mark.parametrize("newest_first", [True, False])
def test_pages_hold_each_episode_once_in_order(memory, size, newest_first):
    # Many share a time, so the cursor has to tell them apart.
    memory.observe_many(
        [ObserveInput(str(n), timestamp=START + timedelta(days=n % 3)) for n in range(20)]
    )
    listed = list(walk(memory, limit=size, newest_first=newest_first))
    expected = sorted(range(20), key=lambda n: (n % 3, n), reverse=newest_first)
    assert [e.content for e in listed] == [str(n) for n in expected]


def test_writing_and_forgetting_between_pages_moves_nothing(memory):
    ids = [memory.observe(str(n), timestamp=START + timedelta(days=n)) for n in range(6)]
    first = memory.episodes(limit=3)
    memory.forget(first.episodes[-1].id)
    memory.observe("newer", timestamp=START + timedelta(days=50))
    second = memory.episodes(limit=3, cursor=first.cursor)
    assert [e.id for e in second.episodes] == ids[2::-1]
    assert second.cursor is None


def test_an_empty_store_has_one_empty_page(memory):
    page = memory.episodes()
    assert (page.episodes, page.cursor) == ([], None)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"limit": 0}, InvalidArgument),
        ({"limit": 1001}, InvalidArgument),
        ({"limit": "5"}, InvalidType),
        ({"cursor": "x"}, InvalidArgument),
        ({"cursor": ""}, InvalidArgument),
        ({"cursor": "1.2.3"}, InvalidArgument),
        ({"cursor": "9" * 5000 + ".1"}, InvalidArgument),
        ({"cursor": "99999999999999999999.1"}, InvalidArgument),
        ({"cursor": 5}, InvalidType),
        ({"newest_first": "yes"}, InvalidType),
        ({"colour": "red"}, InvalidType),
    ],
)
def test_bad_arguments_are_refused(memory, arguments, error):
    memory.observe("x")
    with pytest.raises(error):
        memory.episodes(**arguments)
