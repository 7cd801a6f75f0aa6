"""One ONNX model in memory: token ids in, unit vectors out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engram.embedding.digest import contains
from engram.embedding.plan import MAX_ROWS
from engram.errors import ModelCorrupt
from engram.vectors import normalise

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from engram.embedding.registry import Model

__all__ = ["ModelSession"]

_TOKEN_OUTPUTS = ("last_hidden_state", "token_embeddings")
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_BATCH_DEPENDENT = b"DynamicQuantizeLinear"
_ERRORS_ONLY = 3


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
        self._session = _open(onnx, threads)
        self._inputs = [given.name for given in self._session.get_inputs()]
        self._output, self.dim = self._token_output(onnx)
        self.max_rows = 1 if contains(onnx, _BATCH_DEPENDENT) else MAX_ROWS
        """Rows a batch may have. Models that quantise activations while running share one scale
        over the whole batch, so a text's vector would depend on its neighbours: they get one."""

    def vectors(self, rows: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
        """Embed token ids.

        Args:
            rows: n arrays of int64 token ids with their special tokens; shorter ones are padded
                and the padding has no part in the result.

        Returns:
            float32[n, dim], each row of length one.
        """
        longest = max(len(row) for row in rows)
        ids = np.full((len(rows), longest), self._padding_id, np.int64)
        mask = np.zeros_like(ids)
        for at, row in enumerate(rows):
            ids[at, : len(row)] = row
            mask[at, : len(row)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        feed = {name: given[name] for name in self._inputs}
        hidden = np.asarray(self._session.run([self._output], feed)[0], np.float32)
        if self._cls:
            return normalise(hidden[:, 0])
        # Added up token by token, so that padding adds exact zeros and leaves every bit in place.
        # The mean is the sum but for its length, which becomes one either way.
        if not mask.all():
            hidden = hidden * mask.astype(np.float32)[:, :, np.newaxis]
        return normalise(hidden.sum(axis=1))

    def _token_output(self, onnx: Path) -> tuple[str, int]:
        outputs = [output for output in self._session.get_outputs() if len(output.shape) == 3]
        named = [output for output in outputs if output.name in _TOKEN_OUTPUTS] or outputs
        unknown = set(self._inputs) - _INPUTS
        if unknown or not named or not isinstance(named[0].shape[2], int):
            message = f"{onnx} is no text encoder with one vector per token"
            raise ModelCorrupt(message)
        return named[0].name, named[0].shape[2]


def _open(onnx: Path, threads: int) -> Any:
    import onnxruntime  # noqa: PLC0415 - `import engram` must not load it

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    options.enable_mem_pattern = False  # made for inputs of one shape; ours vary
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(onnx), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # each failure has a class of its own, under Exception
        message = f"{onnx} cannot be read as an ONNX model"
        raise ModelCorrupt(message) from error
