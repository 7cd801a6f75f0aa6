"""The table of the settings' reference, made from their model.

Write it anew: python tests/settings_page.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from engram.config.schema import schema

PAGE = Path(__file__).parents[1] / "docs/reference/settings.md"


def table() -> str:
    """Return the table with a row for every setting."""
    rows = ["setting | type | default | values | what it does", "--- | --- | --- | --- | ---"]
    for name, field in schema()["fields"].items():
        shown = f"`{name}`" if field["used"] else f"*`{name}`*"
        kind = f"{field['type']}, secret" if field["secret"] else field["type"]
        default = f"`{json.dumps(field['default'])}`"
        rows.append(f"{shown} | {kind} | {default} | {values(field)} | {field['help']}")
    return "".join(f"| {row} |\n" for row in rows)


def values(field: dict[str, object]) -> str:
    """Return which values a setting takes, beside its type."""
    rules = field["constraints"]
    assert isinstance(rules, dict)
    said = []
    if "enum" in rules:
        said.append(", ".join(f"`{choice}`" for choice in rules["enum"]))
    if "normalize" in rules:
        said.append("in any case")
    for rule, words in (("minimum", "from"), ("exclusive_minimum", "above"), ("maximum", "to")):
        if rule in rules:
            said.append(f"{words} {rules[rule]}")
    if "nonempty" in rules:
        said.append("not blank")
    for other, value in rules.get("nonempty_when", {}).items():
        said.append(f"not blank when `{other}` is `{value}`")
    return " ".join(said)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    anew = re.sub(r"(?m)(^\|.*\n)+", lambda _: table(), text)
    PAGE.write_text(anew, encoding="utf-8")
