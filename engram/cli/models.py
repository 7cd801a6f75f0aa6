"""`engram models`: models for embedding and reranking, and which of them are on this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from engram.cli.options import json_option
from engram.cli.output import line, note, on_terminal, print_document
from engram.errors import ModelCorrupt

if TYPE_CHECKING:
    from engram.embedding.library import FileCheck, ModelStatus


@click.group()
def models() -> None:
    """List, fetch and check models for embedding and reranking."""


@models.command("list")
@json_option
def list_command(*, as_json: bool) -> None:
    """List the models engram knows by name, and where they are on this machine."""
    from engram.embedding.library import list_models  # noqa: PLC0415 - heavy, see `files`

    found = list_models()
    if as_json:
        print_document({"models": [_document(model) for model in found]})
        return
    width = max(len(model.name) for model in found)
    for model in found:
        line(f"  {model.name:{width}}  {model.dim or '-':>5}  {model.licence:10}  {_place(model)}")


@models.command("pull")
@click.argument("name")
@json_option
def pull_command(name: str, *, as_json: bool) -> None:
    """Fetch the model NAME over the network into engram's model cache, and check it."""
    from engram.embedding.library import pull  # noqa: PLC0415

    if not on_terminal():
        # Read by huggingface-hub when it is imported; its bars would fill a log.
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    pulled = pull(name, _tell_progress if on_terminal() else None)
    model = pulled.model
    if as_json:
        print_document({"name": model.name, "source": pulled.source, "path": str(pulled.onnx)})
    else:
        line(f"{model.name} is in {pulled.onnx.parent}")


@models.command("verify")
@click.argument("name", required=False)
@json_option
def verify_command(name: str | None, *, as_json: bool) -> None:
    """Compare the files of the model NAME, or of every model that is here, with their checksums."""
    from engram.embedding.library import list_models, verify  # noqa: PLC0415

    names = [model.name for model in list_models() if model.present] if name is None else [name]
    checks = {each: verify(each) for each in names}
    wrong = [each for each, files in checks.items() if any(file.ok is False for file in files)]
    if as_json:
        found = [
            {"name": each, "files": [_check_document(file) for file in files]}
            for each, files in checks.items()
        ]
        print_document({"ok": not wrong, "models": found})
    else:
        _print_checks(checks)
    if wrong:
        message = f"not the files they should be: {', '.join(wrong)}"
        raise ModelCorrupt(message, f"run: engram models pull {wrong[0]}")


def _tell_progress(file: str, done: int, total: int) -> None:
    note(f"{done} of {total} files: {file}")


def _place(model: ModelStatus) -> str:
    if not model.present:
        return f"not here; engram models pull {model.name}"
    checked = {True: "checked", False: "CHANGED", None: "no checksum known"}[model.verified]
    return f"{model.source}, {checked}"


def _document(model: ModelStatus) -> dict[str, object]:
    return {
        "name": model.name,
        "kind": model.kind,
        "dim": model.dim,
        "licence": model.licence,
        "present": model.present,
        "source": model.source,
        "path": None if model.path is None else str(model.path),
        "verified": model.verified,
    }


def _print_checks(checks: dict[str, list[FileCheck]]) -> None:
    for name, files in checks.items():
        line(name)
        for file in files:
            verdict = {True: "ok", False: "CHANGED", None: "unknown"}[file.ok]
            line(f"  {verdict:7}  {file.path}")
    if not checks:
        line("  (no model on this machine)")


def _check_document(file: FileCheck) -> dict[str, object]:
    return {
        "path": str(file.path),
        "expected": file.expected,
        "actual": file.actual,
        "ok": file.ok,
    }
