"""From text to token ids, by the model's own tokenizer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from engram.errors import ModelCorrupt

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

__all__ = ["TextTokens"]

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_PADDING_TOKENS = ("[PAD]", "<pad>")


class TextTokens:
    """A tokenizer that neither cuts nor pads, whatever its file says, and takes any string.

    Texts are encoded one by one on the calling thread: encoding is under two per cent of the work,
    and a batch would start a thread per core.

    Raises:
        ModelCorrupt: The file is no tokenizer.
    """

    def __init__(self, path: Path) -> None:
        self._tokenizer = _load(path)
        padding = self._tokenizer.padding
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.padding_id = int(padding["pad_id"]) if padding else self._padding_id()
        self._head, self._tail = self._specials()

    @property
    def specials(self) -> int:
        """How many tokens `framed` adds."""
        return len(self._head) + len(self._tail)

    def encode(self, text: str) -> NDArray[np.int64]:
        """Return the ids of all tokens of a text, int64[n], without special tokens.

        Lone surrogates are no characters and cannot be encoded: each becomes U+FFFD.
        """
        encodable = text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)
        ids = self._tokenizer.encode(encodable, add_special_tokens=False).ids
        return np.array(ids, np.int64)

    def framed(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return ids with the special tokens the model was trained with around them."""
        return np.concatenate([self._head, ids, self._tail])

    def bare(self, framed: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what belongs to the text's own tokens, of something that has a row per token."""
        return framed[len(self._head) : len(framed) - len(self._tail)]

    def _padding_id(self) -> int:
        found = (self._tokenizer.token_to_id(token) for token in _PADDING_TOKENS)
        return next((token for token in found if token is not None), 0)

    def _specials(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return what the tokenizer puts before and after a text."""
        bare = self._tokenizer.encode("a", add_special_tokens=False).ids
        framed = self._tokenizer.encode("a").ids
        before = next(
            (at for at in range(len(framed)) if framed[at : at + len(bare)] == bare), len(framed)
        )
        return np.array(framed[:before], np.int64), np.array(framed[before + len(bare) :], np.int64)


def _load(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer  # noqa: PLC0415 - `import engram` must not load it

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the bindings raise bare Exception
        message = f"{path} cannot be read as a tokenizer"
        raise ModelCorrupt(message) from error
