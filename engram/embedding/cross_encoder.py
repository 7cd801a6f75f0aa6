"""The reranker that runs an ONNX cross-encoder on this machine's CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from engram.embedding.digest import check_sha256
from engram.embedding.loading import LoadedOnce
from engram.embedding.session import (
    INPUTS,
    batch_rows,
    fill_up,
    open_session,
    run_in_batches,
)
from engram.embedding.threads import thread_count
from engram.embedding.tokens import PairTokens
from engram.errors import ModelCorrupt

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from engram.embedding.location import LocalModel
    from engram.embedding.tokens import Pair

__all__ = ["CrossEncoder"]

_LOGITS = "logits"


class CrossEncoder:
    """Scores a query and a text by reading them together.

    Nothing is opened until the first text. Safe to share between threads; a process forked from one
    that has used it loads the model anew. A score does not depend on the texts it is asked for
    together with, beyond the rounding of float32.

    A pair longer than the model's window loses the end of its text; a query of more than half the
    window gives way as well, down to that half.

    Args:
        local: The model and its files.
        threads: Threads within an operator; None means `ENGRAM_THREADS`, or else the usable CPUs,
            at most four.

    Raises:
        InvalidArgument: `ENGRAM_THREADS` is set and no positive whole number.
    """

    kind: Literal["cross_encoder"] = "cross_encoder"
    output: Literal["raw_logit"] = "raw_logit"

    def __init__(self, local: LocalModel, *, threads: int | None = None) -> None:
        self._local = local
        self._threads = thread_count() if threads is None else threads
        self._load = LoadedOnce(self._opened)

    def __repr__(self) -> str:
        return f"CrossEncoder({self.name!r}, source={self._local.source!r})"

    @property
    def name(self) -> str:
        """The registry's name of the model, or its folder's."""
        return self._local.model.name

    @property
    def reason(self) -> str:
        """Why it is this one: it was asked for and is here."""
        return f"the cross-encoder {self.name} is on this machine ({self._local.source})"

    def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the model's logit for the query with each text, float64[n].

        Of a model with two classes, it is the second's less the first's. Equal texts are read once.

        Raises:
            ModelCorrupt: A model file is not the one the registry names, cannot be read, or is of
                no cross-encoder.
        """
        if not texts:
            return np.empty(0, np.float64)
        tokens, session = self._load()
        place = {text: at for at, text in enumerate(dict.fromkeys(texts))}
        pairs = [tokens.encode(query, text) for text in place]
        order, results = run_in_batches(
            [len(pair.ids) for pair in pairs],
            lambda batch: session.logits([pairs[at] for at in batch]),
            max_rows=session.max_rows,
            threads=self._threads,
        )
        found = np.empty(len(pairs), np.float64)
        found[order] = np.concatenate(results)
        scores: NDArray[np.float64] = found[[place[text] for text in texts]]
        return scores

    def calibrated(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logistic function of logits, which cross-encoders are trained with."""
        # By the hyperbolic tangent, which does not overflow.
        return 0.5 + 0.5 * np.tanh(0.5 * np.asarray(raw, np.float64))

    def _opened(self) -> tuple[PairTokens, _PairSession]:
        model = self._local.model
        check_sha256(self._local.onnx, model.onnx.sha256)
        check_sha256(self._local.tokenizer, model.tokenizer.sha256)
        tokens = PairTokens(self._local.tokenizer, model.max_tokens)
        return tokens, _PairSession(self._local.onnx, tokens.padding_id, self._threads)


class _PairSession:
    """An onnxruntime session that scores pairs.

    Raises:
        ModelCorrupt: The file is no ONNX model with one or two numbers for each row of token ids.
    """

    def __init__(self, onnx: Path, padding_id: int, threads: int) -> None:
        self._onnx = onnx
        self._padding_id = padding_id
        self._session = open_session(onnx, threads)
        self._inputs = [given.name for given in self._session.get_inputs()]
        self._output = self._logits_output()
        self.max_rows = batch_rows(onnx)

    def logits(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """Return one logit per pair, float64[n]."""
        given = {
            "input_ids": fill_up([pair.ids for pair in pairs], self._padding_id),
            "attention_mask": fill_up([np.ones_like(pair.ids) for pair in pairs], 0),
            "token_type_ids": fill_up([pair.sides for pair in pairs], 0),
        }
        feed = {name: given[name] for name in self._inputs}
        answer: Any = self._session.run([self._output], feed)[0]
        logits = np.asarray(answer, np.float64)
        if logits.shape == (len(pairs), 1):
            return logits[:, 0]
        if logits.shape == (len(pairs), 2):
            return logits[:, 1] - logits[:, 0]
        raise self._unfit()

    def _logits_output(self) -> str:
        outputs = [output for output in self._session.get_outputs() if len(output.shape) == 2]
        named = [output for output in outputs if output.name == _LOGITS] or outputs
        if set(self._inputs) - INPUTS or not named:
            raise self._unfit()
        name: str = named[0].name
        return name

    def _unfit(self) -> ModelCorrupt:
        return ModelCorrupt(f"{self._onnx} is no cross-encoder with one or two numbers per text")
