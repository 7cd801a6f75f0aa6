"""The tables of the JSONL reference, made from the catalogue.

Write them anew: python tests/jsonl_page.py
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from engram.api.operations import CATALOGUE, Operation, input_schema, nullable

PAGE = Path(__file__).parents[1] / "docs/reference/jsonl.md"
BEGIN, END = "<!-- operations -->\n", "<!-- end of operations -->"


def sections() -> str:
    """Return a section for every operation, and none for other names."""
    return "".join(
        f"\n### `{name}`\n\n{said(name, operation)}\n{arguments(operation)}"
        for name, operation in CATALOGUE.items()
        if operation.alias_for is None
    )


def said(name: str, operation: Operation) -> str:
    others = [other for other, one in CATALOGUE.items() if one.alias_for == name]
    also = f" Also called `{others[0]}`." if others else ""
    return f"{operation.description}{also} {'Writes' if operation.writes else 'Reads only'}.\n"


def arguments(operation: Operation) -> str:
    schema = input_schema(operation.arguments)
    properties: dict[str, Any] = schema["properties"]
    if not properties:
        return "No arguments.\n"
    rows = ["argument | type | values | when left out", "--- | --- | --- | ---"]
    for name, part in properties.items():
        without = "required" if name in schema["required"] else default(part)
        if name in nullable(operation.arguments):
            without += ", or null"
        rows.append(f"`{name}` | {part['type']} | {values(part)} | {without}")
    return "".join(f"| {row} |\n" for row in rows)


def default(part: dict[str, Any]) -> str:
    return f"`{part['default']}`" if "default" in part else "may be"


def values(part: dict[str, Any]) -> str:
    """Return what a value may be, beside its type."""
    if "enum" in part:
        return ", ".join(f"`{choice}`" for choice in part["enum"])
    if "minimum" in part:
        return f"{part['minimum']} to {part['maximum']}"
    if "items" in part:
        return f"at most {part['maxItems']}, each a string of {values(part['items'])}"
    if "maxLength" in part:
        size = f"at most {part['maxLength']:,} characters"
        return f"{size}, not blank" if "minLength" in part else size
    return ""


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    anew = re.sub(f"(?s){BEGIN}.*{END}", lambda _: f"{BEGIN}{sections()}\n{END}", text)
    PAGE.write_text(anew, encoding="utf-8")
