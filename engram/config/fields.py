"""What a setting is: its default, its help and the rules its values follow."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from engram.errors import InvalidSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RULE", "TYPES", "Rule", "check", "setting"]

_Value = TypeVar("_Value", str, int, float, bool)

RULE: Final = "rule"
"""The key under which a field's metadata hold its `Rule`."""

TYPES: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}
_ARTICLES: Final = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}
_NUMBERS: Final[dict[type, tuple[type[int | float], ...]]] = {int: (int,), float: (int, float)}


@dataclass(frozen=True, slots=True)
class Rule:
    """What a setting means and which values it takes.

    Attributes:
        help: What it does, one sentence.
        default: Its value unless it is set; what is set has the same type.
        minimum: The smallest number allowed.
        above: All numbers allowed are larger.
        maximum: The largest number allowed.
        choices: The texts allowed.
        any_case: The choices are compared without the spaces around a text, in lower case.
        nonblank: A text has something beside spaces.
        nonblank_when: Another setting, and its value that makes a blank text an error.
        secret: No report shows it.
        derived: It follows from another setting where it is not set.
        used: It has an effect in this engine.
        aliases: Variables of the environment that stand in for its own.
        fallbacks: The variable to read while it is empty, by the value of `llm.backend`.
    """

    help: str
    default: str | float
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    any_case: bool = False
    nonblank: bool = False
    nonblank_when: tuple[str, str] | None = None
    secret: bool = False
    derived: bool = False
    used: bool = False
    aliases: tuple[str, ...] = ()
    fallbacks: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def kind(self) -> type[str | int | float | bool]:
        """The type of the setting."""
        return type(self.default)


def setting(default: _Value, text: str, **rules: object) -> _Value:
    """Return a dataclass field for a setting.

    Args:
        default: Its value unless it is set.
        text: What it does.
        **rules: Attributes of its `Rule`.
    """
    rule = Rule(text, default, **rules)  # type: ignore[arg-type]
    return dataclasses.field(default=default, repr=not rule.secret, metadata={RULE: rule})


def check(name: str, rule: Rule, value: object) -> str | float:
    """Return the value of a setting, as a float where it is a number.

    Args:
        name: The setting's, for the error.
        rule: What its values must be.
        value: Of the right type: a text that spells a number is none.

    Raises:
        InvalidSettings: It breaks the rule; the message does not quote it.
    """
    kind = rule.kind
    if isinstance(value, str) and kind is str:
        return _check_text(name, rule, value)
    if isinstance(value, bool) and kind is bool:
        return value
    if isinstance(value, _NUMBERS.get(kind, ())) and not isinstance(value, bool):
        return _check_number(name, rule, value)
    # YAML reads words such as off, and what looks like a number, as no text.
    hint = "put quotes around it" if kind is str and value is not None else ""
    message = f"{name} must be {_ARTICLES[kind]}"
    raise InvalidSettings(message, hint)


def _check_text(name: str, rule: Rule, text: str) -> str:
    compared = text.strip().lower() if rule.any_case else text
    if rule.choices and compared not in rule.choices:
        message = f"{name} must be one of {', '.join(rule.choices)}"
        raise InvalidSettings(message)
    if rule.nonblank and not text.strip():
        message = f"{name} must not be blank"
        raise InvalidSettings(message)
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in text):
        message = f"{name} must be text without NUL characters and lone surrogates"
        raise InvalidSettings(message)
    return text


def _check_number(name: str, rule: Rule, value: float) -> float:
    try:
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    if not finite:
        message = f"{name} must be a finite number"
    elif rule.minimum is not None and value < rule.minimum:
        message = f"{name} must be at least {rule.minimum}"
    elif rule.above is not None and value <= rule.above:
        message = f"{name} must be more than {rule.above}"
    elif rule.maximum is not None and value > rule.maximum:
        message = f"{name} must be at most {rule.maximum}"
    else:
        return float(value) if rule.kind is float else value
    raise InvalidSettings(message)
