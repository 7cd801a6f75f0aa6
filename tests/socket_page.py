"""The tables of the socket's reference, made from the catalogue and the settings.

Write them anew: python tests/socket_page.py
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import msgspec

from engram.config.fields import RULE, TYPES, Rule
from engram.server.methods import METHODS, Record
from engram.server.sections import SECTIONS

DOCS = Path(__file__).parents[1] / "docs/reference"
METHOD_PAGE, SETTINGS_PAGE = DOCS / "socket.md", DOCS / "socket-settings.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of the table -->"

_KINDS = {
    msgspec.inspect.StrType: "string",
    msgspec.inspect.IntType: "integer",
    msgspec.inspect.FloatType: "number",
    msgspec.inspect.BoolType: "boolean",
    msgspec.inspect.ListType: "array",
    msgspec.inspect.AnyType: "see below",
}


def methods() -> str:
    """Return the table with a row for every method."""
    rows = ["method | parameters | what it does", "--- | --- | ---"]
    for name, method in METHODS.items():
        rows.append(f"`{name}` | {parameters(method.params) or 'none'} | {method.about}")
    return _table(rows)


def parameters(kind: type[msgspec.Struct]) -> str:
    """Return the parameters of a method; those that must be there come first, in bold."""
    said = []
    for field in msgspec.inspect.type_info(kind).fields:
        name = f"**`{field.name}`**" if field.required else f"`{field.name}`"
        said.append(f"{name} {_kind(field.type)}")
    return ", ".join(said)


def _kind(of: msgspec.inspect.Type) -> str:
    if isinstance(of, msgspec.inspect.UnionType):
        kinds = [one for one in of.types if not isinstance(one, msgspec.inspect.NoneType)]
        return " or ".join(map(_kind, kinds))
    low, high = getattr(of, "ge", None), getattr(of, "le", None)
    limits = "" if low is None else f" from {low:g}" if high is None else f" {low:g} to {high:g}"
    return _KINDS[type(of)] + limits


def record() -> str:
    """Return the members of an imported memory."""
    return f"{parameters(Record)}.\n"


def settings() -> str:
    """Return the table with a row for every setting."""
    rows = ["setting | type | default | values | what it does", "--- | --- | --- | --- | ---"]
    for section, kind in SECTIONS.items():
        for field in dataclasses.fields(kind):
            rule: Rule = field.metadata[RULE]
            shown = f"`{section}.{field.name}`"
            said = f"{TYPES[rule.kind]}, secret" if rule.secret else TYPES[rule.kind]
            default = f"`{json.dumps(rule.default)}`"
            rows.append(
                f"{shown if rule.used else f'*{shown}*'} | {said} | {default} | {_values(rule)}"
                f" | {rule.help}"
            )
    return _table(rows)


def _values(rule: Rule) -> str:
    limits = (("from", rule.minimum), ("above", rule.above), ("to", rule.maximum))
    said = [f"{word} {limit:,}" for word, limit in limits if limit is not None]
    return " ".join(said) or ("not blank" if rule.nonblank else "")


def _table(rows: list[str]) -> str:
    return "".join(f"| {row} |\n" for row in rows)


def tables(page: Path) -> list[str]:
    """Return the tables that a page holds, as they are made from the program."""
    return [methods(), record()] if page == METHOD_PAGE else [settings()]


def written(page: Path) -> list[str]:
    """Return the tables as the page has them."""
    parts = page.read_text(encoding="utf-8").split(BEGIN)[1:]
    return [part.split(END)[0] for part in parts]


if __name__ == "__main__":
    for page in (METHOD_PAGE, SETTINGS_PAGE):
        head, *parts = page.read_text(encoding="utf-8").split(BEGIN)
        anew = [
            BEGIN + table + END + part.split(END)[1]
            for table, part in zip(tables(page), parts, strict=True)
        ]
        page.write_text(head + "".join(anew), encoding="utf-8")
