"""The settings as data: for programs, and the table of the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram.config.fields import TYPES
from engram.config.loading import BOOLEANS, variable
from engram.config.model import RULES

if TYPE_CHECKING:
    from engram.config.fields import Rule

__all__ = ["schema"]


def schema() -> dict[str, dict[str, dict[str, object]]]:
    """Return what each setting is, by dotted name."""
    return {
        "fields": {
            name: {
                "type": TYPES[rule.kind],
                "default": rule.default,
                "constraints": _constraints(rule),
                "help": rule.help,
                "env": variable(name),
                "aliases": [*rule.aliases, *rule.fallbacks.values()],
                "secret": rule.secret,
                "used": rule.used,
            }
            for name, rule in RULES.items()
        }
    }


def _constraints(rule: Rule) -> dict[str, object]:
    stated: dict[str, object] = {
        "enum": list(rule.choices) or None,
        "normalize": "trim_lower" if rule.any_case else None,
        "minimum": rule.minimum,
        "exclusive_minimum": rule.above,
        "maximum": rule.maximum,
        "nonempty": rule.nonblank or None,
        "nonempty_when": rule.nonblank_when and dict([rule.nonblank_when]),
        "finite": rule.kind in (int, float) or None,
        "environment_values": list(BOOLEANS) if rule.kind is bool else None,
    }
    return {key: value for key, value in stated.items() if value is not None}
