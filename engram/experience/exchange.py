"""Moving experiences between stores, in the form that clients exchange."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from engram import arguments
from engram.errors import InvalidArgument, InvalidType
from engram.experience.keeping import Keeping, experience_id, experience_text, origin_of
from engram.experience.results import Imported, ImportedExperience
from engram.experience.waiting import Waiting
from engram.paths import Resolver
from engram.storage import (
    INSIGHT_TYPES,
    MEMORY_TYPES,
    NewEpisode,
    NewExperience,
    wire_time,
)
from engram.times import to_micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.storage.triplets import Experience

_LARGEST_SCORE: Final = 3.4e38
"""What the exchange format's numbers, of 32 bits elsewhere, can be."""
_LARGEST_COUNT: Final = 2**62
_SOURCE_TYPE: Final = "import"
_TIMES: Final = ("created_at", "updated_at", "last_used_at")


class _Checked(NamedTuple):
    """An experience that may be written."""

    id: str
    experience: NewExperience
    episode: NewEpisode


class Exchange(Keeping, Waiting):
    """The calls that copy experiences out of a store and into it."""

    def export(self) -> list[Experience]:
        """Return all experiences in insertion order, insights and archived ones among them.

        Left out are those that were merged into others, deleted by consolidation, invalidated or
        quarantined. Where such a one is the parent of another, the one it was merged into takes its
        place, or nothing: an experience whose parent is not there counts as broken, and
        consolidation would delete it where it is imported. Nobody is kept waiting for long: what
        others change meanwhile is in it as it was before, or as it is after.
        """
        return self._listed(exported=True)

    def import_experiences(
        self,
        records: Sequence[ImportedExperience],
        *,
        embed: bool = True,
        skip_refused: bool = False,
        dry_run: bool = False,
    ) -> Imported:
        """Bring experiences in: all of them, or none.

        Everything is checked first. One whose id is taken, by any episode of the file, is skipped,
        whatever it says; so is one whose id came before. They may be in any order, and name parents
        and sources that are not there. Times come back as they were spelled; one that cannot be
        read counts as now.

        When the texts are committed they are embedded, in batches. What cannot be embedded is
        found by its words, until `embed_waiting` makes up for it.

        Args:
            records: The experiences.
            embed: Whether to embed them before this returns; False leaves all to `embed_waiting`.
            skip_refused: Whether to leave out records that are refused, and bring in the others.
            dry_run: Whether only to count.

        Raises:
            InvalidArgument, InvalidType: A record is refused, the message gives its position;
                nothing is written.
            ModelMismatch: The embedder is not the one whose vectors the store holds.
            Busy, StoreFull, Closed: The store cannot be written; nothing is.
        """
        if isinstance(records, (str, bytes, ImportedExperience)):
            message = f"records must be a list, not {type(records).__name__}"
            raise InvalidType(message)
        at_once = arguments.flag(embed, "embed")
        now = self._now()
        checked, accepted = _all_checked(
            records, now, skip=arguments.flag(skip_refused, "skip_refused")
        )
        refused = len(records) - accepted
        if arguments.flag(dry_run, "dry_run"):
            with self._store.reading():
                free = len(self._free(checked))
            return Imported(free, accepted - free, refused)
        usable = self._usable_embedder() is not None
        written = self._write(checked, now)
        self._emit("memory_written", ({"memory_id": uid, "kind": "episodic"} for uid in written))
        if written and usable and at_once:
            # What was imported is there, embedded or not.
            self._embed_all()
        return Imported(len(written), accepted - len(written), refused)

    def _free(self, checked: dict[str, _Checked]) -> list[_Checked]:
        """Return those experiences whose ids no episode of the file has, in a transaction."""
        key = self._store.episodes.key
        return [one for uid, one in checked.items() if key(uid, None) is None]

    def _write(self, checked: dict[str, _Checked], now: int) -> list[str]:
        """Write those experiences whose ids are free and return these."""
        with self._store.writing():
            new = self._free(checked)
            if not new:
                return []
            return self._store.add_episodes(
                [one.episode for one in new],
                None,
                None,
                model=None,
                agent=self._agent,
                now=now,
                experiences=[one.experience for one in new],
            )


def _all_checked(
    records: Sequence[object], now: int, *, skip: bool
) -> tuple[dict[str, _Checked], int]:
    """Check the records of an import, and return what may be written and how many passed.

    Raises:
        InvalidArgument, InvalidType: One is refused, and those are not to be skipped.
    """
    paths = Resolver()
    checked: dict[str, _Checked] = {}
    accepted = 0
    for at, record in enumerate(records):
        try:
            one = _checked(record, f"memories[{at}]", now, paths)
        except (InvalidArgument, InvalidType):
            if not skip:
                raise
        else:
            accepted += 1
            checked.setdefault(one.id, one)
    return checked, accepted


def _checked(record: object, where: str, now: int, paths: Resolver) -> _Checked:
    """Check a record of an import.

    Raises:
        InvalidArgument, InvalidType: It is refused.
    """
    if not isinstance(record, ImportedExperience):
        message = f"{where} must be an ImportedExperience, not {type(record).__name__}"
        raise InvalidType(message)
    uid = experience_id(record.id, f"{where}.id")
    times = {name: _text(getattr(record, name), f"{where}.{name}") for name in _TIMES}
    moments = {name: _moment(text, now) for name, text in times.items()}
    insight_type = record.insight_type
    experience = NewExperience(
        arguments.one_of(record.memory_type, MEMORY_TYPES, f"{where}.memory_type"),
        experience_text(record.context, f"{where}.context"),
        experience_text(record.action, f"{where}.action"),
        experience_text(record.result, f"{where}.result"),
        updated_at=_required(moments["updated_at"], f"{where}.updated_at"),
        project=_text(record.project, f"{where}.project"),
        parent=_text(record.parent_id, f"{where}.parent_id"),
        source_ids=_text(record.source_ids, f"{where}.source_ids"),
        insight_type=None
        if insight_type is None
        else arguments.one_of(insight_type, INSIGHT_TYPES, f"{where}.insight_type"),
        used_count=arguments.integer(record.used_count, f"{where}.used_count", 0, _LARGEST_COUNT),
        last_used_at=moments["last_used_at"],
        given_times=_spelled_otherwise(times, moments),
        score=arguments.number(record.score, f"{where}.score", -_LARGEST_SCORE, _LARGEST_SCORE),
    )
    episode = NewEpisode(
        experience.content,
        _required(moments["created_at"], f"{where}.created_at"),
        tags=arguments.names(record.tags, f"{where}.tags"),
        summary_of=experience.sources,
        origin=origin_of(experience.project, _SOURCE_TYPE, paths),
        uid=uid,
    )
    return _Checked(uid, experience, episode)


def _text(value: object, where: str) -> str | None:
    return None if value is None else arguments.text(value, where)


def _required(moment: int | None, where: str) -> int:
    if moment is None:
        message = f"{where} must be a str, not NoneType"
        raise InvalidType(message)
    return moment


def _moment(text: str | None, now: int) -> int | None:
    """Return the microseconds of a time in ISO 8601, now for any other text."""
    if text is None:
        return None
    try:
        return to_micros(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return now


def _spelled_otherwise(
    times: dict[str, str | None], moments: dict[str, int | None]
) -> dict[str, str] | None:
    """Return the times that this engine would not spell as they were given; None where none is."""
    return {
        name: text
        for name, text in times.items()
        if text is not None and (at := moments[name]) is not None and wire_time(at) != text
    } or None
