"""Where the server's settings come from: the environment before the project before the user.

That order holds for every setting, keys among them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engram.config.providers import KEY_VARIABLES
from engram.errors import InvalidArgument, InvalidSettings
from engram.key_files import others_may_open, passphrase_in
from engram.paths import at_home, expanded
from engram.reporting import say
from engram.server import document, project
from engram.server.failures import (
    CONFIG_INVALID,
    CONFIG_NOT_FOUND,
    INVALID_PROVIDER,
    Failure,
)
from engram.server.sections import (
    EMBEDDING_PROVIDERS,
    LLM_PROVIDERS,
    SECTIONS,
    Consolidation,
    Database,
    Deduplication,
    Embedding,
    Hnsw,
    LanguageModel,
    Process,
    Search,
    Section,
    Trainer,
    rule,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

VARIABLES: Final = {
    "ENGRAM_EMBEDDING_PROVIDER": "embedding.provider",
    "ENGRAM_EMBEDDING_MODEL": "embedding.model",
    "ENGRAM_LLM_MODEL": "llm.model",
    "ENGRAM_TRAINER_BINARY": "trainer.trainer_binary",
    "ENGRAM_TRAINER_TIMEOUT": "trainer.trainer_timeout_secs",
    "ENGRAM_MODELS_PATH": "trainer.models_path",
    "ENGRAM_VOYAGE_API_KEY": "embedding.api_key",
}
"""The settings that the environment may set; an empty variable sets nothing."""

PERSONAL: Final = (
    "embedding.api_key",
    "llm.provider",
    "llm.model",
    "llm.api_key",
    "trainer.trainer_binary",
    "trainer.models_path",
)
"""What a project's file may not set: keys, who is sent texts, what is run and what is loaded."""

_OWN_KEY: Final = "ENGRAM_OPENAI_API_KEY"
"""Before the variable that others read too."""

KEY_FILE: Final = "ENGRAM_KEY_FILE"
_OLLAMA: Final = "ENGRAM_OLLAMA_HOST"
_LOCAL_OLLAMA: Final = "http://localhost:11434"
_INTEGER: Final = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSettings:
    """The settings in force, and where everything is.

    Attributes:
        root: The project's folder.
        socket_path: Where to listen.
        store_path: The store, which may have to be made.
        home: The user's home.
        legacy_path: Where the reference server kept the memories of all projects.
        left_behind: That database, where this project's store would be made without regard to it.
        key: Passphrase of an encrypted store.
        ollama_host: Address of a local language model, for the provider "ollama".
    """

    root: Path
    socket_path: Path
    store_path: Path
    home: Path
    legacy_path: Path
    left_behind: Path | None = None
    key: str | None = field(default=None, repr=False)
    ollama_host: str = _LOCAL_OLLAMA
    database: Database = field(default_factory=Database)
    embedding: Embedding = field(default_factory=Embedding)
    llm: LanguageModel = field(default_factory=LanguageModel)
    server: Process = field(default_factory=Process)
    hnsw: Hnsw = field(default_factory=Hnsw)
    consolidation: Consolidation = field(default_factory=Consolidation)
    deduplication: Deduplication = field(default_factory=Deduplication)
    search: Search = field(default_factory=Search)
    trainer: Trainer = field(default_factory=Trainer)

    @property
    def models_path(self) -> Path:
        """The folder that the trainer writes this store's models to, and searches read them from.

        Each store has its own, and each agent: what one taught changes no other's answers.
        """
        whose = os.fsencode(os.path.realpath(self.store_path))
        if self.server.agent:
            whose += b"\0" + self.server.agent.encode()
        below = hashlib.blake2b(whose, digest_size=8).hexdigest()
        return expanded(self.trainer.models_path, home=self.home, folder=self.root) / below

    @property
    def trainer_binary(self) -> str:
        """The trainer's program, as it is to be looked for."""
        return at_home(self.trainer.trainer_binary, self.home)


def load(
    environ: Mapping[str, str], cwd: Path, file: Path | None = None, *, listens: bool = True
) -> ServerSettings:
    """Find the project, and read and check the settings.

    Args:
        environ: The environment.
        cwd: The working folder, absolute.
        file: Settings to read in place of the user's and the project's files.
        listens: Whether there is to be a socket. Without one its path is only reported, and the
            folder of a store that the environment names is a project where there is no other.

    Raises:
        Failure: There is no project, no place for a socket, or no such file; or a setting is
            refused. The text names the setting and never its value.
    """
    root = (project.find_root if listens else project.root_or_store)(environ, cwd)
    values: dict[str, object] = {}
    home = project.home(environ)
    named = None if file is None else expanded(file, home=home, folder=cwd)
    for path, trusted in _files(root, home, named):
        values |= _read(path, trusted=trusted)
    sections = _sections(values | _from_environment(environ))
    llm: Any = sections["llm"]
    process: Any = sections["server"]
    _check_providers(sections)
    key = _provider_key(environ, llm.provider)
    if key:
        sections["llm"] = dataclasses.replace(llm, api_key=key)
    return ServerSettings(
        root=root,
        socket_path=project.socket_path(environ, cwd, root, process.socket_path)
        if listens
        else project.own_socket(root),
        store_path=project.store_path(environ, cwd, root),
        home=home,
        legacy_path=project.legacy_path(environ),
        left_behind=project.left_behind(environ, root),
        key=_key(environ, cwd),
        ollama_host=_address(environ.get(_OLLAMA) or _LOCAL_OLLAMA),
        **sections,  # type: ignore[arg-type]
    )


def _files(root: Path, home: Path, file: Path | None) -> Iterator[tuple[Path, bool]]:
    """Yield the files to read, those that count for more last; and whether they are the user's."""
    if file is not None:
        if not file.is_file():
            raise Failure(CONFIG_NOT_FOUND, "config not found")
        yield file, True
        return
    own = home / project.FOLDER / document.FILE
    shared = root / project.FOLDER / document.FILE
    if _is_something(own):
        yield own, True
    if shared != own and _is_something(shared):
        yield shared, False


def _is_something(path: Path) -> bool:
    """Return whether anything is there: what is no file is refused, and not passed over."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass  # reading it will say why
    return True


def _read(path: Path, *, trusted: bool) -> dict[str, object]:
    """Return what a file sets; a key only with the provider that it is for.

    Raises:
        Failure: It cannot be read, or a project's file sets what is the user's to say.
    """
    values = document.read(path)
    if not trusted:
        _check_foreign(values)
    if "llm.provider" not in values:
        # It is for a provider that nobody names, and not for whichever is named elsewhere.
        values.pop("llm.api_key", None)
    return values


def _check_foreign(values: Mapping[str, object]) -> None:
    """Refuse what a file that may come with somebody's repository has no say in.

    Raises:
        Failure: It sets one of `PERSONAL`, or names a model by a folder.
    """
    place = f"~/{project.FOLDER}/{document.FILE}"
    personal = next((name for name in values if name in PERSONAL), None)
    if personal is not None:
        text = f"invalid configuration: {personal} belongs in {place}, not in a project's file"
        raise Failure(CONFIG_INVALID, text)
    model = values.get("embedding.model")
    if isinstance(model, str) and model and not _is_known(model):
        text = (
            "invalid configuration: embedding.model of a project's file must be a model's full or"
            f" short name; a folder belongs in {place} or the environment"
        )
        raise Failure(CONFIG_INVALID, text)


def _is_known(model: str) -> bool:
    # Heavy, and most projects name no model.
    from engram.embedding.deterministic import DETERMINISTIC  # noqa: PLC0415
    from engram.embedding.registry import registered  # noqa: PLC0415

    return model == DETERMINISTIC or registered(model) is not None


def _provider_key(environ: Mapping[str, str], provider: str) -> str:
    """Return the key that the environment has for a provider, and for no other; "" for none."""
    variables = KEY_VARIABLES.get(provider, ())
    if provider in ("openai", "none"):
        variables = (_OWN_KEY, *variables)
    return next(filter(None, map(environ.get, variables)), "")


def _from_environment(environ: Mapping[str, str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for variable, name in VARIABLES.items():
        text = environ.get(variable, "")
        if text:
            number = rule(name).kind is int and _INTEGER.fullmatch(text)
            values[name] = int(text) if number else text
    return values


def _sections(values: Mapping[str, object]) -> dict[str, Section]:
    made: dict[str, Section] = {}
    for name, section in SECTIONS.items():
        prefix = f"{name}."
        given = {
            key.removeprefix(prefix): value
            for key, value in values.items()
            if key.startswith(prefix)
        }
        try:
            made[name] = section(**given)
        except InvalidSettings as error:
            raise Failure(CONFIG_INVALID, f"invalid configuration: {error}") from None
    return made


def _check_providers(sections: Mapping[str, Any]) -> None:
    for name, known, hint in (
        ("embedding", EMBEDDING_PROVIDERS, "; no text is sent to a service to be embedded"),
        ("llm", LLM_PROVIDERS, ""),
    ):
        if sections[name].provider not in known:
            text = f"invalid provider: {name}.provider must be one of {', '.join(known)}{hint}"
            raise Failure(INVALID_PROVIDER, text)
    if sections["llm"].provider == "ollama" and not sections["llm"].model:
        text = "invalid configuration: llm.model must name the model of the provider ollama"
        raise Failure(CONFIG_INVALID, text)


def _address(host: str) -> str:
    return host if "://" in host else f"http://{host}"


def _key(environ: Mapping[str, str], cwd: Path) -> str | None:
    """Return the passphrase in the file that the environment names."""
    file = environ.get(KEY_FILE)
    if not file:
        return None
    path = expanded(file, home=project.home(environ), folder=cwd)
    try:
        key = passphrase_in(path)
        if others_may_open(path):
            say(f"others may open the file of {KEY_FILE}: chmod 600")
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    except InvalidArgument:
        problem = "holds no passphrase in UTF-8"
    else:
        return key
    raise Failure(CONFIG_INVALID, f"invalid configuration: the file of {KEY_FILE} {problem}")
