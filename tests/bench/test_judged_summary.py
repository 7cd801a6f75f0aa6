"""From a file of records to the figures that are printed and published."""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path

import pytest
from recall_records import HEADER, record, write_records

from engram.bench.judged.groups import TYPE_MIX
from engram.bench.judged.measures import CUTS
from engram.bench.judged.printing import print_summary
from engram.bench.judged.summary import json_of
from engram.cli.failures import BadFileError

LOCOMO = {**HEADER, "set": "locomo"}


@pytest.fixture
def figures(tmp_path):
    def of(*records, header=HEADER):
        return json_of(write_records(tmp_path / "records.jsonl", records, header))

    return of


def random_records(count, seed=1, kinds=("",), labels=("cosine", "hybrid")):
    draw = random.Random(seed)
    turns = [f"s{number % 20}#{number}" for number in range(200)]
    found = []
    for number in range(count):
        answers = {
            label: [
                [turn, turn.partition("#")[0], 1 - at / 50, draw.random()]
                for at, turn in enumerate(draw.sample(turns, 50))
            ]
            for label in labels
        }
        kind, gold = kinds[number % len(kinds)], draw.sample(turns, 2)
        found.append(record(f"conv-{number % 6}:{number}", answers, gold, kind=kind))
    return found


def test_sessions_are_ranked_by_their_first_turn_however_deep_that_is(figures):
    flood = [f"a#{number}" for number in range(20)]
    one = record("q", [*flood, "b#0", "c#0"], ["b#0", "c#0"])
    group = figures(one)["groups"]["all"]
    assert [group[f"session_recall_any@{k}"] for k in CUTS] == [0, 1, 1, 1]
    assert group["session_recall_all@5"] == 1
    assert group["session_mrr"] == 0.5
    assert [group[f"turn_recall_any@{k}"] for k in CUTS] == [0, 0, 0, 1]
    assert group["turn_mrr"] == pytest.approx(1 / 21, abs=1e-6)


def test_every_documented_name_is_in_every_group(figures):
    document = figures(*random_records(12, kinds=("a", "b")))
    assert set(document["groups"]) == {"all", "flagged", "a", "b"}
    names = {
        f"{level}_{reading}@{k}"
        for level in ("turn", "session")
        for reading in ("recall_any", "recall_all", "recall", "ndcg")
        for k in (1, 5, 10, 50)
    } | {"turn_mrr", "session_mrr"}
    for group in document["groups"].values():
        assert set(group) == {"n", "n_turn", "interval"} | names
        assert set(group["interval"]) == names


def test_the_reference_names_them_all(figures):
    page = (Path(__file__).parents[2] / "docs/reference/benchmark.md").read_text("utf-8")
    answers = {"hybrid": [["a", "a", 1.0, None]]}
    for title, one in (
        ("## Figures of a group", record("q", ["a#0"], ["a#0"])),
        ("## Figures of documents", record("q", answers, ["a"], grades={"a": 1})),
    ):
        section = page.split(title)[1].split("\n## ")[0]
        named = re.findall(r"^\| `(\S+)` \|", section, re.MULTILINE)
        told = {name.replace("@k", f"@{k}") for name in named for k in CUTS}
        assert set(figures(one)["groups"]["all"]) == told


def test_the_header_is_kept(figures):
    document = figures(record("q", ["a#0"], ["a#0"]), header={**HEADER, "seed": 7, "engram": "1"})
    assert {name: document[name] for name in HEADER} == HEADER
    assert (document["seed"], document["engram"], document["questions"]) == (7, "1", 1)


def test_abstentions_are_left_out_but_where_the_name_says_so(figures):
    groups = figures(
        record("q", ["a#0"], ["a#0"], kind="t"),
        record("r_abs", ["x#0"], ["a#0"], kind="t", abstention=True),
    )["groups"]
    n = {name: group["n"] for name, group in groups.items()}
    assert n == {"all": 1, "all_with_abstention": 2, "flagged": 1, "t": 1}
    assert groups["all"]["session_recall_any@5"] == 1
    assert groups["all_with_abstention"]["session_recall_any@5"] == 0.5


def test_questions_without_evidence_turns_count_for_sessions_alone(figures):
    groups = figures(
        record("q", ["a#0"], ["a#0"]),
        record("r", ["a#0"], gold_sessions=["b"]),
        record("s", ["a#0"]),
    )["groups"]
    assert (groups["all"]["n"], groups["all"]["n_turn"]) == (2, 1)
    assert groups["all"]["turn_recall_any@5"] == 1
    assert groups["all"]["session_recall_any@5"] == 0.5
    assert (groups["flagged"]["n"], groups["flagged"]["session_recall_any@5"]) == (1, 1)


def test_without_evidence_turns_at_all_their_measures_are_unknown(figures):
    group = figures(record("q", ["a#0"], gold_sessions=["a"]))["groups"]["all"]
    assert (group["n_turn"], group["turn_recall_any@5"], group["session_mrr"]) == (0, None, 1)
    assert "turn_recall_any@5" not in group["interval"]


def test_categories(figures):
    kinds = ("1", "2", "3", "4", "5")
    records = [record(f"c:{kind}", ["a#0"], ["a#0" if kind < "4" else "b#0"], kind=kind)
               for kind in kinds]  # fmt: skip
    document = figures(*records, header=LOCOMO)
    groups = document["groups"]
    assert list(groups) == ["all", "1-4", *kinds]
    assert groups["all"]["turn_recall_any@5"] == 0.6
    assert groups["1-4"]["turn_recall_any@5"] == 0.75
    assert (groups["5"]["n"], groups["5"]["turn_recall_any@5"]) == (1, 0)
    assert document["folds"]["hybrid"]["group"] == "1-4"


def test_the_set_decides_the_groups_and_not_what_the_kinds_look_like(figures):
    def asked(*kinds):
        return [record(f"c:{at}", ["a#0"], ["a#0"], kind=kind) for at, kind in enumerate(kinds)]

    document = figures(*asked("1", "5", "6"), header=LOCOMO)
    assert {name: group["n"] for name, group in document["groups"].items()} == {
        "all": 3,
        "1-4": 1,
        "1": 1,
        "5": 1,
        "6": 1,
    }
    assert document["folds"]["hybrid"]["group"] == "1-4"
    typed = figures(*asked("1", "5"))
    assert list(typed["groups"]) == ["all", "flagged", "1", "5"]
    assert typed["folds"]["hybrid"]["group"] == "all"
    adversarial = figures(*asked("5", "6"), header=LOCOMO)
    assert list(adversarial["groups"]) == ["all", "5", "6"]
    assert adversarial["folds"]["hybrid"]["group"] == "all"


def test_types_are_weighted_by_their_natural_mix(figures):
    def typed(kind, number):
        hit = kind == "multi-session"
        return record(f"{kind}{number}", ["a#0"], ["a#0" if hit else "b#0"], kind=kind)

    groups = figures(*(typed(kind, number) for kind in TYPE_MIX for number in range(2)))["groups"]
    assert groups["all"]["turn_recall_any@5"] == pytest.approx(1 / 6, abs=1e-6)
    assert groups["type_weighted"]["turn_recall_any@5"] == pytest.approx(121 / 470, abs=1e-6)
    assert (
        groups["type_weighted"]["interval"]["turn_recall_any@5"]
        == [pytest.approx(121 / 470, abs=1e-6)] * 2
    )


def test_without_all_types_there_is_no_natural_mix(figures):
    groups = figures(record("q", ["a#0"], ["a#0"], kind="multi-session"))["groups"]
    assert "type_weighted" not in groups


def test_intervals_are_about_two_standard_errors_wide(figures):
    records = [record(f"q{number}", ["a#0"], ["a#0" if number % 4 else "b#0"])
               for number in range(400)]  # fmt: skip
    group = figures(*records)["groups"]["all"]
    low, high = group["interval"]["turn_recall_any@5"]
    error = (0.75 * 0.25 / 400) ** 0.5
    assert group["turn_recall_any@5"] == 0.75
    assert low == pytest.approx(0.75 - 1.96 * error, abs=0.006)
    assert high == pytest.approx(0.75 + 1.96 * error, abs=0.006)


def test_variants_and_the_default_first(figures):
    document = figures(*random_records(8, labels=("cosine", "hybrid", "text")))
    assert list(document["variants"]) == ["hybrid", "cosine", "text"]
    assert document["label"] == "hybrid"
    assert document["variants"]["hybrid"] == document["groups"]
    assert "variants" not in figures(record("q", ["a#0"], ["a#0"]))


def test_folds_keep_conversations_whole(figures):
    records = random_records(60, kinds=("1", "4"), labels=("hybrid",))
    folds = figures(*records, header=LOCOMO)["folds"]["hybrid"]
    # Six conversations of ten questions: the sixth joins the first.
    assert folds["n"] == [20, 10, 10, 10, 10]
    means = folds["mean"]["turn_recall_any@10"]
    assert (folds["min"]["turn_recall_any@10"], folds["max"]["turn_recall_any@10"]) == (
        min(means),
        max(means),
    )


def test_the_fold_of_a_question_depends_on_its_id_alone(figures):
    records = random_records(100, labels=("hybrid",))
    n = figures(*records)["folds"]["hybrid"]["n"]
    assert sum(n) == 100
    assert min(n) > 8
    first, second = figures(*records[:50]), figures(*records[50:])
    halves = zip(first["folds"]["hybrid"]["n"], second["folds"]["hybrid"]["n"], strict=True)
    assert [one + other for one, other in halves] == n


def test_how_well_the_best_answer_tells_abstentions(figures):
    def asked(name, score, confidence, *, abstention):
        answers = [] if score is None else [["a#0", "a", score, confidence]]
        return record(name, {"hybrid": answers}, ["a#0"], abstention=abstention)

    records = [
        asked("1", 0.9, 0.8, abstention=False),
        asked("2", 0.8, 0.4, abstention=False),
        asked("3_abs", 1.0, 0.4, abstention=True),
        asked("4_abs", None, None, abstention=True),
    ]
    found = figures(*records)["abstention"]["hybrid"]
    assert (found["n_abstention"], found["n_answerable"]) == (2, 2)
    # Of four pairs three are in order and one is a tie; by score two are in order.
    assert (found["auroc_confidence"], found["auroc_score"]) == (0.875, 0.5)
    low, high = found["interval"]["auroc_confidence"]
    assert low < 0.875 <= high
    unknown = asked("5", 0.9, None, abstention=False)
    assert figures(*records, unknown)["abstention"]["hybrid"]["auroc_confidence"] is None
    assert figures(*records[:2])["abstention"] == {}


def test_k_as_a_share_of_the_haystack(figures):
    found = figures(
        record("q", ["a#0"], ["a#0"], turns=20, sessions=4),
        record("r", ["a#0"], ["a#0"], turns=100, sessions=10),
    )["haystack"]
    assert (found["turns"], found["sessions"]) == (60, 7)
    assert found["turn_share@10"] == pytest.approx((0.5 + 0.1) / 2)
    assert found["session_share@5"] == pytest.approx((1 + 0.5) / 2)


def test_latency_is_of_the_times_beside_the_records(tmp_path):
    file = write_records(tmp_path / "r.jsonl", random_records(3, labels=("hybrid",)))
    assert json_of(file)["latency"] == {}
    times = [
        {"question": "conv-0:0", "ingest": 2.0, "seconds": {"hybrid": 0.01}},
        {"question": "conv-1:1", "ingest": None, "seconds": {"hybrid": 0.03}},
        {"question": "unknown", "ingest": 9.0, "seconds": {"hybrid": 9.0}},
    ]
    lines = "".join(json.dumps(one) + "\n" for one in times)
    (tmp_path / "r.jsonl.times.jsonl").write_text(lines, "utf-8")
    assert json_of(file)["latency"] == {
        "hybrid": {"n": 2, "p50_ms": 20, "p95_ms": 29},
        "ingest": {"n": 1, "p50_ms": 2000, "p95_ms": 2000},
    }


def test_documents(figures):
    answers = {"hybrid": [["x", "x", 1.0, None], ["a", "a", 0.5, None]]}
    judged = record("q", answers, ["a"], grades={"a": 1})
    none = record("r", answers, grades={})
    document = figures(judged, none, header={**HEADER, "set": "scifact"})
    group = document["groups"]["all"]
    assert list(document["groups"]) == ["all"]
    assert (group["n"], group["hit@5"], group["mrr@10"], group["recall@10"]) == (1, 1, 0.5, 1)
    assert group["ndcg@10"] == group["ndcg_binary@10"] == pytest.approx(0.63093, abs=1e-5)


def test_the_same_records_give_the_same_figures(tmp_path):
    records = random_records(30, kinds=("a", "b"))
    file = write_records(tmp_path / "a.jsonl", records)
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert json.dumps(json_of(file)) == json.dumps(json_of(file)) == json.dumps(json_of(packed))


def test_a_run_that_was_killed_is_measured_as_far_as_it_got(tmp_path):
    file = write_records(tmp_path / "a.jsonl", random_records(5))
    file.write_bytes(file.read_bytes()[:-7])
    assert json_of(file)["questions"] == 4


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}\n",
        "nothing\n",
        json.dumps(HEADER) + "\n",
        json.dumps(HEADER) + "\n" + json.dumps({"question": "q"}) + "\n",
        json.dumps(HEADER) + "\n" + json.dumps(record("q", {}, ["a#0"])) + "\n",
        json.dumps(HEADER) + "\n" + json.dumps(record("q", ["a#0"], kind="flagged")) + "\n",
        json.dumps(HEADER) + "\n" + 2 * (json.dumps(record("q", ["a#0"])) + "\n"),
    ],
)
def test_what_are_no_records_is_refused(tmp_path, content):
    file = tmp_path / "records.jsonl"
    file.write_text(content, "utf-8")
    with pytest.raises(BadFileError):
        json_of(file)


def test_what_is_not_compressed_is_refused(tmp_path):
    file = write_records(tmp_path / "records.jsonl.gz", [record("q", ["a#0"])])
    with pytest.raises(BadFileError):
        json_of(file)


def test_what_is_printed(figures, capsys):
    kinds = ("1", "4", "5")
    print_summary(figures(*random_records(30, kinds=kinds), header=LOCOMO))
    printed = capsys.readouterr().out
    for heading in ("locomo: 30 questions, hybrid", "group 1-4", "Five folds", "share of the hay"):
        assert heading in printed
    assert "Questions that nothing answers" not in printed


def test_what_is_printed_of_documents(figures, capsys):
    answers = {"hybrid": [["a", "a", 1.0, None]]}
    print_summary(figures(record("q", answers, ["a"], grades={"a": 1}, turns=40)))
    words = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["all", "1", *["100.0"] * 5] in words
    assert ["documents", "40.0", "2.50", "12.50", "25.00", "100.00"] in words


def test_every_printed_percentage_is_in_the_document(figures, capsys):
    document = figures(*random_records(30, kinds=("a", "b")))
    print_summary(document)
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("all "))
    group = document["groups"]["all"]
    names = ("session_recall_any@5", "session_recall_all@5", "turn_recall_any@5")
    assert row.split()[:6] == ["all", "30", "30", *(f"{100 * group[name]:.1f}" for name in names)]
