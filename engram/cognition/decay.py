"""Ebbinghaus decay: how important a memory still is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime

from engram import arguments

_SECONDS_PER_DAY = 86_400.0


@dataclass
class DecayConfig:
    """How importance fades and what keeps it up.

    importance = salience · exp(-lambda_ · days) + alpha · ln(1 + accesses) + beta · valence

    Attributes:
        lambda_: Decay per day; 0.1 halves salience in about 6.93 days. At least 0.
        alpha: Weight of recalls.
        beta: Weight of emotional valence.
        threshold: Memories below this importance are pruned by `reflect`.
    """

    lambda_: float = 0.1
    alpha: float = 0.2
    beta: float = 0.1
    threshold: float = 0.1

    def __post_init__(self) -> None:
        """Refuse what would poison every later decay.

        Raises:
            InvalidArgument, InvalidType: A value is no finite number, or `lambda_` is negative.
        """
        arguments.number(self.lambda_, "lambda_", 0.0)
        for name in ("alpha", "beta", "threshold"):
            arguments.number(getattr(self, name), name)


def compute_importance(
    salience: float,
    emotional_valence: float,
    last_access: datetime,
    access_count: int,
    now: datetime,
    cfg: DecayConfig,
) -> float:
    """Return the importance of one memory; naive datetimes are UTC.

    Args:
        salience: Importance at encoding, 0 to 1.
        emotional_valence: -1 to +1.
        last_access: The last recall, or the event itself if there was none.
        access_count: How often it was recalled.
        now: The time to judge at.
        cfg: The weights.
    """
    elapsed = (_aware(now) - _aware(last_access)).total_seconds()
    days = max(0.0, elapsed / _SECONDS_PER_DAY)
    return (
        salience * math.exp(-cfg.lambda_ * days)
        + cfg.alpha * math.log1p(access_count)
        + cfg.beta * emotional_valence
    )


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
