"""Headings: who said something and when, as it is embedded and searched in front of the text.

What is said in a conversation seldom says itself who speaks, or when, and that is what is asked
for. The words "user" and "assistant" would only make all texts more alike.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from engram.times import DAY, MONTHS, from_micros

if TYPE_CHECKING:
    from collections.abc import Iterable

ASSISTANTS: Final = frozenset({"assistant", "Assistant", "ai", "AI", "bot", "model", "agent"})
"""Actors that are a language model, spelled as chats do; "Ai" and "Bot" may be somebody's name."""

_ROLES: Final = ASSISTANTS | {"user", "User", "human", "Human", "system", "System", "tool"}
MOST_NAMES: Final = 4
LONGEST_NAMES: Final = 100
"""Characters that the names may have together."""


def people(actors: Iterable[str]) -> list[str]:
    """Return the actors who have a name, and not a role such as "user"."""
    return [name for given in actors if (name := given.strip()) and name not in _ROLES]


def heading(actors: Iterable[str], occurred_at: int) -> str | None:
    """Return what stands in front of an episode's text, such as "Ada, Bob (8 May 2023):".

    Args:
        actors: Who took part; those that are a role, such as "user", are left out.
        occurred_at: When, in microseconds; the date is that of UTC.

    Returns:
        The heading; None where nobody has a name, or names are many or long.
    """
    said_by = people(actors)
    if not said_by or len(said_by) > MOST_NAMES or sum(map(len, said_by)) > LONGEST_NAMES:
        return None
    return f"{', '.join(said_by)} ({_date(occurred_at // DAY)}):"


def headed(before: str | None, content: str) -> str:
    """Return a text with its heading, if it has one: what is embedded and searched."""
    return content if before is None else f"{before} {content}"


@lru_cache(maxsize=64)
def _date(days: int) -> str:
    """Return the date so many days after 1970-01-01."""
    day = from_micros(days * DAY)
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"
