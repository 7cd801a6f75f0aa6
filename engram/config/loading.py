"""Where settings come from: the environment before the file before the defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from engram.config.dimensions import DIMENSIONS
from engram.config.fields import check
from engram.config.model import RULES, Settings, build, nest
from engram.errors import InvalidSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from pathlib import Path

    from engram.config.fields import Rule

__all__ = ["BOOLEANS", "Loaded", "constructed", "load", "variable"]

BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
"""How the environment spells a boolean, in any case."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,4300}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

_DIM: Final = "embedding_dim"
_DERIVED: Final = "derived:embedding_model"
_TOKEN: Final = "hf_token"  # noqa: S105 - its name


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings and where they come from.

    Attributes:
        settings: The values in force.
        sources: Where each is from, by dotted name.
        config_file: The file read, made absolute.
        warnings: What is allowed and may not be meant.
    """

    settings: Settings
    sources: Mapping[str, str]
    config_file: Path | None = None
    warnings: tuple[str, ...] = ()

    @property
    def unused(self) -> list[str]:
        """The settings that somebody set and that have no effect in this engine."""
        return [
            name
            for name, source in self.sources.items()
            if not RULES[name].used and source not in ("default", _DERIVED)
        ]

    def values(self) -> dict[str, str | float]:
        """Return every value by dotted name; a secret that is not empty shows as redacted."""
        return {name: _shown(RULES[name], attrgetter(name)(self.settings)) for name in RULES}

    def report(self) -> dict[str, object]:
        """Return what may be shown of the settings to anybody: no secrets."""
        return {
            "config_file": None if self.config_file is None else str(self.config_file),
            "values": nest(self.values()),
            "sources": dict(self.sources),
            "warnings": list(self.warnings),
            "unused": self.unused,
        }

    def share_token(self, environ: MutableMapping[str, str]) -> None:
        """Put the Hugging Face token where model clients look for it.

        Args:
            environ: The environment they read. One that sets the token to nothing hides it from
                them.
        """
        for alias in RULES[_TOKEN].aliases:
            if self.settings.hf_token:
                environ[alias] = self.settings.hf_token
            elif variable(_TOKEN) in environ:
                environ.pop(alias, None)


def _shown(rule: Rule, value: str | float) -> str | float:
    return "<redacted>" if rule.secret and value else value


def variable(name: str) -> str:
    """Return the variable of the environment that sets the setting with this dotted name."""
    return f"ENGRAM_{name.upper().replace('.', '_')}"


def load(path: Path | None, environ: Mapping[str, str]) -> Loaded:
    """Read and check the settings.

    Args:
        path: The YAML file; None for none.
        environ: The environment; an empty one gives what the file and the defaults say.

    Raises:
        InvalidSettings: The file cannot be read, or a value of it or of the environment breaks a
            rule. The message names the setting and not the value.
    """
    values: dict[str, str | float] = {}
    if path is not None:
        from engram.config.document import read  # noqa: PLC0415 - imports yaml, for files only

        values = {name: check(name, RULES[name], value) for name, value in read(path).items()}
    sources = dict.fromkeys(RULES, "default") | dict.fromkeys(values, "file")
    for name, rule in RULES.items():
        source = _source(name, rule, environ)
        if source is not None:
            values[name] = _parse(name, rule, environ[source], source)
            sources[name] = f"env:{source}"
    _fall_back(values, sources, environ)
    warnings = _derive_dim(values, sources)
    settings = build(values)
    if settings.backend != "sqlite":
        warnings.append("storage_backend names a database that this engine does not keep stores in")
    file = None if path is None else path.absolute()
    return Loaded(settings, sources, file, tuple(warnings))


def constructed(settings: Settings) -> Loaded:
    """Return settings made by a program, as if they had been loaded."""
    defaults = Settings()
    sources = {
        name: "default" if read(settings) == read(defaults) else "derived:constructed"
        for name, read in ((name, attrgetter(name)) for name in RULES)
    }
    return Loaded(settings, sources)


def _source(name: str, rule: Rule, environ: Mapping[str, str]) -> str | None:
    """Return the variable that sets a setting: its own if there is one, however empty."""
    own = variable(name)
    if own in environ:
        return own
    return next((alias for alias in rule.aliases if environ.get(alias)), None)


def _parse(name: str, rule: Rule, text: str, source: str) -> str | float:
    value: object = text
    if rule.kind is bool:
        value = BOOLEANS.get(text.strip().lower())
    elif rule.kind is int:
        value = int(text) if _INTEGER.fullmatch(text.strip()) else None
    elif rule.kind is float:
        value = float(text) if _NUMBER.fullmatch(text.strip()) else None
    try:
        return check(name, rule, value)
    except InvalidSettings as error:
        raise InvalidSettings(error.message, f"set by {source}") from None


def _fall_back(
    values: dict[str, str | float], sources: dict[str, str], environ: Mapping[str, str]
) -> None:
    """Take the provider's own variable for a key that nobody gave."""
    backend = str(values.get("llm.backend", RULES["llm.backend"].default))
    for name, rule in RULES.items():
        source = rule.fallbacks.get(backend)
        if source and not values.get(name, rule.default) and environ.get(source):
            values[name] = _parse(name, rule, environ[source], source)
            sources[name] = f"env:{source}"


def _derive_dim(values: dict[str, str | float], sources: dict[str, str]) -> list[str]:
    """Set the dimension that the embedding model has, unless it is set; return warnings."""
    if sources[_DIM] != "default":
        return []
    model = str(values.get("embedding_model", RULES["embedding_model"].default))
    dim = DIMENSIONS.get(model)
    if dim is None:
        default = RULES[_DIM].default
        return [f"{_DIM} stays {default}: embedding_model names a model whose own is not known"]
    values[_DIM] = dim
    sources[_DIM] = _DERIVED
    return []
