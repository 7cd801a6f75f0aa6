"""The page on recall quality says what the records beside it say."""

from __future__ import annotations

import json
import re

import pytest
from recall_quality import PAGE, RESULTS, differences, trimmed
from recall_quality_page import NAMES, TABLE, TABLES, fill

from engram.bench.judged.records import read
from engram.bench.judged.summary import summary


@pytest.fixture(scope="module")
def figures():
    return json.loads((RESULTS / "summary.json").read_text())


@pytest.fixture(scope="module")
def latency():
    return json.loads((RESULTS / "latency.json").read_text())


def test_every_table_is_made_of_the_figures(figures, latency, tmp_path):
    page = tmp_path / "page.md"
    text = PAGE.read_text(encoding="utf-8")
    page.write_text(TABLE.sub(r"\1\3", text), encoding="utf-8")
    fill(page, figures, latency)
    assert page.read_text(encoding="utf-8") == text
    assert sorted(found[2] for found in TABLE.finditer(text)) == sorted(TABLES)


def test_all_that_is_not_a_table_stays(figures, latency, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n<!-- table sets -->\nold\n<!-- end -->\nText.\n")
    fill(page, figures, latency)
    filled = page.read_text()
    assert filled.startswith("# Title\n<!-- table sets -->\n")
    assert filled.endswith("<!-- end -->\nText.\n")
    assert "old" not in filled
    assert all(name in filled for name in NAMES.values())


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_those_of_the_records(figures, name):
    records = read(RESULTS / f"{name}.jsonl.gz")
    document = summary(records)
    del document["latency"]
    assert figures["runs"][name] == trimmed(document)
    assert figures["differences"][name] == differences(records, records)


@pytest.mark.parametrize("name", NAMES)
def test_records_hold_no_text(name):
    records = read(RESULTS / f"{name}.jsonl.gz")
    for record in records.records:
        for answer in record.answers["hybrid"]:
            assert not re.search(r"\s", answer[0] + answer[1])
    assert not re.search(r"/(home|tmp|root)/", json.dumps(records.header))


def test_the_targets_of_the_page_are_read_as_they_are(figures, latency):
    reached = figures["runs"]["locomo"]["variants"]["hybrid"]["1-4"]["turn_recall_any@5"]
    row = next(line for line in TABLES["targets"](figures, latency).splitlines() if "76.0" in line)
    assert f"**{100 * reached:.1f}**" in row
    assert ("missed" in row) == (round(100 * reached, 1) < 76)


def test_the_page_begins_with_what_it_is_not():
    first = PAGE.read_text(encoding="utf-8").split("\n\n")[1]
    assert first.startswith("Retrieval is not question answering")
