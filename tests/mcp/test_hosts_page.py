"""Every configuration in the how-to starts the real server, or would."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from mcp_wire import Wire
from test_docs import ROOT

from engram.mcp.options import Options, command

PAGE = ROOT / "docs/how-to/use-over-mcp.md"
REFERENCE = ROOT / "docs/reference/mcp-memory.md"

HOSTS = {
    "Claude Desktop": "mcpServers",
    "Claude Code": "mcpServers",
    "Cursor": "mcpServers",
    "VS Code": "servers",
    "Windsurf": "mcpServers",
    "Zed": "context_servers",
    "Codex": "mcp_servers",
    "Gemini CLI": "mcpServers",
}
"""What each host calls its servers."""


def parts() -> dict[str, list[str]]:
    """The blocks of each section."""
    text = PAGE.read_text(encoding="utf-8")
    sections = re.split(r"(?m)^## ", text)[1:]
    return {
        section.partition("\n")[0]: re.findall(r"(?ms)^```text\n(.*?)^```$", section)
        for section in sections
    }


def servers(block: str) -> list[dict[str, Any]]:
    """The servers that a block configures; none if it configures nothing."""
    if block.startswith("{"):
        ((_, found),) = json.loads(block).items()
        return list(found.values())
    if block.startswith("["):
        return list(tomllib.loads(block)["mcp_servers"].values())
    return list(_commands(block))


def _commands(block: str) -> Iterator[dict[str, Any]]:
    for line in block.splitlines():
        words = shlex.split(line) if "engram-mcp" in line else []
        places = [place for place, word in enumerate(words) if word.endswith("engram-mcp")]
        for place in places[:1]:
            arguments = words[place + 1 :]
            if "--method" in arguments:
                arguments = arguments[: arguments.index("--method")]
            yield {"command": words[place], "args": arguments}


CONFIGURED = [
    (section, server)
    for section, found in parts().items()
    for block in found
    for server in servers(block)
]


def test_every_host_has_a_configuration_in_its_own_form():
    found = parts()
    for host, name in HOSTS.items():
        forms = [block for block in found[host] if block.startswith(("{", "["))]
        assert forms, host
        for block in forms:
            read = json.loads(block) if block.startswith("{") else tomllib.loads(block)
            assert list(read) == [name], host


@pytest.mark.parametrize(("section", "server"), CONFIGURED)
def test_its_options_are_taken(section, server, tmp_path, monkeypatch):
    (tmp_path / ".config/engram").mkdir(parents=True)
    (tmp_path / ".config/engram/passphrase").write_text("of several words")
    (tmp_path / ".config/engram/passphrase").chmod(0o600)
    taken: list[Options] = []
    assert set(server) <= {"type", "command", "args", "env"}
    assert server["command"].endswith("engram-mcp")

    def here(text: str) -> str:
        return text.replace("/home/me", str(tmp_path)).replace("${HOME}", str(tmp_path))

    (tmp_path / "work/atlas").mkdir(parents=True)
    variables = {name: here(value) for name, value in server.get("env", {}).items()}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    arguments = [here(argument) for argument in server.get("args", [])]
    command(taken.append).main(arguments, standalone_mode=False)
    (options,) = taken
    if options.profile == "engram":
        assert options.db.endswith(".engram"), section
    else:
        with Wire(tmp_path, arguments, **variables) as wire:
            wire.shake()
            paths = wire.done("memory_config")["effective"]
            assert paths["store_path"] == str(tmp_path / "work/atlas/.engram/engram.db")


def test_every_variable_of_the_page_is_read():
    said = PAGE.read_text(encoding="utf-8") + REFERENCE.read_text(encoding="utf-8")
    for name in set(re.findall(r"ENGRAM_[A-Z_]+", said)):
        read = [file for file in (ROOT / "engram").rglob("*.py") if name in file.read_text()]
        assert read, name


def test_the_model_is_told_of_tools_that_there_are(tmp_path):
    (told,) = parts()["What to tell the model"]
    with Wire(tmp_path) as wire:
        wire.shake()
        tools = {tool["name"]: tool for tool in wire.ask("tools/list")["tools"]}
    for name in ("recall", "remember", "forget"):
        assert name in told
        assert name in tools
    assert "read_untrusted" in tools["remember"]["inputSchema"]["properties"]


def test_the_table_of_the_memory_tools_is_true(tmp_path):
    rows = re.findall(r"(?m)^\| `(memory_\w+)` \| (.*) \|$", REFERENCE.read_text(encoding="utf-8"))
    with Wire(tmp_path, ("--profile", "memory", "--db", "a.engram")) as wire:
        wire.shake()
        tools = {tool["name"]: tool["inputSchema"] for tool in wire.ask("tools/list")["tools"]}
    assert [name for name, _ in rows] == list(tools)
    for name, said in rows:
        outside = re.sub(r"\([^)]*\)", "", said)
        assert re.findall(r"`(\w+)`", outside) == list(tools[name]["properties"]), name
        assert re.findall(r"\*\*`(\w+)`\*\*", said) == tools[name]["required"], name


def test_blocks_of_the_page_are_found():
    assert len(CONFIGURED) == 15
