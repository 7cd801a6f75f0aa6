"""The file of settings: which YAML is one, and how what is not is refused."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from engram.config import document, load
from engram.config.document import MAX_BYTES
from engram.errors import InvalidSettings

NESTED = "not one document of valid YAML|nested too deeply|must be a mapping"
LIMITED = [
    *((sign * 100_000, NESTED) for sign in ("[", "- ", "? ", "{a: ")),
    ("retrieval: " + "{<<: " * 900 + "{}" + "}" * 900, NESTED),
    ("top_k: 1\n" * (MAX_BYTES // 8), f"more than {MAX_BYTES} bytes"),
    ("web: {port: " + "9" * 5000 + "}", "web.port must be an integer"),
    ("web: {port: " + "1:" * 100_000 + "1}", "web.port must be an integer"),
    ("retrieval: {min_confidence: " + "9" * 400 + "}", "must be a finite number"),
    ("retrieval: {top_k: " + "9" * 400 + "}", "must be a finite number"),
]


@pytest.fixture(params=["in C", "in Python"])
def read(tmp_path, request, monkeypatch):
    """Return a function that loads settings from the text or bytes of a file."""
    if request.param == "in Python":
        monkeypatch.setattr(document, "_Loader", yaml.SafeLoader)
    file = tmp_path / "config.yaml"

    def load_text(text):
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load(file, {})

    return load_text


@pytest.fixture
def refused(read):
    """Return a function that gives the message with which a file is refused."""

    def message_for(text):
        with pytest.raises(InvalidSettings) as failed:
            read(text)
        return str(failed.value)

    return message_for


@pytest.mark.parametrize("text", ["", "# nothing but this\n", "\ufeff", "{}", "---\n{}\n...\n"])
def test_an_empty_file_means_the_defaults(read, text):
    assert read(text).settings == load(None, {}).settings


@pytest.mark.parametrize(
    "number",
    ["0x10", "-0x10", "0b11", "010", "+010", "1:30", "1_000", "!!int '0x10'", "!!int 1_0"],
)
def test_an_integer_has_decimal_digits_alone(refused, number):
    assert "retrieval.top_k must be an integer" in refused(f"retrieval: {{top_k: {number}}}")


@pytest.mark.parametrize("number", ["0.1_5", "1_0.5", "0:0.5", "00.5", "0x1", "!!float '0_1.5'"])
def test_a_number_has_decimal_digits_alone(refused, number):
    message = refused(f"retrieval: {{min_confidence: {number}}}")
    assert "retrieval.min_confidence must be a number" in message


@pytest.mark.parametrize("number", ["0", "0.25", "1", "+1", ".5", "1.0e-1"])
def test_a_number_may_be_written_in_any_plain_way(read, number):
    found = read(f"retrieval: {{min_confidence: {number}}}").settings.retrieval
    assert found.min_confidence == float(number)


def test_a_file_sets_what_it_names(read):
    loaded = read("db_path: /m.db\nretrieval:\n  top_k: 7\nann: {enabled: false}\n")
    assert loaded.settings.db_path == "/m.db"
    assert loaded.settings.retrieval.top_k == 7
    assert loaded.settings.ann.enabled is False
    assert loaded.settings.retrieval.rrf_k == 60
    named = {name for name, source in loaded.sources.items() if source == "file"}
    assert named == {"db_path", "retrieval.top_k", "ann.enabled"}


@pytest.mark.parametrize("text", ["null", "~", "---\n", "[]", "- a", "x", "5", "!!omap [a: b]"])
def test_the_root_must_be_a_mapping(refused, text):
    assert "the settings file must be a mapping" in refused(text)


@pytest.mark.parametrize("value", ["", "null", "[]", "x", "5", "!!omap [a: b]"])
def test_a_section_must_be_a_mapping(refused, value):
    assert "retrieval must be a mapping" in refused(f"retrieval: {value}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bogus: 1", "the settings file has no setting bogus, see line 1"),
        ("\nretrieval:\n  bogus: 1", "retrieval has no setting bogus, see line 3"),
        ("retrieval: {db_path: x}", "retrieval has no setting db_path"),
        ("top_k: 1", "the settings file has no setting top_k"),
        ("retrieval.top_k: 1", "the settings file has no setting, see line 1"),
        ("retrieval: {retrieval: {top_k: 1}}", "retrieval has no setting retrieval"),
    ],
)
def test_an_unknown_name_is_refused(refused, text, message):
    assert message in refused(text)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("db_path: a\ndb_path: b", "the settings file has db_path twice, see line 2"),
        ("db_path: a\n'db_path': a", "the settings file has db_path twice"),
        ("retrieval: {top_k: 1, top_k: 1}", "retrieval has top_k twice"),
        ("web: {port: 1}\nweb: {host: x}", "the settings file has web twice"),
        ("web: {<<: {port: 1}, <<: {host: x}}", "web has << twice"),
        ("web: {<<: {port: 1, port: 2}, port: 3}", "web has port twice"),
    ],
)
def test_a_name_that_comes_twice_is_refused(refused, text, where):
    assert where in refused(text)


@pytest.mark.parametrize("key", ["1", "true", "null", "1.5", "[a]", "{a: b}", "!!binary aGk="])
@pytest.mark.parametrize("inside", ["{}: x", "web: {{? {} : x}}", "web: {{<<: {{? {} : x}}}}"])
def test_a_name_that_is_no_text_is_refused(refused, key, inside):
    assert "has a name that is no text" in refused(inside.format(key))


def test_what_a_mapping_names_goes_before_what_it_merges(read):
    loaded = read(
        "retrieval:\n  <<: [{top_k: 2, rrf_k: 2}, {rrf_k: 3, dense_multiplier: 3}]\n  top_k: 1\n"
    )
    found = loaded.settings.retrieval
    assert (found.top_k, found.rrf_k, found.dense_multiplier) == (1, 2, 3)
    assert loaded.sources["retrieval.rrf_k"] == "file"


def test_a_mapping_that_is_named_before_it_merges_keeps_it(read):
    assert read("web: {port: 1, <<: {port: 2}}").settings.web.port == 1


def test_an_anchor_may_be_used_again(read):
    loaded = read("embedding_model: &name x/y\ncross_encoder_model: *name\n")
    assert loaded.settings.cross_encoder_model == "x/y"


@pytest.mark.parametrize("merged", ["x", "[x]", "5", "[[{port: 1}]]", "null"])
def test_only_mappings_are_merged(refused, merged):
    assert "web must be a mapping" in refused(f"web: {{<<: {merged}}}")


@pytest.mark.parametrize(
    "text", ["&a {<<: *a}", "web: &a {<<: *a}", "web: &a {<<: [{port: 1}, *a]}"]
)
def test_a_mapping_that_merges_itself_is_refused(refused, text):
    assert "contains itself" in refused(text)


@pytest.mark.parametrize("text", ["a: b: c", "web: {", "\tx: 1", "a: *nobody", "'", "a: \x01"])
def test_what_is_no_yaml_is_refused(refused, text):
    assert "not one document of valid YAML" in refused(text)


@pytest.mark.parametrize("text", ["{}\n---\n{}\n", "db_path: a\n---\ndb_path: b\n", "{}\n---\n"])
def test_several_documents_are_refused(refused, text):
    assert "not one document of valid YAML" in refused(text)


@pytest.mark.parametrize(
    "value", ["!!python/object/apply:os.getcwd []", "!!python/str x", "!custom x", "!!binary eA=="]
)
def test_tags_of_a_language_are_refused(refused, value):
    assert refused(f"db_path: {value}") == "db_path must be a string"


def test_a_root_with_a_tag_of_a_language_is_refused(refused):
    assert "must be a mapping" in refused("!!python/object:os.PathLike {db_path: x}")


@pytest.mark.parametrize(
    "content", [b"db_path: \xff", "db_path: x".encode("utf-16"), b"\xed\xa0\x80"]
)
def test_what_is_not_utf_8_is_refused(refused, content):
    assert refused(content) == "the settings file must be UTF-8 text"


@pytest.mark.parametrize(("text", "message"), LIMITED, ids=range(len(LIMITED)))
def test_a_file_that_would_take_long_is_refused(refused, text, message):
    assert re.search(message, refused(text))


def test_aliases_of_aliases_are_not_followed(refused):
    """A billion laughs: nine levels of nine aliases each, as lists and as merges."""
    levels = ["- &a0 [x]"] + [f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    assert "must be a mapping" in refused("\n".join(levels))
    merges = ["&b0 {port: 1}"]
    merges += [f"&b{n} {{<<: [{', '.join([f'*b{n - 1}'] * 9)}]}}" for n in range(1, 10)]
    assert "web.port must be at least" not in refused(f"web: {{<<: [{', '.join(merges)}], x: 1}}")
    assert "web has no setting x" in refused(f"web: {{<<: [{', '.join(merges)}], x: 1}}")


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "none", tmp_path / "none" / "none"):
        with pytest.raises(InvalidSettings, match="the settings file cannot be read: "):
            load(path, {})


@given(st.binary(max_size=200) | st.text(alphabet="{}[]:,-&*<!|>'\"# \nabweb:port1", max_size=60))
def test_any_file_is_read_or_refused(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("any") / "config.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        loaded = load(file, {})
    except InvalidSettings:
        return
    assert set(loaded.sources.values()) <= {"default", "file", "derived:embedding_model"}
