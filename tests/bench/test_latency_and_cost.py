"""The ways in, and the two commands that need no disk."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import engram

COMMANDS = [
    "all", "compare", "cost", "ir", "latency", "locomo", "longmemeval", "plot", "scale",
]  # fmt: skip


def test_without_a_command_there_is_help_on_stdout(run):
    done = run()
    assert (done.code, done.err) == (1, "")
    assert done.out == run("--help").out
    names = [line.split()[0] for line in done.out.partition("Commands:\n")[2].splitlines()]
    assert names == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(run, command):
    done = run(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert "--json" in done.out


def test_version(run):
    assert run("--version").out == f"engram-bench {engram.__version__}\n"


@pytest.mark.parametrize("arguments", [["no-such"], ["latency", "--n", "1"], ["cost", "--n", "0"]])
def test_a_wrong_command_line_exits_with_2(run, arguments):
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Usage: engram-bench" in done.err
    assert run(*arguments, "--json").error["code"] == "usage"


def test_latency(run, words):
    done = run("latency", "--n", 20)
    assert (done.code, done.err) == (0, "")
    assert done.lines[:3] == ["=" * 60, "Latency: 20 episodes in memory, k=5", "=" * 60]
    assert done.lines[3].split() == ["p50", "ms", "p99", "ms", "mean", "ms", "per", "second"]
    rows = [line.split() for line in done.lines[4:]]
    assert [row[0] for row in rows] == ["observe", "recall_cosine", "recall_spreading"]
    assert all(float(cell.replace(",", "")) > 0 for row in rows for cell in row[1:])
    # Written twice, once one by one; both kinds of question are embedded, none twice.
    assert words.embedded == 25 + 20 + 15 + 15


def test_latency_as_json(run, words):
    document = run("latency", "--n", 12, "--k", 3, "--json").document
    assert (document["n"], document["k"]) == (12, 3)
    assert set(document["rows"]) == {"observe", "recall_cosine", "recall_spreading"}
    for row in document["rows"].values():
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"]


def test_cost_counts_every_episode(run, monkeypatch):
    done = run("cost", "--n", 30)
    assert (done.code, done.err) == (0, "")
    assert done.lines[0] == "=" * 60
    assert "Runs: 1" in done.lines
    models = [line.split()[0] for line in done.lines[-4:]]
    assert models == ["claude-haiku-4.5", "claude-sonnet-4.6", "gpt-4o-mini", "gpt-4o"]


def test_cost_grows_with_the_episodes(run):
    """A reflection reads so many at a time, and the benchmark goes on until none waits."""
    few, many = (run("cost", "--n", n, "--json").document for n in (50, 450))
    assert (few["runs"], many["runs"]) == (1, 3)
    assert many["tokens_read"] > 7 * few["tokens_read"]
    assert many["tokens_written"] == 3 * 3 * 60
    assert many["tokens"] == many["tokens_read"] + many["tokens_written"]
    assert many["tokens_per_1k_episodes"] == round(many["tokens"] / 0.45)


def test_cost_of_one_model(run):
    document = run("cost", "--n", 10, "--model", "gpt-4o-mini", "--json").document
    (price,) = document["usd_per_1k_episodes"].items()
    dollars = (0.15 * document["tokens_read"] + 0.6 * document["tokens_written"]) / 10_000
    assert price == ("gpt-4o-mini", pytest.approx(dollars, abs=1e-6))


def test_cost_of_an_unknown_model(run):
    done = run("cost", "--model", "gpt-0")
    assert (done.code, done.out) == (1, "")
    assert "gpt-4o-mini" in done.err


def test_all_runs_latency_and_cost(run, words, monkeypatch):
    done = run("all")
    assert done.code == 0
    assert [line.split(":")[0] for line in done.lines if ": 200 episodes" in line] == [
        "Latency",
        "Cost of reflection",
    ]
    document = run("all", "--json").document
    assert set(document) == {"latency", "cost"}


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "engram.benchmarks", "cost", "--n", "5", "--json"],
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["n"] == 5
