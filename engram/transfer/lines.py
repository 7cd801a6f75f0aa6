"""The lossless format: JSON Lines, one record a line, read and written in constant memory.

The first line is a header: what the file is, whose view it holds, the model of its vectors, and how
many records of each kind follow. Records are named after the tables they come from; times are
microseconds since 1970-01-01T00:00:00Z, vectors are float16, little-endian, in base64.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from engram import arguments
from engram.errors import InvalidArgument
from engram.models import StoredModel
from engram.paths import spelled
from engram.storage import KINDS, heading
from engram.times import from_micros
from engram.transfer.entries import (
    check_change,
    check_checkpoint,
    check_episode,
    check_experience,
    check_item,
    check_observation,
    check_step,
)
from engram.transfer.strict_json import items, members, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engram.storage import Column, Record, RecordReader

FORMAT: Final = "engram-lines"
VERSION: Final = 1

_LISTS = {"episode": ("actors", "tags", "summary_of"), "entity": ("aliases",)}
_PARTS = {
    "fact": ("sources", "fact_source"),
    "recall_log": ("results", "access_log"),
}
_TEXTS = {"succession": ("fact", "superseded_by"), "reflection": ("last_episode",)}
_ENTRIES = {
    "episode": check_episode,
    "experience": check_experience,
    "item": check_item,
    "consolidation_step": check_step,
    "session_checkpoint": check_checkpoint,
    "check_observation": check_observation,
    "lifecycle_change": check_change,
}
_PATHS = ("project_path", "source_path")
_TIME = re.compile(r"(.*_at|at|valid_from|valid_to|first_seen|last_seen)")
# What lies inside an episode's record and is a row of its own.
_ROWS = ("strength", "judgement")
# Those that no caller gives, but a clock; that one is of 1970 or later.
_CLOCK = ("forgotten_at", "invalidated_at", "updated_at", "stored_at")
_ANY_TIME = ("experience",)
"""Tables that have such times from callers."""
_NUMBERS = {
    "salience": (0.0, 1.0),
    "emotional_valence": (-1.0, 1.0),
    "confidence": (0.0, 1.0),
    "observed_at": (0.0, 1e12),
    "expires_at": (0.0, 1e12),
    "score": (-1e300, 1e300),
}
_LARGEST = 2**62
_UNIT = 0.01
"""How far the length of a stored vector may be from 1: float16 rounds it."""


def write(
    file: IO[str],
    reader: RecordReader,
    header: dict[str, Any],
    progress: Callable[[int, int], None] | None,
) -> dict[str, int]:
    """Write what a reader sees and return how many records of each kind there are.

    Args:
        file: Where to.
        reader: Reads inside the caller's transaction.
        header: What the first line says beside the counts.
        progress: Called now and then with the records written and all there are.
    """
    counts = {kind: reader.count(kind) for kind in KINDS}
    _write_line(file, {"format": FORMAT, "version": VERSION, **header, "records": counts})
    total, done = sum(counts.values()), 0
    for kind in KINDS:
        for record in reader.read(kind):
            _write_line(file, {"kind": kind, **record})
            done += 1
            if progress is not None and done % _EVERY == 0:
                progress(done, total)
    if progress is not None:
        progress(done, total)
    return counts


_EVERY = 500


def _write_line(file: IO[str], line: dict[str, Any]) -> None:
    file.write(json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n")


class LineFile:
    """An export to be read, as often as needed; every pass checks every value.

    Args:
        file: The export, opened for reading bytes.
        columns: The columns a table's records carry.

    Raises:
        InvalidArgument: The header is none of this format and version.
    """

    def __init__(self, file: IO[bytes], columns: Callable[[str], tuple[Column, ...]]) -> None:
        self._file = file
        self._columns = {
            table: columns(table)
            for table in (
                *(kind for kind in KINDS if kind != "succession"),
                "strength",
                "judgement",
                "fact_source",
                "access_log",
            )
        }
        header = self._header()
        self.model = _model(header.get("model"))
        counts = members(header.get("records"), "line 1.records")
        self._counts = {
            kind: arguments.integer(counts.get(kind, 0), f"line 1.records.{kind}", 0, _LARGEST)
            for kind in KINDS
        }
        self._windows = self._counts["reflection"]

    @property
    def total(self) -> int:
        """How many records there are."""
        return sum(self._counts.values())

    def _header(self) -> dict[str, Any]:
        self._file.seek(0)
        line = self._file.readline()
        try:
            header = members(parse(line, "line 1"), "line 1")
        except InvalidArgument:
            header = {}
        if header.get("format") != FORMAT or header.get("version") != VERSION:
            message = f"this is no {FORMAT} file of version {VERSION}"
            raise InvalidArgument(message, "export_lines() writes one")
        return header

    def read(self) -> Iterator[tuple[str, str, Record]]:
        """Yield each record with its kind and its place.

        Raises:
            InvalidArgument, InvalidType: A value is refused, or lines are missing.
        """
        self._file.seek(0)
        self._file.readline()
        found, order = dict.fromkeys(KINDS, 0), 0
        for number, line in enumerate(self._file, start=2):
            where = f"line {number}"
            record = members(parse(line, where), where)
            kind = record.pop("kind", None)
            if kind not in KINDS[order:]:
                message = f"{where}.kind must be one of {', '.join(KINDS)}, in this order"
                raise InvalidArgument(message)
            order = KINDS.index(kind)
            found[kind] += 1
            yield kind, where, self._checked(kind, record, where)
        if found != self._counts:
            message = "the file does not hold the records its first line counts"
            raise InvalidArgument(message, "it was cut off, or edited; export again")

    def _checked(self, kind: str, record: Record, where: str) -> Record:
        checked = self._plain(kind, record, where) if kind != "succession" else {}
        if kind in _ENTRIES:
            _ENTRIES[kind](checked, where)
        for name in _LISTS.get(kind, ()):
            checked[name] = _strings(record.pop(name, []), f"{where}.{name}")
        for name in _TEXTS.get(kind, ()):
            if kind == "succession" or name in record:
                checked[name] = arguments.text(record.pop(name, None), f"{where}.{name}")
        if kind in _PARTS:
            name, table = _PARTS[kind]
            parts = items(record.pop(name, []), f"{where}.{name}")
            checked[name] = [
                self._part(table, part, f"{where}.{name}[{at}]") for at, part in enumerate(parts)
            ]
        if kind == "episode":
            checked |= self._of_episode(record, where)
            _check_heading(checked, where)
        if kind == "fact" and "reflection" in record:
            window, place = record.pop("reflection"), f"{where}.reflection"
            checked["reflection"] = arguments.integer(window, place, 0, self._windows - 1)
        _nothing_left(record, where)
        return checked

    def _of_episode(self, record: Record, where: str) -> Record:
        """Take what lies inside an episode's record out of it and check it."""
        checked: Record = {
            name: self._part(name, record.pop(name), f"{where}.{name}")
            for name in _ROWS
            if name in record
        }
        if "vectors" in record:
            checked["vectors"] = self._vectors(record.pop("vectors"), f"{where}.vectors")
            if "fields" in record:
                fields, count = record.pop("fields"), len(checked["vectors"])
                checked["fields"] = _fields(fields, count, f"{where}.fields")
            if "heading" in record:
                checked["heading"] = record.pop("heading")
        return checked

    def _part(self, table: str, value: object, where: str) -> Record:
        part = dict(members(value, where))
        checked = self._plain(table, part, where)
        _nothing_left(part, where)
        return checked

    def _plain(self, table: str, record: Record, where: str) -> Record:
        """Take the columns of a table out of a record and check them."""
        checked = {}
        for column in self._columns[table]:
            value, place = record.pop(column.name, None), f"{where}.{column.name}"
            if value is not None:
                early = table in _ANY_TIME or column.name not in _CLOCK
                checked[column.name] = _value(column, value, place, early=early)
            elif column.required:
                message = f"{place} is missing"
                raise InvalidArgument(message)
        return checked

    def _vectors(self, value: object, where: str) -> list[bytes]:
        if self.model is None:
            message = f"{where}: the first line names no model"
            raise InvalidArgument(message)
        vectors = []
        for text in _strings(value, where):
            vector = _bytes(text, where)
            fits = len(vector) == 2 * self.model.dim
            numbers = np.frombuffer(vector, "<f2") if fits else np.array([np.nan])
            length = float(np.linalg.norm(numbers.astype(np.float64)))
            # A vector of zeros is what a text without meaning has.
            if not (abs(length - 1.0) <= _UNIT or length == 0.0):
                message = f"{where} must be unit vectors of {self.model.dim} float16 numbers"
                raise InvalidArgument(message)
            vectors.append(vector)
        if not vectors:
            message = f"{where} must not be empty"
            raise InvalidArgument(message)
        return vectors


def _check_heading(record: Record, where: str) -> None:
    """Refuse a heading that an episode cannot have: it would name whom nobody can erase."""
    made = heading(record["actors"], record["occurred_at"])
    if record.get("heading", made) != made:
        message = f"{where}.heading must be what this engram makes of actors and time"
        raise InvalidArgument(message, "take the vectors and the heading out")


def _nothing_left(record: Record, where: str) -> None:
    if record:
        message = f"{where} has a member this engram does not know"
        raise InvalidArgument(message, "upgrade engram-embedded, or take the member out")


def _fields(value: object, count: int, where: str) -> list[int]:
    """Return which part of an experience each of some vectors is of, -1: of none."""
    fields = [
        arguments.integer(one, f"{where}[{at}]", -1, 2)
        for at, one in enumerate(items(value, where))
    ]
    if len(fields) != count:
        message = f"{where} must have as many members as there are vectors"
        raise InvalidArgument(message)
    return fields


def _strings(value: object, where: str) -> list[str]:
    return [arguments.text(text, f"{where}[{at}]") for at, text in enumerate(items(value, where))]


def _bytes(text: str, where: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        message = f"{where} must be base64"
        raise InvalidArgument(message) from None


def _value(column: Column, value: object, where: str, *, early: bool) -> object:
    """Check the value of a column; `early` says that a time may be before 1970."""
    if column.holds_id or column.target == "agent" or column.type in ("TEXT", "ANY"):
        text = arguments.text(value, where)
        if column.name in _PATHS:
            return spelled(text, where)
        if column.name == "metadata":
            arguments.json_object(members(parse(text, where), where), where)
        return text
    if column.type == "BLOB":
        _bytes(arguments.text(value, where), where)
        return value
    if column.type == "REAL":
        return arguments.number(value, where, *_NUMBERS.get(column.name, (0.0, 1e9)))
    if not _TIME.fullmatch(column.name):
        return arguments.integer(value, where, 0, _LARGEST)
    first = -_LARGEST if early else 0
    micros = arguments.integer(value, where, first, _LARGEST)
    try:
        from_micros(micros)
    except OverflowError:
        message = f"{where} is outside the years 1 to 9999"
        raise InvalidArgument(message) from None
    return micros


def _model(value: object) -> StoredModel | None:
    if value is None:
        return None
    model = members(value, "line 1.model")
    name = model.get("name")
    return StoredModel(
        id=0,
        fingerprint=arguments.text(model.get("fingerprint"), "line 1.model.fingerprint"),
        name=None if name is None else arguments.text(name, "line 1.model.name"),
        dim=arguments.integer(model.get("dim"), "line 1.model.dim", 1, 2**20),
    )
