"""Where settings come from: environment, file, defaults; and what reports say of it."""

from __future__ import annotations

import json
import subprocess
import sys
import traceback
from operator import attrgetter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.config import LLM, Retrieval, Settings, constructed, load
from engram.config.schema import schema
from engram.embedding.registry import known
from engram.errors import InvalidSettings

FIELDS = schema()["fields"]
SECRETS = ("hf_token", "postgres_dsn", "llm.api_key", "web.auth_token")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "config.yaml"


def test_the_environment_goes_before_the_file_before_the_default(file):
    file.write_text("retrieval: {top_k: 5, rrf_k: 6}")
    loaded = load(
        file, {"ENGRAM_RETRIEVAL_TOP_K": "7", "ENGRAM_NO_SUCH": "1", "engram_db_path": "x"}
    )
    assert loaded.settings.retrieval == Retrieval(top_k=7, rrf_k=6)
    assert loaded.sources["retrieval.top_k"] == "env:ENGRAM_RETRIEVAL_TOP_K"
    assert loaded.sources["retrieval.rrf_k"] == "file"
    assert loaded.sources["db_path"] == "default"
    assert list(loaded.sources) == list(FIELDS)


def test_the_file_must_be_right_where_it_is_overridden(file):
    file.write_text("retrieval: {top_k: 0}")
    with pytest.raises(InvalidSettings, match=r"^retrieval\.top_k must be at least 1$"):
        load(file, {"ENGRAM_RETRIEVAL_TOP_K": "7"})


@pytest.mark.parametrize("name", FIELDS)
def test_a_variable_that_is_empty_is_set(name):
    field = FIELDS[name]
    variables = {field["env"]: ""}
    free = field["type"] == "string" and not field["constraints"].keys() & {"enum", "nonempty"}
    if free:
        loaded = load(None, variables)
        assert attrgetter(name)(loaded.settings) == ""
        assert loaded.sources[name] == f"env:{field['env']}"
    else:
        with pytest.raises(InvalidSettings, match=f"^{name} must .*set by {field['env']}"):
            load(None, variables)


def test_an_empty_variable_clears_a_secret(file):
    file.write_text("web: {auth_token: canary}")
    assert load(file, {"ENGRAM_WEB_AUTH_TOKEN": ""}).settings.web.auth_token == ""


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("FALSE", False), (" 1 ", True), ("0", False), ("True\n", True)],
)
def test_the_environment_spells_booleans(text, value):
    assert load(None, {"ENGRAM_ANN_ENABLED": text}).settings.ann.enabled is value


@pytest.mark.parametrize("text", ["yes", "no", "on", "off", "t", "2", "01", "true false", "1.0"])
def test_no_other_word_is_a_boolean(text):
    with pytest.raises(InvalidSettings, match=r"^ann\.enabled must be true or false"):
        load(None, {"ENGRAM_ANN_ENABLED": text})


@pytest.mark.parametrize(("text", "value"), [("+5", 5), (" 7 ", 7), ("007", 7), ("12\n", 12)])
def test_the_environment_spells_integers(text, value):
    assert load(None, {"ENGRAM_RETRIEVAL_TOP_K": text}).settings.retrieval.top_k == value


@pytest.mark.parametrize(
    "text", ["2.5", "1_000", "٣", "0x10", "1e3", "- 5", "", "+", "5 5", "9" * 5000]
)
def test_nothing_else_is_an_integer(text):
    with pytest.raises(InvalidSettings, match=r"^retrieval\.top_k must be an integer"):
        load(None, {"ENGRAM_RETRIEVAL_TOP_K": text})


@pytest.mark.parametrize(
    ("text", "value"), [("1e-1", 0.1), (" .5 ", 0.5), ("1.", 1.0), ("+1E0", 1.0), ("0", 0.0)]
)
def test_the_environment_spells_numbers(text, value):
    found = load(None, {"ENGRAM_RETRIEVAL_MIN_CONFIDENCE": text}).settings.retrieval.min_confidence
    assert (found, type(found)) == (value, float)


@pytest.mark.parametrize(
    "text", ["nan", "inf", "-Infinity", "1_0", "٠.٥", "0x1p-1", "1e999", ".", "e5", "", "0,5"]
)
def test_nothing_else_is_a_number(text):
    with pytest.raises(InvalidSettings, match=r"^retrieval\.min_confidence must be a"):
        load(None, {"ENGRAM_RETRIEVAL_MIN_CONFIDENCE": text})


def test_texts_are_taken_as_they_are():
    loaded = load(None, {"ENGRAM_DB_PATH": "  ~/off: #1 ", "ENGRAM_WEB_HOST": "5"})
    assert loaded.settings.db_path == "  ~/off: #1 "
    assert loaded.settings.web.host == "5"


@pytest.mark.parametrize(
    ("variables", "token", "source"),
    [
        ({}, "filed", "file"),
        ({"HF_TOKEN": "a"}, "a", "env:HF_TOKEN"),
        ({"HUGGING_FACE_HUB_TOKEN": "b"}, "b", "env:HUGGING_FACE_HUB_TOKEN"),
        ({"HF_TOKEN": "a", "HUGGING_FACE_HUB_TOKEN": "b"}, "a", "env:HF_TOKEN"),
        ({"HF_TOKEN": "", "HUGGING_FACE_HUB_TOKEN": "b"}, "b", "env:HUGGING_FACE_HUB_TOKEN"),
        ({"HF_TOKEN": "", "HUGGING_FACE_HUB_TOKEN": ""}, "filed", "file"),
        ({"HF_TOKEN": "a", "ENGRAM_HF_TOKEN": "c"}, "c", "env:ENGRAM_HF_TOKEN"),
        ({"HF_TOKEN": "a", "ENGRAM_HF_TOKEN": ""}, "", "env:ENGRAM_HF_TOKEN"),
    ],
)
def test_the_hub_token_has_aliases(file, variables, token, source):
    file.write_text("hf_token: filed")
    loaded = load(file, variables)
    assert (loaded.settings.hf_token, loaded.sources["hf_token"]) == (token, source)


@pytest.mark.parametrize(
    ("variables", "shared"),
    [
        ({"ENGRAM_HF_TOKEN": "c", "HF_TOKEN": "a"}, ("c", "c")),
        ({"HUGGING_FACE_HUB_TOKEN": "b"}, ("b", "b")),
        ({"ENGRAM_HF_TOKEN": "", "HF_TOKEN": "a", "HUGGING_FACE_HUB_TOKEN": "b"}, (None, None)),
        ({"HF_TOKEN": ""}, ("", None)),
    ],
)
def test_model_clients_find_the_hub_token(variables, shared):
    environment = dict(variables)
    load(None, environment).share_token(environment)
    assert (environment.get("HF_TOKEN"), environment.get("HUGGING_FACE_HUB_TOKEN")) == shared


@pytest.mark.parametrize(
    ("text", "variables", "key", "source"),
    [
        ("backend: anthropic", {}, "a", "env:ANTHROPIC_API_KEY"),
        ("backend: openai", {}, "o", "env:OPENAI_API_KEY"),
        ("backend: mlx", {}, "", "default"),
        ("model: x", {}, "", "default"),
        ("{backend: openai, api_key: filed}", {}, "filed", "file"),
        ("{backend: openai, api_key: ''}", {}, "o", "env:OPENAI_API_KEY"),
        ("backend: openai", {"ENGRAM_LLM_API_KEY": "e"}, "e", "env:ENGRAM_LLM_API_KEY"),
        ("backend: openai", {"ENGRAM_LLM_API_KEY": ""}, "o", "env:OPENAI_API_KEY"),
        ("backend: openai", {"OPENAI_API_KEY": ""}, "", "default"),
        ("backend: openai", {"ENGRAM_LLM_BACKEND": "anthropic"}, "a", "env:ANTHROPIC_API_KEY"),
    ],
)
def test_a_key_that_nobody_gave_is_the_providers(file, text, variables, key, source):
    inside = text if text.startswith("{") else f"{{{text}}}"
    file.write_text(f"llm: {inside}")
    loaded = load(file, {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", **variables})
    assert (loaded.settings.llm.api_key, loaded.sources["llm.api_key"]) == (key, source)


DIMENSIONS = {
    384: ["BAAI/bge-small-en-v1.5", "sentence-transformers/all-MiniLM-L6-v2"],
    512: ["voyage-3-lite"],
    768: [
        "BAAI/bge-base-en-v1.5",
        "nomic-ai/nomic-embed-text-v1.5",
        "gemini-embedding-001",
        "text-embedding-004",
    ],
    1024: [
        "BAAI/bge-large-en-v1.5",
        "BAAI/bge-m3",
        *("voyage-3.5", "voyage-3.5-lite", "voyage-3-large"),
        *("voyage-code-3", "voyage-finance-2", "voyage-law-2"),
    ],
    1536: ["text-embedding-3-small", "text-embedding-ada-002"],
    3072: ["text-embedding-3-large"],
}


@pytest.mark.parametrize(
    ("model", "dim"), [(model, dim) for dim, models in DIMENSIONS.items() for model in models]
)
def test_the_dimension_follows_the_model(model, dim):
    loaded = load(None, {"ENGRAM_EMBEDDING_MODEL": model})
    assert loaded.settings.embedding_dim == dim
    assert loaded.sources["embedding_dim"] == "derived:embedding_model"
    assert loaded.warnings == ()


def test_the_dimensions_are_those_of_the_registry():
    for model in (model for model in known() if model.dim):
        loaded = load(None, {"ENGRAM_EMBEDDING_MODEL": model.name})
        assert loaded.settings.embedding_dim == model.dim


def test_the_dimension_is_derived_by_default_and_kept_when_set(file):
    assert load(None, {}).sources["embedding_dim"] == "derived:embedding_model"
    file.write_text("{embedding_model: BAAI/bge-m3, embedding_dim: 384}")
    loaded = load(file, {})
    assert (loaded.settings.embedding_dim, loaded.sources["embedding_dim"]) == (384, "file")
    assert load(file, {"ENGRAM_EMBEDDING_DIM": "5"}).settings.embedding_dim == 5


def test_an_unknown_model_is_warned_of_and_not_named():
    loaded = load(None, {"ENGRAM_EMBEDDING_MODEL": "canary/model"})
    assert (loaded.settings.embedding_dim, loaded.sources["embedding_dim"]) == (384, "default")
    (warning,) = loaded.warnings
    assert "embedding_dim" in warning
    assert "canary" not in warning


def test_a_report_holds_every_setting_and_no_secret(file):
    file.write_text(
        "postgres_dsn: canary\nhf_token: canary\n"
        "llm: {api_key: canary}\nweb: {auth_token: canary}\nann: {m: 40}\nretrieval: {top_k: 5}\n"
    )
    loaded = load(file, {"ENGRAM_WEB_PORT": "1"})
    assert loaded.settings.llm.api_key == "canary"
    report = loaded.report()
    assert "canary" not in json.dumps(report) + repr(loaded)
    assert report["config_file"] == str(file)
    values = report["values"]
    assert values["hf_token"] == values["postgres_dsn"] == "<redacted>"
    assert values["llm"]["api_key"] == values["web"]["auth_token"] == "<redacted>"
    assert values["retrieval"]["top_k"] == 5
    dotted = [
        name
        for key, value in values.items()
        for name in ([f"{key}.{inner}" for inner in value] if isinstance(value, dict) else [key])
    ]
    assert dotted == list(report["sources"]) == list(FIELDS)
    assert report["warnings"] == []
    assert report["unused"] == [
        *("postgres_dsn", "hf_token", "llm.api_key", "web.port", "web.auth_token", "ann.m")
    ]


def test_empty_secrets_show_as_empty():
    loaded = load(None, {})
    assert [loaded.values()[name] for name in SECRETS] == [""] * 4
    assert loaded.report()["config_file"] is None
    assert loaded.report()["unused"] == []


def test_the_file_is_reported_absolute_and_links_as_they_are(file, monkeypatch, tmp_path):
    file.write_text("{}")
    (tmp_path / "link.yaml").symlink_to(file)
    monkeypatch.chdir(tmp_path)
    assert load(Path("link.yaml"), {}).report()["config_file"] == str(tmp_path / "link.yaml")


def test_settings_of_a_program_have_a_report_too():
    loaded = constructed(Settings(llm=LLM(api_key="canary"), db_path="/m.db"))
    report = loaded.report()
    assert report["config_file"] is None
    assert "canary" not in json.dumps(report)
    made = {name for name, source in loaded.sources.items() if source == "derived:constructed"}
    assert made == {"llm.api_key", "db_path"}
    assert set(loaded.sources.values()) == {"derived:constructed", "default"}
    assert report["unused"] == ["llm.api_key"]


def refusal(file, variables):
    try:
        load(file, variables)
    except InvalidSettings as error:
        return error
    return None


def shown(error):
    """Return all that a traceback prints of an error: one that it came from would be there too."""
    return "".join(traceback.format_exception_only(error)) + repr(error.__cause__)


CANARY = "cAnArY"
VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@given(st.sampled_from(list(FIELDS)), VALUES, VALUES)
def test_no_value_of_the_environment_is_in_an_error(name, before, after):
    error = refusal(None, {FIELDS[name]["env"]: f"{before}{CANARY}{after}"})
    if error is None:
        assert FIELDS[name]["type"] == "string"
    else:
        assert CANARY not in shown(error)
        assert name in str(error)


@given(
    st.sampled_from([*FIELDS, CANARY, f"web.{CANARY}"]),
    st.sampled_from(
        [
            *("{}", "'{}'", "[{}]", "{{{}: {}}}", "!{} x", "!!python/name:{} x", "*{}", "&{} x"),
            *("|\n {}", '"\\q{}"', "{}: {}", "{{{}", "&a {{<<: *a, {}: 1}}", "[1] {}", "'{}"),
        ]
    ),
    st.sampled_from(["", "canary_", "a b", "\t", "\u2028", "é"]),
)
def test_no_value_of_a_file_is_in_an_error(tmp_path_factory, name, shape, around):
    value = shape.format(around + CANARY, CANARY)
    section, _, key = name.rpartition(".")
    file = tmp_path_factory.mktemp("canary") / "config.yaml"
    file.write_text(f"{section}:\n  {key}: {value}\n" if section else f"{key}: {value}\n")
    error = refusal(file, {})
    if error is None:
        assert FIELDS[name]["type"] == "string"
    else:
        assert CANARY not in shown(error)


def test_the_model_is_there_without_yaml_and_everything_heavy():
    script = "import sys, engram.config\nengram.config.load(None, {})\nprint(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"yaml", "msgspec", "click", "numpy", "apsw", "engram.storage"}


def test_the_reference_has_the_table_of_the_model():
    from settings_page import PAGE, table

    assert table() in PAGE.read_text(encoding="utf-8"), "run python tests/settings_page.py"
