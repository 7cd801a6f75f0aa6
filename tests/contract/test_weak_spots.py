"""The pages of weak spots answer for every one of them, and the tests they name exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DESIGN = ROOT / "docs/design"
# How many weak spots each page answers for.
PAGES = {"weak-spots.md": 51, "weak-spots-socket.md": 22}
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`([^`]+\.py::[^`]+)`")
ELSEWHERE = "the recall-quality issue"


@pytest.fixture(params=PAGES)
def page(request) -> Path:
    return DESIGN / request.param


def rows(page: Path) -> list[tuple[str, ...]]:
    return ROW.findall(page.read_text(encoding="utf-8"))


def test_every_weak_spot_has_its_row(page):
    assert [int(row[0]) for row in rows(page)] == list(range(1, PAGES[page.name] + 1))


def test_every_row_is_shown_by_a_test_or_says_why_not(page):
    for number, *_, shown in rows(page):
        assert TEST.search(shown) or shown.strip().endswith(ELSEWHERE), number


def test_every_named_test_exists(page):
    for file, _, name in (test.partition("::") for test in TEST.findall(page.read_text("utf-8"))):
        scope = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8")).body
        for part in name.split("::"):
            found = [
                node
                for node in scope
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == part
            ]
            assert found, f"{file}::{name}"
            scope = found[0].body
