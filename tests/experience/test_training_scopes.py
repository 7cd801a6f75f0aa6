"""What the real trainer learns stays with whose memories it learned from, and keeps no words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_trainer import COMPLETE, insight

from engram.errors import TrainerFailed
from engram.experience import ExperienceMemory
from engram.training.features import digest, tokens

REAL = "from engram.training import main\nmain()"
WORDS = {
    "alice": {"bugfix": "okapi giraffe zebra gnu", "decision": "quagga kudu eland oryx"},
    "bob": {"pattern": "piano violin trumpet flute", "context": "cello oboe harp lute"},
}
"""What the memories of each agent speak of."""
EACH = 60


def fill(memory: ExperienceMemory) -> None:
    """Keep memories of an agent, some nearly the same, and judge those that searches show."""
    for number in range(EACH):
        kind, words = list(WORDS[memory.agent_id].items())[number % 2]
        memory.store(
            f"{words} seen", f"{words} {words}", f"{5 * f'{words} '}{number}",
            memory_type=kind, tags=[words.split()[0]], threshold=1.0,
        )  # fmt: skip
    for words in WORDS[memory.agent_id].values():
        for at, hit in enumerate(memory.search(words, limit=20).hits):
            memory.judge(hit.id, score=0.9 if at % 2 else 0.2)


def said_of(memory: ExperienceMemory) -> str:
    """All that an agent can see of what the trainer said."""
    runs = [repr(run) for run in memory.training_runs()]
    return "\n".join([*map(repr, memory.insights()), *runs])


def models_in(folder: Path) -> bytes:
    # Each model is there twice: under its own name and under the one that says what is in it.
    assert sorted(file.name.partition("-")[0] for file in folder.iterdir()) == [
        "manifest.json", "mode_classifier", "mode_classifier.onnx", "ranking_model",
        "ranking_model.onnx",
    ]  # fmt: skip
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))


@pytest.fixture
def agents(opened) -> dict[str, ExperienceMemory]:
    found = {name: opened(name) for name in WORDS}
    for memory in found.values():
        fill(memory)
    return found


def test_two_agents_of_a_file_learn_from_their_own(agents, opened, fake, tmp_path):
    trainer = fake.does(REAL)
    for name, memory in agents.items():
        assert memory.generate(tmp_path / name, trainer=trainer).generated > 0
    for name, memory in agents.items():
        others = " ".join(WORDS["bob" if name == "alice" else "alice"].values()).split()
        mine = {one.id for one in memory.export()}
        [run] = memory.training_runs()
        assert {action for _, action, _ in run.recommendations} == {"archive", "merge"}
        assert {target for target, _, _ in run.recommendations} <= mine
        assert dict(run.metrics)["memory_count"] == EACH
        kinds = {word for word, _ in run.metrics if word.startswith("type_fraction_")}
        assert kinds == {f"type_fraction_{kind}" for kind in WORDS[name]}
        for one in memory.insights():
            assert set(one.source_ids.split(",")) <= mine
        assert not [word for word in others if word in said_of(memory)]
        manifest = json.loads((tmp_path / name / "manifest.json").read_bytes())
        vocabulary = set(manifest["models"][0]["vocabulary"])
        assert not vocabulary & set(map(digest, others))
        assert vocabulary & set(map(digest, tokens(" ".join(WORDS[name].values()))))
        assert manifest["models"][0]["labels"] == sorted(WORDS[name])
    assert len(opened().training_runs()) == 2


def test_all_agents_together_and_each_alone(agents, opened, fake, tmp_path):
    """Whoever sees everything gets insights of its own, which no agent sees."""
    trainer, everybody = fake.does(REAL), opened()
    for _ in range(2):
        everybody.generate(tmp_path / "all", trainer=trainer)
        for name, memory in agents.items():
            memory.generate(tmp_path / name, trainer=trainer)
    ids = {name: {one.id for one in memory.insights()} for name, memory in agents.items()}
    assert not ids["alice"] & ids["bob"]
    assert ids["alice"] | ids["bob"] < {one.id for one in everybody.insights()}
    assert dict(everybody.training_runs()[2].metrics)["memory_count"] == 2 * EACH
    assert [len(memory.training_runs()) for memory in agents.values()] == [2, 2]


def test_an_agent_that_never_wrote_has_nothing_and_changes_nothing(opened, fake, tmp_path):
    everybody, fresh = opened(), opened("fresh")
    everybody.store("nobody's own", "", "")
    everybody.generate(tmp_path, trainer=fake.says(insight("nobody's"), COMPLETE))
    assert fresh.training_runs() == []
    fresh.generate(tmp_path, trainer=fake.does(REAL))
    assert fresh.training_runs()[0].metrics == []
    fresh.generate(tmp_path, trainer=fake.says(insight("mine"), COMPLETE))
    assert [one.id for one in everybody.insights()] == ["nobody's", "mine"]
    assert [one.id for one in fresh.insights()] == ["mine"]


def test_what_is_said_of_another_agents_memory_is_not_kept(opened, fake, tmp_path):
    alice, bob = opened("alice"), opened("bob")
    ids = [one.store("a", "b", "c").id for one in (alice, bob)]
    said = [
        {"type": "recommendation", "target_id": uid, "action": "archive", "reasoning": "r"}
        for uid in ids
    ]
    alice.generate(tmp_path, trainer=fake.says(*said, COMPLETE))
    assert alice.training_runs()[0].recommendations == [(ids[0], "archive", "r")]


def test_the_runs_of_one_agent_do_not_push_out_those_of_another(opened, fake, tmp_path):
    alice, bob = opened("alice"), opened("bob")
    trainer = fake.says(COMPLETE)
    alice.generate(tmp_path, trainer=trainer)
    for _ in range(21):
        bob.generate(tmp_path, trainer=trainer)
    assert (len(alice.training_runs()), len(bob.training_runs())) == (1, 20)


@pytest.mark.parametrize("name", ["", "--deep", "a b", "ä'\"", "-h"])
def test_any_name_of_an_agent_reaches_the_trainer(opened, fake, tmp_path, name):
    memory = opened(name)
    memory.store("a", "b", "c")
    opened("other").store("a", "b", "c")
    memory.generate(tmp_path, trainer=fake.does(REAL))
    assert dict(memory.training_runs()[0].metrics)["memory_count"] == 1.0


def test_a_name_that_no_program_can_be_told_is_a_failure(opened, tmp_path, fake):
    with pytest.raises(TrainerFailed, match="cannot be started"):
        opened("a\0b").generate(tmp_path, trainer=fake.does(REAL))


@pytest.mark.parametrize("key", ["pässword", "ends\n", "long" * 1000])
def test_the_trainer_of_an_encrypted_store_gets_its_key(opened, fake, tmp_path, monkeypatch, key):
    """Whatever file the environment names."""
    monkeypatch.setenv("ENGRAM_KEY_FILE", str(tmp_path / "none"))
    memory = opened(key=key)
    memory.store("a", "b", "c")
    memory.generate(tmp_path, trainer=fake.does(REAL))
    assert dict(memory.training_runs()[0].metrics)["memory_count"] == 1.0


def test_the_trainer_has_the_environment_of_the_process(opened, fake, tmp_path, monkeypatch):
    monkeypatch.setenv("ENGRAM_KEY_FILE", "a file")
    said = "import json\nname = os.environ['ENGRAM_KEY_FILE']\n"
    said += "print(json.dumps({'type': 'metric', 'name': name, 'value': 1.0}))"
    memory = opened()
    memory.generate(tmp_path, trainer=fake.does(said))
    assert memory.training_runs()[0].metrics == [("a file", 1.0)]


def test_models_hold_no_word_of_an_erased_memory(opened, fake, tmp_path):
    """Not even of one whose words others had too; and nothing that was in it alone."""
    memory = opened()
    sentence = "我们昨天在东京塔下面见到了山田先生"
    texts = [f"zanzibar meeting {sentence}", f"zanzibar meeting again {sentence}"]
    texts += [f"{('crash', 'choose')[at % 2]} common word{at % 7}" for at in range(EACH)]
    kinds = ["bugfix", "decision"]
    ids = [
        memory.store(text, f"secret{at}", "", memory_type=kinds[at % 2], threshold=1.0).id
        for at, text in enumerate(texts)
    ]
    for hit in memory.search("common", limit=20).hits:
        memory.judge(hit.id, score=0.9)
    memory.generate(tmp_path / "models", trainer=fake.does(REAL))
    for uid in ids[:2]:
        memory.delete(uid)
    kept = models_in(tmp_path / "models")
    for word in ("zanzibar", "meeting", "secret0", "crash", sentence, sentence[:2]):
        assert word.encode() not in kept
        assert json.dumps(word)[1:-1].encode() not in kept
    manifest = json.loads((tmp_path / "models" / "manifest.json").read_bytes())
    vocabulary = manifest["models"][0]["vocabulary"]
    assert vocabulary == sorted(vocabulary)
    assert digest("secret0") not in vocabulary
