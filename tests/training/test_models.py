"""The trained models: what they learn, when they pass, and that their files can be trusted."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from learned import WORDS, classified_rows, mixed_rows, ranked_rows, row

from engram.experience.models import TrainedModels
from engram.training.classifier import train_classifier
from engram.training.features import tokens
from engram.training.manifest import decode, encode
from engram.training.messages import Artifact
from engram.training.models import train_models
from engram.training.onnx_models import TrainingFailed, alone_in, write_manifest
from engram.training.ranker import train_ranker


def asked(path: Path, features: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"float_input": features})


def test_the_classifier_tells_types_apart_by_their_words(tmp_path):
    trained = train_classifier(classified_rows(60), tmp_path, 0)
    assert trained.path.name.startswith("mode_classifier-")
    assert trained.size_bytes == trained.path.stat().st_size
    assert trained.model.passed
    assert trained.model.held_out.rows == 12
    assert trained.model.rows == 48
    assert trained.model.held_out.value == 1.0
    assert set(trained.model.labels) == {"bugfix", "decision", "pattern"}


def test_the_ranker_tells_the_useful_apart(tmp_path):
    trained = train_ranker(ranked_rows(100), tmp_path, 0)
    assert trained.path.name.startswith("ranking_model-")
    assert trained.model.passed
    assert trained.model.held_out.value > 0.9
    features = np.array([[0.9, 0, 0, 20, 0], [0.1, 0, 0, 20, 0]], np.float32)
    labels, probabilities = asked(trained.path, features)
    assert labels.dtype == np.int64
    assert labels.tolist() == [1, 0]
    assert probabilities[0][1] > 0.5 > probabilities[1][1]


@pytest.mark.parametrize(
    ("train", "rows", "label"),
    [(train_classifier, classified_rows(60), onnx.TensorProto.STRING),
     (train_ranker, ranked_rows(60), onnx.TensorProto.INT64)],
    ids=["classifier", "ranker"],
)  # fmt: skip
def test_files_are_sound_onnx_with_the_promised_names_and_shapes(tmp_path, train, rows, label):
    trained = train(rows, tmp_path, 0)
    model = onnx.load(trained.path)
    onnx.checker.check_model(model, full_check=True)
    [given] = model.graph.input
    assert given.name == "float_input"
    assert given.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    assert given.type.tensor_type.shape.dim[1].dim_value == trained.model.inputs[0].columns <= 500
    outputs = {out.name: out.type for out in model.graph.output}
    assert set(outputs) == {"output_label", "output_probability"}
    assert outputs["output_label"].tensor_type.elem_type == label
    assert outputs["output_probability"].sequence_type.elem_type.map_type.key_type == label


def test_no_more_than_five_hundred_words(tmp_path):
    rows = [row(n, "pattern" if n % 2 else "context", f"w{n}a w{n + 1}a") for n in range(1000)]
    assert train_classifier(rows, tmp_path, 0).model.inputs[0].columns == 500


@pytest.mark.parametrize("train", [train_classifier, train_ranker])
def test_of_fewer_than_ten_rows_nothing_is_made(tmp_path, train):
    assert train(ranked_rows(9), tmp_path / "models", 0) is None
    assert not (tmp_path / "models").exists()


def test_rows_that_lack_a_value_do_not_count_for_the_ranker(tmp_path):
    broken = [replace(one, score=None) for one in ranked_rows(10)]
    broken += [replace(one, created=None) for one in ranked_rows(10)]
    broken += [replace(one, score=1e300) for one in ranked_rows(10)]
    assert train_ranker(broken + ranked_rows(9), tmp_path, 0) is None
    assert train_ranker(broken + ranked_rows(10), tmp_path, 0).model.rows == 10


def test_one_type_alone_gets_a_synthetic_row_and_never_passes(tmp_path):
    trained = train_classifier(
        [row(n, "bugfix", f"words number{n % 9}") for n in range(60)], tmp_path, 0
    )
    assert trained.model.labels == ("__synthetic__", "bugfix")
    assert not trained.model.passed
    words = len(trained.model.vocabulary)
    _, [probabilities] = asked(trained.path, np.full((1, words), words**-0.5, np.float32))
    assert set(probabilities) == {"__synthetic__", "bugfix"}


@pytest.mark.parametrize(("judged", "score"), [(False, 0.9), (True, 0.9), (True, 0.4)])
def test_one_label_alone_fails_the_ranker_by_its_name(tmp_path, judged, score):
    rows = [replace(one, judged=judged, score=score) for one in ranked_rows(20)]
    with pytest.raises(TrainingFailed, match=r"^ranker_training_failed: "):
        train_ranker(rows, tmp_path, 0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["?", "word{n}", "twice{n} twice{n}", "w" * 41])
def test_no_words_in_common_fail_the_classifier_by_its_name(tmp_path, text):
    with pytest.raises(TrainingFailed, match=r"^classifier_training_failed: "):
        train_classifier([row(n, "bugfix", text.format(n=n)) for n in range(12)], tmp_path, 0)


def test_a_folder_that_cannot_be_written_to_fails_by_name(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(TrainingFailed, match=r"^ranker_training_failed: "):
        train_ranker(ranked_rows(20), tmp_path / "taken" / "models", 0)


def test_with_few_rows_nothing_is_held_out_and_nothing_passes(tmp_path):
    few_judged = [replace(one, judged=n < 4, score=0.9) for n, one in enumerate(ranked_rows(80))]
    for trained in (
        train_classifier(classified_rows(49), tmp_path, 0),
        train_ranker(ranked_rows(49), tmp_path, 0),
        train_ranker(few_judged, tmp_path, 0),
    ):
        assert trained.model.held_out.rows == 0
        assert not trained.model.passed


def test_what_cannot_be_learned_does_not_pass(tmp_path):
    chance = np.random.default_rng(5)
    types = ["bugfix", "decision"]
    rows = [row(n, types[chance.integers(2)], f"the same words {n % 3}") for n in range(200)]
    assert not train_classifier(rows, tmp_path, 0).model.passed
    noise = [replace(one, judged=bool(chance.integers(2)), score=0.7) for one in ranked_rows(400)]
    assert not train_ranker(noise, tmp_path, 0).model.passed


def test_a_memory_judged_to_be_useless_is_not_raised(tmp_path):
    """Scores are 0.0 exactly where nothing was judged."""
    chance = np.random.default_rng(6)
    rows = []
    for number in range(300):
        judged = number % 2 == 0
        score = round(float(chance.uniform(0.01, 1.0)), 2) if judged else 0.0
        rows.append(row(number, "decision", "a text", score=score, judged=judged))
    trained = train_ranker(rows, tmp_path, 0)
    assert trained.model.passed
    scores = [0.0, 0.01, 0.1, 0.3, 0.45, 0.55, 0.9]
    seen = np.array([[score, 0, 0, 7, 0] for score in scores], np.float32)
    never, *useless, edge, useful = (one[1] for one in asked(trained.path, seen)[1])
    assert max(never, *useless) < 0.1
    assert min(edge, useful) > 0.9


CHILD = """
import sys
from pathlib import Path
from learned import classified_rows, ranked_rows
from engram.training.classifier import train_classifier
from engram.training.onnx_models import write_manifest
from engram.training.ranker import train_ranker
folder = Path(sys.argv[1])
made = [train_classifier(classified_rows(60), folder, 1), train_ranker(ranked_rows(60), folder, 1)]
write_manifest(folder, made)
"""


def in_process(code: str, folder: Path, hash_seed: str) -> bytes:
    tests = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(tests)}
    environment.pop("PYTHONSAFEPATH", None)
    command = [sys.executable, "-P", "-c", code, str(folder)]
    return subprocess.run(
        command, check=True, env=environment, cwd=folder.parent, stdout=subprocess.PIPE
    ).stdout


def test_every_process_writes_the_same_bytes(tmp_path):
    for run in ("1", "2"):
        in_process(CHILD, tmp_path / run, run)
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / run).iterdir()} for run in "12"
    )
    assert first == second
    assert len(first) == 3


def test_the_manifest_says_how_to_ask_each_model(tmp_path):
    made = [
        train_classifier(classified_rows(60), tmp_path, 0),
        train_ranker(ranked_rows(60), tmp_path, 0),
    ]
    path = write_manifest(tmp_path, made)
    said = json.loads(path.read_bytes())
    assert [model["name"] for model in said["models"]] == ["mode_classifier", "ranking_model"]
    for model, artifact in zip(said["models"], made, strict=True):
        content = (tmp_path / model["file"]).read_bytes()
        assert model["sha256"] == hashlib.sha256(content).hexdigest()
        assert model["size_bytes"] == artifact.size_bytes == len(content)
        assert model["inputs"][0]["name"] == "float_input"
    assert len(said["models"][0]["vocabulary"]) == len(said["models"][0]["idf"])
    assert said["models"][1]["features"] == [
        "score", "used_count", "recency_days", "text_length", "has_tags",
    ]  # fmt: skip
    assert encode(decode(path.read_bytes())) == path.read_bytes()


def files(folder: Path) -> list[str]:
    return sorted(re.sub("-[0-9a-f]{16}", "-*", path.name) for path in folder.iterdir())


TRAINED = [
    "manifest.json", "mode_classifier-*.onnx", "mode_classifier.onnx",
    "ranking_model-*.onnx", "ranking_model.onnx",
]  # fmt: skip


def test_a_second_run_takes_the_place_of_the_first(tmp_path):
    train_models(ranked_rows(60), tmp_path, 0)
    before = (tmp_path / "ranking_model.onnx").read_bytes()
    (tmp_path / "mine.onnx").touch()
    said = train_models(ranked_rows(90), tmp_path, 0)
    after = (tmp_path / "ranking_model.onnx").read_bytes()
    assert after != before
    assert Artifact(str(tmp_path / "ranking_model.onnx"), len(after)) in said
    [kept] = tmp_path.glob("ranking_model-*.onnx")
    assert kept.read_bytes() == after
    assert "mine.onnx" in files(tmp_path)


KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from learned import mixed_rows
from engram.training.models import train_models
folder = Path(sys.argv[1])
train_models(mixed_rows(60), folder / "before", 0)
rows = mixed_rows(90)
for moment in range(6):
    shutil.copytree(folder / "before", folder / str(moment))
    if os.fork() == 0:
        left = moment
        replace = Path.replace
        def killing(*args):
            global left
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return replace(*args)
        Path.replace = killing
        train_models(rows, folder / str(moment), 0)
        os._exit(0)
    print(os.WIFSIGNALED(os.wait()[1]))
"""


def test_a_run_that_is_killed_leaves_a_whole_set(tmp_path):
    done = in_process(KILLED, tmp_path, "1")
    # A file for each model, the manifest, a copy of each model.
    assert done.split() == [b"True"] * 5 + [b"False"]
    sets = []
    for moment in range(6):
        folder = tmp_path / str(moment)
        models = TrainedModels(folder)
        assert models.mode_of(WORDS["bugfix"]) == "debug"
        assert models.ranks
        sets.append((folder / "manifest.json").read_bytes())
        train_models(mixed_rows(90), folder, 0)
        assert files(folder) == TRAINED
    assert sets == [sets[0]] * 3 + [sets[-1]] * 3
    assert sets[0] != sets[-1]


WAITING = """
import sys
from pathlib import Path
from engram.training.onnx_models import alone_in
print("up", flush=True)
with alone_in(Path(sys.argv[1])):
    print("in", flush=True)
"""


def test_a_run_waits_for_the_one_that_writes_to_its_folder(tmp_path):
    with alone_in(tmp_path / "models"):
        running = subprocess.Popen(
            [sys.executable, "-c", WAITING, str(tmp_path / "models")], stdout=subprocess.PIPE
        )
        assert running.stdout.readline() == b"up\n"
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.2)
    assert running.communicate()[0] == b"in\n"


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said.update(version=2),
        lambda said: said.update(more=1),
        lambda said: said["models"][0].update(file="../mode_classifier.onnx"),
        lambda said: said["models"][0].update(file="ranking_model.onnx"),
        lambda said: said["models"][0].update(sha256="00"),
        lambda said: said["models"][0].update(name="other"),
        lambda said: said["models"][0].update(token_pattern="(a+)+$"),
        lambda said: said["models"][0]["vocabulary"].__setitem__(0, "a word in clear"),
        lambda said: said["models"][0]["idf"].pop(),
        lambda said: said["models"][0].update(passed="yes"),
        lambda said: said["models"][0]["held_out"].update(value=0.1),
        lambda said: said["models"][0]["held_out"].update(value=None),
        lambda said: said["models"].append(said["models"][0]),
        lambda said: said["models"][0].update(size_bytes=1 << 40),
    ],
)
def test_a_manifest_that_is_not_exactly_one_is_refused(tmp_path, change):
    path = write_manifest(tmp_path, [train_classifier(classified_rows(60), tmp_path, 0)])
    said = json.loads(path.read_bytes())
    change(said)
    with pytest.raises(ValueError):  # noqa: PT011 - msgspec's own derive from it
        decode(json.dumps(said).encode())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Crash CRASH x_2 a é", ["crash", "crash", "x_2"]),
        ("null-pointer's end", ["null", "pointer", "end"]),
        ("ΣΊΣΥΦΟΣ Ёлка", ["σισυφος", "елка"]),
        # Scripts without spaces: pairs of letters.
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("login失敗した", ["login", "失敗", "敗し", "した"]),
        ("猫", []),
        ("ความสุข", ["คว", "วา", "าม", "มสุ", "สุ", "สุข"]),
        # Vowel signs belong to their words.
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("w" * 40 + " " + "w" * 41 + " " + "é" * 21, ["w" * 40]),
    ],
)
def test_what_a_word_is(text, words):
    assert tokens(text) == words
