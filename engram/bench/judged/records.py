"""Records of a run: one JSON line with what was asked, what is right and what was answered."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from engram.bench.judged.groups import GROUPS
from engram.cli.failures import BadFileError
from engram.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Answer", "Record", "Run", "Times", "read", "read_times", "times_file"]

Answer = tuple[str, str, float, float | None]
"""An answer: the ids of its turn and session, its score, and its confidence where there is one."""

_Line = TypeVar("_Line")


class Record(msgspec.Struct):
    """A question with its evidence and the answers it got.

    Attributes:
        question: Its id.
        kind: Its type or category; "" where the set has none.
        abstention: Whether the haystack does not have what it asks for.
        turns: Turns in the haystack.
        sessions: Distinct sessions in the haystack.
        gold_turns: Ids of the turns that are evidence; of relevant documents in a collection.
        gold_sessions: Ids of the sessions that are evidence.
        answers: By the label of what answered, the best first.
        grades: In a collection of documents, how relevant those of `gold_turns` are.
    """

    question: str
    kind: str
    abstention: bool
    turns: int
    sessions: int
    gold_turns: list[str]
    gold_sessions: list[str]
    answers: dict[str, list[Answer]]
    grades: dict[str, float] | None = None


class Times(msgspec.Struct):
    """How long a question took.

    Attributes:
        question: Its id.
        ingest: Seconds to fill its store; None where it was asked of one that was there.
        seconds: Seconds of the recall, by label.
    """

    question: str
    seconds: dict[str, float]
    ingest: float | None = None


@dataclass(frozen=True)
class Run:
    """All records of a file.

    Attributes:
        header: What was measured: "set", "data_sha256", "model", "settings" and more.
        records: One for each question, in the order of the file.
        labels: What answered, the default first. Every record has answers of each.
    """

    header: dict[str, Any]
    records: list[Record]
    labels: list[str]

    @property
    def data_set(self) -> str:
        """The name of the set: "longmemeval", "locomo" or "ir"."""
        return str(self.header["set"])

    @property
    def of_documents(self) -> bool:
        """Whether documents were looked for, and not turns of conversations."""
        return self.records[0].grades is not None

    def check_label(self, label: str, argument: str) -> None:
        """Raise InvalidArgument, naming the argument, where no answers have this label."""
        if label not in self.labels:
            message = f"{argument} is no label of the records"
            raise InvalidArgument(message, f"give one of {', '.join(self.labels)}")


def read(file: Path) -> Run:
    """Read a file of records, which may be of a run that has not ended, or compressed (`.gz`).

    Raises:
        BadFileError: It has no header, no records, or a line that is no record.
        OSError: It cannot be read.
    """
    lines = _lines(file)
    header = _decoded(file, 1, lines[0] if lines else b"", dict[str, Any])
    if "set" not in header:
        message = f"{file} does not begin with the header of records"
        raise BadFileError(message)
    records = _all_decoded(file, lines[1:], Record, first_line=2)
    if not records or not records[0].answers:
        message = f"{file} holds no answers"
        raise BadFileError(message)
    labels = list(records[0].answers)
    seen: set[str] = set()
    for number, record in enumerate(records, 2):
        if record.question in seen or set(record.answers) != set(labels):
            message = f"{file}, line {number}: a second record of its question, or other labels"
            raise BadFileError(message)
        if record.kind in GROUPS:
            message = f"{file}, line {number}: a type of question has the name of a group"
            raise BadFileError(message)
        seen.add(record.question)
    return Run(header, records, sorted(labels, key=lambda label: label != "hybrid"))


def times_file(file: Path) -> Path:
    """Return where the times of the records in `file` are kept."""
    return file.with_name(file.name.removesuffix(".gz") + ".times.jsonl")


def read_times(file: Path) -> list[Times]:
    """Return the times beside a file of records; none where they were not kept.

    Raises:
        BadFileError: A line is no time.
        OSError: They cannot be read.
    """
    beside = times_file(file)
    return _all_decoded(beside, _lines(beside), Times) if beside.exists() else []


def _lines(file: Path) -> list[bytes]:
    content = file.read_bytes()
    if file.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError):
            message = f"{file} is not compressed with gzip, or cut short"
            raise BadFileError(message) from None
    # What follows the last newline was being written when the run was killed.
    return content.split(b"\n")[:-1]


def _all_decoded(
    file: Path, lines: Sequence[bytes], kind: type[_Line], first_line: int = 1
) -> list[_Line]:
    return [_decoded(file, number, line, kind) for number, line in enumerate(lines, first_line)]


def _decoded(file: Path, number: int, line: bytes, kind: type[_Line]) -> _Line:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = f"{file}, line {number}: not what records have there"
        raise BadFileError(message) from None
