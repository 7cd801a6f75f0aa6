from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from pair_models import pair_model, pair_tokenizer
from stand_ins import WordEmbedder

from engram.embedding.location import model_cache
from engram.embedding.reranking import Reranker, resolve_reranker
from engram.errors import ModelCorrupt

if TYPE_CHECKING:
    from pathlib import Path

BGE = "BAAI/bge-reranker-base"
MARCO = "cross-encoder/ms-marco-MiniLM-L-6-v2"


def cross_encoder_in(folder: Path, onnx: str = "onnx/model.onnx") -> Path:
    (folder / onnx).parent.mkdir(parents=True, exist_ok=True)
    (folder / onnx).write_bytes(pair_model())
    (folder / "tokenizer.json").write_bytes(pair_tokenizer())
    return folder


def kind_and_name(reranker: Reranker) -> tuple[str, str]:
    return reranker.kind, reranker.name


@pytest.mark.parametrize("name", [BGE, "ms-marco-MiniLM-L-6-v2", "rerank-2", "", "../x"])
def test_without_the_cross_encoder_the_embedder_reranks(name: str) -> None:
    reranker = resolve_reranker(name, WordEmbedder())
    assert kind_and_name(reranker) == ("late_interaction", "words")
    assert reranker.reason.startswith(f"no cross-encoder {name} is on this machine")
    assert reranker.scores("a b", ["a b", "c"]).argmax() == 0


@pytest.mark.parametrize("name", [BGE, "bge-reranker-base"])
def test_a_cross_encoder_in_engrams_cache_is_taken(home: Path, name: str) -> None:
    cross_encoder_in(model_cache() / "BAAI--bge-reranker-base")
    reranker = resolve_reranker(name, WordEmbedder())
    assert kind_and_name(reranker) == ("cross_encoder", BGE)
    assert reranker.reason == f"the cross-encoder {BGE} is on this machine (cache)"
    assert resolve_reranker(BGE, WordEmbedder()) is reranker
    assert resolve_reranker(MARCO, WordEmbedder()).kind == "late_interaction"


@pytest.mark.parametrize(
    "repo", [MARCO, "cross-encoder/ms-marco-MiniLM-L6-v2", "Xenova/ms-marco-MiniLM-L-6-v2"]
)
def test_the_hubs_cache_is_searched_under_every_name(home: Path, repo: str) -> None:
    hub = home / ".cache" / "huggingface" / "hub"
    cross_encoder_in(hub / f"models--{repo.replace('/', '--')}" / "snapshots" / "abc")
    reranker = resolve_reranker(MARCO, WordEmbedder())
    assert kind_and_name(reranker) == ("cross_encoder", MARCO)
    assert reranker.scores("a", ["d", "b"]).argmax() == 0


def test_a_folder_will_do(tmp_path: Path) -> None:
    folder = cross_encoder_in(tmp_path / "mine", "model.onnx")
    (folder / "config.json").write_text('{"max_position_embeddings": 514}')
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 8}')
    reranker = resolve_reranker(str(folder), WordEmbedder())
    assert kind_and_name(reranker) == ("cross_encoder", "mine")
    long, cut = reranker.scores("a", ["c c c c d d d", "c c c c"])
    assert long == cut
    (folder / "tokenizer_config.json").write_text("{")
    with pytest.raises(ModelCorrupt):
        resolve_reranker(str(folder), WordEmbedder())


def test_a_folder_that_holds_none_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    reranker = resolve_reranker(str(tmp_path / "empty"), WordEmbedder())
    assert reranker.kind == "late_interaction"


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2-int8", "BAAI/bge-small-en-v1.5"])
def test_an_embedding_model_is_no_cross_encoder(name: str) -> None:
    assert resolve_reranker(name, WordEmbedder()).kind == "late_interaction"


def test_nothing_is_ever_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_MODEL_DOWNLOAD", "1")
    monkeypatch.setattr("engram.embedding.library.pull", None)
    assert resolve_reranker(BGE, WordEmbedder()).kind == "late_interaction"


def test_resolving_loads_no_runtime() -> None:
    program = """
import sys
from engram.embedding import resolve
from engram.embedding.reranking import resolve_reranker
resolve_reranker("BAAI/bge-reranker-base", resolve("all-MiniLM-L6-v2-int8")).reason
print(*(name for name in ("onnxruntime", "tokenizers") if name in sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
