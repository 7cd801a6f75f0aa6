"""What the commands print: lines for people, one JSON object for programs, errors on stderr."""

from __future__ import annotations

import math
import re
import sys
from typing import TYPE_CHECKING

import click

from engram.errors import EngramError
from engram.models import FactResult, SearchResult
from engram.storage import fact_records

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from engram.models import Episode, Fact

__all__ = [
    "counted",
    "day",
    "episode_document",
    "fact_document",
    "line",
    "minute",
    "note",
    "on_terminal",
    "print_counts",
    "print_document",
    "print_results",
    "report_failure",
    "report_interrupt",
    "report_usage",
    "result_documents",
    "size_text",
    "statement",
    "warn",
]

# Stored text may come from anywhere: control characters would let it drive the reader's terminal.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_MIB = 1024 * 1024


def _visible(text: str) -> str:
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def line(text: str = "") -> None:
    """Print one line of a result; control characters other than tab and newline show as escapes."""
    click.echo(_visible(text))


def note(text: str) -> None:
    """Print one line beside the result, on stderr."""
    click.echo(_visible(text), err=True)


def on_terminal() -> bool:
    """Say whether somebody watches stderr, so that progress is worth showing."""
    return sys.stderr.isatty()


def minute(moment: datetime) -> str:
    """Return an event time, which the library keeps in UTC, as people read it."""
    # Not %Y: on Linux it leaves out the leading zeros of early years.
    return f"{moment.year:04d}-{moment:%m-%d %H:%M} UTC"


def day(moment: datetime) -> str:
    """Return the day of a time, in UTC."""
    return f"{moment.year:04d}-{moment:%m-%d}"


def size_text(size: int) -> str:
    """Return a number of bytes as people read it."""
    return f"{size / _MIB:.1f} MB" if size >= _MIB else f"{size // 1024} KB"


def counted(number: int, noun: str) -> str:
    """Return a number of things: "1 episode", "2 episodes"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def statement(fact: Fact) -> str:
    """Return what a fact says; its later lines are indented, so that none can pass for a fact."""
    text = fact_records.statement(fact.subject, fact.predicate, fact.object)
    return text.replace("\n", "\n       ")


def _encodable(value: object) -> object:
    """Return `value` without lone surrogates: an argument that was no UTF-8 text has some."""
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {key: _encodable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    return value


def _document(content: dict[str, object]) -> bytes:
    # Help and versions print without it: it is a third of their time.
    import msgspec  # noqa: PLC0415

    return msgspec.json.encode(_encodable(content))


def print_document(content: dict[str, object]) -> None:
    """Print the result of a command as one line of JSON, in UTF-8 whatever the terminal's charset.

    Times are ISO 8601 in UTC.
    """
    click.echo(_document(content))


def episode_document(episode: Episode) -> dict[str, object]:
    """Return an episode under the keys the JSON output promises."""
    return {
        "id": episode.id,
        "content": episode.content,
        "timestamp": episode.timestamp,
        "actors": episode.actors,
        "tags": episode.tags,
        "salience": episode.salience,
        "emotional_valence": episode.emotional_valence,
        "summary_of": episode.summary_of,
        "importance_score": episode.importance_score,
        "agent_id": episode.agent_id,
        "provenance": episode.provenance,
        "quarantined": episode.quarantined,
    }


def fact_document(fact: Fact) -> dict[str, object]:
    """Return a fact under the keys the JSON output promises."""
    return {
        "id": fact.id,
        "subject": fact.subject,
        "predicate": fact.predicate,
        "object": fact.object,
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to,
        "recorded_at": fact.recorded_at,
        "superseded_at": fact.superseded_at,
        "superseded_by": fact.superseded_by,
        "confidence": fact.confidence,
        "derived_from": fact.derived_from,
        "extracted_by": fact.extracted_by,
        "agent_id": fact.agent_id,
        "shared": fact.shared,
        "quarantined": fact.quarantined,
    }


def result_documents(results: Sequence[SearchResult | FactResult]) -> list[dict[str, object]]:
    """Return hits, best first, under the keys the JSON output promises."""
    return [
        {
            "rank": rank,
            "score": hit.score,
            "confidence": hit.confidence,
            # JSON has no infinity: such a text waits to be embedded.
            "distance": hit.distance if math.isfinite(hit.distance) else None,
            **_hit_document(hit),
        }
        for rank, hit in enumerate(results, 1)
    ]


def _hit_document(hit: SearchResult | FactResult) -> dict[str, object]:
    if isinstance(hit, SearchResult):
        return {"importance": hit.importance, "episode": episode_document(hit.episode)}
    return {
        "provenance": hit.provenance,
        "quarantined": hit.quarantined,
        "fact": fact_document(hit.fact),
    }


def print_counts(counts: Mapping[str, int]) -> None:
    """Print how many of each kind there are, one kind a line."""
    width = max(len(kind) for kind in counts) + 1
    for kind, number in counts.items():
        line(f"  {kind.replace('_', ' ') + ':':{width}} {number:6d}")


def print_results(results: Sequence[SearchResult | FactResult]) -> None:
    """Print hits for people, best first, a blank line after each."""
    for rank, hit in enumerate(results, 1):
        begin = f"  {rank}. [{hit.score:.3f}] "
        if isinstance(hit, FactResult):
            line(begin + statement(hit.fact))
            line(f"       fact, since {minute(hit.fact.valid_from)}  |  id: {hit.fact.id}")
        else:
            _print_episode(begin, hit.episode)
        line()
    if not results:
        line("  (no results)")


def _print_episode(begin: str, episode: Episode) -> None:
    # Later lines of a text are indented, so that none can pass for a hit of its own.
    content = episode.content.replace("\n", "\n       ")
    actors = f"actors: {', '.join(episode.actors)}  |  " if episode.actors else ""
    line(f"{begin}{content}")
    line(f"       {actors}{minute(episode.timestamp)}  |  id: {episode.id}")
    if episode.tags:
        line(f"       tags: {', '.join(episode.tags)}")


def _report(code: str, message: str, hint: str, *, as_json: bool) -> None:
    if as_json:
        error: dict[str, object] = {"code": code, "message": message, "hint": hint}
        click.echo(_document({"error": error}), err=True)
    else:
        note(f"error: {message} ({hint})" if hint else f"error: {message}")


def warn(code: str, message: str, hint: str) -> None:
    """Say on stderr what is risky, and go on; as a JSON line where the command prints JSON."""
    if click.get_current_context().params.get("as_json"):
        warning: dict[str, object] = {"code": code, "message": message, "hint": hint}
        click.echo(_document({"warning": warning}), err=True)
    else:
        note(f"warning: {message} ({hint})")


def report_failure(error: EngramError | OSError, *, as_json: bool) -> None:
    """Say on stderr what failed, and the way out when the error knows one."""
    if isinstance(error, EngramError):
        _report(error.code, error.message, error.hint, as_json=as_json)
        return
    reason = error.strerror or str(error)
    where = "" if error.filename is None else f"{error.filename}: "
    _report("os_error", f"{where}{reason}", "", as_json=as_json)


def report_usage(error: click.ClickException, *, as_json: bool) -> None:
    """Say on stderr what is wrong with the command line."""
    if as_json:
        _report("usage", error.format_message(), "run it with --help", as_json=True)
    else:
        error.show()


def report_interrupt(interrupt: click.Abort, *, as_json: bool) -> None:
    """Say on stderr that the user stopped the command, and how far it got if it told."""
    _report("interrupted", str(interrupt) or "interrupted", "", as_json=as_json)
