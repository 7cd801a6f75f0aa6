"""A folder with an ONNX file and a tokenizer, as a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from engram.embedding.digest import sha256_of
from engram.embedding.location import LocalModel
from engram.embedding.registry import Kind, Model, ModelFile, known
from engram.errors import ModelCorrupt, ModelMissing

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["model_in"]

_ONNX_NAMES = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx", "onnx/model_optimized.onnx")
_DEFAULT_TOKENS = 512

_Description = TypeVar("_Description", bound=msgspec.Struct)


class _Pooling(msgspec.Struct):
    pooling_mode_cls_token: bool = False
    pooling_mode_mean_tokens: bool = False


class _Config(msgspec.Struct):
    hidden_size: int = 0
    max_position_embeddings: int = _DEFAULT_TOKENS


class _SentenceConfig(msgspec.Struct):
    max_seq_length: int | None = None


class _TokenizerConfig(msgspec.Struct):
    model_max_length: float = _DEFAULT_TOKENS  # "unlimited" is written as 1e30


class _Prompts(msgspec.Struct):
    prompts: dict[str, str] = {}


def model_in(folder: Path, source: str, kind: Kind = "embedding") -> LocalModel:
    """Return the model a folder holds.

    A file the registry knows by its checksum is that model. Any other is described by the files
    sentence-transformers writes beside it (`config.json`, `1_Pooling/config.json`,
    `sentence_bert_config.json`, `config_sentence_transformers.json`); where they are silent, it
    pools by mean, reads 512 tokens and has no query prefix. Its name is the folder's.

    Args:
        folder: Has `tokenizer.json` and one of `model.onnx`, `model_optimized.onnx`, either
            directly or under `onnx/`.
        source: The place it was found in, for `LocalModel.source`.
        kind: What to take it for if the registry does not know it. A cross-encoder reads what
            `tokenizer_config.json` says, 512 tokens at most.

    Raises:
        ModelMissing: One of the files is missing.
        ModelCorrupt: A description beside the model cannot be read.
    """
    tokenizer = folder / "tokenizer.json"
    onnx = next((folder / name for name in _ONNX_NAMES if (folder / name).is_file()), None)
    if onnx is None or not tokenizer.is_file():
        message = f"{folder} holds no model"
        raise ModelMissing(message, "a model is a folder with model.onnx and tokenizer.json")
    digests = ModelFile(onnx.name, sha256_of(onnx)), ModelFile(tokenizer.name, sha256_of(tokenizer))
    for model in known():
        if (model.onnx.sha256, model.tokenizer.sha256) == tuple(file.sha256 for file in digests):
            return LocalModel(model, onnx, tokenizer, source)
    described = _pair_scorer if kind == "cross_encoder" else _described
    return LocalModel(described(folder, *digests), onnx, tokenizer, source)


def _pair_scorer(folder: Path, onnx: ModelFile, tokenizer: ModelFile) -> Model:
    config = _read(folder / "config.json", _Config)
    limit = _read(folder / "tokenizer_config.json", _TokenizerConfig).model_max_length
    return Model(
        name=folder.resolve().name,
        kind="cross_encoder",
        max_tokens=int(min(limit, config.max_position_embeddings, _DEFAULT_TOKENS)),
        onnx=onnx,
        tokenizer=tokenizer,
    )


def _described(folder: Path, onnx: ModelFile, tokenizer: ModelFile) -> Model:
    config = _read(folder / "config.json", _Config)
    pooling = _read(folder / "1_Pooling" / "config.json", _Pooling)
    sentence = _read(folder / "sentence_bert_config.json", _SentenceConfig)
    prompts = _read(folder / "config_sentence_transformers.json", _Prompts)
    mode: Literal["cls", "mean"] = "cls" if pooling.pooling_mode_cls_token else "mean"
    return Model(
        name=folder.resolve().name,
        dim=config.hidden_size,
        pooling=mode,
        max_tokens=sentence.max_seq_length or config.max_position_embeddings,
        query_prefix=prompts.prompts.get("query", ""),
        onnx=onnx,
        tokenizer=tokenizer,
    )


def _read(path: Path, kind: type[_Description]) -> _Description:
    if not path.is_file():
        return kind()
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        message = f"{path} cannot be read as a model's description"
        raise ModelCorrupt(message) from error
