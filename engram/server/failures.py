"""What a client is told when there is no result: a number, and a sentence that quotes nothing."""

from __future__ import annotations

from typing import Final

STORAGE: Final = 1000
DATABASE_UNAVAILABLE: Final = 1001
NOT_FOUND: Final = 1002
EMBEDDING_UNAVAILABLE: Final = 2001
LLM_UNAVAILABLE: Final = 2002
INVALID_JSON: Final = 4000
CONFIG_NOT_FOUND: Final = 6001
CONFIG_PARSE: Final = 6002
INVALID_PROVIDER: Final = 6003
SOCKET: Final = 6006
DISPATCH: Final = 6007
CONFIG_READ_ONLY: Final = 6008
IMPORT_VERSION: Final = 6010
IMPORT_FAILED: Final = 6011
INIT_FAILED: Final = 6012
TRAINER_FAILED: Final = 6013
TRAINER_TIMEOUT: Final = 6014
TRAINER_OUTPUT: Final = 6015
NO_PROJECT: Final = 6016
LEGACY_DATABASE: Final = 6017
MIGRATION_SOURCE: Final = 6018
MIGRATION_FAILED: Final = 6019
MODEL_MISMATCH: Final = 6020
CONFIG_INVALID: Final = 6022


class Failure(Exception):  # noqa: N818 - what the protocol calls it
    """A request has no result, or the server cannot start.

    Args:
        code: One of this module's numbers.
        text: What it is, without the number.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"[{code}] {text}")
        self.code = code

    @property
    def message(self) -> str:
        """The number in brackets and the text."""
        return str(self)
