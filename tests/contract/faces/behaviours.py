"""What faces are held to: each behaviour has an id, a sentence, and one test for all faces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from contract.faces.registry import FACES

BEHAVIOURS = {
    "remember.kept": "What is remembered is found again, letter for letter.",
    "remember.tags": "Tags are kept in their order.",
    "remember.actors": "Who took part is kept in its order.",
    "remember.answers": "What may answer a question is noted for the ranking.",
    "remember.time": "The time of an event is kept to the microsecond, whatever its offset.",
    "remember.twice": "The same text twice is two memories.",
    "find.words": "A memory is found by a word of it, before those that lack the word.",
    "find.meaning": "A memory is found by its meaning, with no word in common.",
    "find.count": "No more are found than were asked for.",
    "find.operators": "What would be an operator of a search engine is a word like others.",
    "find.project": "The memories of a project are listed, and of no other.",
    "get.id": "A memory is read by its id.",
    "get.unknown": "An id of nothing is refused.",
    "filter.tags": "Only what has all the tags is found.",
    "filter.actors": "Only what has all the actors is found.",
    "filter.time": "Only what happened between two times is found, both included.",
    "filter.provenance": "Only what is from one source is found.",
    "filter.value": "Only what has the members of a filter is found.",
    "filter.quarantine": "What is quarantined is left out when that is wanted.",
    "time.as_of": "As of a time, nothing later is found, and what happened then is.",
    "scope.find": "Another agent's memory is not found, not even by its very words.",
    "scope.get": "Another agent's memory is not read by its id.",
    "scope.erase": "Another agent's memory is not erased.",
    "trust.told": "Where a memory is from is told, whatever face kept it.",
    "trust.marked": "A memory that is quarantined is told as such, whatever face kept it.",
    "trust.declared": "The source that is declared is kept.",
    "trust.unlike": "A source that does not exist is refused, and nothing is written.",
    "trust.quarantine": "Who had read untrusted words says so, and it is kept.",
    "trust.lowered": "Nobody can claim more trust than the face was given.",
    "trust.clean": "Who reads nothing but the user's own words quarantines nothing.",
    "trust.session": "After reading anything else, all that is written is quarantined.",
    "erase.gone": "What is erased, no face finds or reads any more.",
    "erase.name": "All that names somebody is erased, whatever face kept it.",
    "erase.bytes": "When the face is closed, what it erased is in no file of the store.",
    "erase.unknown": "To erase what is not there, or not there any more, is refused.",
    "hide.restored": "What is hidden, no face finds; restored, all find it again.",
    "unicode.kept": "Text of any script, and any sign, comes back as it was.",
    "unicode.words": "Words of any script are found.",
    "unicode.halves": "Half a surrogate pair is refused, and nothing is written.",
    "unicode.question": "Half a surrogate pair in a question does no harm.",
    "limits.empty": "An empty text is kept.",
    "limits.long": "A long text is kept whole, and found by its last word.",
    "limits.beyond": "A text that is too long is refused, and nothing is written.",
    "limits.blank": "A blank question is answered.",
    "limits.count": "Less than one, or more than may be, cannot be asked for.",
    "limits.types": "Values of another type are refused, and nothing is written.",
    "pairs.written": "What it keeps, every other face finds.",
    "pairs.found": "It finds what every other face keeps.",
    "many.writers": "With all faces writing at once, nothing is lost, and all is found.",
    "many.killed": "What was acknowledged is there after kill -9.",
}  # fmt: skip
"""The sentence of every behaviour; the part before the point is its topic."""


def claimed(face: type[Any]) -> list[str]:
    """Return the ids of the behaviours that a face does not say it lacks."""
    return [one for one in BEHAVIOURS if reason(face, one) is None]


def reason(face: type[Any], behaviour: str) -> str | None:
    """Return why a face lacks a behaviour; None where it has it."""
    said: str | None = face.lacks.get(behaviour, face.lacks.get(behaviour.partition(".")[0]))
    return said


def shows(behaviour: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with every face that has a behaviour, by which the test's `name` is named."""
    names = [name for name, face in FACES.items() if reason(face, behaviour) is None]
    return pytest.mark.parametrize("name", names, ids=[f"{behaviour}-{name}" for name in names])


PAIRS = [
    (writer, reader)
    for writer, kept in FACES.items()
    if reason(kept, "pairs.written") is None
    for reader, found in FACES.items()
    if reason(found, "pairs.found") is None
]
"""Which face keeps what which face finds."""
