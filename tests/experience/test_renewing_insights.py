"""What becomes of insights, and of what rests on them, when a trainer runs again."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from fake_trainer import COMPLETE, insight
from stand_ins import WordEmbedder

from engram import Engram
from engram.experience import ExperienceMemory, ImportedExperience
from engram.ledger import Ledger


@pytest.fixture
def brought(fake, run):
    """Run a trainer that brings insights."""

    def generate(*insights: dict[str, object]):
        return run(fake.says(*insights, COMPLETE))

    return generate


def ids(memory: ExperienceMemory) -> list[str]:
    return [one.id for one in memory.insights()]


def test_another_run_takes_the_place_of_the_earlier_one(experiences, fake, run):
    run(fake.says(insight("a"), insight("b"), COMPLETE))
    run(fake.says(insight("c"), COMPLETE))
    assert ids(experiences) == ["c"]


def test_stored_and_imported_insights_stay(experiences, fake, run):
    mine = experiences.store("my", "own", "insight", memory_type="insight").id
    run(fake.says(insight("a"), COMPLETE))
    run(fake.says(insight("b"), COMPLETE))
    assert ids(experiences) == [mine, "b"]


def test_an_insight_that_comes_again_keeps_its_score_and_use(experiences, fake, run):
    run(fake.says(insight("a"), COMPLETE))
    experiences.search("insight")
    experiences.judge("a", score=0.9)
    run(fake.says(insight("a"), COMPLETE))
    assert experiences.get("a").score == 0.9
    run(fake.says(insight("a", "another text"), COMPLETE))
    [kept] = experiences.insights()
    assert (kept.context, kept.score) == ("another text", 0.9)
    assert experiences.search("another text").hits[0].id == "a"


def test_an_insight_that_is_gone_is_erased_unless_it_was_judged(experiences, path, fake, run):
    run(fake.says(insight("judged"), insight("other"), COMPLETE))
    experiences.judge("judged", score=0.9)
    run(fake.says(insight("new"), COMPLETE))
    assert ids(experiences) == ["new"]
    assert {hit.id for hit in experiences.search("insight").hits} == {"new"}
    run(fake.says(insight("judged"), COMPLETE))
    [back] = experiences.insights()
    assert (back.id, back.score) == ("judged", 0.9)


def test_generating_works_after_an_insight_was_shown(experiences, fake, run):
    run(fake.says(insight("a"), COMPLETE))
    assert experiences.search("an insight").hits
    run(fake.says(insight("b"), COMPLETE))
    assert ids(experiences) == ["b"]


def test_erasing_a_source_erases_what_was_drawn_from_it(experiences, path, fake, run):
    source = experiences.store("context", "action", "result").id
    run(fake.says(insight("a", source_ids=source), insight("b"), COMPLETE))
    with Engram(path, embedder=WordEmbedder()) as memory:
        memory.forget(source)
    assert ids(experiences) == ["b"]


def imported(uid: str, memory_type: str = "insight", text: str = "mine", **more: object):
    return ImportedExperience(
        id=uid,
        memory_type=memory_type,
        context=text,
        action="x",
        result="y",
        score=0.0,
        created_at="2025-01-01T00:00:00Z",
        updated_at="2025-01-01T00:00:00Z",
        used_count=0,
        **more,
    )


@pytest.fixture
def ledger(path, clock, experiences):
    with Ledger(path, clock=clock) as opened:
        yield opened


@pytest.mark.parametrize("text", ["an insight", "a insight"], ids=["the same", "alike"])
def test_a_stored_insight_is_not_lost_in_one_of_a_trainer(experiences, brought, text):
    brought(insight("a"))
    stored = experiences.store(
        text, "do", "done", memory_type="insight", tags=["mine"], threshold=0.1
    )
    assert not stored.deduplicated
    brought(insight("b", "something else"))
    assert ids(experiences) == [stored.id, "b"]
    again = experiences.store(text, "do", "done", memory_type="insight")
    assert (again.id, again.deduplicated) == (stored.id, True)


@pytest.mark.parametrize("then", ["a", "other"], ids=["reworded", "dropped"])
def test_what_rests_on_an_insight_stays_when_that_changes(experiences, brought, then):
    brought(insight("a"))
    experiences.import_experiences(
        [imported("mine", source_ids="a"), imported("child", "decision", parent_id="a")]
    )
    brought(insight(then, "new words"))
    assert ids(experiences) == ["mine", then]
    assert experiences.get("child").parent_id == ("a" if then == "a" else None)
    assert experiences.preview().garbage_ids == ()
    assert experiences.check() == []


def test_insights_may_rest_on_each_other(experiences, brought):
    for words in ("first", "second"):
        done = brought(insight("b", "bee", source_ids="a"), insight("a", words))
        assert done.generated == 2
        assert sorted(ids(experiences)) == ["a", "b"]
    assert experiences.get("a").context == "second"


@pytest.mark.parametrize("then", ["a", "other"], ids=["reworded", "dropped"])
def test_what_was_drawn_by_way_of_an_insight_goes_with_the_source(experiences, brought, then):
    first, second = (experiences.store(text, "do", "done").id for text in ("secret", "text"))
    experiences.import_experiences([imported("far", source_ids="mine")])
    brought(insight("a", "quotes secret", source_ids=f"{first},{second}"))
    experiences.import_experiences([imported("mine", text="secret too", source_ids="a")])
    brought(insight(then, "quotes nothing"))
    brought(insight("last"))
    assert ids(experiences) == ["far", "mine", "last"]
    experiences.delete(first)
    assert ids(experiences) == ["last"]
    assert experiences.check() == []


def test_sources_are_found_however_they_are_written(experiences, brought):
    first, second = (experiences.store(text, "do", "done").id for text in ("secret", "text"))
    brought(insight("a", "quotes secret", source_ids=f" {second}, {first} ,,{second}"))
    assert Engram.get(experiences, "a").summary_of == [second, first]
    experiences.delete(first)
    assert ids(experiences) == []


def test_a_source_that_comes_later_takes_the_insight_along(experiences, brought):
    brought(insight("a", "quotes secret", source_ids="later"))
    experiences.import_experiences([imported("i", source_ids="later")])
    experiences.import_experiences([imported("later", "decision", text="secret")])
    assert ids(experiences) == ["a", "i"]
    experiences.delete("later")
    assert ids(experiences) == []


@pytest.mark.parametrize("way", ["lines", "json"])
def test_insights_without_their_sources_can_be_moved(
    experiences, brought, open_memory, opened, tmp_path, way
):
    brought(insight("a", source_ids="gone, gone too"))
    other, file = tmp_path / "other.engram", tmp_path / "file"
    names = ("export_lines", "import_lines") if way == "lines" else ("export_json", "import_json")
    getattr(open_memory(), names[0])(file)
    getattr(open_memory(path=other), names[1])(file)
    assert open_memory(path=other).get("a").summary_of == ["gone", "gone too"]
    assert ids(opened(path=other)) == (["a"] if way == "lines" else [])


def test_exported_insights_do_not_keep_a_trainer_from_its_work(opened, fake, tmp_path):
    first, second = opened(), opened(path=tmp_path / "other.engram")
    trainer = fake.says(insight("a"), COMPLETE)
    first.generate(tmp_path / "models", trainer=trainer)
    names = ImportedExperience.__dataclass_fields__
    second.import_experiences(
        [
            ImportedExperience(**{name: getattr(one, name) for name in names})
            for one in first.export()
        ]
    )
    trainer = fake.says(insight("a", "other words"), insight("b"), COMPLETE)
    second.generate(tmp_path / "models", trainer=trainer)
    assert [(one.id, one.context) for one in second.insights()] == [
        ("a", "an insight"),
        ("b", "an insight"),
    ]


@pytest.mark.parametrize("words", ["an insight", "other words"], ids=["the same", "reworded"])
@pytest.mark.parametrize(
    "hide",
    [
        lambda ledger: ledger.hide("a"),
        lambda ledger: ledger.invalidate("a"),
        lambda ledger: ledger.set_status("a", "archived"),
        lambda ledger: ledger.set_status("a", "superseded"),
    ],
    ids=["forgotten", "invalidated", "archived", "superseded"],
)
def test_what_somebody_hid_stays_hidden(experiences, ledger, brought, hide, words):
    brought(insight("a"))
    hide(ledger)
    before = experiences.export()
    brought(insight("b"))
    brought(insight("a", words))
    assert "a" not in {hit.id for hit in experiences.search("insight").hits}
    assert experiences.export() == before
    ledger.restore("a")
    assert ids(experiences) == ["a"]
    brought(insight("a", words))
    assert experiences.get("a").context == words


def test_training_shows_again_what_only_training_hid(experiences, ledger, brought):
    brought(insight("a"), insight("b"))
    for uid in ("a", "b"):
        experiences.judge(uid, score=0.9)
    brought(insight("c"))
    assert ids(experiences) == ["c"]
    ledger.set_status("b", "archived")
    brought(insight("a", "new words"), insight("b"))
    [shown] = [one for one in experiences.insights() if not one.archived]
    assert (shown.id, shown.context, shown.score) == ("a", "new words", 0.9)
    assert [action for action, _, _ in ledger.lifecycle_of("a")] == [
        "status: superseded",
        "status: active",
    ]


def test_an_insight_that_is_reworded_keeps_its_use(experiences, brought):
    brought(insight("a"))
    with experiences._store.writing():
        # An earlier version stored others into it.
        experiences._store.duplicates.use_again(experiences._store.episodes.key("a", None), 10**6)
    brought(insight("a", "new words"))
    [kept] = experiences.insights()
    assert (kept.context, kept.used_count) == ("new words", 1)
    assert kept.last_used_at == "1970-01-01T00:00:01Z"


class Meanwhile:
    """A trainer that waits, after its last word, until something was done to the store."""

    def __init__(self, experiences, fake, tmp_path) -> None:
        self._experiences, self._fake, self._folder = experiences, fake, tmp_path

    def __call__(self, done, *lines: object) -> None:
        gate = self._folder / "gate"
        os.mkfifo(gate)
        trainer = self._fake.says(*lines, COMPLETE, after=f"open({str(gate)!r}).read()")
        with ThreadPoolExecutor() as pool:
            run = pool.submit(self._experiences.generate, self._folder, trainer=trainer)
            # Opening it waits for the trainer, which opens it too.
            with gate.open("w"):
                done()
            run.result()
        gate.unlink()


@pytest.fixture
def meanwhile(experiences, fake, tmp_path) -> Meanwhile:
    return Meanwhile(experiences, fake, tmp_path)


def test_of_a_run_during_which_a_memory_was_erased_only_what_surely_is_of_others_stays(
    experiences, brought, meanwhile
):
    first, second = (experiences.store(text, "do", "done").id for text in ("secret", "text"))
    brought(insight("old", source_ids=second), insight("stale"))
    said = {"action": "archive", "reasoning": "says secret"}
    meanwhile(
        lambda: experiences.delete(first),
        insight("none", "quotes secret"),
        insight("gone", "quotes secret", source_ids=f"{second},{first}"),
        insight("on gone", "quotes secret", source_ids="gone"),
        insight("ring", "quotes secret", source_ids="of two"),
        insight("of two", "quotes secret", source_ids="ring"),
        insight("stale", "quotes secret"),
        insight("on stale", "quotes secret", source_ids="stale"),
        insight("on fine", source_ids=f"fine,{second}"),
        insight("fine", source_ids=second),
        {"type": "recommendation", "target_id": first, **said},
        {"type": "recommendation", "target_id": second, **said},
        {"type": "metric", "name": "topic secret", "value": 1.0},
        {"type": "artifact", "path": "/secret", "size_bytes": 1},
    )
    assert sorted(ids(experiences)) == ["fine", "on fine"]
    run = experiences.training_runs()[0]
    assert (run.recommendations, run.metrics, run.artifacts) == ([], [], [])
    assert (run.messages, run.insights) == (14, 2)


def test_what_else_happens_during_a_run_takes_nothing_from_it(experiences, meanwhile):
    first = experiences.store("text", "do", "done").id

    def others_write() -> None:
        experiences.store("more", "do", "done")
        experiences.judge(first, score=0.5)

    meanwhile(others_write, insight("a"), {"type": "metric", "name": "count", "value": 1.0})
    assert ids(experiences) == ["a"]
    assert experiences.training_runs()[0].metrics == [("count", 1.0)]
