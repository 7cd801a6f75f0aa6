"""What searches showed is noted without making them wait, and only so much of it is kept."""

from __future__ import annotations

import json
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from files import every_byte
from stand_ins import WordEmbedder

from engram.errors import StoreFull
from engram.storage import feedback


def rows(path, sql: str) -> list[tuple]:
    """What another process would read."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_a_search_notes_what_it_decided_and_showed(experiences, path, clock):
    stored = [experiences.store(f"fix lamp {n}", "", "").id for n in range(5)]
    found = experiences.search("fix the lamp", limit=4)
    nothing = experiences.search("fix", limit=4, tags=["none"])
    [one, two] = rows(path, "SELECT * FROM routing ORDER BY id")
    assert one[1] == bytes.fromhex(found.query_id.replace("-", ""))
    assert one[2:7] == tuple(found.routing)
    assert one[7] == 4
    scores = [hit.score for hit in found.hits]
    rewards = json.loads(one[8])
    assert [reward["k"] for reward in rewards] == [3, 5, 10, 20]
    assert [reward["reward"] for reward in rewards] == pytest.approx(
        [sum(scores[:3]) / sum(scores), 1, 1, 1]
    )
    assert one[9] == int(clock().timestamp() * 1e6)
    assert (nothing.hits, two[8]) == ([], "[]")
    shown = rows(path, "SELECT memory_id, query_id, judged FROM feedback_tracking")
    assert {row[0] for row in shown} == {hit.id for hit in found.hits} < set(stored)
    assert {row[1:] for row in shown} == {(found.query_id, 0)}


def test_the_query_is_not_among_it(experiences, path):
    experiences.store("red lamp", "", "")
    experiences.search("unheard-of")
    [row] = rows(path, "SELECT * FROM routing")
    assert "unheard" not in repr(row)


def test_no_byte_of_a_query_is_kept(experiences, path):
    """An erased word must not come back by being looked for."""
    uid = experiences.store("red Quaggaplain lamp", "", "").id
    experiences.store("red chair", "", "")
    experiences.delete(uid)
    assert experiences.search("red Quaggaplain").hits
    experiences.prune_feedback()
    experiences.close()
    assert rows(path, "SELECT query FROM recall_log") == [(None,)]
    assert b"quaggaplain" not in every_byte(path).lower()


def test_other_programs_read_searches_as_the_log_they_know(experiences, path):
    assert rows(path, "SELECT * FROM schema_meta WHERE key = 'embedding_model'") == []
    experiences.store("fix the lamp", "", "")
    found = experiences.search("fix the lamp", limit=4)
    connection = sqlite3.connect(path)
    with closing(connection):
        connection.row_factory = sqlite3.Row
        [row] = map(dict, connection.execute("SELECT * FROM routing_log"))
        assert json.loads(row.pop("shadow_rewards"))[-1] == {"k": 20, "reward": 1.0}
        assert row == {
            "query_id": found.query_id,
            **dict(
                zip(
                    ("mode", "search_strategy", "llm_selection", "contextualization"),
                    found.routing[:4],
                    strict=True,
                )
            ),
            "proactivity": found.routing[4],
            "top_k": 4,
            "created_at": "2026-01-01T00:00:00Z",
        }
        meta = dict(map(tuple, connection.execute("SELECT key, value FROM schema_meta")))
        [table] = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'episode_fts'")
        for view in ("routing_log", "schema_meta"):
            with pytest.raises(sqlite3.OperationalError, match="view"):
                connection.execute(f"DELETE FROM {view}")
    assert f'tokenize = "{meta.pop("fts_tokenizer")}"' in table["sql"]
    assert meta == {
        "tags_format": "json_array_v1",
        "feedback_query_id": "v1",
        "embedding_model": WordEmbedder().fingerprint,
    }


def test_a_search_does_not_wait_for_another_writer(experiences, opened, path):
    uid = experiences.store("red lamp", "", "").id
    other = opened()
    with other._store.writing():
        found = [experiences.search("lamp") for _ in range(3)]
        assert [hit.id for hit in found[0].hits] == [uid]
        assert rows(path, "SELECT count(*) FROM routing") == [(0,)]
    # The next one writes what waited.
    found.append(experiences.search("lamp"))
    assert rows(path, "SELECT lower(hex(uid)) FROM routing ORDER BY id") == [
        (one.query_id.replace("-", ""),) for one in found
    ]
    assert rows(path, "SELECT count(*) FROM shown") == [(4,)]


@pytest.mark.parametrize("door", ["close", "judge", "prune_feedback", "backup"])
def test_what_waits_is_written_by_whoever_can(experiences, opened, path, door):
    uid = experiences.store("red lamp", "", "").id
    other = opened()
    with other._store.writing():
        experiences.search("lamp")
    if door == "judge":
        experiences.judge(uid, score=1)
        assert rows(path, "SELECT count(*) FROM q_table") == [(4,)]
    elif door == "backup":
        experiences._store.backup(path.with_name("copy"))
    else:
        getattr(experiences, door)()
    assert rows(path, "SELECT count(*) FROM shown") == [(1,)]
    experiences.close()
    assert rows(path, "SELECT count(*) FROM shown") == [(1,)]


def test_what_is_erased_while_it_waits_leaves_no_trace(experiences, opened, open_memory, path):
    uid = experiences.store("red lamp", "", "").id
    chair = experiences.store("red chair", "", "").id
    with opened()._store.writing():
        experiences.search("red")
    open_memory().forget(uid)
    experiences.prune_feedback()
    assert rows(path, "SELECT memory_id FROM feedback_tracking") == [(chair,)]
    open_memory().forget(chair)
    assert rows(path, "SELECT count(*) FROM shown") == [(0,)]


def test_only_so_much_waits(experiences, opened, path, monkeypatch):
    monkeypatch.setattr(feedback, "WAITING_MOST", 3)
    for number in range(2):
        experiences.store(f"lamp {number}", "", "")
    with opened()._store.writing():
        found = [experiences.search("lamp") for _ in range(5)]
    experiences.prune_feedback()
    kept = rows(path, "SELECT lower(hex(uid)) FROM routing ORDER BY id")
    assert kept == [(one.query_id.replace("-", ""),) for one in found[-3:]]


def test_an_answer_of_thousands_is_noted_by_its_best(experiences, path, monkeypatch):
    monkeypatch.setattr(feedback, "SHOWN_MOST", 2)
    for number in range(3):
        experiences.store(f"lamp {number}", "", "")
    found = experiences.search("lamp", limit=5_000)
    assert len(found.hits) == 3
    kept = rows(path, "SELECT memory_id FROM feedback_tracking")
    assert sorted(kept) == sorted((hit.id,) for hit in found.hits[:2])


def test_a_search_answers_where_nothing_can_be_written(experiences, monkeypatch, caplog):
    uid = experiences.store("red lamp", "", "").id

    def full(*_: object, **__: object) -> None:
        message = "the disk is full"
        raise StoreFull(message)

    with monkeypatch.context() as patch:
        patch.setattr(experiences._store._connection, "writing", full)
        assert [hit.id for hit in experiences.search("lamp").hits] == [uid]
    assert "StoreFull" in caplog.text
    assert "lamp" not in caplog.text


def test_the_newest_searches_are_kept(experiences, path, monkeypatch):
    """Weak spot 19: feedback and routing grew for ever."""
    monkeypatch.setattr(feedback, "KEPT", 10)
    monkeypatch.setattr(feedback, "PRUNED", 3)
    experiences.store("red lamp", "", "")
    found = [experiences.search("lamp") for _ in range(25)]
    assert experiences.prune_feedback() == 15
    kept = rows(path, "SELECT lower(hex(uid)) FROM routing ORDER BY id")
    assert kept == [(one.query_id.replace("-", ""),) for one in found[-10:]]
    assert rows(path, "SELECT count(*) FROM shown") == [(10,)]
    assert experiences.prune_feedback() == 0


def test_threads_note_every_search_once(experiences, path):
    for number in range(3):
        experiences.store(f"lamp {number}", "", "")
    start = threading.Barrier(8)

    def searches(_: int) -> list[str]:
        start.wait(timeout=60)
        return [experiences.search("lamp").query_id for _ in range(20)]

    with ThreadPoolExecutor(8) as pool:
        asked = [uid for some in pool.map(searches, range(8)) for uid in some]
    noted = [uid for (uid,) in rows(path, "SELECT lower(hex(uid)) FROM routing")]
    assert sorted(noted) == sorted(uid.replace("-", "") for uid in asked)
    assert rows(path, "SELECT count(*) FROM shown") == [(3 * len(asked),)]
    assert experiences.check() == []
