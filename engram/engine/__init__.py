"""`Engram`: the facade. It checks arguments and delegates; it holds no SQL and no maths."""

from __future__ import annotations

from engram.engine.cognition import Cognition
from engram.engine.erasure import Erasure
from engram.engine.facts import FactMemory
from engram.engine.operations import OPERATIONS
from engram.engine.recalling import MemoryRecall
from engram.engine.reembedding import Reembedding
from engram.engine.remembering import Remembering
from engram.engine.search import MemorySearch
from engram.engine.transfer import Transfer
from engram.tracing import traced

__all__ = ["Engram"]


@traced(OPERATIONS)
class Engram(
    MemoryRecall,
    MemorySearch,
    FactMemory,
    Cognition,
    Erasure,
    Transfer,
    Remembering,
    Reembedding,
):
    """A memory in one SQLite file.

    One instance may be used from many threads; several instances, in threads or processes, may
    share a file, and each sees the others' commits at its next call. Use it as a context manager
    or call `close`.

    Args:
        path: The store file, made when missing; ":memory:" lives with the instance. A store of
            more than 4,096 episodes gets a folder beside it, for its index, unless it is encrypted.
        embedder_model: Name of a local model, or a folder with an ONNX file and a tokenizer. None
            is the model the store was written with; for a new store bge-small if it is on this
            machine, else the packaged all-MiniLM-L6-v2.
        embedder: Any object with `dim`, `fingerprint` and `embed(texts) -> float32[n, dim]`,
            instead of a model.
        agent_id: Whose memory this is: every write carries it and every read is limited to it, by
            equality. None reads everything and writes without an agent.
        key: Passphrase; the file is encrypted, SQLCipher 4 compatible.
        durability: "normal": a commit survives the death of the process, and the power cut may
            take the last ones, never the store. "full": a commit survives both.
        busy_timeout: Seconds to wait while another connection writes.
        clock: Where "now" comes from.
        decay_config: How importance fades, see `DecayConfig`.
        llm: The language model that `reflect` and `compress` ask; nothing else uses it.
        events_path: A file that gets a line for every memory written or forgotten; None is
            `ENGRAM_EVENTS_PATH`, and without that no file is made.
        memory_budget: Bytes that the index may keep in memory, 512 MiB by default. What does not
            fit is read from its files when it is needed, at some cost in time.
        create: Make the store when nothing is at `path`; False refuses that, and empty files.

    Raises:
        CannotOpen: The folder is missing or may not be written to, or nothing is at `path` and
            nothing is to be made.
        NotAStore: The file is something else, or the key is missing or wrong.
        StoreTooNew: A newer engram made the store.
        ModelMissing: The named model is not on this machine.
        ModelMismatch: The store holds another model's vectors.
        InvalidArgument, InvalidType: An argument is refused.
    """
