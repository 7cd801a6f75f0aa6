"""The page of weak spots answers for every one of them, and the tests it names exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/design/weak-spots.md"
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`([^`]+\.py::[^`]+)`")
WEAK_SPOTS = 51
ELSEWHERE = (
    "the index issue",
    "the MCP issue",
    "the adapters issue",
    "the recall-quality issue",
)


def rows() -> list[tuple[str, ...]]:
    return ROW.findall(PAGE.read_text(encoding="utf-8"))


def test_every_weak_spot_has_its_row():
    assert [int(row[0]) for row in rows()] == list(range(1, WEAK_SPOTS + 1))


def test_every_row_is_shown_by_a_test_or_says_why_not():
    for number, *_, shown in rows():
        assert TEST.search(shown) or shown.strip().endswith(ELSEWHERE), number


def test_every_named_test_exists():
    for file, _, name in (test.partition("::") for test in TEST.findall(PAGE.read_text("utf-8"))):
        scope = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8")).body
        for part in name.split("::"):
            found = [
                node
                for node in scope
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == part
            ]
            assert found, f"{file}::{name}"
            scope = found[0].body
