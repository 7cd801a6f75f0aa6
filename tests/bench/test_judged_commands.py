"""`engram-bench compare` and `engram-bench plot`."""

from __future__ import annotations

import pytest
from recall_records import HEADER, record, write_records

HIT, MISS = ["a#0"], ["x#0"]


@pytest.fixture
def runs(tmp_path):
    """Two runs: of ten questions the second wins three, loses one and answers one that is new."""
    before = [record(f"q{n}", HIT if n >= 3 else MISS, ["a#0"], kind="t") for n in range(10)]
    after = [record(f"q{n}", MISS if n == 9 else HIT, ["a#0"], kind="t") for n in range(10)]
    new = record("new", HIT, ["a#0"], kind="t")
    return (
        write_records(tmp_path / "before.jsonl", before),
        write_records(tmp_path / "after.jsonl", [*reversed(after), new]),
    )


def test_wins_losses_and_the_paired_difference(run, runs):
    document = run("compare", *runs, "--json").document
    assert (document["questions"], document["only_first"], document["only_second"]) == (10, 0, 1)
    assert set(document["groups"]) == {"all", "flagged", "t"}
    one = document["groups"]["all"]["turn_recall_any@5"]
    assert (one["wins"], one["losses"], one["ties"], one["n"]) == (3, 1, 6, 10)
    assert (one["first"], one["second"], one["difference"]) == (0.7, 0.9, 0.2)
    low, high = one["interval"]
    assert low < 0.2 < high
    assert -0.3 < low < 0.0


def test_the_other_way_round_is_the_negative(run, runs):
    there = run("compare", *runs, "--json").document["groups"]["all"]["turn_mrr"]
    back = run("compare", *reversed(runs), "--json").document["groups"]["all"]["turn_mrr"]
    assert back["difference"] == -there["difference"]
    assert (back["wins"], back["losses"]) == (there["losses"], there["wins"])


def test_a_run_against_itself_is_no_better_and_no_worse(run, runs):
    same = run("compare", runs[0], runs[0], "--json").document["groups"]["all"]
    assert {tuple(one["interval"]) for one in same.values()} == {(0.0, 0.0)}
    assert {one["ties"] for one in same.values()} == {10}


def test_two_labels_of_one_run(run, tmp_path):
    answers = {"hybrid": [["a#0", "a", 1, None]], "text": [["x#0", "x", 1, None]]}
    file = write_records(tmp_path / "r.jsonl", [record("q", answers, ["a#0"])])
    labels = ("--label", "text", "--second-label", "hybrid")
    one = run("compare", file, file, *labels, "--json").document["groups"]["all"]["turn_mrr"]
    assert (one["first"], one["second"], one["wins"]) == (0, 1, 1)


def test_questions_without_evidence_in_one_of_the_runs_are_left_out(run, tmp_path):
    both, only = record("q", HIT, ["a#0"]), record("r", HIT, ["a#0"])
    first = write_records(tmp_path / "a.jsonl", [both, only])
    second = write_records(tmp_path / "b.jsonl", [both, record("r", HIT, gold_sessions=["a"])])
    group = run("compare", first, second, "--json").document["groups"]["all"]
    assert (group["turn_mrr"]["n"], group["session_mrr"]["n"]) == (1, 2)


def test_the_printed_table(run, runs):
    outcome = run("compare", *runs)
    assert outcome.code == 0
    row = next(line for line in outcome.lines if line.startswith("T any@5"))
    assert row.split()[2:6] == ["10", "70.0", "90.0", "+20.0"]
    assert row.split()[-3:] == ["3", "1", "6"]


def test_an_unknown_label_is_refused(run, runs):
    outcome = run("compare", *runs, "--label", "dense", "--json")
    assert outcome.error["code"] == "invalid_argument"
    assert "hybrid" in outcome.error["hint"]


def test_runs_over_other_data_are_refused(run, runs, tmp_path):
    other = write_records(
        tmp_path / "o.jsonl", [record("q0", HIT, ["a#0"])], {**HEADER, "data_sha256": "0"}
    )
    assert run("compare", runs[0], other, "--json").error["code"] == "invalid_argument"


def test_runs_without_a_common_question_are_refused(run, runs, tmp_path):
    other = write_records(tmp_path / "o.jsonl", [record("z", HIT, ["a#0"])])
    assert run("compare", runs[0], other, "--json").error["code"] == "invalid_argument"


def test_plots(run, runs, tmp_path):
    files = run("plot", runs[0], "--out", tmp_path / "plots", "--json").document["files"]
    names = {"turn-recall.png", "session-recall.png", "recall-by-group.png"}
    assert {file.rpartition("/")[2] for file in files} == names
    for name in names:
        assert (tmp_path / "plots" / name).read_bytes().startswith(b"\x89PNG")


def test_documents_have_no_such_plots(run, tmp_path):
    judged = record("q", {"hybrid": [["a", "a", 1, None]]}, ["a"], grades={"a": 1})
    file = write_records(tmp_path / "r.jsonl", [judged])
    assert run("plot", file, "--json").error["code"] == "invalid_argument"
