"""What can go wrong in the command line itself, beside the library's own errors."""

from __future__ import annotations

import click

from engram.errors import EngramError

__all__ = [
    "BadFileError",
    "ExistingFileError",
    "Interrupted",
    "LanguageModelError",
    "MissingFileError",
]


class MissingFileError(EngramError):
    """A command that reads a store was given a path where nothing is."""

    code = "file_not_found"


class ExistingFileError(EngramError):
    """A command that makes a file was given the path of one that is there."""

    code = "file_exists"


class BadFileError(EngramError):
    """A file to be read is not what it should be; the message names the place in it."""

    code = "bad_file"


class LanguageModelError(EngramError):
    """The language model's service or SDK gave no answer."""

    code = "language_model"


class Interrupted(click.Abort):
    """The user interrupted the command; the text, if there is one, says how far it got."""
