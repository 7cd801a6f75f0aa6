"""What the server says about itself: what should be done, and what its settings are."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from engram.config.fields import RULE
from engram.server.sections import SECTIONS

if TYPE_CHECKING:
    from pathlib import Path

    from engram.experience import ExperienceStatus
    from engram.models import StoredModel
    from engram.server.settings import ServerSettings

ENOUGH_TO_LEARN: Final = 20
"""Memories from which on the trainer has something to learn."""

MANY_UNJUDGED: Final = 10
"""Memories that were shown and not judged, beyond which that is worth a word."""

_KEYLESS: Final = ("none", "ollama")


def hints(status: ExperienceStatus, settings: ServerSettings) -> list[str]:
    """Return what the user might do."""
    said = []
    if status.memory_count >= ENOUGH_TO_LEARN:
        newest = _newest_model(settings.models_path)
        if newest is None:
            said.append(
                f"{settings.models_path} holds no models: install engram-embedded[train] and call"
                " memory_train_generate"
            )
        elif newest < (_changed(settings.store_path) or 0.0):
            said.append("the models are older than the store: call memory_train_generate")
    if status.pending_judgments > MANY_UNJUDGED:
        said.append(
            f"{status.pending_judgments} memories were shown and not judged: call memory_judge"
        )
    if status.waiting:
        said.append(
            f"{status.waiting} texts wait to be embedded and are found by words only: see why with"
            " memory_reembed"
        )
    if settings.llm.provider == "none":
        said.append("no language model is set (llm.provider): judgements are made by a formula")
    elif not settings.llm.api_key and settings.llm.provider not in _KEYLESS:
        said.append(f"there is no API key for llm.provider {settings.llm.provider}")
    return said


def configuration(
    settings: ServerSettings, stored: StoredModel | None, *, known: bool = True
) -> dict[str, object]:
    """Return the settings in force without any key, and what follows from them.

    Args:
        settings: The settings.
        stored: The model whose vectors the store holds.
        known: Whether the store could be asked for it; where not, no model is named.
    """
    said = {name: _section(getattr(settings, name)) for name in SECTIONS}
    if stored is not None:
        # What is in force, for the settings may leave it to the store.
        said["embedding"] |= {"model": stored.name or stored.fingerprint, "dimension": stored.dim}
    elif not known:
        said["embedding"] |= {"model": None, "dimension": None}
    said["effective"] = {
        "project": str(settings.root),
        "store_path": str(settings.store_path),
        "socket_path": str(settings.socket_path),
        "models_path": str(settings.models_path),
        "encrypted": settings.key is not None,
    }
    return dict(said)


def _section(section: Any) -> dict[str, object]:
    said: dict[str, object] = {}
    for field in dataclasses.fields(section):
        value = getattr(section, field.name)
        if field.metadata[RULE].secret:
            said[f"has_{field.name}"] = bool(value)
        else:
            # An empty text is a setting that nobody made.
            said[field.name] = None if value == "" else value
    return said


def _newest_model(folder: Path) -> float | None:
    try:
        changes = [_changed(file) for file in folder.glob("*.onnx")]
    except OSError:
        return None
    return max((at for at in changes if at is not None), default=None)


def _changed(file: Path) -> float | None:
    """Return when a file was last written, None where it is gone or out of reach."""
    try:
        return file.stat().st_mtime
    except OSError:
        return None
