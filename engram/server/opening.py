"""From the settings to an open store, or to the reason why there is none."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from engram import llm
from engram.embedding import embed_query, resolve
from engram.errors import (
    EngramError,
    InvalidArgument,
    MissingExtra,
    ModelCorrupt,
    ModelMismatch,
    ModelMissing,
)
from engram.experience import ExperienceMemory
from engram.server.failures import (
    CONFIG_INVALID,
    DATABASE_UNAVAILABLE,
    DISPATCH,
    INIT_FAILED,
    INVALID_PROVIDER,
    LEGACY_DATABASE,
    MODEL_MISMATCH,
    Failure,
)
from engram.server.refusals import failure_of
from engram.server.settings import KEY_FILE
from engram.storage.legacy_memories import is_legacy_database

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from engram.embedding import Embedder
    from engram.llm import LLMAdapter
    from engram.models import StoredModel
    from engram.server.sections import Embedding
    from engram.server.settings import ServerSettings

_ADAPTERS: Final[dict[str, Callable[..., LLMAdapter]]] = {
    "anthropic": llm.AnthropicAdapter,
    "openai": llm.OpenAIAdapter,
    "gemini": llm.GeminiAdapter,
    "deepseek": llm.DeepSeekAdapter,
    "qwen": llm.QwenAdapter,
    "kimi": llm.KimiAdapter,
    "ollama": llm.OpenAIAdapter,
}
_DETERMINISTIC: Final = "deterministic"

_BUSY: Final = 10.0

_NO_KEY: Final = "none"

_LOG = logging.getLogger("engram.server")


def opened(
    settings: ServerSettings, clock: Callable[[], datetime], *, trial: bool = True
) -> ExperienceMemory:
    """Open the store that the settings name; a missing one is made, with its folder.

    Args:
        settings: The settings in force.
        clock: Where "now" comes from.
        trial: Whether the model must embed a text before this returns. Without, it is loaded when
            it is first needed, and what needs it fails if that fails.

    Raises:
        Failure: It cannot be opened as the settings say, or another database would be left behind.
    """
    if settings.left_behind is not None and is_legacy_database(settings.left_behind):
        text = (
            f"legacy global database detected at {settings.left_behind}: set ENGRAM_DB_PATH to"
            f" {settings.store_path} to begin a store there, and call memory_migrate_apply"
        )
        raise Failure(LEGACY_DATABASE, text)
    named = _named(settings.embedding, trial=trial)
    memory = _open(settings, named, clock)
    try:
        stored = memory.model()
        _check_model(settings.embedding, stored)
        if named is None and trial:
            _usable(settings.embedding, stored)
    except BaseException:
        memory.close()
        raise
    memory.use_models(settings.models_path)
    return memory


def embedder_of(
    embedding: Embedding, stored: StoredModel | None, *, trial: bool = True
) -> Embedder:
    """Return the embedder in force, when it has embedded a text.

    Args:
        embedding: What the settings say; without a model it is the store's.
        stored: The model whose vectors the store holds.
        trial: Whether it must do that first.

    Raises:
        ModelMissing: It is not on this machine.
        ModelCorrupt: It is, and cannot be used.
        ModelMismatch: The store's is one that only programs have.
        EngramError: As `resolve` says.
    """
    name = _DETERMINISTIC if embedding.provider == _DETERMINISTIC else embedding.model or None
    if name is None and stored is not None and stored.name is None:
        message = "the store holds vectors of an embedder that a program passed as embedder="
        raise ModelMismatch(message, "`engram reembed` gives it others")
    found = resolve(name, stored=None if stored is None else stored.name)
    if not trial:
        return found
    try:
        # What the registry does not know is read from the files, too.
        assert found.fingerprint  # noqa: S101
        embed_query(found, "Is there anybody?")
    except (ModelMissing, ModelCorrupt):
        raise
    except Exception as error:
        message = f"the embedding model cannot be used ({type(error).__name__})"
        raise ModelCorrupt(message, "get it again, or choose another") from error
    return found


def _usable(embedding: Embedding, stored: StoredModel | None, *, trial: bool = True) -> Embedder:
    """Return the embedder in force, or the reason why the server cannot start.

    Raises:
        Failure: It cannot be used, or has other dimensions than the settings say.
    """
    try:
        found = embedder_of(embedding, stored, trial=trial)
    except (ModelMissing, ModelCorrupt, MissingExtra) as error:
        raise Failure(INVALID_PROVIDER, f"invalid provider: {error}") from None
    except EngramError as error:
        raise _start_failure(error) from None
    if embedding.dimension:  # or the model might be loaded to be asked
        _check_dimension(embedding, found.dim)
    return found


def _open(
    settings: ServerSettings, embedder: Embedder | None, clock: Callable[[], datetime]
) -> ExperienceMemory:
    try:
        settings.store_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return ExperienceMemory(
            settings.store_path,
            embedder=embedder,
            agent_id=settings.server.agent or None,
            key=settings.key,
            llm=language_model(settings),
            clock=clock,
            # A store that is locked for long is said to be, before the request's time is up.
            busy_timeout=min(_BUSY, settings.server.request_timeout_secs / 2),
        )
    except OSError as error:
        if isinstance(error, EngramError):
            raise _start_failure(error) from None
        text = f"init failed: the folder of the store cannot be made: {error.strerror}"
        raise Failure(INIT_FAILED, text) from None
    except EngramError as error:
        raise _start_failure(error) from None


def _start_failure(error: EngramError) -> Failure:
    """Return why the server cannot start."""
    failure = failure_of(error)
    if failure.code in (MODEL_MISMATCH, DATABASE_UNAVAILABLE):
        return failure
    if failure.code == DISPATCH:
        return Failure(CONFIG_INVALID, f"invalid configuration: {error}")
    said = str(error).replace("as key=", f"in a file that {KEY_FILE} names")
    return Failure(INIT_FAILED, f"init failed: {said}")


def _named(embedding: Embedding, *, trial: bool) -> Embedder | None:
    """Return the embedder that the settings name; None follows the store.

    Raises:
        Failure: It cannot be used, or has other dimensions than the settings say.
    """
    if embedding.provider == _DETERMINISTIC:
        if embedding.model not in ("", _DETERMINISTIC):
            text = "invalid configuration: embedding.model is not of the provider deterministic"
            raise Failure(CONFIG_INVALID, text)
    elif not embedding.model:
        return None
    return _usable(embedding, None, trial=trial)


def _check_model(embedding: Embedding, stored: StoredModel | None) -> None:
    """Refuse a store whose model is not of the provider, where no model was named.

    Raises:
        Failure: It is another one.
    """
    if stored is None:
        return
    if embedding.provider != _DETERMINISTIC and stored.name == _DETERMINISTIC != embedding.model:
        text = (
            "embedding model mismatch: the store holds vectors of the provider deterministic"
            " (`engram reembed` gives it others)"
        )
        raise Failure(MODEL_MISMATCH, text)
    _check_dimension(embedding, stored.dim)


def _check_dimension(embedding: Embedding, dim: int) -> None:
    if embedding.dimension not in (0, dim):
        text = f"invalid configuration: embedding.dimension must be 0 or the model's, {dim}"
        raise Failure(CONFIG_INVALID, text)


def language_model(settings: ServerSettings) -> LLMAdapter | None:
    """Return the adapter of the language model, None where there is none; nothing is asked yet.

    One that cannot be used is no reason not to start: what it would be asked is decided without.
    """
    chosen = settings.llm
    if chosen.provider == "none":
        return None
    options: dict[str, Any] = {
        # An answer, or its failure after a second try, comes before the request's own time is up.
        "timeout": settings.server.request_timeout_secs / 3,
        "retries": 1,
    }
    if chosen.model:
        options["model"] = chosen.model
    if chosen.api_key:
        options["api_key"] = chosen.api_key
    if chosen.provider == "ollama":
        options["base_url"] = f"{settings.ollama_host.rstrip('/')}/v1"
        # Or the adapter would send it the key of OpenAI.
        options.setdefault("api_key", _NO_KEY)
    try:
        return _ADAPTERS[chosen.provider](**options)
    except InvalidArgument as error:
        _LOG.warning("the language model cannot be used: %s", error)
        return None
