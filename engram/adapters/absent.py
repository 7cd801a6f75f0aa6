"""What stands where a class of an adapter would, while its framework is not installed."""

from __future__ import annotations

from functools import cache
from typing import NoReturn

from engram.errors import MissingExtra

__all__ = ["absent"]


class _Absent(type):
    """A class that can be imported and passed around; using it says what to install."""

    extra: str

    def __call__(cls, *_: object, **__: object) -> NoReturn:
        raise cls._missing()

    def __getattr__(cls, name: str) -> NoReturn:
        # Python asks for dunder names of its own accord, and takes no for an answer.
        if name.startswith("__"):
            raise AttributeError(name)
        raise cls._missing()

    def _missing(cls) -> MissingExtra:
        message = f"{cls.__name__} needs a package that is not installed"
        return MissingExtra(message, f"run: pip install 'engram-embedded[{cls.extra}]'")


@cache
def absent(name: str, extra: str) -> type:
    """Return a class whose every use raises `MissingExtra`.

    Args:
        name: The name of the class it stands for.
        extra: The extra that brings its framework.
    """
    return _Absent(name, (), {"extra": extra})
