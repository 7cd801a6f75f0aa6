"""The tables of the MCP reference, made from what the tools say of themselves.

Write them anew: python tests/tools_page.py
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from engram.mcp.options import Options
from engram.mcp.profile import chosen

PAGE = Path(__file__).parents[1] / "docs/reference/mcp.md"
BEGIN, END = "<!-- tools -->\n", "<!-- end of tools -->"


def sections() -> str:
    """Return a section for every tool of the default profile."""
    return "".join(
        f"\n### `{tool.name}`\n\n{tool.description} {hints(tool.annotations)}.\n\n"
        f"{parameters(tool.parameters)}\nReturns {returned(tool.output_schema)}.\n"
        for tool in chosen(Options()).tools
    )


def hints(annotations: Any) -> str:
    if annotations.read_only_hint:
        return "Read-only"
    return "Destructive" if annotations.destructive_hint else "Writes"


def parameters(schema: dict[str, Any]) -> str:
    if not schema["properties"]:
        return "No parameters.\n"
    rows = ["parameter | type | default | meaning", "--- | --- | --- | ---"]
    for name, part in schema["properties"].items():
        default = "required"
        if "default" in part:
            value = {None: "null", True: "true", False: "false"}.get(part["default"])
            default = f"`{part['default'] if value is None else value}`"
        rows.append(f"`{name}` | {typed(part)} | {default} | {part['description']}")
    return "".join(f"| {row} |\n" for row in rows)


def typed(part: dict[str, Any]) -> str:
    kinds = [one for one in part.get("anyOf", [part]) if one["type"] != "null"]
    [kind] = kinds
    if kind["type"] == "array":
        return f"array of {kind['items']['type']}s"
    return kind["type"]


def returned(schema: dict[str, Any]) -> str:
    """Return the keys of a result; of a list those of what is in it."""
    known = schema.get("$defs", {})

    def keys(of: dict[str, Any]) -> str:
        of = known[of["$ref"].rpartition("/")[2]] if "$ref" in of else of
        needed = of["required"]
        names = [
            (f"`{key}`" if key in needed else f"`{key}`?") + listed(part)
            for key, part in of["properties"].items()
        ]
        return ", ".join(names)

    def listed(part: dict[str, Any]) -> str:
        items = part.get("items", {})
        return f" (a list of {keys(items)})" if "$ref" in items else ""

    properties = schema["properties"]
    if properties.keys() != {"result"}:
        return keys(schema)
    items = properties["result"]["items"]
    parts = items.get("anyOf", [items])
    return "a list of " + "; or ".join(keys(part) for part in parts)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    whole = re.compile(f"{BEGIN}.*{END}", re.DOTALL)
    PAGE.write_text(whole.sub(lambda _: f"{BEGIN}{sections()}\n{END}", text), encoding="utf-8")
