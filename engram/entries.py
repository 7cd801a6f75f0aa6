"""What may be entered in a ledger: check observations and checkpoints, checked and normalised.

The same for what callers say and for what an import brings. Texts lose the space around them; their
lengths count it. They may hold any character but lone surrogates, inside of JSON too.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from engram import arguments
from engram.arguments import label
from engram.errors import InvalidArgument
from engram.storage.observations import Payload

OUTCOMES: Final = ("unknown", "supported", "contradicted")
LONGEST_LABEL: Final = 200
LONGEST_REFERENCE: Final = 256
MOST_REFERENCES: Final = 8
OBSERVATION_BYTES: Final = 4096
PROVENANCE_BYTES: Final = 2048
AHEAD: Final = 300.0
"""Seconds by which an observation may be ahead of the clock."""
LASTING: Final = 365 * 86_400.0
"""Seconds after which an observation expires at the latest."""

MEMORY: Final = "memory:"
"""What a reference begins with that is looked up; every other one is only kept."""

LONGEST_REASON: Final = 2000

LONGEST_TASK: Final = 200
LONGEST_SUMMARY: Final = 4000
LONGEST_ITEM: Final = 500
MOST_ITEMS: Final = 8

_NAMED = ("producer", "check_type")


def status(value: object, argument: str = "status") -> str:
    """Return the status of a memory, checked: at most `LONGEST_LABEL` characters.

    Raises:
        InvalidArgument, InvalidType: It is refused.
    """
    return label(value, argument, LONGEST_LABEL)


def reason(value: object, argument: str = "reason") -> str | None:
    """Return why something was done to a memory, checked: at most `LONGEST_REASON` characters.

    Raises:
        InvalidArgument, InvalidType: It is refused.
    """
    return None if value is None else label(value, argument, LONGEST_REASON)


class CheckpointTexts(NamedTuple):
    """What a checkpoint says."""

    task: str
    summary: str
    decisions: tuple[str, ...]
    next_steps: tuple[str, ...]
    blockers: tuple[str, ...]


def checkpoint(
    task: object,
    summary: object,
    decisions: object,
    next_steps: object,
    blockers: object,
    *,
    place: str = "",
) -> CheckpointTexts:
    """Return what a checkpoint says, checked in this order.

    Args:
        task: At most `LONGEST_TASK` characters.
        summary: At most `LONGEST_SUMMARY` characters.
        decisions: At most `MOST_ITEMS` texts of `LONGEST_ITEM` characters; None is no texts.
        next_steps: Likewise.
        blockers: Likewise.
        place: What comes before the names of these in messages.

    Raises:
        InvalidArgument, InvalidType: A value is refused.
    """
    return CheckpointTexts(
        checkpoint_task(task, place=place),
        label(summary, f"{place}summary", LONGEST_SUMMARY),
        _items(decisions, f"{place}decisions"),
        _items(next_steps, f"{place}next_steps"),
        _items(blockers, f"{place}blockers"),
    )


def checkpoint_task(task: object, *, place: str = "") -> str:
    """Return the task of a checkpoint, checked; see `checkpoint`."""
    return label(task, f"{place}task", LONGEST_TASK)


def _items(value: object, argument: str) -> tuple[str, ...]:
    given = arguments.names(value, argument)
    if len(given) > MOST_ITEMS:
        message = f"{argument} must have at most {MOST_ITEMS} items"
        raise InvalidArgument(message)
    return tuple(label(item, f"each of {argument}", LONGEST_ITEM) for item in given)


def observation(
    project: str,
    *,
    session_id: object,
    assumption_id: object,
    evidence_id: object,
    outcome: object,
    observed_at: object,
    expires_at: object,
    observation: object,
    provenance: object,
    source_refs: object,
    stored_at: float,
    place: str = "",
) -> Payload:
    """Return what was observed, checked in this order.

    Args:
        project: The canonical path of the project.
        session_id: At most `LONGEST_LABEL` characters.
        assumption_id: Likewise.
        evidence_id: Likewise.
        outcome: One of `OUTCOMES`.
        observed_at: Unix seconds, above 0 and at most `AHEAD` after `stored_at`.
        expires_at: Unix seconds, after that by at most `LASTING`.
        observation: JSON of at most `OBSERVATION_BYTES`, see `arguments.canonical_json`.
        provenance: JSON of at most `PROVENANCE_BYTES`; its `producer` and `check_type` are texts of
            at most `LONGEST_LABEL` characters.
        source_refs: At most `MOST_REFERENCES` texts of `LONGEST_REFERENCE` characters; None is no
            texts.
        stored_at: When it is stored, Unix seconds.
        place: What comes before the names of these in messages.

    Raises:
        InvalidArgument, InvalidType: A value is refused.
    """
    session = label(session_id, f"{place}session_id", LONGEST_LABEL)
    assumption = label(assumption_id, f"{place}assumption_id", LONGEST_LABEL)
    name = label(evidence_id, f"{place}evidence_id", LONGEST_LABEL)
    reported = arguments.text(outcome, f"{place}outcome")
    if reported not in OUTCOMES:
        message = f"{place}outcome must be one of {', '.join(OUTCOMES)}"
        raise InvalidArgument(message)
    return Payload(
        project,
        name,
        session,
        assumption,
        reported,
        *_times(observed_at, expires_at, stored_at + AHEAD, place),
        arguments.canonical_json(observation, f"{place}observation", OBSERVATION_BYTES),
        _provenance(provenance, f"{place}provenance"),
        _references(source_refs, f"{place}source_refs"),
    )


def _times(
    observed_at: object, expires_at: object, latest: float, place: str
) -> tuple[float, float]:
    observed = arguments.number(observed_at, f"{place}observed_at")
    if not 0 < observed <= latest:
        message = f"{place}observed_at must be above 0 and at most {AHEAD:g} s after now"
        raise InvalidArgument(message, "times are Unix seconds")
    expires = arguments.number(expires_at, f"{place}expires_at")
    if not observed < expires <= observed + LASTING:
        message = f"{place}expires_at must be after observed_at by at most {LASTING:g} s"
        raise InvalidArgument(message)
    return observed, expires


def _provenance(value: object, argument: str) -> str:
    canonical_text = arguments.canonical_json(value, argument, PROVENANCE_BYTES)
    given = json.loads(canonical_text)
    for name in _NAMED:
        given[name] = label(given.get(name), f"{argument}.{name}", LONGEST_LABEL)
    return arguments.canonical_json(given, argument, PROVENANCE_BYTES)


def _references(value: object, argument: str) -> str:
    given = arguments.names(value, argument)
    if len(given) > MOST_REFERENCES:
        message = f"{argument} must have at most {MOST_REFERENCES} items"
        raise InvalidArgument(message)
    references = {label(one, f"each of {argument}", LONGEST_REFERENCE) for one in given}
    if MEMORY in references:
        message = f"each of {argument} that begins with {MEMORY} must name a memory"
        raise InvalidArgument(message)
    return json.dumps(sorted(references), separators=(",", ":"))
