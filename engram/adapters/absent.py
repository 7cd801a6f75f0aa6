"""Adapters whose framework may not be installed: their names can be imported all the same."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, NoReturn

from engram.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["loader"]


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
def _absent(name: str, extra: str) -> type:
    return _Absent(name, (), {"extra": extra})


def loader(
    package: str, homes: Mapping[str, str], framework: str, extra: str
) -> Callable[[str], object]:
    """Return a `__getattr__` for a package, which loads a class when its name is asked for.

    While the framework is not installed, it gives a class whose every use raises `MissingExtra`.

    Args:
        package: The package's `__name__`.
        homes: The module of each name, within the package.
        framework: The top-level package that the framework is imported from.
        extra: The extra that brings it.
    """

    def load(name: str) -> object:
        if name not in homes:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message)
        try:
            home = importlib.import_module(f"{package}.{homes[name]}")
        except ModuleNotFoundError as error:
            # Whatever else is missing, its extra does not bring.
            if (error.name or "").partition(".")[0] != framework:
                raise
            return _absent(name, extra)
        return getattr(home, name)

    return load
