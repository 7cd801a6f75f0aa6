"""`engram observe` as section 14 documents it."""

from __future__ import annotations

import pytest

from engram import Engram


def test_it_makes_the_store_and_prints_what_it_remembered(run, path):
    done = run("observe", path, "Tea at five", "--actors", "Ana", "Ben", "--tags", "x", "y")
    assert (done.code, done.err) == (0, "")
    with Engram(path) as memory:
        (episode,) = memory.episodes().episodes
    assert done.lines == [
        f"Observed: {episode.id}",
        '  "Tea at five"',
        "  actors: Ana, Ben",
        "  tags: x, y",
    ]
    assert (episode.actors, episode.tags) == (["Ana", "Ben"], ["x", "y"])
    assert (episode.provenance, episode.salience, episode.agent_id) == ("external", 0.5, None)


def test_without_actors_and_tags_there_are_no_lines_for_them(run, path):
    assert len(run("observe", path, "alone").lines) == 2


def test_json_is_the_episode_as_stored(run, path):
    done = run(
        "observe", path, "Früh am Morgen 🌅", "--json", "--salience", "0.9", "--valence", "-0.5",
        "--timestamp", "2026-05-01T10:00+02:00", "--provenance", "tool", "--agent-id", "ana",
    )  # fmt: skip
    document = done.document
    assert document.pop("id")
    assert document == {
        "content": "Früh am Morgen 🌅",
        "timestamp": "2026-05-01T08:00:00Z",
        "actors": [],
        "tags": [],
        "salience": 0.9,
        "emotional_valence": -0.5,
        "summary_of": [],
        "importance_score": 1.0,
        "agent_id": "ana",
        "provenance": "tool",
        "quarantined": False,
    }


@pytest.mark.parametrize(
    "options",
    [
        ["--tags", "a", "b", "c"],
        ["--tags", "a", "--tags", "b", "c"],
        ["--tags=a", "--tags=b", "--tags", "c"],
        ["--tags", "a", "b", "--salience", "0.1", "--tags=c"],
    ],
)
def test_several_values_may_follow_an_option_or_repeat_it(run, path, options):
    assert run("observe", path, "text", *options, "--json").document["tags"] == ["a", "b", "c"]


def test_values_that_look_like_options_can_be_given(run, path):
    done = run("observe", path, "--tags=-x", "--tags", "-", "--json", "--", "--tags")
    assert (done.document["tags"], done.document["content"]) == (["-x", "-"], "--tags")


@pytest.mark.parametrize("options", [["--tags"], ["--tags", "--actors", "a"]])
def test_an_option_without_a_value_is_a_usage_error(run, path, options):
    done = run("observe", path, "text", *options)
    assert done.code == 2
    assert "Option '--tags' needs at least one value." in done.err
    assert not path.exists()


@pytest.mark.parametrize(
    "content",
    ["", " ", "🐝🌻", "明日は東京へ行きます", "مرحبا", "a\tb\nc", "word " * 2000],
    ids=["empty", "blank", "emoji", "cjk", "rtl", "lines", "huge"],
)
def test_any_text_is_kept_as_it_is(run, path, content):
    assert run("observe", path, content, "--json").document["content"] == content
    assert run("observe", path, content).code == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--salience", "1.5"], "error: salience must be between 0 and 1"),
        (["--salience", "nan"], "error: salience must be a finite number"),
        (["--valence", "-2"], "error: emotional_valence must be between -1 and 1"),
        (["--timestamp", "yesterday"], "error: --timestamp is no date: 'yesterday'"),
        (["--timestamp", "0001-01-01T00:00+05:00"], "error: --timestamp is no date"),
        (["--model", "no-such-model"], "error: there is no embedding model 'no-such-model'"),
    ],
)
def test_a_refused_value_is_an_error_and_nothing_is_written(run, path, options, text):
    done = run("observe", path, "text", *options)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(text)
    if path.exists():
        with Engram(path) as memory:
            assert memory.count() == 0


def test_bytes_that_are_no_text_are_refused(run, path):
    error = run("observe", path, "\udcff", "--json").error
    assert error["code"] == "invalid_argument"


@pytest.mark.parametrize("options", [["--salience", "much"], ["--provenance", "gossip"], ["x"]])
def test_a_wrong_command_line_exits_with_2(run, path, options):
    done = run("observe", path, "text", *options)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: engram observe")


def test_a_folder_is_no_store(run, tmp_path):
    done = run("observe", tmp_path, "text")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: not a file: {tmp_path}")
    assert run("observe", "", "text").err.startswith("error: not a file: (an empty path)")
    assert run("observe", tmp_path / "missing" / "a.engram", "text").code == 1
