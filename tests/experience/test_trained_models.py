"""What a server makes of a folder of trained models, and of what is wrong with one."""

from __future__ import annotations

import hashlib
import json
import os

import numpy as np
import pytest
from learned import WORDS, classified_rows, ranked_rows, row
from sklearn.feature_extraction.text import TfidfVectorizer

from engram.experience.models import MODES, TrainedModels, factors
from engram.training.classifier import train_classifier
from engram.training.features import classified_text, digest, tokens
from engram.training.manifest import MAX_MANIFEST_BYTES, file_name
from engram.training.onnx_models import write_manifest
from engram.training.ranker import train_ranker

FEATURES = np.array([[0.9, 0, 0, 20, 0], [0.1, 0, 0, 20, 0]], np.float32)


@pytest.fixture
def folder(tmp_path):
    made = [
        train_classifier(classified_rows(60), tmp_path, 0),
        train_ranker(ranked_rows(100), tmp_path, 0),
    ]
    write_manifest(tmp_path, made)
    return tmp_path


def silent(models: TrainedModels) -> bool:
    return models.mode_of(WORDS["bugfix"]) is None and models.weights(FEATURES) is None


def test_models_that_passed_are_asked(folder):
    models = TrainedModels(folder)
    for memory_type, words in WORDS.items():
        assert models.mode_of(words) == MODES[memory_type]
    assert models.ranks
    useful, useless = models.weights(FEATURES)
    assert 1 >= useful > 0.5 > useless >= 0


@pytest.mark.parametrize("text", ["", "?", "words that nobody ever used", "a b c"])
def test_a_text_without_known_words_has_no_mode(folder, text):
    assert TrainedModels(folder).mode_of(text) is None


def test_words_are_weighed_as_by_scikit_learn(folder):
    models = TrainedModels(folder)
    classifier = models._current().classifier
    rows = json.loads((folder / "manifest.json").read_bytes())["models"][0]
    texts = [classified_text(one.context, one.action) for one in classified_rows(60)]
    words = TfidfVectorizer(
        vocabulary=rows["vocabulary"], analyzer=lambda text: [digest(word) for word in tokens(text)]
    ).fit(texts)
    words.idf_ = np.array(rows["idf"])
    odd = ["", "Crash CRASH crash_trace null-pointer", "ΣΊΣΥΦΟΣ İstanbul ﬁx x2 __ é́"]
    asked = [*texts, *odd, "login\u2028pool\x00pool"]
    expected = words.transform(asked).toarray()
    found = np.array([classifier.transform(text) for text in asked])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0)


def test_the_factor_of_a_score_is_a_tenth_up_or_down():
    np.testing.assert_allclose(factors(np.array([0.0, 0.5, 1.0])), [0.9, 1.0, 1.1])


def test_a_folder_that_is_not_there_says_nothing(tmp_path):
    assert silent(TrainedModels(tmp_path / "nowhere"))


def test_models_that_did_not_pass_say_nothing(tmp_path):
    made = [
        train_classifier(classified_rows(20), tmp_path, 0),
        train_ranker(ranked_rows(20), tmp_path, 0),
    ]
    write_manifest(tmp_path, made)
    assert silent(TrainedModels(tmp_path))


@pytest.mark.parametrize("name", ["mode_classifier", "ranking_model"])
@pytest.mark.parametrize("part", [0.0, 0.3, 0.99])
def test_a_flipped_byte_silences_that_model_alone(folder, name, part, caplog):
    [file] = folder.glob(f"{name}-*.onnx")
    content = bytearray(file.read_bytes())
    content[int(part * len(content))] ^= 1
    file.write_bytes(content)
    models = TrainedModels(folder)
    assert (models.mode_of(WORDS["bugfix"]) is None) == name.startswith("mode")
    assert (models.weights(FEATURES) is None) == name.startswith("ranking")
    assert name in caplog.text


def test_a_model_with_the_right_checksum_but_another_shape_is_ignored(folder):
    said = json.loads((folder / "manifest.json").read_bytes())
    classifier, ranker = said["models"]
    content = (folder / classifier["file"]).read_bytes()
    ranker["sha256"] = classifier["sha256"]
    ranker["file"] = file_name(ranker["name"], ranker["sha256"])
    (folder / ranker["file"]).write_bytes(content)
    classifier["vocabulary"].append("0" * 16)
    classifier["idf"].append(1.0)
    (folder / "manifest.json").write_text(json.dumps(said))
    assert silent(TrainedModels(folder))


def test_what_is_no_model_is_ignored_whatever_its_checksum(folder):
    digest_of_it = hashlib.sha256(b"no model").hexdigest()
    said = json.loads((folder / "manifest.json").read_bytes())
    for model in said["models"]:
        model["sha256"] = digest_of_it
        model["file"] = file_name(model["name"], digest_of_it)
        (folder / model["file"]).write_bytes(b"no model")
    (folder / "manifest.json").write_text(json.dumps(said))
    assert silent(TrainedModels(folder))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b" " * (MAX_MANIFEST_BYTES + 1)])
def test_a_broken_manifest_is_ignored(folder, content):
    (folder / "manifest.json").write_bytes(content)
    assert silent(TrainedModels(folder))


@pytest.mark.parametrize("which", ["manifest.json", "ranking_model-*.onnx"])
def test_a_pipe_or_a_folder_is_ignored_without_waiting(folder, which):
    [file] = folder.glob(which)
    name = file.name
    for make in (os.mkfifo, os.mkdir):
        (folder / name).unlink()
        make(folder / name)
        assert TrainedModels(folder).weights(FEATURES) is None
        (folder / name).rename(folder / "away")
        (folder / name).touch()
        (folder / "away").rename(folder / f"away-{make.__name__}")


def test_a_file_too_large_is_ignored(folder):
    [model] = folder.glob("ranking_model-*.onnx")
    with model.open("ab") as file:
        file.truncate(1 << 30)
    assert TrainedModels(folder).weights(FEATURES) is None


def test_models_of_a_later_run_are_noticed(tmp_path):
    models = TrainedModels(tmp_path)
    assert not models.ranks
    write_manifest(tmp_path, [train_ranker(ranked_rows(100), tmp_path, 0)])
    before = models.weights(FEATURES)
    assert before is not None
    text = "twenty letters, no a"
    reverse = [row(n, "context", text, score=0.5 + n / 200, judged=n < 50) for n in range(100)]
    write_manifest(tmp_path, [train_ranker(reverse, tmp_path, 0)])
    after = models.weights(FEATURES)
    assert before[0] > before[1]
    assert after[0] < after[1]
    (tmp_path / "manifest.json").unlink()
    assert silent(models)


def test_numbers_beyond_reason_are_answered(folder):
    features = np.array([[np.inf, -np.inf, np.nan, 1e38, 0]], np.float32)
    [probability] = TrainedModels(folder).weights(features)
    assert 0 <= probability <= 1
    assert TrainedModels(folder).weights(np.zeros((0, 5), np.float32)).shape == (0,)
