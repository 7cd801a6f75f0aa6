"""The server's settings: each one once, with its default, its rules and what it does.

Values are checked when a section is made, so that there are no invalid ones. `repr` leaves out
secrets.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Final

from engram.config import experience
from engram.config.fields import RULE, Rule, check, setting
from engram.errors import InvalidSettings

EMBEDDING_PROVIDERS: Final = ("local", "deterministic")
"""Who can make vectors. Not `choices` of the setting: an unknown one has its own error number."""

LLM_PROVIDERS: Final = (
    "none",
    "anthropic",
    "openai",
    "gemini",
    "deepseek",
    "qwen",
    "kimi",
    "ollama",
)


class Section:
    """Checks itself when it is made."""

    __slots__ = ()
    name: ClassVar[str]

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = check(
                f"{self.name}.{field.name}", field.metadata[RULE], getattr(self, field.name)
            )
            # A whole number is as good where a fraction may be.
            object.__setattr__(self, field.name, value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Database(Section):
    """The store; a project's is in its folder `.engram`, or where `ENGRAM_DB_PATH` says."""

    name: ClassVar[str] = "database"
    path: str = setting("", "Only reported, as by the reference server: it moves no store.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Embedding(Section):
    """The model that makes vectors."""

    name: ClassVar[str] = "embedding"
    provider: str = setting(
        "local",
        "`local` is a model on this machine; `deterministic` counts bytes, for tests.",
        nonblank=True,
        used=True,
    )
    model: str = setting(
        "",
        "A name or a folder; left out: the store's, else the best one on this machine.",
        used=True,
    )
    dimension: int = setting(
        0, "Numbers in a vector, to be sure of it; 0: whatever the model has.", minimum=0, used=True
    )
    hyde_threshold: int = setting(
        0, "Always 0: no text is replaced by a made-up one.", minimum=0, maximum=0
    )
    api_key: str = setting("", "Only whether there is one is reported.", secret=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageModel(Section):
    """The language model that judges and analyses, if there is one."""

    name: ClassVar[str] = "llm"
    provider: str = setting(
        "none", f"Who answers: {', '.join(LLM_PROVIDERS)}.", nonblank=True, used=True
    )
    model: str = setting("", "Its model; left out: the adapter's default.", used=True)
    api_key: str = setting(
        "",
        "The provider's key; of no effect where the same file names no provider.",
        secret=True,
        used=True,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Process(Section):
    """The process: its socket, and how much it takes on."""

    name: ClassVar[str] = "server"
    socket_path: str = setting(
        "",
        "The socket of a project that has no folder `.engram`; `~/` is your home.",
        used=True,
    )
    reindex_interval_secs: int = setting(
        3600,
        "Seconds between rounds of upkeep, which come every 5 at least; 0: none.",
        minimum=0,
        maximum=31_536_000,
        used=True,
    )
    agent: str = setting(
        "", "Whose memories these are; left out: everybody's in the file.", used=True
    )
    workers: int = setting(
        8, "Requests that are worked on at once.", minimum=1, maximum=256, used=True
    )
    request_timeout_secs: float = setting(
        30.0, "Seconds that a request may take.", above=0, maximum=86_400, used=True
    )
    max_line_bytes: int = setting(
        64 << 20, "Bytes that a request may have.", minimum=1 << 16, maximum=1 << 30, used=True
    )
    max_connections: int = setting(1024, "Clients at once.", minimum=1, maximum=65_536, used=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Hnsw(Section):
    """The reference server's index; only reported, this engine's has no such numbers."""

    name: ClassVar[str] = "hnsw"
    max_connections: int = setting(16, "Links of a node.", minimum=1)
    ef_construction: int = setting(200, "Nodes considered while one is added.", minimum=1)
    ef_search: int = setting(40, "Nodes considered in a search.", minimum=1)
    dimension: int = setting(1024, "Numbers in a vector.", minimum=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Consolidation(Section):
    """What a request about consolidation that does not say it takes for old and useless."""

    name: ClassVar[str] = "consolidation"
    stale_days: int = setting(
        experience.STALE_DAYS,
        "Days after which an unused memory is stale.",
        minimum=0,
        maximum=3650,
        used=True,
    )
    min_score: float = setting(
        experience.MIN_SCORE, "Stale ones have a lower score.", minimum=0, maximum=1, used=True
    )
    similarity: float = setting(
        experience.SIMILARITY,
        "Cosine that all three texts of duplicates reach.",
        minimum=0,
        maximum=1,
        used=True,
    )
    fts_similarity_floor: float = setting(
        0.0, "Only reported: duplicates are found by meaning, not by a shared word.", minimum=0
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Deduplication(Section):
    """What is not stored twice."""

    name: ClassVar[str] = "deduplication"
    threshold: float = setting(
        experience.SAME_FROM,
        "Cosine that all three texts exceed where two memories are the same.",
        above=0,
        maximum=1,
        used=True,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Search(Section):
    """How rankings by meaning and by words become one."""

    name: ClassVar[str] = "search"
    rrf_k: int = setting(
        experience.RRF_K,
        "Larger values make ranks count less.",
        minimum=1,
        maximum=1_000_000,
        used=True,
    )
    vector_weight: float = setting(
        experience.VECTOR_WEIGHT,
        "Weight of the ranking by meaning.",
        minimum=0,
        maximum=1_000_000,
        used=True,
    )
    sparse_weight: float = setting(
        experience.SPARSE_WEIGHT,
        "Weight of the ranking by words.",
        minimum=0,
        maximum=1_000_000,
        used=True,
    )
    other_project_weight: float = setting(
        experience.OTHER_PROJECT_WEIGHT,
        "Factor for memories of other projects than the one asked for; 0 leaves them out.",
        minimum=0,
        maximum=1,
        used=True,
    )

    def __post_init__(self) -> None:
        Section.__post_init__(self)
        if not self.vector_weight + self.sparse_weight:
            message = "search.vector_weight and search.sparse_weight must not both be 0"
            raise InvalidSettings(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trainer(Section):
    """The program that learns from what is stored."""

    name: ClassVar[str] = "trainer"
    trainer_binary: str = setting(
        experience.TRAINER_PROGRAM,
        "A program on the PATH, or its path; `~/` is your home.",
        nonblank=True,
        used=True,
    )
    trainer_timeout_secs: int = setting(
        experience.TRAINER_SECONDS,
        "Seconds after which it is ended.",
        minimum=1,
        maximum=86_400,
        used=True,
    )
    models_path: str = setting(
        "~/.engram/models",
        "Where it writes models, those of each store in a folder of its own; `~/` is your home.",
        nonblank=True,
        used=True,
    )


SECTIONS: Final[dict[str, type[Section]]] = {
    section.name: section
    for section in (
        Database,
        Embedding,
        LanguageModel,
        Process,
        Hnsw,
        Consolidation,
        Deduplication,
        Search,
        Trainer,
    )
}


def rule(name: str) -> Rule:
    """Return the rule of the setting with this dotted name."""
    section, _, key = name.partition(".")
    found: Rule = SECTIONS[section].__dataclass_fields__[key].metadata[RULE]  # type: ignore[attr-defined]
    return found
