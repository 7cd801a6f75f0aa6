"""What holds where nobody says otherwise of experiences, whichever face is asked."""

from __future__ import annotations

from typing import Final

SAME_FROM: Final = 0.95
"""The cosine that all three texts of two experiences exceed of which one is not stored."""

SEARCH_LIMIT: Final = 10
"""Results of a search."""

RRF_K: Final = 60
VECTOR_WEIGHT: Final = 0.7
SPARSE_WEIGHT: Final = 0.3
OTHER_PROJECT_WEIGHT: Final = 0.5

STALE_DAYS: Final = 90
MIN_SCORE: Final = 0.3
SIMILARITY: Final = 0.9
"""The cosine that all three texts of duplicates reach."""

LOG_LIMIT: Final = 50
"""Steps of consolidation that are listed."""

TRAINER_PROGRAM: Final = "engram-trainer"
TRAINER_SECONDS: Final = 300
