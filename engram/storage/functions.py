"""What SQL calls in Python: functions, an aggregate; and what its tokenizers make of texts."""

from __future__ import annotations

import json
from typing import Any, cast

import apsw

from engram.storage import uids
from engram.storage.folding import folded, mentions


def add_functions(connection: apsw.Connection) -> None:
    """Let a connection's SQL use its functions.

    They are `folded(text)`, `mentions(text, names)` with the folded names as a JSON array,
    `stored_id(text)` of a public id, and the aggregate `importance_block(place, importance)`.
    """
    connection.create_scalar_function("folded", _folded, 1, deterministic=True)
    connection.create_scalar_function("mentions", _mentions, 2, deterministic=True)
    connection.create_scalar_function("stored_id", _stored_id, 1, deterministic=True)
    connection.create_aggregate_function("importance_block", _block_of_rows, 2)


def _block_of_rows() -> Any:
    """Return the aggregate; an upgrade needs it, and most programs that open a store do not."""
    from engram.storage.importance import BlockOfRows  # noqa: PLC0415 - brings NumPy

    return BlockOfRows()


def _folded(*values: Any) -> str:
    """Return the folded form of the one value SQL passes."""
    return folded(values[0])


def _mentions(*values: Any) -> bool:
    """Return whether the text SQL passes contains one of the names."""
    text, names = values
    return mentions(text, json.loads(names))


def _stored_id(*values: Any) -> bytes | str | None:
    """Return the stored form of the public id SQL passes; None where that is no text."""
    [uid] = values
    return uids.to_stored(uid) if isinstance(uid, str) else None


def terms(tokenize: apsw.FTS5Tokenizer, utf8: bytes) -> list[str]:
    """Return the terms that a tokenizer makes of a text in UTF-8."""
    found = tokenize(
        utf8,
        apsw.FTS5_TOKENIZE_DOCUMENT,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    # Without offsets and synonyms APSW returns the bare terms.
    return cast("list[str]", found)
