"""What a language model says the episodes of a window state, as facts with their own sources.

Adapters check a provider's reply; here every adapter is distrusted, those of callers too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engram import arguments
from engram.errors import FactIncomplete, LLMReplyError
from engram.llm.replies import confidence, token_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.llm import LLMAdapter
    from engram.models import Episode

_TERMS = ("subject", "predicate", "object")


@dataclass(frozen=True, slots=True)
class Statement:
    """One fact a model found.

    Attributes:
        subject: Whom or what it is about.
        predicate: The relation.
        object: The value.
        confidence: 0 to 0.95.
        sources: Positions of the episodes that state it, from 0, ascending, never empty.
    """

    subject: str
    predicate: str
    object: str
    confidence: float
    sources: tuple[int, ...]


def extract(llm: LLMAdapter, episodes: Sequence[Episode]) -> tuple[list[Statement], int]:
    """Return what a model finds in episodes, and the tokens that cost.

    A fact said twice is one fact, from the sources of both. One with a blank term says nothing and
    is left out.

    Raises:
        LLMReplyError: The adapter returned something else than facts. Its own errors pass through.
    """
    raw, tokens = _pair(llm.extract_facts(list(episodes)))
    if not isinstance(raw, list):
        message = f"extract_facts must return a list of facts, not {type(raw).__name__}"
        raise LLMReplyError(message)
    found: dict[tuple[str, ...], Statement] = {}
    texts = [episode.content.casefold() for episode in episodes]
    for item in raw:
        statement = _statement(item, texts)
        terms = (statement.subject, statement.predicate, statement.object)
        if not all(term.strip() for term in terms):
            continue
        known = found.get(terms, statement)
        found[terms] = Statement(
            *terms,
            confidence=max(known.confidence, statement.confidence),
            sources=tuple(sorted({*known.sources, *statement.sources})),
        )
    return list(found.values()), tokens


def summarise(llm: LLMAdapter, episodes: Sequence[Episode]) -> tuple[str, int]:
    """Return a model's summary of episodes, and the tokens that cost.

    Raises:
        LLMReplyError: The adapter returned no text, or a blank one. Its own errors pass through.
    """
    text, tokens = _pair(llm.summarise(list(episodes)))
    if not isinstance(text, str):
        message = f"summarise must return a str, not {type(text).__name__}"
        raise LLMReplyError(message)
    text = arguments.query(text, "summary").strip()
    if not text:
        message = "the summary is blank"
        raise LLMReplyError(message, "nothing was deleted for it; try again")
    return text, tokens


def _pair(reply: object) -> tuple[object, int]:
    if not isinstance(reply, tuple) or len(reply) != 2:
        message = f"an adapter must return a value and its tokens, not {type(reply).__name__}"
        raise LLMReplyError(message)
    return reply[0], token_count(reply[1])


def _statement(item: object, texts: Sequence[str]) -> Statement:
    if not isinstance(item, dict):
        message = f"each fact must be a dict, not {type(item).__name__}"
        raise LLMReplyError(message)
    if missing := [term for term in _TERMS if item.get(term) is None]:
        message = f"a fact has no {missing[0]}"
        raise FactIncomplete(message)
    subject, predicate, value = (arguments.query(str(item[term]), term) for term in _TERMS)
    return Statement(
        subject,
        predicate,
        value,
        confidence(item.get("confidence")),
        _named(item.get("sources"), len(texts)) or _mentioning((subject, value), texts),
    )


def _named(sources: object, count: int) -> tuple[int, ...]:
    """Return the positions a fact names, counted from 1; what is no such number is left out."""
    if not isinstance(sources, (list, tuple, set)):
        return ()
    return tuple(
        sorted(
            {
                number - 1
                for number in sources
                if isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= count
            }
        )
    )


def _mentioning(names: tuple[str, str], texts: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of the case-folded texts that have one of the names; else of all."""
    wanted = [name.casefold() for name in names if name.strip()]
    found = [at for at, text in enumerate(texts) if any(name in text for name in wanted)]
    return tuple(found or range(len(texts)))
