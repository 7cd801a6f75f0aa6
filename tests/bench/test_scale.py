"""Stores of tiny sizes, measured through the command."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest
from stand_ins import WordEmbedder

from engram.bench.point import ScalePoint
from engram.bench.results import Results
from engram.bench.searching import COLUMNS
from engram.benchmarks.scale import ScalePoint as Documented

SMALL = ("scale", "--sizes", "40", "--queries", "3", "--k", "4")
ALWAYS = {column.name for column in COLUMNS} | {
    "recall_with_embedding", "observe", "spreading", "decay",
}  # fmt: skip


@pytest.fixture
def results(tmp_path):
    def read() -> Results:
        return msgspec.json.decode((tmp_path / "out/scale.json").read_bytes(), type=Results)

    return read


def test_a_run_measures_everything(run, words, results, tmp_path):
    done = run(*SMALL, "--sizes", "60,40", "--out", "out", "--deleted", "--concurrent")
    assert (done.code, done.err) == (0, "")
    kept = results()
    assert [point.n_episodes for point in kept.points] == [40, 60]
    for point in kept.points:
        extra = {name for name in point.latencies if name.startswith("half_deleted")}
        both = {"reading_while_writing", "writing_while_reading"}
        assert len(extra) == 3
        assert set(point.latencies) == ALWAYS | extra | both
        assert all(stats.p50_ms > 0 for stats in point.latencies.values())
        assert point.file_mb == pytest.approx(sum(point.files.values()) / 1e6)
        assert point.graph_file_mb >= point.file_mb
        assert (point.real_share, point.given_texts) == (1.0, 0)
        assert min(point.build_s, point.ingest_per_s, point.graph_s, point.delete_s) > 0
        assert point.warm.open_ms > 0
        assert point.rss_mb == point.warm.rss_mb > point.warm.anonymous_mb > 0
        assert point.cold.first_recall_ms > 0
        assert point.with_model is None  # the stand-in has no name to load it by
        assert point.recall_at_k
    assert (kept.settings["k"], kept.settings["queries"]) == (4, 3)
    assert {"processor", "cores", "memory_gb", "system"} == set(kept.machine)
    assert {"engram", "python", "numpy"} <= set(kept.versions)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "file-size.png", "latency.png", "memory.png", "scale.json",
    ]  # fmt: skip
    for name in ("file-size.png", "latency.png", "memory.png"):
        assert (tmp_path / "out" / name).read_bytes().startswith(b"\x89PNG")


def test_a_finished_size_is_not_measured_again(run, words, results):
    assert run(*SMALL, "--out", "out").code == 0
    (first,) = results().points
    embedded = words.embedded
    done = run(*SMALL, "--sizes", "20,40", "--out", "out")
    assert [line for line in done.lines if line.endswith(" episodes")] == [
        "20 episodes",
        "40 episodes",
    ]
    again = results().points
    assert [point.n_episodes for point in again] == [20, 40]
    assert again[1] == first
    assert words.embedded > embedded


def test_results_of_other_settings_are_kept_apart(run, words, results):
    assert run(*SMALL, "--out", "out").code == 0
    kept = results()
    done = run(*SMALL, "--k", 3, "--out", "out", "--json")
    assert (done.code, done.error["code"]) == (1, "file_exists")
    assert results() == kept


def test_a_file_that_holds_no_results_stays(run, words, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/scale.json").write_text("[]")
    assert run(*SMALL, "--out", "out", "--json").error["code"] == "bad_file"
    assert (tmp_path / "out/scale.json").read_text() == "[]"


def test_without_a_folder_nothing_is_left(run, words, tmp_path):
    document = run(*SMALL, "--json").document
    assert msgspec.convert(document, Results).points[0].n_episodes == 40
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_without_matplotlib_it_says_so(run, words, monkeypatch, tmp_path):
    monkeypatch.setattr("engram.bench.scale.can_draw", lambda: False)
    done = run(*SMALL, "--out", "out")
    assert done.code == 0
    assert "matplotlib" in done.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["scale.json"]


def test_given_texts_and_vectors(run, words, results, tmp_path):
    texts = [f"the {n} birds of island {n % 7} sing tune{n}" for n in range(30)]
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    np.save(tmp_path / "vectors.npy", WordEmbedder().embed(texts))
    done = run(*SMALL, "--texts", "texts.json", "--vectors", "vectors.npy", "--out", "out")
    assert (done.code, done.err) == (0, "")
    (point,) = results().points
    assert point.given_texts == 27  # the last tenth is held out
    assert point.real_share == pytest.approx(27 / 40)
    # Only questions were embedded: nine beforehand, then three to warm up and the three timed ones.
    assert words.embedded == 9 + 3 + 3


def test_fewer_texts_are_embedded_when_asked(run, words, results):
    assert run(*SMALL, "--real", 10, "--out", "out").code == 0
    assert results().points[0].real_share == 0.25


@pytest.mark.parametrize(
    "arguments",
    [["--sizes", "0"], ["--sizes", "a"], ["--sizes", "9"], ["--k", "0"], ["--texts", "no-such"]],
)
def test_a_wrong_command_line_exits_with_2(run, arguments):
    assert run("scale", *arguments).code == 2


def test_vectors_need_their_texts(run, words, tmp_path):
    (tmp_path / "v.f16").write_bytes(b"\0" * 640)
    assert run(*SMALL, "--vectors", "v.f16", "--json").error["code"] == "invalid_argument"


def test_the_documented_name():
    assert Documented is ScalePoint
    point = ScalePoint(10, 0.1, None, 1.0, {})
    assert (point.n_episodes, point.rss_mb, point.latencies) == (10, None, {})
