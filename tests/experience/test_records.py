"""Experiences, judgements and consolidations lose nothing in an export of lines."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from stand_ins import WordEmbedder

from engram import Engram
from engram.errors import InvalidArgument, InvalidType
from engram.experience import ImportedExperience

EARLY = ImportedExperience(
    id="early",
    memory_type="insight",
    context="é \n",
    action="",
    result="\n",
    score=-2.5,
    created_at="1950-01-01",
    updated_at="1960-01-01T00:00:00Z",
    used_count=3,
    tags=("a", "b"),
    project="/srv/atlas",
    parent_id="nobody",
    source_ids="x",
    insight_type="cluster",
    last_used_at="1955-01-01T00:00:00Z",
)


@pytest.fixture
def full(experiences, memory):
    """A store with everything that experiences have."""
    experiences.import_experiences([EARLY])
    ids = [experiences.store(f"c{n}", "a", "", project="p", tags=["T"]).id for n in range(4)]
    memory.observe("an episode that was judged")
    store = experiences._store
    with store.writing():
        run = store._connection.execute
        run("INSERT INTO judgement SELECT id, 0.75, 7 FROM episode WHERE content LIKE 'an %'")
        run("UPDATE episode SET status = 'superseded', status_changed_at = 5 WHERE id = 3")
        run("UPDATE experience SET superseded_by = (SELECT uid FROM episode WHERE id = 2)"
            " WHERE episode = 3")  # fmt: skip
        run("INSERT INTO consolidation VALUES (1, 'run', 5), (2, 'other', 6)")
        run(
            "INSERT INTO consolidation_step VALUES (NULL, 'step', 1, 'merge', ?, 'alike', 'me',"
            " '{\"added\": []}', 5, 9)",
            (json.dumps(ids[:2]),),
        )
    return memory


def test_lines_lose_nothing(full, experiences, opened, open_memory, file, tmp_path):
    counts = full.export_lines(file)
    assert (counts["episode"], counts["experience"]) == (6, 5)
    assert (counts["consolidation"], counts["consolidation_step"]) == (2, 1)
    other = open_memory(path=tmp_path / "other.engram")
    assert other.import_lines(file) == counts
    again = tmp_path / "again"
    other.export_lines(again)
    assert again.read_bytes() == file.read_bytes()
    copy = opened(path=tmp_path / "other.engram")
    assert copy.export() == experiences.export()
    assert copy.get("early") == experiences.get("early")
    assert copy.check() == []
    # What was found by its digest still is.
    assert copy.store("c0", "a", "", project="p").deduplicated
    assert copy.store("c0 ", "a", "", project="p").deduplicated


def test_a_merge_skips_what_is_there(full, experiences, open_memory, file, tmp_path):
    full.export_lines(file)
    before = experiences.export()
    assert not any(full.import_lines(file, merge=True).values())
    assert experiences.export() == before
    full.forget("early")
    counts = full.import_lines(file, merge=True)
    assert {kind: n for kind, n in counts.items() if n} == {"episode": 1, "experience": 1}
    assert experiences.get("early").insight_type == "cluster"
    other = open_memory(path=tmp_path / "other.engram")
    other.import_lines(file)
    with pytest.raises(InvalidArgument, match="holds this id"):
        other.import_lines(file)


def test_an_agent_exports_its_own(opened, open_memory, file):
    for agent in ("ann", "bob"):
        opened(agent).store("c", "a", "r", memory_type="insight")
    counts = open_memory("ann").export_lines(file)
    assert (counts["episode"], counts["experience"]) == (1, 1)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("experience", {"context_bytes": 1}),
        ("experience", {"context_bytes": 2**40}),
        ("experience", {"action_bytes": 2}),
        ("experience", {"memory_type": "opinion"}),
        ("experience", {"insight_type": "odd"}),
        ("experience", {"given_times": "[]"}),
        ("experience", {"given_times": "{"}),
        ("experience", {"given_times": '{"created_at": 5}'}),
        ("experience", {"given_times": '{"other": "x"}'}),
        ("experience", {"used_count": -1}),
        ("experience", {"digest": "AAAA"}),
        ("episode", {"judgement": {"score": "x"}}),
        ("episode", {"judgement": {"score": 1e301}}),
        ("episode", {"judgement": {}}),
        ("episode", {"judgement": [1]}),
        ("consolidation_step", {"memories": "{}"}),
        ("consolidation_step", {"memories": "[1]"}),
        ("consolidation_step", {"memories": "["}),
        ("consolidation_step", {"before": "[]"}),
        ("consolidation_step", {"before": "{"}),
        ("consolidation_step", {"before": '{"added": 5}'}),
        ("consolidation_step", {"before": '{"added": null}'}),
        ("consolidation_step", {"before": '{"added": "tag"}'}),
        ("consolidation_step", {"before": '{"added": ["tag", 1]}'}),
        ("consolidation_step", {"before": '{"taken": []}'}),
        ("consolidation_step", {"memories": "[]"}),
        ("consolidation_step", {"memories": '["one"]'}),
        ("consolidation_step", {"action": "archive"}),
        ("consolidation_step", {"action": "burn"}),
        ("consolidation_step", {"run": "nobody"}),
    ],
)
def test_what_no_store_could_hold_stays_out(full, open_memory, file, tmp_path, kind, change):
    full.export_lines(file)
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    next(line for line in lines if line.get("kind") == kind).update(change)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    other = open_memory(path=tmp_path / "other.engram")
    with pytest.raises((InvalidArgument, InvalidType), match="line"):
        other.import_lines(file)
    assert other.count() == 0


def test_a_backup_holds_all(full, experiences, opened, tmp_path):
    full.backup(tmp_path / "copy.engram")
    copy = opened(path=tmp_path / "copy.engram")
    assert copy.export() == experiences.export()
    assert copy.check() == []


def test_texts_that_wait_are_embedded_by_an_import(opened, open_memory, file, tmp_path):
    class Missing(WordEmbedder):
        def embed(self, texts):
            raise RuntimeError

    memory = opened(embedder=Missing())
    memory.import_experiences([replace(EARLY, id="waiting")])
    with Engram(memory._store.path, embedder=WordEmbedder()) as plain:
        plain.export_lines(file)
    open_memory(path=tmp_path / "other.engram").import_lines(file)
    copy = opened(path=tmp_path / "other.engram")
    assert copy.status().waiting == 0
    assert copy.get("waiting").indexed
    assert copy.check() == []
