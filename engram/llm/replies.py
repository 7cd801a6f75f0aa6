"""What a model answered, made safe to store: nothing in a reply is trusted.

No message and no log line quotes a reply: it may hold what the observations said.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import re
from dataclasses import dataclass
from typing import Any

from engram.errors import LLMReplyError
from engram.llm.prompts import printable, unescape

__all__ = [
    "MAX_EXTRACTED_CONFIDENCE",
    "MAX_REASON_LENGTH",
    "MAX_TERM_LENGTH",
    "Reply",
    "confidence",
    "parse_duplicates",
    "parse_facts",
    "parse_judgement",
    "parse_summary",
    "token_count",
]

MAX_EXTRACTED_CONFIDENCE = 0.95
"""An injected fact is never absolute truth: more than this is for what people assert themselves."""
MAX_TERM_LENGTH = 1_000
"""Characters in a subject, predicate or object; a longer one is no noun phrase."""
MAX_REASON_LENGTH = 1_000
"""Characters in the reason for a judgement; what is longer is cut."""

_DEFAULT_CONFIDENCE = 0.5
_MAX_TOKENS = 2**53 - 1  # a bogus count must not overflow the column that sums them
_TERMS = ("subject", "predicate", "object")
_FIRST_WORD = re.compile(r"\w+")
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reply:
    """One answer of a model.

    Attributes:
        text: What it wrote.
        tokens: What the call cost, as the provider counts.
        complete: False when the token limit cut the text off.
    """

    text: str
    tokens: int
    complete: bool


def confidence(value: object) -> float:
    """Return a model's confidence as a number from 0 to `MAX_EXTRACTED_CONFIDENCE`.

    What is no finite number is 0.5.
    """
    try:
        number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        number = _DEFAULT_CONFIDENCE
    return min(max(number, 0.0), MAX_EXTRACTED_CONFIDENCE)


def token_count(value: object) -> int:
    """Return a provider's count of tokens; what is no count is 0."""
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return min(max(value, 0), _MAX_TOKENS)


def parse_facts(text: str, first: int, count: int) -> list[dict[str, Any]]:
    """Return the facts in a reply.

    Args:
        text: A JSON array of facts, or an object with one under `facts`; a code fence around it
            is ignored.
        first: How many observations went before those of this call.
        count: How many observations this call held.

    Returns:
        Dicts with `subject`, `predicate`, `object`, `confidence` (0 to 0.95) and `sources`
        (observation numbers, ascending; empty where the reply names none of several).

    Raises:
        LLMReplyError: The reply is not in the form asked for, or has items and none of them is.
    """
    items = _items(text)
    facts = [_fact(item, first, count) for item in items]
    malformed = facts.count(None)
    if malformed:
        _logger.warning("%d of %d extracted items are no facts", malformed, len(facts))
    if malformed and malformed == len(facts):
        message = "none of the items in the model's reply is a fact"
        raise LLMReplyError(message)
    # A fact with an empty term says nothing: some models answer so instead of with [].
    return [fact for fact in facts if fact and all(fact[term] for term in _TERMS)]


def parse_summary(text: str) -> str:
    """Return the paragraph in a reply.

    Raises:
        LLMReplyError: The reply is blank.
    """
    summary = printable(text).strip()
    if not summary:
        message = "the model's reply is blank"
        raise LLMReplyError(message)
    return summary


def parse_judgement(text: str) -> tuple[float, str]:
    """Return the score in a reply, 0 to 1, and the reason, "" where it has none.

    Args:
        text: A JSON object with `score` and `reason`; a code fence around it is ignored.

    Raises:
        LLMReplyError: The reply is not in the form asked for.
    """
    answer = _decoded(text)
    score = answer.get("score") if isinstance(answer, dict) else None
    if (
        isinstance(score, bool)
        or not isinstance(score, (int, float))
        or not -math.inf < score < math.inf
    ):
        message = "the model's reply is not a JSON object with a score"
        raise LLMReplyError(message)
    reason = answer.get("reason")
    said = printable(unescape(reason)).strip() if isinstance(reason, str) else ""
    return float(min(max(score, 0), 1)), said[:MAX_REASON_LENGTH]


def parse_duplicates(text: str) -> bool:
    """Return whether a reply's first word says to merge two experiences; anything else does not."""
    found = _FIRST_WORD.search(text)
    return found is not None and found[0].casefold() == "merge"


def _items(text: str) -> list[object]:
    answer = _decoded(text)
    if isinstance(answer, dict):
        answer = answer.get("facts")
    if not isinstance(answer, list):
        message = "the model's reply is not a JSON array of facts"
        raise LLMReplyError(message)
    return answer


def _decoded(text: str) -> Any:
    text = text.strip()
    if text.startswith("```"):
        text = text.partition("\n")[2].rstrip("`")
    # The decoder's error holds the reply, so ours is raised outside its handler and has no context.
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)
    message = "the model's reply is not JSON"
    raise LLMReplyError(message)


def _fact(item: object, first: int, count: int) -> dict[str, Any] | None:
    if not isinstance(item, dict):
        return None
    terms = {name: _term(item.get(name)) for name in _TERMS}
    if None in terms.values():
        return None
    return {
        **terms,
        "confidence": confidence(item.get("confidence")),
        "sources": _sources(item.get("sources"), first, count),
    }


def _term(value: object) -> str | None:
    if isinstance(value, (int, float)):
        value = json.dumps(value)
    if not isinstance(value, str) or len(value) > MAX_TERM_LENGTH:
        return None
    return " ".join(printable(unescape(value)).split())


def _sources(value: object, first: int, count: int) -> list[int]:
    named = {
        number
        for number in (value if isinstance(value, list) else [])
        if isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= count
    }
    if count == 1:
        named = {1}
    return [first + number for number in sorted(named)]
