"""The settings themselves: what each is by the contract, and which values it takes."""

from __future__ import annotations

import dataclasses
import math
from operator import attrgetter

import pytest

from engram.config import LLM, DormantRecall, Lifecycle, Retrieval, Settings, Web, load
from engram.config.schema import schema
from engram.errors import InvalidSettings

# name: type, default, constraint
CONTRACT = """
storage_backend string sqlite sqlite|postgres
db_path string ~/.local/share/engram/memory.db nonblank
postgres_dsn string - -
embedding_model string BAAI/bge-small-en-v1.5 nonblank
cross_encoder_model string BAAI/bge-reranker-base nonblank
embedding_backend string auto auto|mlx|sentence_transformers|voyage|openai|gemini
embedding_dim integer 384 >=1
hf_token string - -
retrieval.top_k integer 10 >=1
retrieval.rrf_k integer 60 >=1
retrieval.min_confidence number 0.6 0..1
retrieval.rerank_candidates integer 20 >=1
retrieval.dense_multiplier integer 3 >=1
retrieval.bm25_multiplier integer 3 >=1
retrieval.enable_query_expansion boolean true -
retrieval.exact_match_boost number 1.22 >=0
retrieval.search_cache_size integer 128 >=0
retrieval.rerank_fusion_alpha number 0.0 0..1
retrieval.preserve_prior_candidate boolean true -
retrieval.rerank_passage_fallback boolean true -
retrieval.rerank_passage_floor number 0.001 0..1
dormant_recall.mode string off off|shadow
dormant_recall.candidate_limit integer 50 1..200
dormant_recall.dormancy_days number 30.0 1..3650
dormant_recall.min_relevance number 0.75 0.5..1
dormant_recall.max_bonus number 0.05 0..0.1
dormant_recall.rerank_candidates integer 12 1..50
dormant_recall.min_rerank_score number 0.6 -10..10
dormant_recall.cooldown_days number 7.0 1..365
dormant_recall.feedback_cooldown_days number 30.0 1..365
dormant_recall.log_max_events integer 1000 1..10000
dormant_recall.log_retention_days number 30.0 1..365
lifecycle.forgetting_half_life_days integer 30 >=1
lifecycle.archive_after_days integer 90 >=0
lifecycle.archive_min_importance number 0.3 0..1
lifecycle.archive_min_accesses integer 3 >=0
lifecycle.promote_importance number 0.7 0..1
lifecycle.promote_accesses integer 5 >=0
lifecycle.cluster_threshold number 0.8 0..1
lifecycle.cluster_min_size integer 5 >=2
lifecycle.retention_mode string huber l2|huber|elastic
lifecycle.huber_delta number 0.5 >0
lifecycle.elastic_l1_ratio number 0.3 0..1
llm.backend string claude_cli claude_cli|mlx|openai|anthropic
llm.model string claude-sonnet-4-20250514 nonblank
llm.mlx_model string mlx-community/Qwen2.5-3B-Instruct-4bit nonblank
llm.api_key string - -
web.host string 127.0.0.1 nonblank
web.port integer 8420 1..65535
web.auth_token string - -
ann.enabled boolean true -
ann.m integer 32 >=2
ann.ef_construction integer 200 >=1
ann.ef_search integer 100 >=1
ann.max_elements integer 500000 >=1
ann.index_path string ~/.local/share/engram/hnsw.index nonblank
"""
ROWS = [line.split() for line in CONTRACT.split("\n") if line]
SECRETS = {"hf_token", "postgres_dsn", "llm.api_key", "web.auth_token"}
USED = {
    "storage_backend",
    "db_path",
    "embedding_model",
    "cross_encoder_model",
    "lifecycle.forgetting_half_life_days",
} | {name for name, *_ in ROWS if name.startswith(("retrieval.", "dormant_recall."))}
FIELDS = schema()["fields"]


def of_type(kind, text):
    """Return what a word of the contract means."""
    if text == "-":
        return ""
    return {"string": str, "integer": int, "number": float, "boolean": "true".__eq__}[kind](text)


def limits(rule):
    """Return the smallest value, whether it is itself allowed, and the largest."""
    if ".." in rule:
        low, high = rule.split("..")
        return float(low), True, float(high)
    return float(rule.lstrip(">=")), rule.startswith(">="), math.inf


def set_by_environment(name, text):
    variable = "ENGRAM_" + name.upper().replace(".", "_")
    loaded = load(None, {variable: text})
    assert loaded.sources[name] == f"env:{variable}"
    return attrgetter(name)(loaded.settings)


def test_there_are_these_settings_and_no_others():
    assert list(FIELDS) == [name for name, *_ in ROWS]
    assert len(FIELDS) == 56


@pytest.mark.parametrize(("name", "kind", "default", "rule"), ROWS)
def test_the_schema_says_what_the_contract_says(name, kind, default, rule):
    field = FIELDS[name]
    assert field["type"] == kind
    assert field["default"] == of_type(kind, default)
    assert type(field["default"]) is type(of_type(kind, default))
    assert attrgetter(name)(Settings()) == field["default"]
    assert field["env"] == "ENGRAM_" + name.upper().replace(".", "_")
    assert field["secret"] == (name in SECRETS)
    assert field["used"] == (name in USED)
    assert field["help"].endswith(".")
    said = dict(field["constraints"])
    assert said.pop("finite", None) == (True if kind in ("integer", "number") else None)
    assert said.pop("environment_values", None) == (
        ["true", "1", "false", "0"] if kind == "boolean" else None
    )
    expected = {}
    if "|" in rule:
        expected["enum"] = rule.split("|")
    elif rule == "nonblank":
        expected["nonempty"] = True
    elif rule != "-":
        low, inclusive, high = limits(rule)
        expected["minimum" if inclusive else "exclusive_minimum"] = low
        if high < math.inf:
            expected["maximum"] = high
    if name == "storage_backend":
        expected["normalize"] = "trim_lower"
    if name == "postgres_dsn":
        expected["nonempty_when"] = {"storage_backend": "postgres"}
    assert said == expected


def test_aliases_are_in_the_schema():
    named = {name: field["aliases"] for name, field in FIELDS.items() if field["aliases"]}
    assert named == {
        "hf_token": ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"],
        "llm.api_key": ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
    }


@pytest.mark.parametrize(
    ("name", "kind", "rule"),
    [(name, kind, rule) for name, kind, _, rule in ROWS if kind in ("integer", "number")],
)
def test_numbers_keep_to_their_limits(name, kind, rule):
    low, inclusive, high = limits(rule)
    step = 1 if kind == "integer" else 1e-9
    spell = (lambda value: str(int(value))) if kind == "integer" else repr
    allowed = [low if inclusive else low + step, *([high] if high < math.inf else [10**6])]
    for value in allowed:
        assert set_by_environment(name, spell(value)) == value
    refused = [low - step if inclusive else low, *([high + step] if high < math.inf else [])]
    for value in refused:
        with pytest.raises(InvalidSettings, match=f"^{name} must be (at least|at most|more than)"):
            set_by_environment(name, spell(value))


@pytest.mark.parametrize(("name", "rule"), [(r[0], r[3]) for r in ROWS if "|" in r[3]])
def test_choices_are_what_they_are(name, rule):
    values = {"ENGRAM_POSTGRES_DSN": "x"}
    variable = FIELDS[name]["env"]
    for choice in rule.split("|"):
        found = load(None, {**values, variable: choice})
        assert attrgetter(name)(found.settings) == choice
    for other in ("", " ", "none of these"):
        with pytest.raises(InvalidSettings, match=f"^{name} must be one of"):
            load(None, {**values, variable: other})
    if name != "storage_backend":
        with pytest.raises(InvalidSettings, match=f"^{name} must be one of"):
            load(None, {**values, variable: rule.split("|")[0].upper()})


def test_the_storage_backend_is_compared_in_any_case_and_reported_as_it_is():
    loaded = load(None, {"ENGRAM_STORAGE_BACKEND": " SQLite "})
    assert loaded.settings.storage_backend == " SQLite "
    assert loaded.settings.backend == "sqlite"
    assert loaded.warnings == ()


@pytest.mark.parametrize("spelt", ["postgres", " Postgres"])
@pytest.mark.parametrize("dsn", [None, "", "  "])
def test_postgres_needs_a_database(spelt, dsn):
    variables = {"ENGRAM_STORAGE_BACKEND": spelt}
    if dsn is not None:
        variables["ENGRAM_POSTGRES_DSN"] = dsn
    with pytest.raises(InvalidSettings, match=r"^postgres_dsn must not be blank when"):
        load(None, variables)
    loaded = load(None, {**variables, "ENGRAM_POSTGRES_DSN": "host=h"})
    assert [text.split()[0] for text in loaded.warnings] == ["storage_backend"]


@pytest.mark.parametrize("name", [row[0] for row in ROWS if row[3] == "nonblank"])
@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\u3000"])
def test_a_text_that_must_say_something_is_not_blank(name, blank):
    with pytest.raises(InvalidSettings, match=f"^{name} must not be blank"):
        set_by_environment(name, blank)


@pytest.mark.parametrize("text", ["a\0b", "a\udcffb", "\ud800"])
@pytest.mark.parametrize("name", ["db_path", "hf_token"])
def test_what_is_no_text_is_refused(name, text):
    with pytest.raises(InvalidSettings, match=f"^{name} must be text"):
        set_by_environment(name, text)


WRONG = {
    "string": ["5", "1.5", "true", "off", "yes", "null", "", "[]", "[a]", "{a: b}", "2026-01-01"],
    "integer": ["3.0", "'5'", "true", "x", "null", "", "[1]", "{}", ".inf", "1e3"],
    "number": ["'0.5'", "true", "x", "null", "", "[1]", "{}"],
    "boolean": ["0", "1", "'true'", "null", "", "[true]", "x"],
}
ARTICLES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
}


@pytest.mark.parametrize(
    ("name", "kind", "value"), [(r[0], r[1], value) for r in ROWS for value in WRONG[r[1]]]
)
def test_types_are_strict(tmp_path, name, kind, value):
    section, _, key = name.rpartition(".")
    file = tmp_path / "config.yaml"
    file.write_text(f"{section}:\n  {key}: {value}\n" if section else f"{key}: {value}\n")
    with pytest.raises(InvalidSettings, match=f"^{name} must be {ARTICLES[kind]}"):
        load(file, {})


@pytest.mark.parametrize("value", [".nan", ".inf", "-.inf", "1.0e+999"])
def test_numbers_are_finite(tmp_path, value):
    file = tmp_path / "config.yaml"
    file.write_text(f"retrieval: {{exact_match_boost: {value}}}")
    with pytest.raises(InvalidSettings, match=r"^retrieval\.exact_match_boost must be a finite"):
        load(file, {})


def test_an_integer_is_a_number(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("retrieval: {exact_match_boost: 2}")
    found = load(file, {}).settings.retrieval.exact_match_boost
    assert (found, type(found)) == (2.0, float)


def test_a_word_that_yaml_takes_for_a_boolean_says_how_to_write_it(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("dormant_recall: {mode: off}")
    with pytest.raises(InvalidSettings, match="quotes"):
        load(file, {})
    file.write_text('dormant_recall: {mode: "off"}')
    assert load(file, {}).settings.dormant_recall.mode == "off"


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Retrieval(top_k=0), "retrieval.top_k"),
        (lambda: Retrieval(top_k=True), "retrieval.top_k"),
        (lambda: DormantRecall(mode="on"), "dormant_recall.mode"),
        (lambda: Lifecycle(huber_delta=0), "lifecycle.huber_delta"),
        (lambda: Web(port=65536), "web.port"),
        (lambda: Settings(db_path=" "), "db_path"),
        (lambda: Settings(storage_backend="postgres"), "postgres_dsn"),
    ],
)
def test_a_program_cannot_make_invalid_settings(make, name):
    with pytest.raises(InvalidSettings, match=f"^{name} must") as failed:
        make()
    assert isinstance(failed.value, ValueError)
    assert failed.value.code == "invalid_settings"


def test_settings_do_not_change_and_do_not_print_secrets():
    settings = Settings(hf_token="canary", llm=LLM(api_key="canary"), postgres_dsn="canary")
    assert "canary" not in repr(settings)
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.db_path = "x"
