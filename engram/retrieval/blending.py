"""How a hybrid recall makes one ranking of what meaning and words say."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Final

from engram import arguments
from engram.errors import InvalidArgument, InvalidType

METHODS: Final = ("complete", "min_max", "reciprocal_rank")
RERANKERS: Final = ("late_interaction", "cross_encoder")
_MOST_RERANKED: Final = 200


@dataclass(frozen=True, slots=True)
class Blending:
    """How a hybrid recall ranks its candidates.

    Attributes:
        method: "complete": both signals of every candidate, each divided by its largest;
            "min_max": each side's own candidates scaled to 0..1, what a side lacks counts 0;
            "reciprocal_rank": the sum of weights over ranks. The last two take no heed of the
            next six.
        near_words: How often a text has an English word of the query that it lacks for one that is
            near to it in meaning, 0 to 1 times.
        conversation: How much of the words' share is given to the words of a candidate's whole
            conversation, as far as other candidates have them, 0 to 1.
        answers: How much of a question's words also count for the turn that answers it, 0 to 1. A
            question that the filters leave out, or that is hidden, says nothing.
        assistant: What the scores of an assistant's turns are multiplied by, 0 to 1.
        named: How much is added for what somebody took part in whom the query names, 0 to 1; for a
            part of the name that part of it. Of an episode's actors the first four count.
        dates: How much is added for what happened when the query's words say, 0 to 1.
        feedback: How much the words that the best candidates share count, of the words' share, 0
            to 1.
        diversity: How much likeness to better results takes away, 0 to 1. With it results are not
            in the order of their scores.
        rerank: What reads the best candidates again: "late_interaction", the embedder token by
            token; "cross_encoder", the one that `search` asks for, which has to be on this
            machine; None: nothing.
        rerank_top: How many of them it reads, 1 to 200, as far as there are so many candidates;
            `recall(candidate_limit=)` has more of them.
        rerank_weight: The share of what it says, against the blend, 0 to 1.
    """

    method: str = "complete"
    _: KW_ONLY
    near_words: float = 0.5
    conversation: float = 0.4
    answers: float = 1.0
    assistant: float = 0.7
    named: float = 0.1
    dates: float = 0.2
    feedback: float = 0.0
    diversity: float = 0.0
    rerank: str | None = None
    rerank_top: int = 20
    rerank_weight: float = 0.5

    def __post_init__(self) -> None:
        """Refuse what gives no ranking.

        Raises:
            InvalidArgument, InvalidType: A value is unknown or out of its range.
        """
        arguments.one_of(self.method, METHODS, "method")
        if self.rerank is not None:
            arguments.one_of(self.rerank, RERANKERS, "rerank")
        for name in (
            *("near_words", "conversation", "answers", "assistant", "named", "dates"),
            *("feedback", "diversity", "rerank_weight"),
        ):
            arguments.number(getattr(self, name), name, 0.0, 1.0)
        arguments.integer(self.rerank_top, "rerank_top", 1, _MOST_RERANKED)

    @classmethod
    def of(cls, given: str | Blending) -> Blending:
        """Return the blending with a method's name, or the one that is given.

        Raises:
            InvalidArgument, InvalidType: It is neither.
        """
        if isinstance(given, Blending):
            return given
        if not isinstance(given, str):
            message = f"blending must be a str or a Blending, not {type(given).__name__}"
            raise InvalidType(message)
        if given not in METHODS:
            message = f"blending must be one of {', '.join(METHODS)}, or a Blending"
            raise InvalidArgument(message)
        return cls(method=given)


DEFAULT: Final = Blending()
