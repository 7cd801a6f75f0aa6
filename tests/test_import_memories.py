"""Memories of other programs: what their files say is what the store says afterwards."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_ins import WordEmbedder

from engram import Engram, paths
from engram.errors import EngramError, InvalidArgument, InvalidType
from engram.ledger import Ledger
from engram.transfer.forms import form_of

Memory = dict[str, Any]
CANARY = "kanarienvogel"


@pytest.fixture(params=["document", "lines"])
def write(request: pytest.FixtureRequest, file: Path) -> Callable[..., Path]:
    """Write memories in either form."""

    def written(*memories: Memory) -> Path:
        if request.param == "lines":
            text = "\n\n".join(json.dumps(memory) for memory in memories) + "\n"
        else:
            text = json.dumps({"version": "1.0", "memories": memories}, indent=1)
        file.write_text(text)
        return file

    return written


def vector(text: str, embedder: WordEmbedder | None = None, scale: float = 1.0) -> str:
    numbers = (embedder or WordEmbedder()).vector(text) * scale
    return base64.b64encode(numbers.astype("<f4").tobytes()).decode()


def test_every_member_has_its_place(memory, path, write):
    src = write(
        {
            "id": "m-1", "content": "The ferry leaves at noon", "source_file": "/p/notes.md",
            "source_type": "remember:human", "layer": "procedural", "memory_type": "fact",
            "importance": 0.9, "access_count": 7, "created_at": "2025-01-02T00:00:00Z",
            "last_accessed": 1735900000.5, "fact_date": "2024-12-24", "emotional_valence": -0.5,
            "fact_date_end": "2024-12-26", "chunk_hash": "abc", "unheard_of": {"a": 1},
            "metadata": {"b": [1, {"c": None}], "a": "é"},
        },
        {"id": "m-2", "content": "", "metadata": None, "status": None, "importance": None},
    )  # fmt: skip
    assert memory.import_memories(src) == {"memories": 2, "entities": 0, "edges": 0}
    episode = memory.get("m-1")
    assert (episode.salience, episode.importance_score) == (0.9, 0.9)
    assert episode.emotional_valence == -0.5
    assert episode.timestamp.isoformat() == "2024-12-24T00:00:00+00:00"
    assert episode.provenance == "user"
    assert episode.metadata == {
        "b": [1, {"c": None}], "a": "é", "fact_date_end": "2024-12-26",
    }  # fmt: skip
    with Ledger(path) as ledger:
        [found] = ledger.recent("/p")
        assert (found.id, found.layer, found.memory_type) == ("m-1", "procedural", "fact")
        assert found.created_at == 1735776000.0
    with memory._store.reading():
        row = memory._store._connection.execute(
            "SELECT access_count, last_accessed_at FROM strength"
        ).fetchall()
        assert row == [(7, 1735900000500000)]
    assert memory.recall("ferry noon", k=1)[0].episode.id == "m-1"
    assert memory.check() == []


def test_unavailable_memories_stay_unavailable(memory, path, write):
    states = [
        {"status": "superseded"}, {"status": "Active"}, {"forgotten": True}, {"forgotten": 1},
        {"metadata": {"invalidated": True}}, {"metadata": {"invalidated": "no"}},
    ]  # fmt: skip
    open_ones = [{"status": "active"}, {"forgotten": False}, {"metadata": {"invalidated": 0}}]
    src = write(
        *(
            {"id": str(n), "content": "tea", "source_file": "/p/x"} | state
            for n, state in enumerate([*states, *open_ones])
        )
    )
    memory.import_memories(src)
    with Ledger(path) as ledger:
        assert [m.id for m in ledger.recent("/p")] == ["6", "7", "8"]
        for n in range(6):
            ledger.restore(str(n))
        assert len(ledger.recent("/p", limit=20)) == 9
    assert memory.check() == []


@pytest.mark.parametrize("fact_date", ["2025-03", "last spring", "2025-13-01"])
def test_a_date_that_is_not_exact_is_kept_as_it_is(memory, write, fact_date):
    src = write({"id": "m", "content": "tea", "created_at": 1e9, "fact_date": fact_date})
    memory.import_memories(src)
    assert memory.get("m").timestamp.timestamp() == 1e9
    assert memory.get("m").metadata == {"fact_date": fact_date}


BAD: dict[str, list[object]] = {
    "id": [None, "", 3, " x", "x" * 201, "evidence-1", "fact:2", "\ud800"],
    "content": [None, 3, [], "\ud800"],
    "source_file": [3, [], "\ud800"],
    "source_type": [3, ""],
    "layer": [3, "", "x" * 201],
    "memory_type": [3, "story"],
    "status": [3, "", "x" * 201],
    "importance": ["0.5", True, -0.1, 1.5, 10**400],
    "access_count": [-1, 1.0, True, "1", 2**63],
    "created_at": ["soon", True, 1e13, -1e13, []],
    "last_accessed": ["soon", True, 1e13],
    "fact_date": [3],
    "fact_date_end": [3],
    "forgotten": ["yes", 2, 1.0],
    "metadata": [[], "{}", 3, {"a": "\ud800"}, {"a": 10**400}],
    "embedding_b64": [
        3, "", "!", "AAAA", "AAAAAA==",
        base64.b64encode(np.array([np.nan] * 32, "<f4").tobytes()).decode(),
        base64.b64encode(np.array([np.inf] * 32, "<f4").tobytes()).decode(),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("member", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_a_refused_value_is_named_by_its_place_and_nothing_is_written(memory, write, member, value):
    good: Memory = {"id": "a", "content": CANARY, "metadata": {"project_path": CANARY}}
    src = write(good, good | {"id": "b"} | {member: value})
    with pytest.raises((InvalidArgument, InvalidType)) as refused:
        memory.import_memories(src, vectors_of="words")
    assert refused.value.message.startswith((f"memories[1].{member} ", f"line 3.{member} ")) or (
        # JSON itself has no such number.
        "metadata" in refused.value.message
    )
    assert CANARY not in str(refused.value)
    assert memory.count() == 0
    assert memory.model() is None


@pytest.mark.parametrize(
    "text",
    ["", "no", "[]", "3", "{}", '{"memories": 3}', '{"version": "2.0", "memories": []}',
     '{"memories": [3]}', '{"id": "a", "content": "x"}\nno', '{"content": NaN}',
     '{"memories": [{"id": "a", "content": "x"}], "entities": [3]}',
     '{"memories": [], "entities": [{"id": 1}]}',
     '{"memories": [], "entity_mentions": [{"entity_id": 1, "memory_id": 3}]}',
     '{"engram_export_version": 1, "episodes": []}', '{"format": "engram-lines", "version": 1}'],
)  # fmt: skip
def test_what_is_no_file_of_memories_is_refused(memory, file, text):
    file.write_text(text)
    with pytest.raises((InvalidArgument, InvalidType)):
        memory.import_memories(file)
    assert memory.count() == 0


def test_lines_with_a_version_of_their_own_are_no_document(memory, file):
    rows = [{"id": str(n), "content": "x", "version": "2"} for n in range(2)]
    file.write_text("\n".join(json.dumps(row) for row in rows))
    assert memory.import_memories(file)["memories"] == 2


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"id": "a"}\n{"id": "b", "content": "x"}', "line 1 "),
        ('\n{"id": "a"}\n', "line 2 "),
        ('\n\n{"id": "a", "content": \n', "neither line 3 "),
        ('{"id": "a", "content": "x"}\n{"id": "b"}', "line 2.content"),
        ('{"id": "a", "content": "x"}\n\n[]', "line 3 "),
    ],
)
def test_the_line_that_is_wrong_is_named(memory, file, text, place):
    file.write_text(text)
    with pytest.raises((InvalidArgument, InvalidType)) as refused:
        memory.import_memories(file)
    assert refused.value.message.startswith(place)


def test_each_path_is_looked_up_once_and_outside_the_transaction(
    memory, path, write, tmp_path, monkeypatch
):
    """The file system may say something else meanwhile, and may be slow."""
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to("real")
    looked_up = []
    resolve = paths.canonical

    def looking(value, argument="project_id"):
        assert not memory._store._connection._connection.in_transaction
        looked_up.append(value)
        found = resolve(value, argument)
        if value == str(link):
            link.unlink()
            link.symlink_to("elsewhere")
        return found

    monkeypatch.setattr(paths, "canonical", looking)
    src = write(
        *(
            {"id": f"m{n}", "content": "x", "source_file": "/s/a.md", "metadata": {key: str(link)}}
            for n, key in enumerate(["project_path", "project_root", "project_path"])
        ),
        {"id": "relative", "content": "x", "metadata": {"project_path": "no path"}},
    )
    assert memory.import_memories(src)["memories"] == 4
    assert sorted(looked_up) == sorted(["/s/a.md", str(link), "no path"])
    monkeypatch.undo()
    with Ledger(path) as ledger:
        assert {one.id for one in ledger.recent(str(tmp_path / "real"))} == {"m0", "m1", "m2"}


@pytest.mark.parametrize(
    "bad", ['{"content": "x", "content": "y"}', '{"content": "x", "metadata": {"a": 1, "a": 2}}']
)
@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ("", "\n", "line 1"),
        ('{"id": "a", "content": "x"}\n\n', "", "line 3"),
        ('{\n"memories": [', "]}", "the file"),
    ],
)
def test_a_name_that_comes_twice_is_refused(memory, file, bad, before, after, where):
    file.write_text(before + bad + after)
    with pytest.raises(InvalidArgument, match=f"{where} names a member of an object twice"):
        memory.import_memories(file)
    assert memory.count() == 0


def test_an_id_is_there_once(memory, write):
    twice = write({"id": "a", "content": "x"}, {"id": "a", "content": "y"})
    with pytest.raises(InvalidArgument, match=r"(memories\[1\]|line 3).id is that of"):
        memory.import_memories(twice)
    memory.import_memories(write({"id": "a", "content": "x"}))
    both = write({"id": "b", "content": "new"}, {"id": "a", "content": "other"})
    with pytest.raises(InvalidArgument, match="merge"):
        memory.import_memories(both)
    assert memory.count() == 1
    assert memory.import_memories(both, merge=True)["memories"] == 1
    assert memory.get("a").content == "x"
    assert memory.check() == []


def test_entities_relationships_and_mentions_become_the_graph(memory, file):
    document = {
        "version": "1.0",
        "memories": [{"id": "m", "content": "Zoë rows"}, {"id": "n", "content": "nothing"}],
        "entities": [
            {"id": 1, "name": "Zoë", "entity_type": "person", "aliases": ["Zoe"]},
            {"id": 2, "name": "Rowing club"},
        ],
        "relationships": [
            {"source_entity_id": 1, "target_entity_id": 2, "relation_type": "member of",
             "strength": 0.5, "created_at": 1e9},
            {"source_entity_id": 1, "target_entity_id": 2, "relation_type": "member of"},
            {"source_entity_id": 1, "target_entity_id": 77},
        ],
        "entity_mentions": [{"memory_id": "m", "entity_id": 1}, {"memory_id": "m", "entity_id": 9},
                            {"memory_id": "gone", "entity_id": 1}],
    }  # fmt: skip
    file.write_text(json.dumps(document))
    assert memory.import_memories(file) == {"memories": 2, "entities": 2, "edges": 2}
    with Ledger(memory._store._connection.path) as ledger:
        totals = ledger.totals()
    assert (totals.entities, totals.relationships) == (2, 1)
    with memory._store.reading():
        assert memory._store.graph.names("Zoe") == ["Zoë", "Zoe"]
    # Another file's keys are its own: the same person is known by name.
    document["memories"] = [{"id": "o", "content": "Zoë swims"}]
    document["entities"] = [{"id": 2, "name": "Zoë"}]
    document["relationships"] = []
    document["entity_mentions"] = [{"memory_id": "o", "entity_id": 2}]
    file.write_text(json.dumps(document))
    assert memory.import_memories(file) == {"memories": 1, "entities": 0, "edges": 1}
    found = memory.recall("rows", k=2, mode="spreading")
    assert {hit.episode.id for hit in found} >= {"m"}
    assert memory.check() == []


# Vectors.


def test_vectors_are_taken_where_their_model_is_the_stores(open_memory, write, path):
    embedder = WordEmbedder()
    memory = open_memory(embedder=embedder)
    src = write(*({"id": text, "content": text, "embedding_b64": vector(text, scale=3e20)}
                  for text in ("tea", "ferry")))  # fmt: skip
    assert memory.import_memories(src, vectors_of="words")["memories"] == 2
    assert embedder.embedded == 0
    assert memory.recall("ferry", k=1, mode="cosine")[0].distance == pytest.approx(0, abs=1e-3)
    assert memory.check() == []


@pytest.mark.parametrize("vectors_of", [None, "BAAI/bge-small-en-v1.5", "other"])
def test_vectors_of_another_model_are_made_anew(open_memory, write, vectors_of):
    embedder = WordEmbedder()
    memory = open_memory(embedder=embedder)
    other = base64.b64encode(np.ones(5, "<f4").tobytes()).decode()
    memory.import_memories(
        write({"id": "a", "content": "tea", "embedding_b64": other}), vectors_of=vectors_of
    )
    assert embedder.embedded == 1
    assert memory.recall("tea", k=1, mode="cosine")[0].distance == 0


def test_a_vector_of_zeros_is_one(memory, write):
    zeros = base64.b64encode(bytes(4 * 32)).decode()
    memory.import_memories(
        write({"id": "a", "content": "tea", "embedding_b64": zeros}), vectors_of="words"
    )
    assert memory.recall("tea", k=1)[0].episode.id == "a"
    assert memory.check() == []


CHILD = """
import sys
from engram import Engram, paths
with Engram(sys.argv[1]) as memory:
    memory.import_memories(sys.argv[2], vectors_of=sys.argv[3])
    print(memory.model().name, memory.count())
print("loaded" if "onnxruntime" in sys.modules or "tokenizers" in sys.modules else "free")
"""


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2-int8", "ALL-minilm-l6-v2-INT8"])
def test_taking_vectors_loads_no_model(path, write, name, monkeypatch):
    monkeypatch.setenv("ENGRAM_MODEL_DIR", str(path.parent))
    src = write({"id": "a", "content": "tea", "embedding_b64": vector("tea", WordEmbedder(384))})
    child = subprocess.run(
        [sys.executable, "-c", CHILD, path, src, name], capture_output=True, text=True, check=True
    )
    model, _, state = child.stdout.partition("\n")
    assert (model, state.strip()) == ("all-MiniLM-L6-v2-int8 1", "free")


# The file as a whole.


def test_the_form_is_told_by_what_is_in_the_file(memory, write, file, tmp_path):
    memory.observe("tea")
    memory.export_json(file)
    with file.open("rb") as opened:
        assert form_of(opened) == "json"
    memory.export_lines(file)
    with file.open("rb") as opened:
        assert form_of(opened) == "lines"
    with write({"id": "a", "content": "x"}).open("rb") as opened:
        assert form_of(opened) == "memories"


def test_progress_is_told_and_ends(memory, write):
    seen: list[tuple[int, int]] = []
    src = write(*({"id": str(n), "content": f"note {n}"} for n in range(501)))
    memory.import_memories(src, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(500, 501), (501, 501)]


def test_what_was_imported_survives_our_own_export(memory, other, write, file, tmp_path):
    memory.import_memories(
        write(
            {"id": "m", "content": "tea", "metadata": {"project_path": "/p"}, "created_at": 1e9,
             "last_accessed": 2e9, "status": "merged"},
            {"id": "n", "content": "ferry", "source_file": "/p/x", "access_count": 2},
        )
    )  # fmt: skip
    out, again = tmp_path / "one", tmp_path / "two"
    memory.export_lines(out)
    other.import_lines(out)
    other.export_lines(again)
    assert out.read_bytes() == again.read_bytes()
    with Ledger(tmp_path / "other.engram") as ledger:
        assert [m.id for m in ledger.recent("/p")] == ["n"]
        ledger.restore("m")
        assert [m.id for m in ledger.recent("/p")] == ["n", "m"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner,
                                                                max_size=2),
    max_leaves=4,
)  # fmt: skip
MEMBERS = st.sampled_from([*BAD, "project_path", "x"])


@settings(max_examples=60)
@given(st.lists(st.dictionaries(MEMBERS, VALUES, max_size=5), max_size=3))
def test_any_memories_are_imported_or_refused_as_a_whole(tmp_path_factory, memories):
    folder = tmp_path_factory.mktemp("any")
    src = folder / "src"
    whole = [{"id": str(n), "content": "x"} | memory for n, memory in enumerate(memories)]
    src.write_text(json.dumps({"memories": whole}))
    with Engram(folder / "m.engram", embedder=WordEmbedder()) as memory:
        try:
            written = memory.import_memories(src)["memories"]
        except EngramError as error:
            assert isinstance(error, (InvalidArgument, InvalidType))  # noqa: PT017
            written = 0
        assert memory.count() == written in (0, len(whole))
        assert memory.check() == []
