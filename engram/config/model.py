"""The settings: each one once, with its default, its rules and what it does.

Values are checked when a section or `Settings` is made, so that there are no invalid ones.
`repr` leaves out secrets.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from engram.config.fields import RULE, Rule, check, setting
from engram.config.providers import KEY_VARIABLES
from engram.errors import InvalidSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "LLM",
    "RULES",
    "SECTIONS",
    "Ann",
    "DormantRecall",
    "Lifecycle",
    "Retrieval",
    "Settings",
    "Web",
    "build",
    "nest",
]

_HUB_TOKENS: Final = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_PROVIDER_KEYS: Final = {name: KEY_VARIABLES[name][0] for name in ("anthropic", "openai")}


class _Section:
    """Checks itself when it is made."""

    __slots__ = ()

    def __post_init__(self) -> None:
        prefix = _PREFIXES.get(type(self), "")
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            if RULE not in field.metadata:
                continue
            rule: Rule = field.metadata[RULE]
            name = f"{prefix}{field.name}"
            value = check(name, rule, getattr(self, field.name))
            if rule.nonblank_when is not None and not str(value).strip():
                other, reason = rule.nonblank_when
                if getattr(self, other).strip().lower() == reason:
                    message = f"{name} must not be blank when {other} is {reason}"
                    raise InvalidSettings(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Retrieval(_Section):
    """How a search finds and ranks."""

    top_k: int = setting(
        10, "How many results a search has when it does not say.", minimum=1, used=True
    )
    rrf_k: int = setting(
        60, "Larger values make ranks count less where rankings are merged.", minimum=1, used=True
    )
    min_confidence: float = setting(
        0.6, "Results below this confidence are left out.", minimum=0, maximum=1, used=True
    )
    rerank_candidates: int = setting(
        20, "How many candidates the cross-encoder reads.", minimum=1, used=True
    )
    dense_multiplier: int = setting(
        3, "Candidates by meaning, as a multiple of the results asked for.", minimum=1, used=True
    )
    bm25_multiplier: int = setting(
        3, "Candidates by words, as a multiple of the results asked for.", minimum=1, used=True
    )
    enable_query_expansion: bool = setting(
        default=True, text="Search by related words too.", used=True
    )
    exact_match_boost: float = setting(
        1.22, "Factor for candidates that hold the query's words as they are.", minimum=0, used=True
    )
    search_cache_size: int = setting(
        128, "How many answers are kept for the same query; 0 keeps none.", minimum=0, used=True
    )
    rerank_fusion_alpha: float = setting(
        0.0, "Share of the earlier rank in the final score.", minimum=0, maximum=1, used=True
    )
    preserve_prior_candidate: bool = setting(
        default=True, text="Keep the best candidate from before the reranking.", used=True
    )
    rerank_passage_fallback: bool = setting(
        default=True, text="Read long texts again in parts when they are rejected.", used=True
    )
    rerank_passage_floor: float = setting(
        0.001,
        "Texts scored lower are not read again in parts; 0 stops all second readings.",
        minimum=0,
        maximum=1,
        used=True,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class DormantRecall(_Section):
    """How memories that nobody asked for in a while are brought up again."""

    mode: str = setting(
        "off", "Whether searches look for dormant memories.", choices=("off", "shadow"), used=True
    )
    candidate_limit: int = setting(
        50, "How many dormant memories a search looks at.", minimum=1, maximum=200, used=True
    )
    dormancy_days: float = setting(
        30.0,
        "Days without access after which a memory is dormant.",
        minimum=1,
        maximum=3650,
        used=True,
    )
    min_relevance: float = setting(
        0.75, "Candidates less relevant are left out.", minimum=0.5, maximum=1, used=True
    )
    max_bonus: float = setting(
        0.05, "The most that dormancy adds to a score.", minimum=0, maximum=0.1, used=True
    )
    rerank_candidates: int = setting(
        12, "How many candidates the cross-encoder reads.", minimum=1, maximum=50, used=True
    )
    min_rerank_score: float = setting(
        0.6,
        "Candidates that the cross-encoder scores lower are left out.",
        minimum=-10,
        maximum=10,
        used=True,
    )
    cooldown_days: float = setting(
        7.0,
        "Days until a memory that was brought up may be again.",
        minimum=1,
        maximum=365,
        used=True,
    )
    feedback_cooldown_days: float = setting(
        30.0, "The same, after feedback on it.", minimum=1, maximum=365, used=True
    )
    log_max_events: int = setting(
        1000, "How many evaluations are kept.", minimum=1, maximum=10000, used=True
    )
    log_retention_days: float = setting(
        30.0, "Days for which an evaluation is kept.", minimum=1, maximum=365, used=True
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Lifecycle(_Section):
    """How memories fade, are kept and are put together."""

    forgetting_half_life_days: int = setting(
        30, "Days in which a memory loses half of its strength.", minimum=1, used=True
    )
    archive_after_days: int = setting(
        90, "Days without access after which a memory may be archived.", minimum=0
    )
    archive_min_importance: float = setting(
        0.3, "More important memories are not archived.", minimum=0, maximum=1
    )
    archive_min_accesses: int = setting(
        3, "Memories with so many accesses are not archived.", minimum=0
    )
    promote_importance: float = setting(
        0.7, "The importance from which a memory is promoted.", minimum=0, maximum=1
    )
    promote_accesses: int = setting(5, "The accesses from which a memory is promoted.", minimum=0)
    cluster_threshold: float = setting(
        0.8, "How similar memories of one cluster are.", minimum=0, maximum=1
    )
    cluster_min_size: int = setting(5, "The fewest memories of a cluster.", minimum=2)
    retention_mode: str = setting(
        "huber", "The loss that retention minimises.", choices=("l2", "huber", "elastic")
    )
    huber_delta: float = setting(0.5, "Where the Huber loss turns linear.", above=0)
    elastic_l1_ratio: float = setting(
        0.3, "Share of the absolute part in the elastic loss.", minimum=0, maximum=1
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class LLM(_Section):
    """The language model."""

    backend: str = setting(
        "claude_cli",
        "Who answers.",
        choices=("claude_cli", "mlx", "openai", "anthropic"),
    )
    model: str = setting("claude-sonnet-4-20250514", "The remote model.", nonblank=True)
    mlx_model: str = setting(
        "mlx-community/Qwen2.5-3B-Instruct-4bit", "The local model of mlx.", nonblank=True
    )
    api_key: str = setting("", "The provider's key.", secret=True, fallbacks=_PROVIDER_KEYS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Web(_Section):
    """The web page."""

    host: str = setting("127.0.0.1", "The address to listen on.", nonblank=True)
    port: int = setting(8420, "The port to listen on.", minimum=1, maximum=65535)
    auth_token: str = setting("", "The token that requests must bring.", secret=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ann(_Section):
    """The proximity graph."""

    enabled: bool = setting(default=True, text="Search by way of a graph.")
    m: int = setting(32, "Links of a node.", minimum=2)
    ef_construction: int = setting(200, "Nodes considered while a node is added.", minimum=1)
    ef_search: int = setting(100, "Nodes considered in a search.", minimum=1)
    max_elements: int = setting(500000, "The most vectors it takes.", minimum=1)
    index_path: str = setting(
        "~/.local/share/engram/hnsw.index", "Its file; ~ is your home.", nonblank=True
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings(_Section):
    """All settings."""

    storage_backend: str = setting(
        "sqlite",
        "Where memories are kept; this engine keeps them in SQLite only.",
        choices=("sqlite", "postgres"),
        any_case=True,
        used=True,
    )
    db_path: str = setting(
        "~/.local/share/engram/memory.db",
        "The store's file; ~ is your home, a relative path begins in the working folder.",
        nonblank=True,
        used=True,
    )
    postgres_dsn: str = setting(
        "",
        "The PostgreSQL database.",
        nonblank_when=("storage_backend", "postgres"),
        secret=True,
    )
    embedding_model: str = setting(
        "BAAI/bge-small-en-v1.5", "The model that makes vectors.", nonblank=True, used=True
    )
    cross_encoder_model: str = setting(
        "BAAI/bge-reranker-base", "The model that reranks.", nonblank=True, used=True
    )
    embedding_backend: str = setting(
        "auto",
        "Who runs the embedding model.",
        choices=("auto", "mlx", "sentence_transformers", "voyage", "openai", "gemini"),
    )
    embedding_dim: int = setting(
        384,
        "Numbers in a vector; follows the embedding model unless it is set.",
        minimum=1,
        derived=True,
    )
    hf_token: str = setting(
        "", "The Hugging Face token for downloads.", secret=True, aliases=_HUB_TOKENS
    )
    retrieval: Retrieval = dataclasses.field(default_factory=Retrieval)
    dormant_recall: DormantRecall = dataclasses.field(default_factory=DormantRecall)
    lifecycle: Lifecycle = dataclasses.field(default_factory=Lifecycle)
    llm: LLM = dataclasses.field(default_factory=LLM)
    web: Web = dataclasses.field(default_factory=Web)
    ann: Ann = dataclasses.field(default_factory=Ann)

    @property
    def backend(self) -> str:
        """The storage backend, however it is spelt."""
        return self.storage_backend.strip().lower()


SECTIONS: Final[dict[str, type[_Section]]] = {
    field.name: cast("type[_Section]", field.default_factory)
    for field in dataclasses.fields(Settings)
    if RULE not in field.metadata
}
"""The class of each section."""

_PREFIXES: Final = {section: f"{name}." for name, section in SECTIONS.items()}

RULES: Final[dict[str, Rule]] = {
    f"{prefix}{field.name}": field.metadata[RULE]
    for section, prefix in ((Settings, ""), *_PREFIXES.items())
    for field in dataclasses.fields(section)
    if RULE in field.metadata
}
"""The rule of each setting, by its dotted name."""


def nest(values: Mapping[str, object]) -> dict[str, Any]:
    """Return values by dotted name as a mapping of each section, below those that have none."""
    top: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    for name, value in values.items():
        section, _, key = name.rpartition(".")
        (parts[section] if section else top)[key] = value
    return top | parts


def build(values: Mapping[str, object]) -> Settings:
    """Return the settings with these values, by dotted name, and defaults for the others.

    Raises:
        InvalidSettings: A value breaks its rule.
    """
    nested = nest(values)
    return Settings(**nested | {name: make(**nested[name]) for name, make in SECTIONS.items()})
