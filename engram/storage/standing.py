"""Which memories may be found now, as SQL: the one place that says so."""

from __future__ import annotations

from typing import Final

UNAVAILABLE: Final = "coalesce({0}.forgotten_at, {0}.invalidated_at, nullif({0}.status, 'active'))"
"""SQL over a memory that is NULL while it is available; a partial index has it word for word."""

# By key, so that indexes which cover all else still do: those who are not available are few.
WITHDRAWN: Final = f"SELECT u.id FROM episode AS u WHERE {UNAVAILABLE.format('u')} IS NOT NULL"  # noqa: S608
"""SQL for the keys of the episodes that are not available."""

TEXTLESS: Final = "SELECT n.episode FROM item AS n WHERE n.parts IS NULL"
"""SQL for the keys of the episodes of items of which no text is searched: there is none to show."""

HIDDEN: Final = f"({WITHDRAWN} UNION ALL {TEXTLESS})"
"""SQL for the keys of the episodes that no search and no list shows."""

AVAILABLE: Final = f"e.id NOT IN {HIDDEN}"
"""SQL over `episode AS e`: whether it has something to show, and nobody withdrew it."""

INELIGIBLE: Final = f"({UNAVAILABLE} IS NOT NULL OR {{0}}.quarantined)"
"""SQL over an episode: whether nothing may show it unasked."""

READABLE: Final = (
    "({0}.metadata IS NULL OR iif(json_valid({0}.metadata),"
    " json_type({0}.metadata) = 'object', FALSE))"
)
"""SQL over an episode at hand: whether its metadata are what they should be.

Of one where they are not, nobody knows whose it is.
"""

OPEN_FACT: Final = "({0}.valid_to IS NULL AND {0}.superseded_at IS NULL)"
"""SQL over a fact: whether neither its valid nor its known time ends, as supersession asks."""

ACTIVE_FACT: Final = (
    "({0}.superseded_at IS NULL AND NOT {0}.quarantined"  # noqa: S608
    " AND {0}.valid_from <= :now AND coalesce({0}.valid_to > :now, TRUE)"
    f" AND coalesce((SELECT NOT min({INELIGIBLE.format('e')}) FROM fact_source AS s"
    " CROSS JOIN episode AS e ON e.id = s.episode WHERE s.fact = {0}.id), TRUE))"
)
"""SQL over a fact: whether it holds at :now, and may be shown unasked.

One that came from episodes may be while one of them may.
"""
