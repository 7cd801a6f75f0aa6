"""Which questions are summed up together, and in which fold each is."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from engram.bench.judged.records import Record

__all__ = ["FOLDS", "GROUPS", "TYPE_MIX", "TYPE_WEIGHTED", "folds", "groups", "headline"]

FOLDS = 5

TYPE_MIX = {
    "single-session-user": 64,
    "multi-session": 121,
    "single-session-preference": 30,
    "temporal-reasoning": 127,
    "knowledge-update": 72,
    "single-session-assistant": 56,
}
"""Questions of each type in LongMemEval_S, those left out that nothing answers."""

TYPE_WEIGHTED = "type_weighted"
"""The group whose figures are the types' means, weighted as LongMemEval_S mixes them."""

_ALL, _WITH_ABSTENTION, _FLAGGED = "all", "all_with_abstention", "flagged"

GROUPS = frozenset({_ALL, _WITH_ABSTENTION, _FLAGGED, TYPE_WEIGHTED})
"""Names of groups that no type of question can have."""

_LOCOMO = "locomo"
_COUNTED, _COUNTED_KINDS = "1-4", frozenset("1234")
# A question's id begins with its conversation's and ends with its own, "conv-26:17".
_CONVERSATION = re.compile(r"(.*)[^0-9A-Za-z]", re.DOTALL)


def headline(data_set: str, records: Sequence[Record]) -> str:
    """Return the name of the group that stands for the set, as the header of the records has it."""
    counted = data_set == _LOCOMO and any(record.kind in _COUNTED_KINDS for record in records)
    return _COUNTED if counted else _ALL


def groups(data_set: str, records: Sequence[Record]) -> dict[str, NDArray[np.intp]]:
    """Return the rows of the records in each group that has any, and of all.

    Questions that nothing answers are in "all_with_abstention" alone, as LongMemEval leaves them
    out of its figures.

    Args:
        data_set: The set that the header of the records names.
        records: The records.
    """
    answerable = [not record.abstention for record in records]
    members: dict[str, Sequence[bool]] = {_ALL: answerable}
    if data_set == _LOCOMO:
        members[_COUNTED] = [record.kind in _COUNTED_KINDS for record in records]
    elif records[0].grades is None:
        if not all(answerable):
            members[_WITH_ABSTENTION] = [True] * len(records)
        members[_FLAGGED] = [
            bool(record.gold_turns) and not record.abstention for record in records
        ]
    for kind in sorted({record.kind for record in records} - {""}):
        members[kind] = [record.kind == kind and not record.abstention for record in records]
    rows = {name: np.flatnonzero(chosen) for name, chosen in members.items()}
    return {name: chosen for name, chosen in rows.items() if name == _ALL or len(chosen)}


def folds(data_set: str, records: Sequence[Record]) -> NDArray[np.intp]:
    """Return the fold of each record, 0 to 4.

    LoCoMo's conversations are kept whole and take turns in the order of their ids; elsewhere the
    digest of a question's id decides, whatever other questions there are.
    """
    if data_set != _LOCOMO:
        return np.array([_digest(record.question) % FOLDS for record in records], dtype=np.intp)
    conversations = [_conversation(record.question) for record in records]
    fold = {one: at % FOLDS for at, one in enumerate(sorted(set(conversations)))}
    return np.array([fold[one] for one in conversations], dtype=np.intp)


def _digest(question: str) -> int:
    return int.from_bytes(hashlib.sha256(question.encode()).digest()[:8], "big")


def _conversation(question: str) -> str:
    found = _CONVERSATION.match(question)
    return question if found is None else found[1]
