"""ONNX models in memory: opening one, and token ids to unit vectors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from engram.embedding.digest import contains
from engram.embedding.plan import MAX_ROWS, batches
from engram.errors import ModelCorrupt
from engram.vectors import normalise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from engram.embedding.registry import Model

__all__ = [
    "INPUTS",
    "ModelSession",
    "batch_rows",
    "fill_up",
    "open_session",
    "run_in_batches",
]

INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
"""What a text encoder may ask for."""

_TOKEN_OUTPUTS = ("last_hidden_state", "token_embeddings")
_BATCH_DEPENDENT = b"DynamicQuantizeLinear"
_ERRORS_ONLY = 3
_CALLERS = 2

_Result = TypeVar("_Result")


class ModelSession:
    """An onnxruntime session with the model's pooling.

    Running is safe from several threads at once.

    Args:
        model: Says how token vectors become one vector.
        onnx: The file; its checksum is not looked at here.
        padding_id: What fills rows up.
        threads: Threads within an operator, the calling one included. Idle ones do not spin: on a
            busy machine spinning threads made a run many times slower.

    Raises:
        ModelCorrupt: The file is no ONNX model that maps token ids to one vector per token.
    """

    def __init__(self, model: Model, onnx: Path, padding_id: int, threads: int) -> None:
        self._cls = model.pooling == "cls"
        self._padding_id = padding_id
        self._session = open_session(onnx, threads)
        self._inputs = [given.name for given in self._session.get_inputs()]
        self._output, self.dim = self._token_output(onnx)
        self.max_rows = batch_rows(onnx)

    def vectors(self, rows: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
        """Embed token ids.

        Args:
            rows: n arrays of int64 token ids with their special tokens; shorter ones are padded
                and the padding has no part in the result.

        Returns:
            float32[n, dim], each row of length one.
        """
        return self._pooled(*self._run(rows))

    def _pooled(self, hidden: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        if self._cls:
            return normalise(hidden[:, 0])
        # Added up token by token, so that padding adds exact zeros and leaves every bit in place.
        # The mean is the sum but for its length, which becomes one either way.
        if not mask.all():
            hidden = hidden * mask.astype(np.float32)[:, :, np.newaxis]
        return normalise(hidden.sum(axis=1))

    def token_vectors(self, rows: Sequence[NDArray[np.int64]]) -> list[NDArray[np.float32]]:
        """Return a vector for each token, before any pooling.

        Args:
            rows: As for `vectors`.

        Returns:
            For each row float32[tokens, dim], rows of length one, special tokens included.
        """
        hidden, _ = self._run(rows)
        return [normalise(each[: len(row)]) for each, row in zip(hidden, rows, strict=True)]

    def both(
        self, rows: Sequence[NDArray[np.int64]]
    ) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """Return what `vectors` and `token_vectors` do for each row, of one run of the model."""
        hidden, mask = self._run(rows)
        pooled = self._pooled(hidden, mask)
        return [
            (vector, normalise(each[: len(row)]))
            for vector, each, row in zip(pooled, hidden, rows, strict=True)
        ]

    def _run(
        self, rows: Sequence[NDArray[np.int64]]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the last layer's vectors, float32[n, longest, dim], and what is no padding."""
        ids = fill_up(rows, self._padding_id)
        mask = fill_up([np.ones_like(row) for row in rows], 0)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        feed = {name: given[name] for name in self._inputs}
        return np.asarray(self._session.run([self._output], feed)[0], np.float32), mask

    def _token_output(self, onnx: Path) -> tuple[str, int]:
        outputs = [output for output in self._session.get_outputs() if len(output.shape) == 3]
        named = [output for output in outputs if output.name in _TOKEN_OUTPUTS] or outputs
        unknown = set(self._inputs) - INPUTS
        if unknown or not named or not isinstance(named[0].shape[2], int):
            message = f"{onnx} is no text encoder with one vector per token"
            raise ModelCorrupt(message)
        return named[0].name, named[0].shape[2]


def fill_up(rows: Sequence[NDArray[np.int64]], filler: int) -> NDArray[np.int64]:
    """Return rows of different lengths as int64[n, longest], shorter ones filled up at the end."""
    filled = np.full((len(rows), max(len(row) for row in rows)), filler, np.int64)
    for at, row in enumerate(rows):
        filled[at, : len(row)] = row
    return filled


def batch_rows(onnx: Path) -> int:
    """Return how many rows a batch of a model may have.

    Models that quantise activations while running share one scale over the whole batch, so what
    comes out for a text would depend on its neighbours: they get one row.
    """
    return 1 if contains(onnx, _BATCH_DEPENDENT) else MAX_ROWS


def run_in_batches(
    lengths: Sequence[int],
    run: Callable[[list[int]], _Result],
    *,
    max_rows: int,
    threads: int,
) -> tuple[list[int], list[_Result]]:
    """Run a model over rows of any number, in batches of similar length.

    Args:
        lengths: Tokens of each row.
        run: Takes the indices of a batch's rows and returns what the model says of them.
        max_rows: Rows a batch may have.
        threads: Threads within an operator. With two or more, two batches are under way at a time.

    Returns:
        The indices of all rows in the order they were run in, and what was returned, in that order.
    """
    planned = batches(lengths, max_rows=max_rows)
    if threads == 1 or len(planned) == 1:
        results = [run(batch) for batch in planned]
    else:
        # Two callers of one session: while one is in a serial part, the other computes.
        with ThreadPoolExecutor(_CALLERS, thread_name_prefix="engram-embed") as callers:
            results = list(callers.map(run, planned))
    return list(chain.from_iterable(planned)), results


def open_session(onnx: Path | bytes, threads: int) -> Any:
    """Return an onnxruntime session on the CPU.

    Args:
        onnx: The file, or what it holds.
        threads: Threads within an operator, the calling one included.

    Raises:
        ModelCorrupt: The file cannot be read as an ONNX model.
    """
    import onnxruntime  # noqa: PLC0415 - `import engram` must not load it

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    options.enable_mem_pattern = False  # made for inputs of one shape; ours vary
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    source = onnx if isinstance(onnx, bytes) else str(onnx)
    try:
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # each failure has a class of its own, under Exception
        name = "the content" if isinstance(onnx, bytes) else onnx
        message = f"{name} cannot be read as an ONNX model"
        raise ModelCorrupt(message) from error
