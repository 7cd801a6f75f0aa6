from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from engram.embedding import LocalModel, OnnxEmbedder
from engram.embedding.location import locate
from engram.embedding.registry import PACKAGED, Model, ModelFile, registered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_VARIABLES = (
    "ENGRAM_MODEL_DIR",
    "ENGRAM_MODEL_DOWNLOAD",
    "ENGRAM_THREADS",
    "FASTEMBED_CACHE_PATH",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "HUGGINGFACE_HUB_CACHE",
    "TRANSFORMERS_OFFLINE",
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees the models of the machine it runs on, but for the packaged one."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    monkeypatch.setattr("tempfile.tempdir", str(home / "tmp"))
    return home


@pytest.fixture(scope="session")
def packaged_local() -> LocalModel:
    model = registered(PACKAGED)
    assert model is not None
    found = locate(model)
    assert found is not None
    return found


@pytest.fixture(scope="session")
def packaged(packaged_local: LocalModel) -> OnnxEmbedder:
    """The real packaged model, loaded once for all tests, with nothing remembered."""
    return OnnxEmbedder(packaged_local, threads=2, cached_texts=0)


# A model small enough to read: a table of token vectors and nothing else. It is written byte by
# byte because the library that writes ONNX files is not otherwise needed.


def _field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _declared(name: str, element: int, *dims: str | int) -> bytes:
    shape = b"".join(
        _field(1, _field(1, dim) if isinstance(dim, int) else _field(2, dim.encode()))
        for dim in dims
    )
    tensor = _field(1, element) + _field(2, shape)
    return _field(1, name.encode()) + _field(2, _field(1, tensor))


def lookup_model(table: np.ndarray, output: str = "last_hidden_state") -> bytes:
    """Return an ONNX file whose output is `table[input_ids]`; it has no token_type_ids."""
    rows, dim = table.shape
    weights = _field(1, rows) + _field(1, dim) + _field(2, 1) + _field(8, b"table")
    weights += _field(9, struct.pack(f"<{table.size}f", *table.ravel()))
    node = _field(1, b"table") + _field(1, b"input_ids") + _field(2, output.encode())
    graph = _field(1, node + _field(4, b"Gather")) + _field(2, b"lookup") + _field(5, weights)
    for name in ("input_ids", "attention_mask"):
        graph += _field(11, _declared(name, 7, "batch", "sequence"))
    graph += _field(12, _declared(output, 1, "batch", "sequence", dim))
    return _field(1, 8) + _field(8, _field(2, 13)) + _field(7, graph)


WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "query:")
TABLE = np.random.default_rng(7).normal(size=(len(WORDS), 4)).astype(np.float32)


def word_tokenizer() -> bytes:
    """Return a tokenizer of the words above that, as stored, would cut and pad at 4 tokens."""
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4)
    return tokenizer.to_str().encode()


@pytest.fixture
def make_folder() -> Callable[..., Path]:
    """Write a small model into a folder: `make_folder(path, onnx="model.onnx")`."""

    def make(folder: Path, onnx: str = "model.onnx") -> Path:
        (folder / onnx).parent.mkdir(parents=True, exist_ok=True)
        (folder / onnx).write_bytes(lookup_model(TABLE))
        (folder / "tokenizer.json").write_bytes(word_tokenizer())
        return folder

    return make


@pytest.fixture
def small(tmp_path: Path, make_folder: Callable[..., Path]) -> Callable[..., OnnxEmbedder]:
    """Make an embedder of the small model: `small(pooling="cls", query_prefix="query: ")`."""
    folder = make_folder(tmp_path / "small")

    def build(*, threads: int = 1, cached_texts: int = 256, **described: object) -> OnnxEmbedder:
        onnx, tokenizer = folder / "model.onnx", folder / "tokenizer.json"
        settings: dict[str, object] = {"dim": 4, "pooling": "mean", "max_tokens": 10, **described}
        model = Model(
            name="small",
            onnx=ModelFile("model.onnx", hashlib.sha256(onnx.read_bytes()).hexdigest()),
            tokenizer=ModelFile("tokenizer.json"),
            **settings,
        )
        local = LocalModel(model, onnx, tokenizer, "path")
        return OnnxEmbedder(local, threads=threads, cached_texts=cached_texts)

    return build


@pytest.fixture
def table() -> dict[str, np.ndarray]:
    """The small model's vector of each of its tokens."""
    return dict(zip(WORDS, TABLE, strict=True))
