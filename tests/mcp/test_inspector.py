"""The protocol's own inspector, in its command line mode; `make inspector` installs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_wire import COMMAND, PROFILES, WRITE
from workers import PATIENCE, environment

INSPECTOR = Path(sys.prefix) / "inspector/node_modules/.bin/mcp-inspector"


def works() -> bool:
    """Whether it is there, whole, and the machine's Node.js runs it."""
    if not INSPECTOR.exists():
        return False
    return subprocess.run([INSPECTOR, "--version"], capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(
    not works(), reason="the inspector is not installed: make inspector, which needs npm"
)

TOOL_FAILED = 5
"""What it exits with when a tool returned an error."""


def inspected(
    folder: Path, profile: str, *options: str, code: int = 0
) -> tuple[dict[str, Any], str]:
    """What the inspector prints about a server, and what it complains of."""
    ended = subprocess.run(
        [str(INSPECTOR), "--cli", *COMMAND, *PROFILES[profile], *options],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder),
        timeout=PATIENCE * 2,
    )
    assert ended.returncode == code, ended.stderr
    return json.loads(ended.stdout), ended.stderr


@pytest.mark.parametrize("profile", PROFILES)
def test_it_finds_nothing_wrong_with_the_tools(profile, tmp_path):
    said, complaints = inspected(tmp_path, profile, "--method", "tools/list", "--strict")
    assert complaints == ""
    assert WRITE[profile][0] in [tool["name"] for tool in said["tools"]]


@pytest.mark.parametrize("profile", PROFILES)
def test_it_calls_tools(profile, tmp_path):
    tool, arguments = WRITE[profile]
    pairs = [f"{name}={value}" for name, value in arguments.items()]
    asked = ("--method", "tools/call", "--tool-name", tool, "--tool-arg")
    said, _ = inspected(tmp_path, profile, *asked, *pairs)
    assert said["isError"] is False
    assert json.loads(said["content"][0]["text"]) == said["structuredContent"]
    said, complaint = inspected(tmp_path, profile, *asked, "nothing=1", code=TOOL_FAILED)
    assert said["isError"] is True
    assert "tool_is_error" in complaint
