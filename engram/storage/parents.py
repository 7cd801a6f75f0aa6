"""What an exported experience follows from: a parent that is in the export too, or one unknown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engram.storage import uids
from engram.storage.experiences import LISTED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engram.storage.connection import Connection

# Not a child's own id, where its parent was merged into it. UNION ends a circle.
_PARENTS = (
    "WITH RECURSIVE chain (child, uid) AS ("  # noqa: S608
    " SELECT x.episode, x.parent FROM json_each(:episodes) AS k"
    " CROSS JOIN experience AS x ON x.episode = k.value WHERE x.parent IS NOT NULL"
    " UNION SELECT c.child, m.superseded_by FROM chain AS c"
    " CROSS JOIN episode AS p ON p.uid = c.uid CROSS JOIN experience AS m ON m.episode = p.id"
    " WHERE m.superseded_by IS NOT NULL)"
    " SELECT c.child, max(iif(x.superseded_by IS NULL AND x.episode <> c.child"
    f" AND {LISTED}, e.uid, NULL))"
    " FROM chain AS c CROSS JOIN episode AS e ON e.uid = c.uid"
    " LEFT JOIN experience AS x ON x.episode = e.id GROUP BY c.child"
)


class Parents:
    """The parents of a store's experiences; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def exported(self, episodes: Iterable[int], agent: str | None) -> dict[int, str | None]:
        """Return what takes the place of experiences' parents in an agent's export, by their keys.

        Of a parent that was merged it is the one that survived in the end; None where that is not
        exported. An experience without a parent, or whose parent is not in the store, is left out.
        """
        rows = self._connection.execute(
            _PARENTS, {"episodes": json.dumps(list(episodes)), "agent": agent}
        )
        return {child: None if uid is None else uids.from_stored(uid) for child, uid in rows}
