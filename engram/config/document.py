"""The YAML file of settings: its values by dotted name, as YAML reads them.

The tree of nodes is walked here and no object is built from it but scalars, so neither a tag nor an
alias makes more of a file than it holds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NoReturn

import yaml

from engram.config.model import RULES, SECTIONS, nest
from engram.errors import InvalidSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["MAX_BYTES", "read", "write"]

MAX_BYTES: Final = 1 << 20
"""The largest file read; one with all settings has 4 KiB."""

_MAX_DIGITS: Final = 4300
"""The longest number read, as Python's own limit: longer ones take time in the square of it."""

# YAML 1.1 has numbers in bases 2, 8, 16 and 60, and with "_" in them. The environment has not, and
# YAML 1.2 reads some of them as other numbers.
_PECULIAR: Final = re.compile(r"[+-]?0[0-9box]|.*[_:]")

_STANDARD: Final = "tag:yaml.org,2002:"
_SCALARS: Final = frozenset(f"{_STANDARD}{kind}" for kind in ("str", "int", "float", "bool"))

# The parser in C is there where PyYAML was built with it.
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_NUMBERS: Final = (f"{_STANDARD}int", f"{_STANDARD}float")
_MAP: Final = f"{_STANDARD}map"
_STRING: Final = f"{_STANDARD}str"
_MERGE: Final = f"{_STANDARD}merge"

_NAMES: Final = {
    section: {name.removeprefix(prefix) for name in RULES if name.startswith(prefix)}
    for section, prefix in ((section, f"{section}.") for section in SECTIONS)
} | {"": {name for name in RULES if "." not in name} | SECTIONS.keys()}
"""The names that a section may hold, and those of the root."""

# A misspelt name is shown; what looks like anything else may be a secret in the wrong place.
_NAME: Final = re.compile(r"[a-z]+(_[a-z0-9]+){0,4}")


def read(path: Path) -> dict[str, object]:
    """Return what a file sets, by dotted name; not yet checked against the rules.

    A value that is no text, number or boolean is None, which no rule accepts.

    Raises:
        InvalidSettings: The file cannot be read, is no single UTF-8 document of YAML, or has
            another shape than settings have.
    """
    text = _text(path)
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        return {} if root is None else _Walk(loader).settings(root)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", see line {mark.line + 1}" if mark else ""
        message = f"the settings file is not one document of valid YAML{where}"
        raise InvalidSettings(message) from None
    except RecursionError:
        message = "the settings file is nested too deeply"
        raise InvalidSettings(message) from None


def write(path: Path, chosen: Mapping[str, str | float]) -> None:
    """Write a file that sets everything but what follows from the rest.

    Args:
        path: The file, replaced.
        chosen: Values by dotted name, not checked; the others are the defaults.

    Raises:
        InvalidSettings: A value has characters that no UTF-8 text has.
        OSError: The file cannot be written.
    """
    values = {name: rule.default for name, rule in RULES.items() if not rule.derived}
    values.update(chosen)
    text = yaml.safe_dump(nest(values), allow_unicode=True, sort_keys=False)
    try:
        path.write_bytes(text.encode())
    except UnicodeEncodeError:
        message = "a value holds what is no text"
        raise InvalidSettings(message) from None


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        message = f"the settings file cannot be read: {error.strerror}"
        raise InvalidSettings(message) from None
    if len(content) > MAX_BYTES:
        message = f"the settings file has more than {MAX_BYTES} bytes"
        raise InvalidSettings(message)
    try:
        return content.decode()
    except UnicodeDecodeError:
        message = "the settings file must be UTF-8 text"
        raise InvalidSettings(message) from None


class _Walk:
    """One way through the nodes of a document, which knows where it has been."""

    def __init__(self, loader: yaml.SafeLoader) -> None:
        self._loader = loader
        # A node that is being read is None: who comes to it again goes round in circles.
        self._read: dict[tuple[int, str], dict[str, yaml.Node] | None] = {}

    def settings(self, root: yaml.Node) -> dict[str, object]:
        """Return the values below the root by dotted name."""
        values: dict[str, object] = {}
        for name, node in self._members(root, "").items():
            if name in SECTIONS:
                members = self._members(node, name)
                values |= {f"{name}.{key}": self._scalar(value) for key, value in members.items()}
            else:
                values[name] = self._scalar(node)
        return values

    def _members(self, mapping: yaml.Node, section: str) -> dict[str, yaml.Node]:
        """Return the members of a mapping; those it names itself replace those it merges in."""
        place = (id(mapping), section)
        if place not in self._read:
            self._read[place] = None
            self._read[place] = self._read_members(mapping, section)
        members = self._read[place]
        if members is None:
            _refuse("contains itself", section, mapping)
        return members

    def _read_members(self, mapping: yaml.Node, section: str) -> dict[str, yaml.Node]:
        if not isinstance(mapping, yaml.MappingNode) or mapping.tag != _MAP:
            _refuse("must be a mapping of names to values", section, mapping)
        own: dict[str, yaml.Node] = {}
        merged: dict[str, yaml.Node] = {}
        seen: set[str] = set()
        for key, value in mapping.value:
            name = _key(key, section)
            if name in seen:
                _refuse(f"has {name} twice", section, key)
            seen.add(name)
            if key.tag == _MERGE:
                for source in _sources(value):
                    merged = self._members(source, section) | merged
            else:
                own[name] = value
        return merged | own

    def _scalar(self, node: yaml.Node) -> object:
        if not isinstance(node, yaml.ScalarNode) or node.tag not in _SCALARS:
            return None
        if node.tag in _NUMBERS and (len(node.value) > _MAX_DIGITS or _PECULIAR.match(node.value)):
            return None
        try:
            return self._loader.construct_object(node)
        except (ValueError, LookupError, OverflowError):
            return None


def _sources(merged: yaml.Node) -> list[yaml.Node]:
    return merged.value if isinstance(merged, yaml.SequenceNode) else [merged]


def _key(key: yaml.Node, section: str) -> str:
    """Return the name that a member's key is; that of a merge is its sign."""
    if not isinstance(key, yaml.ScalarNode) or key.tag not in (_STRING, _MERGE):
        _refuse("has a name that is no text", section, key)
    name = str(key.value)
    if key.tag != _MERGE and name not in _NAMES[section]:
        shown = f" {name}" if _NAME.fullmatch(name) else ""
        _refuse(f"has no setting{shown}", section, key)
    return name


def _refuse(problem: str, section: str, node: yaml.Node) -> NoReturn:
    message = f"{section or 'the settings file'} {problem}, see line {node.start_mark.line + 1}"
    raise InvalidSettings(message)
