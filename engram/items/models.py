"""What goes into an `ItemMemory` and comes out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class ItemPut:
    """An item to keep.

    Attributes:
        namespace: Labels, any text; none at all is a namespace too.
        key: Its name there, any text.
        value: A JSON object.
        texts: What is searched of it, each embedded by itself: a search takes the one that is
            nearest. None at all: no search by meaning finds the item.
        lifetime: Seconds that it lives after this, and after each read that prolongs it; None is
            for ever.
    """

    namespace: Sequence[str]
    key: str
    value: Mapping[str, object]
    texts: Sequence[str] = ()
    lifetime: float | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """A value under a namespace and a key.

    Attributes:
        namespace: Labels.
        key: Its name there.
        value: A JSON object.
        created_at: When it was first put, in UTC.
        updated_at: When it was last put, likewise.
        id: The id of its episode; each put makes a new one.
        score: The cosine of the query and the nearest of its texts; None where nothing was
            searched by meaning, or none of its texts is.
    """

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    id: str
    score: float | None = None
