"""Every block of the README and the docs runs, and prints what it says it prints.

Python blocks of one page share a namespace, console blocks a folder. In console blocks a line that
starts with `$` is a command, the lines below it are its output, `...` stands for any text. `make`
targets are what continuous integration itself runs, so here only their recipes are resolved.
"""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
MODULES = {"engram": "engram", "engram-bench": "engram.benchmarks"}
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(kind, body) for _, kind, body in BLOCK.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_is_true(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kinds, bodies = zip(*blocks(page), strict=True) if blocks(page) else ((), ())
    if any("set_tracer_provider" in body for body in bodies):
        # A process does that once, for good.
        assert set(kinds) == {"python"}
        subprocess.run([sys.executable, "-c", "\n".join(bodies)], check=True)
        return
    namespace: dict[str, object] = {"__name__": "__main__"}
    for kind, body in zip(kinds, bodies, strict=True):
        if kind == "python":
            exec(compile(body, str(page), "exec"), namespace)
        elif kind == "console":
            for command, output in commands(body):
                run(command, output, tmp_path)
        else:
            assert kind == "text", f"a block marked {kind!r} is run by nobody"


def commands(body: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in body.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].strip(), ""))
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def run(command: str, output: str, folder: Path) -> None:
    program, *arguments = shlex.split(command)
    if program == "make":
        subprocess.run(["make", "--dry-run", *arguments], cwd=ROOT, check=True, capture_output=True)
        return
    assert program in MODULES, f"nobody runs {program}"
    done = subprocess.run(
        [sys.executable, "-m", MODULES[program], *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    if output:
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        same = doctest.OutputChecker().check_output(output, done.stdout, flags)
        assert same, f"$ {command}\n{done.stdout}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_every_command_is_in_the_reference():
    done = subprocess.run(
        [sys.executable, "-m", "engram", "--help"], capture_output=True, text=True, check=True
    )
    names = re.findall(r"^  ([a-z-]+) +\S", done.stdout.split("Commands:")[1], re.MULTILINE)
    reference = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    assert names
    for name in names:
        assert f"$ engram {name}" in reference, name
