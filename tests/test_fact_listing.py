"""Listing facts page by page: every visible one once, in the order they were recorded."""

from __future__ import annotations

import pytest

from engram.errors import InvalidArgument, InvalidType


def test_every_page_in_order(memory, clock):
    # Recorded in this order, holding from ever earlier on.
    years = [clock().replace(year=2025 - n) for n in range(25)]
    made = [memory.assert_fact("Ana", f"p{at}", "x", valid_from=at) for at in years]
    found, cursor = [], None
    while True:
        page = memory.facts(limit=10, cursor=cursor)
        found += [fact.id for fact in page.facts]
        if (cursor := page.cursor) is None:
            break
    assert found == made
    assert memory.facts(limit=25).cursor is None


def test_closed_facts_only_when_asked_for(memory, clock):
    memory.assert_fact("Ana", "lived in", "Kos", valid_to=clock().replace(year=2030))
    memory.assert_fact("Ana", "lives in", "Rhodes")
    assert [fact.object for fact in memory.facts().facts] == ["Rhodes"]
    assert [fact.object for fact in memory.facts(active_only=False).facts] == ["Kos", "Rhodes"]


def test_private_facts_are_their_agents(open_memory):
    ana, ben = open_memory("ana"), open_memory("ben")
    ana.assert_fact("x", "is", "shared")
    ana.assert_fact("x", "is", "private", shared=False)
    assert [fact.object for fact in ben.facts().facts] == ["shared"]
    assert [fact.object for fact in ana.facts().facts] == ["shared", "private"]
    assert len(open_memory().facts().facts) == 2


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"limit": 0}, InvalidArgument),
        ({"limit": 1001}, InvalidArgument),
        ({"cursor": "x"}, InvalidArgument),
        ({"cursor": "-1"}, InvalidArgument),
        ({"cursor": "9" * 30}, InvalidArgument),
        ({"cursor": 5}, InvalidType),
        ({"active_only": "yes"}, InvalidType),
    ],
)
def test_arguments(memory, options, error):
    with pytest.raises(error):
        memory.facts(**options)
