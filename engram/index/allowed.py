"""Which rows of an index a filter allows, by the columns the indexes have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.storage import EpisodeFilter, Store


def allowed_rows(
    store: Store,
    allowed: EpisodeFilter,
    episodes: NDArray[np.int64],
    agents: NDArray[np.int64],
    times: NDArray[np.int64],
    live: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Return the live rows whose episodes a filter allows, bool[n].

    Agent and time are in the columns; any other condition is looked up in the store, inside the
    caller's transaction.

    Args:
        store: The store.
        allowed: The filter.
        episodes: int64[n], keys.
        agents: int64[n], -1 where an episode has none.
        times: int64[n], event times in microseconds.
        live: bool[n], False where the episode was forgotten.
    """
    if not allowed.only_scope_and_time:
        shown: NDArray[np.bool_] = live & np.isin(episodes, store.episodes.matching(allowed))
        return shown
    shown = live.copy()
    if allowed.agent is not None:
        agent = store.agent(allowed.agent)
        if agent is None:
            return np.zeros_like(live)
        shown &= agents == agent
    if allowed.since is not None:
        shown &= times >= allowed.since
    if allowed.until is not None:
        shown &= times <= allowed.until
    return shown
