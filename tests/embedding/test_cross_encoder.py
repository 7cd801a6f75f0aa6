from __future__ import annotations

import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
from pair_models import WORTH, pair_model, pair_tokenizer

from engram.embedding.cross_encoder import CrossEncoder
from engram.embedding.location import LocalModel
from engram.embedding.registry import Model, ModelFile
from engram.errors import ModelCorrupt

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WINDOW = 12

Make = Callable[..., CrossEncoder] if TYPE_CHECKING else object


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make a cross-encoder of the model above: `make(classes=2, threads=2)`."""

    def build(*, threads: int = 1, sha256: str = "", **described: object) -> CrossEncoder:
        path, tokenizer = tmp_path / "model.onnx", tmp_path / "tokenizer.json"
        path.write_bytes(pair_model(**described))
        tokenizer.write_bytes(pair_tokenizer())
        checksum = sha256 or hashlib.sha256(path.read_bytes()).hexdigest()
        model = Model(
            name="pairs",
            kind="cross_encoder",
            max_tokens=WINDOW,
            onnx=ModelFile("model.onnx", checksum),
            tokenizer=ModelFile("tokenizer.json"),
        )
        return CrossEncoder(LocalModel(model, path, tokenizer, "path"), threads=threads)

    return build


def worth(query: str, text: str, *, text_times: float = 10.0) -> float:
    """Return the logit the model above is to give, by hand."""
    own = sum(WORTH[word] for word in ("[CLS]", *query.split(), "[SEP]"))
    return own + text_times * sum(WORTH[word] for word in (*text.split(), "[SEP]"))


def test_a_query_and_a_text_are_read_as_one_pair(make: Make) -> None:
    texts = ["a", "b c", "", "d d d", "unheard a"]
    expected = [worth("a b", text.replace("unheard", "[UNK]")) for text in texts]
    scores = make().scores("a b", texts)
    assert scores.dtype == np.float64
    assert np.allclose(scores, expected, atol=1e-4)


def test_a_model_without_sides_is_not_given_any(make: Make) -> None:
    scores = make(types=False).scores("a b", ["c", "d a"])
    expected = [worth("a b", text, text_times=1) for text in ("c", "d a")]
    assert np.allclose(scores, expected, atol=1e-4)


def test_of_two_classes_the_difference_counts(make: Make) -> None:
    scores = make(classes=2).scores("a", ["c", "d a"])
    assert np.allclose(scores, [worth("a", text) - 3 for text in ("c", "d a")], atol=1e-4)


def test_the_end_of_a_long_text_is_cut_and_the_query_stays(make: Make) -> None:
    room = WINDOW - 3 - 2
    text = "c " * room + "d " * 500
    assert make().scores("a b", [text])[0] == pytest.approx(worth("a b", "c " * room))


def test_a_query_of_more_than_half_the_window_leaves_the_text_half(make: Make) -> None:
    query, text = "a " * 4 + "b " * 400, "c " * 5 + "d " * 400
    assert make().scores(query, [text])[0] == pytest.approx(worth("a " * 4, "c " * 5))
    short = "c c"
    expected = worth("a " * 4 + "b " * 3, short)
    assert make().scores(query, [short])[0] == pytest.approx(expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_scores_depend_neither_on_order_nor_on_company(make: Make, threads: int) -> None:
    texts = [f"{'a ' * (at % 7)}{'c ' * (at % 3)}" for at in range(60)]
    cross_encoder = make(threads=threads)
    together = cross_encoder.scores("b", texts)
    assert np.allclose(together, [worth("b", text) for text in texts], atol=1e-4)
    assert np.allclose(cross_encoder.scores("b", texts[::-1]), together[::-1], atol=1e-4)


def test_any_text_will_do(make: Make) -> None:
    texts = ["", "\x00", "\ud800 a", "x" * 100_000, " " * 100_000]
    assert np.isfinite(make().scores("\udfff", texts)).all()
    assert make().scores("a", []).shape == (0,)


def test_logits_are_calibrated_by_the_logistic_function(make: Make) -> None:
    raw = np.array([-1e9, -2.0, 0.0, 0.405465, 1e9])
    assert np.allclose(make().calibrated(raw), [0, 0.119203, 0.5, 0.6, 1], atol=1e-6)


def test_nothing_is_opened_before_the_first_text(make: Make) -> None:
    cross_encoder = make()
    (cross_encoder._local.onnx).unlink()
    assert (cross_encoder.name, cross_encoder.kind) == ("pairs", "cross_encoder")
    assert cross_encoder.output == "raw_logit"
    assert cross_encoder.reason == "the cross-encoder pairs is on this machine (path)"
    assert cross_encoder.scores("a", []).size == 0
    with pytest.raises(FileNotFoundError):
        cross_encoder.scores("a", ["b"])


def test_threads_share_one_load(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    cross_encoder = make(threads=2)
    loads: list[object] = []
    opened = cross_encoder._load._load
    cross_encoder._load._load = lambda: loads.append(1) or opened()
    with ThreadPoolExecutor(8) as pool:
        scores = list(pool.map(lambda _: cross_encoder.scores("a", ["b"])[0], range(32)))
    assert scores == [pytest.approx(worth("a", "b"))] * 32
    assert len(loads) == 1


def test_a_forked_process_loads_its_own(make: Make, tmp_path: Path) -> None:
    make()
    program = f"""
import os, signal
from engram.embedding.reranking import resolve_reranker
reranker = resolve_reranker({str(tmp_path)!r}, None)
before = reranker.scores("a", ["b", "c"])
child = os.fork()
if child == 0:
    signal.alarm(60)  # a hang ends as a failure
    os._exit(0 if (reranker.scores("a", ["b", "c"]) == before).all() else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_another_file_than_the_registry_names_is_refused(make: Make) -> None:
    with pytest.raises(ModelCorrupt, match="sha256"):
        make(sha256="0" * 64).scores("a", ["b"])


def test_what_is_no_cross_encoder_is_refused(
    make: Make, tmp_path: Path, make_folder: Callable[..., Path]
) -> None:
    with pytest.raises(ModelCorrupt, match="one or two numbers"):
        make(classes=3).scores("a", ["b"])
    folder = make_folder(tmp_path / "embedder")
    model = Model(
        name="x",
        max_tokens=8,
        onnx=ModelFile("model.onnx"),
        tokenizer=ModelFile("tokenizer.json"),
    )
    local = LocalModel(model, folder / "model.onnx", folder / "tokenizer.json", "path")
    with pytest.raises(ModelCorrupt, match="is no cross-encoder"):
        CrossEncoder(local).scores("a", ["b"])
    (folder / "model.onnx").write_bytes(b"no model")
    with pytest.raises(ModelCorrupt, match="cannot be read"):
        CrossEncoder(local).scores("a", ["b"])
