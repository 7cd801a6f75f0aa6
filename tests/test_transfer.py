"""The exchange format: what goes out comes back, whole or not at all."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from files import every_byte
from histories import fill
from stand_ins import WordEmbedder

from engram.errors import (
    CannotOpen,
    InvalidArgument,
    InvalidType,
)

EPISODE_KEYS = [
    "id", "content", "timestamp", "actors", "tags", "salience", "emotional_valence", "summary_of",
    "importance_score", "agent_id", "provenance", "quarantined",
]  # fmt: skip
FACT_KEYS = [
    "id", "subject", "predicate", "object", "valid_from", "valid_to", "recorded_at",
    "superseded_at", "superseded_by", "confidence", "derived_from", "extracted_by", "agent_id",
    "shared", "quarantined",
]  # fmt: skip


@pytest.mark.parametrize("form", ["lines", "json"])
def test_a_scoped_export_holds_what_the_agent_sees(open_memory, clock, file, other, form):
    ann = fill(open_memory, clock)[0]
    getattr(ann, f"export_{form}")(file)
    text = file.read_text(encoding="utf-8")
    assert "bob notes" not in text
    assert "nobody notes" not in text
    getattr(other, f"import_{form}")(file)
    assert other.count() == ann.count() == 5
    # Bob kept his first fact to himself.
    seen = [f.object for f in ann.timeline("Zoë")]
    assert "tea of bob" not in seen
    assert [f.object for f in other.timeline("Zoë")] == seen
    assert [f.superseded_by for f in other.timeline("Zoë")] == [
        f.superseded_by for f in ann.timeline("Zoë")
    ]
    assert other.counts().entities == 1
    with other._store.reading():
        assert len(other._store.graph.edges(None).targets) == 3
    assert other.check() == []


def test_the_exchange_format_is_as_documented(open_memory, clock, file):
    memory = fill(open_memory, clock)[-1]
    document = memory.export_json(file)
    text = file.read_text(encoding="utf-8")
    assert json.loads(text) == document
    assert text.startswith('{\n  "engram_export_version": 1,\n')
    assert "暗号" in text
    assert list(document) == [
        "engram_export_version", "exported_at", "counts", "episodes", "facts", "entities", "edges",
    ]  # fmt: skip
    assert datetime.fromisoformat(document["exported_at"]) == clock.now
    assert document["counts"] == {"episodes": 15, "facts": 6, "entities": 1, "edges": 9}
    for episode in document["episodes"]:
        assert list(episode) == EPISODE_KEYS
        assert json.loads(episode["actors"])[0] == "Zoë"
        assert episode["quarantined"] in (0, 1)
        assert episode["timestamp"].endswith("+00:00")
    stamps = [episode["timestamp"] for episode in document["episodes"]]
    assert stamps == sorted(stamps)
    for fact in document["facts"]:
        assert list(fact) == FACT_KEYS
        assert (fact["shared"], fact["quarantined"]) in ((0, 0), (1, 0))
        assert len(json.loads(fact["derived_from"])) == 1
    assert {fact["extracted_by"] for fact in document["facts"]} == {
        None, "run-ann", "run-bob", "run-nobody",
    }  # fmt: skip
    assert list(document["entities"][0]) == [
        "id", "name", "type", "aliases", "first_seen", "last_seen",
    ]  # fmt: skip
    assert list(document["edges"][0]) == [
        "src_id", "dst_id", "relation", "weight", "created_at", "agent_id",
    ]  # fmt: skip


def test_the_exchange_format_comes_back(open_memory, clock, file, other):
    memory = fill(open_memory, clock)[-1]
    document = memory.export_json(file)
    assert other.import_json(file) == document["counts"]
    assert other.check() == []
    again = other.export_json(file.with_name("again"))
    assert again == document
    said = "Zoë, ann (4 January 2020): ann notes 3 暗号"
    found = other.recall(said, 1, mode="cosine")[0]
    assert (found.episode.content, found.distance) == ("ann notes 3 暗号", 0.0)
    assert other.recall("暗号", 20, vector_weight=0)
    fact = next(f for f in other.timeline("Zoë") if f.extracted_by is not None)
    assert other.why(fact.id)["extracted_by"] == fact.extracted_by


def document(**tables):
    return {"engram_export_version": 1, **tables}


def episode(uid="e1", **values):
    row = {"id": uid, "content": "text", "timestamp": "2020-01-01T00:00:00+00:00"}
    return row | {"provenance": "user", "quarantined": 0} | values


def fact(uid="f1", **values):
    at = "2020-01-01T00:00:00+00:00"
    row = {"id": uid, "subject": "s", "predicate": "p", "object": "o", "valid_from": at,
           "recorded_at": at, "shared": 1, "quarantined": 0}  # fmt: skip
    return row | values


def entity(uid="n1", name="Zoë", **values):
    return {"id": uid, "name": name, "type": "person"} | values


def edge(src="e1", dst="n1", **values):
    row = {"src_id": src, "dst_id": dst, "relation": "mentions"}
    return row | {"created_at": "2020-01-01T00:00:00+00:00"} | values


@pytest.fixture
def importing(memory, file):
    def run(imported, **options):
        file.write_text(json.dumps(imported), encoding="utf-8")
        return memory.import_json(file, **options)

    return run


def test_a_document_from_before_marks_reads_as_the_least_trusted(memory, importing):
    old = {"id": "e", "content": "x", "timestamp": "2020-01-01T00:00:00"}
    half = episode("h", quarantined=None, provenance="user")
    no_source = episode("n", quarantined=0, provenance=None)
    old_fact = {k: v for k, v in fact().items() if k not in ("shared", "quarantined")}
    importing(document(episodes=[old, half, no_source], facts=[old_fact]))
    for uid, expected in (("e", ("unknown", True)), ("h", ("unknown", True)),
                          ("n", ("unknown", False))):  # fmt: skip
        found = memory.get(uid)
        assert (found.provenance, found.quarantined) == expected
    assert memory.get("e").timestamp == datetime(2020, 1, 1, tzinfo=UTC)
    (found,) = memory.timeline("s")
    assert (found.shared, found.quarantined, found.agent_id) == (True, True, None)
    assert memory.get("e").importance_score == 1.0
    assert memory.get("e").salience == 0.5


def test_rows_keep_the_agent_of_the_document(open_memory, file):
    scoped = open_memory("ann")
    file.write_text(json.dumps(document(episodes=[episode(agent_id="bob")])), encoding="utf-8")
    assert scoped.import_json(file)["episodes"] == 1
    assert scoped.count() == 0
    assert open_memory("bob").get("e1").agent_id == "bob"


def test_a_taken_id_is_refused_or_skipped(memory, importing):
    first = document(episodes=[episode("a"), episode("b")], facts=[fact("f")],
                     entities=[entity()], edges=[edge("a")])  # fmt: skip
    importing(first)
    more = document(episodes=[episode("c"), episode("b")], facts=[fact("f"), fact("g")],
                    entities=[entity()], edges=[edge("a"), edge("c")])  # fmt: skip
    with pytest.raises(ValueError, match=r"episodes\[1\]"):
        importing(more)
    assert memory.count() == 2
    assert importing(more, merge=True) == {"episodes": 1, "facts": 1, "entities": 0, "edges": 1}
    assert importing(more, merge=True) == {"episodes": 0, "facts": 0, "entities": 0, "edges": 0}
    assert memory.check() == []


@pytest.mark.parametrize("table", ["episodes", "facts", "entities", "edges"])
def test_an_id_twice_in_one_document(memory, importing, table):
    row = {"episodes": episode, "facts": fact, "entities": entity, "edges": edge}[table]()
    base = document(episodes=[episode()], entities=[entity()]) if table == "edges" else document()
    with pytest.raises(InvalidArgument, match=rf"{table}\[1\]"):
        importing(base | {table: [row, row]})
    assert memory.count() == 0
    assert importing(base | {table: [row, row]}, merge=True)[table] == 1


@pytest.mark.parametrize("version", [None, 0, 2, "1", True, 1.0, [1]])
def test_other_versions_are_refused(memory, importing, version):
    with pytest.raises(ValueError, match="engram_export_version"):
        importing({"engram_export_version": version, "episodes": [episode()]})
    with pytest.raises(ValueError, match="engram_export_version"):
        importing({"episodes": [episode()]})
    assert memory.count() == 0


ODD = [
    ("episodes", "salience", float("nan")),
    ("episodes", "salience", float("inf")),
    ("episodes", "salience", "abc"),
    ("episodes", "salience", True),
    ("episodes", "salience", 1.5),
    ("episodes", "salience", 10**400),
    ("episodes", "emotional_valence", -2),
    ("episodes", "importance_score", -0.1),
    ("episodes", "importance_score", "1"),
    ("episodes", "content", None),
    ("episodes", "content", 5),
    ("episodes", "content", "\ud800"),
    ("episodes", "id", ""),
    ("episodes", "id", None),
    ("episodes", "timestamp", "yesterday"),
    ("episodes", "timestamp", None),
    ("episodes", "timestamp", 1577836800),
    ("episodes", "timestamp", "0001-01-01T00:00:00+23:59"),
    ("episodes", "actors", "not json"),
    ("episodes", "actors", '{"a": 1}'),
    ("episodes", "actors", "[1]"),
    ("episodes", "tags", 5),
    ("episodes", "summary_of", '["a", null]'),
    ("episodes", "agent_id", 5),
    ("episodes", "provenance", "unknown"),
    ("episodes", "provenance", "USER"),
    ("episodes", "provenance", 1),
    ("episodes", "quarantined", 2),
    ("episodes", "quarantined", "0"),
    ("episodes", "quarantined", 0.5),
    ("facts", "confidence", float("nan")),
    ("facts", "confidence", 1.01),
    ("facts", "subject", None),
    ("facts", "valid_from", ""),
    ("facts", "valid_to", 5),
    ("facts", "shared", -1),
    ("facts", "derived_from", "["),
    ("facts", "superseded_by", 5),
    ("entities", "name", None),
    ("entities", "aliases", '[["a"]]'),
    ("entities", "first_seen", "never"),
    ("edges", "weight", float("-inf")),
    ("edges", "weight", -1),
    ("edges", "dst_id", None),
    ("edges", "created_at", None),
]


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize(("table", "column", "value"), ODD)
def test_an_odd_value_is_refused_by_its_place(memory, importing, table, column, value, merge):
    make = {"episodes": episode, "facts": fact, "entities": entity, "edges": edge}[table]
    good = document(episodes=[episode()], facts=[fact()], entities=[entity()], edges=[edge()])
    good[table] = [*good[table], make("z", **({} if column == "id" else {"id": "z"}))]
    good[table][1][column] = value
    before = memory._store.last_change()
    with pytest.raises((InvalidArgument, InvalidType)) as refused:
        importing(good, merge=merge)
    odd_number = isinstance(value, float) and not 0 <= value <= 2
    assert odd_number or f"{table}[1].{column}" in str(refused.value)
    assert memory._store.last_change() == before
    assert memory.count() == 0


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"nothing", b"\xff\xfe", b'{"engram_export_version": 1, "episodes": {}}',
     b'{"engram_export_version": 1, "episodes": [5]}', b"[" * 100_000, b"NaN"],
)  # fmt: skip
def test_files_that_are_no_document(memory, file, text):
    file.write_bytes(text)
    with pytest.raises(ValueError):  # noqa: PT011 - each says its own
        memory.import_json(file)
    with pytest.raises(ValueError):  # noqa: PT011
        memory.import_lines(file)
    assert memory.count() == 0


def test_a_failure_amid_the_writing_leaves_nothing(memory, importing, monkeypatch):
    """The schema has the last word, and takes everything back."""
    from engram.storage.record_writer import RecordWriter

    add, calls = RecordWriter.add, []

    def failing(self, kind, record, where):
        calls.append(kind)
        if len(calls) == 3:
            raise MemoryError
        return add(self, kind, record, where)

    with monkeypatch.context() as patched:
        patched.setattr(RecordWriter, "add", failing)
        with pytest.raises(MemoryError):
            importing(document(episodes=[episode("a"), episode("b")], facts=[fact()]))
    memory.observe("the next write")
    assert memory.count() == 1
    assert memory.timeline("s") == []
    assert memory.check() == []


def test_texts_are_embedded_in_batches_outside_the_transaction(open_memory, file):
    sizes = []

    class Watching(WordEmbedder):
        def embed(self, texts):
            sizes.append(len(texts))
            # Another connection can write meanwhile.
            other.observe("meanwhile")
            return super().embed(texts)

    other = open_memory(busy_timeout=0.0)
    memory = open_memory(embedder=Watching())
    rows = [episode(f"e{n}", content=f"text {n}") for n in range(150)]
    file.write_text(json.dumps(document(episodes=rows)), encoding="utf-8")
    memory.import_json(file)
    assert sizes == [64, 64, 22]
    assert memory.count() == 153


def test_a_merge_embeds_only_what_is_new(open_memory, file):
    embedder = WordEmbedder()
    memory = open_memory(embedder=embedder)
    file.write_text(json.dumps(document(episodes=[episode("a")])), encoding="utf-8")
    memory.import_json(file)
    rows = [episode("a"), episode("b")]
    file.write_text(json.dumps(document(episodes=rows)), encoding="utf-8")
    memory.import_json(file, merge=True)
    assert embedder.embedded == 2


def test_imports_emit_events_in_their_order(open_memory, file, tmp_path):
    log = tmp_path / "events.ndjson"
    memory = open_memory("agent://test/ann", events_path=log)
    imported = document(episodes=[episode("b"), episode("a")], facts=[fact("g"), fact("f")])
    file.write_text(json.dumps(imported), encoding="utf-8")
    memory.import_json(file)
    with pytest.raises(InvalidArgument):
        memory.import_json(file)
    imported["episodes"].append(episode("c"))
    file.write_text(json.dumps(imported), encoding="utf-8")
    memory.import_json(file, merge=True)
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [(e["type"], e["data"]["memory_id"], e["data"]["kind"]) for e in events] == [
        ("memory_written", "b", "episodic"),
        ("memory_written", "a", "episodic"),
        ("memory_written", "g", "semantic"),
        ("memory_written", "f", "semantic"),
        ("memory_written", "c", "episodic"),
    ]


def test_an_entity_under_another_id_becomes_the_known_one(memory, importing):
    memory.add_alias("Zoë", "Zoe")
    rows = [entity("n1", "Zoe", aliases='["Z", "Zoë"]', first_seen="2001-01-01T00:00:00"),
            entity("n2", "Ann")]  # fmt: skip
    counts = importing(
        document(episodes=[episode()], entities=rows, edges=[edge(), edge(dst="n2"),
                                                             edge("n2", "n1")])
    )  # fmt: skip
    assert counts == {"episodes": 1, "facts": 0, "entities": 1, "edges": 3}
    with memory._store.reading():
        assert memory._store.graph.names("Zoë") == ["Zoë", "Z", "Zoe"]
    assert memory.check() == []


def test_edges_that_lead_nowhere_are_left_out(memory, importing):
    rows = [edge("gone"), edge(dst="gone"), edge("n1", "n1"), edge()]
    counts = importing(document(episodes=[episode()], entities=[entity()], edges=rows))
    assert counts["edges"] == 1


def test_trust_does_not_grow_on_the_way(memory, importing):
    rows = [episode("u", provenance="user"), episode("x", provenance="external")]
    importing(
        document(
            episodes=rows,
            facts=[fact("f1", derived_from='["u", "x"]'), fact("f2", derived_from='["u", "gone"]'),
                   fact("f3", derived_from='["u"]'), fact("f4")],
        )
    )  # fmt: skip
    provenances = [memory.why(uid)["provenance"] for uid in ("f1", "f2", "f3", "f4")]
    assert provenances == ["external", "unknown", "user", "unknown"]
    memory.forget("x")
    assert memory.why("f1")["provenance"] == "external"


def test_successors_come_back_whatever_their_order(memory, importing):
    later = fact("new", valid_from="2019-01-01T00:00:00")
    old = fact("old", superseded_by="new", superseded_at="2021-01-01T00:00:00",
               valid_to="2021-01-01T00:00:00", valid_from="2018-01-01T00:00:00")  # fmt: skip
    lost = fact("lost", superseded_by="gone", superseded_at="2021-01-01T00:00:00")
    importing(document(facts=[old, later, lost]))
    found = {f.id: f.superseded_by for f in memory.timeline("s")}
    assert found == {"old": "new", "new": None, "lost": None}


def test_a_fact_that_ended_before_it_began_never_holds(memory, importing):
    """As one that the reference superseded before it was to begin."""
    importing(
        document(facts=[fact("f", valid_from="2019-01-01T00:00:00",
                             valid_to="2018-01-01T00:00:00")])
    )  # fmt: skip
    [found] = memory.timeline("s")
    assert found.valid_to == found.valid_from
    assert memory.check() == []


def test_exports_replace_their_file_at_once(memory, path, file, monkeypatch):
    memory.observe("x")
    path.chmod(0o600)
    for export in (memory.export_json, memory.export_lines):
        export(file)
        before = file.read_bytes()
        assert file.stat().st_mode & 0o777 == 0o600
        with pytest.raises(InvalidArgument, match="the store itself"):
            export(path)
        with pytest.raises(CannotOpen):
            export(file.parent / "missing" / "file")
        with monkeypatch.context() as patched:
            patched.setattr(json, "dumps", lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                export(file)
        assert file.read_bytes() == before
    assert sorted(file.parent.iterdir()) == [file]
    assert memory.check() == []


def test_an_export_of_an_encrypted_store_is_plain(open_memory, path, file):
    memory = open_memory(key="pass")
    memory.observe("Xylophone")
    memory.export_lines(file)
    assert b"Xylophone" in file.read_bytes()
    assert b"Xylophone" not in every_byte(path)
