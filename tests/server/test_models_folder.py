"""Where the server's trainer writes models: what one store or agent taught answers no other."""

from __future__ import annotations

from pathlib import Path

from engram.server.settings import load


def folder(tmp_path: Path, project: str, agent: str = "") -> Path:
    settings = tmp_path / project / ".engram"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "engram.toml").write_text(f'[server]\nagent = "{agent}"\n' if agent else "")
    return load({"HOME": str(tmp_path / "home")}, settings.parent).models_path


def test_every_store_and_every_agent_has_a_folder_of_its_own(tmp_path):
    wanted = [("a", ""), ("b", ""), ("a", "alice"), ("a", "bob"), ("b", "alice")]
    folders = [folder(tmp_path, *one) for one in wanted]
    assert len(set(folders)) == len(wanted)
    assert {one.parent for one in folders} == {tmp_path / "home/.engram/models"}
    assert [folder(tmp_path, *one) for one in wanted] == folders
