"""From text to token ids, by the model's own tokenizer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from engram.errors import ModelCorrupt

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

__all__ = ["Pair", "PairTokens", "TextTokens"]

_Value = TypeVar("_Value", np.float32, np.int64)

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_PADDING_TOKENS = ("[PAD]", "<pad>")
_CHARACTERS_PER_TOKEN = 16  # of a text that is cut anyway, more than the window can hold


class TextTokens:
    """A tokenizer that neither cuts nor pads, whatever its file says, and takes any string.

    Texts are encoded one by one on the calling thread: encoding is under two per cent of the work,
    and a batch would start a thread per core.

    Raises:
        ModelCorrupt: The file is no tokenizer.
    """

    def __init__(self, path: Path) -> None:
        self._tokenizer = _load(path)
        self.padding_id = _padding_id(self._tokenizer)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._head, self._tail = self._specials()

    @property
    def specials(self) -> int:
        """How many tokens `framed` adds."""
        return len(self._head) + len(self._tail)

    def encode(self, text: str) -> NDArray[np.int64]:
        """Return the ids of all tokens of a text, int64[n], without special tokens.

        Lone surrogates are no characters and cannot be encoded: each becomes U+FFFD.
        """
        ids = self._tokenizer.encode(_encodable(text), add_special_tokens=False).ids
        return np.array(ids, np.int64)

    def framed(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return ids with the special tokens the model was trained with around them."""
        return np.concatenate([self._head, ids, self._tail])

    def bare(self, framed: NDArray[_Value]) -> NDArray[_Value]:
        """Return what belongs to the text's own tokens, of something with a row per token."""
        return framed[len(self._head) : len(framed) - len(self._tail)]

    def has_letters(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which tokens are more than punctuation, bool[n]."""
        tokens = (self._tokenizer.id_to_token(token) for token in ids.tolist())
        return np.array([any(map(str.isalnum, token or "")) for token in tokens], np.bool_)

    def _specials(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return what the tokenizer puts before and after a text."""
        bare = self._tokenizer.encode("a", add_special_tokens=False).ids
        framed = self._tokenizer.encode("a").ids
        before = next(
            (at for at in range(len(framed)) if framed[at : at + len(bare)] == bare), len(framed)
        )
        return np.array(framed[:before], np.int64), np.array(framed[before + len(bare) :], np.int64)


@dataclass(frozen=True)
class Pair:
    """A query and a text as one row of tokens.

    `ids` are int64[n]; `sides` int64[n] tell which tokens the model is to take for the text's.
    """

    ids: NDArray[np.int64]
    sides: NDArray[np.int64]


class PairTokens:
    """A tokenizer of query and text together, for at most `max_tokens` tokens.

    The longer of the two is cut: a query of up to half the window is never touched.

    Raises:
        ModelCorrupt: The file is no tokenizer.
    """

    def __init__(self, path: Path, max_tokens: int) -> None:
        self._tokenizer = _load(path)
        self.padding_id = _padding_id(self._tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens, strategy="longest_first")
        self._most = max_tokens * _CHARACTERS_PER_TOKEN

    def encode(self, query: str, text: str) -> Pair:
        """Return the ids of a pair, with the special tokens the model was trained with."""
        found = self._tokenizer.encode(
            _encodable(query[: self._most]), _encodable(text[: self._most])
        )
        return Pair(np.array(found.ids, np.int64), np.array(found.type_ids, np.int64))


def _encodable(text: str) -> str:
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def _padding_id(tokenizer: Tokenizer) -> int:
    if padding := tokenizer.padding:
        return int(padding["pad_id"])
    found = (tokenizer.token_to_id(token) for token in _PADDING_TOKENS)
    return next((token for token in found if token is not None), 0)


def _load(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer  # noqa: PLC0415 - `import engram` must not load it

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the bindings raise bare Exception
        message = f"{path} cannot be read as a tokenizer"
        raise ModelCorrupt(message) from error
