"""The `engram` command, each call of it run to its end."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from datetime import datetime
from typing import Any, ClassVar

from contract.faces.face import Face, Memory

from engram.cli import main

_OPTIONS = {"tags": "--tags", "actors": "--actors", "at": "--timestamp"}


_NO_SESSION = "Each command is a session of its own."
_NO_VALUE = "What is kept with a text is not searched."
_NO_GET = "No command prints one memory."


class CommandError(Exception):
    """It ended with another exit code than 0.

    Args:
        code: What its line on stderr says.
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class CommandFace(Face):
    about = "command"
    lacks: ClassVar[Mapping[str, str]] = {
        "find.project": "No command lists the memories of a project.",
        "get": _NO_GET,
        "scope.get": _NO_GET,
        "filter.value": _NO_VALUE,
        "trust.quarantine": "`engram observe` quarantines nothing.",
        "trust.lowered": "The user is trusted: what is declared is stored as it is.",
        "trust.clean": _NO_SESSION,
        "trust.session": _NO_SESSION,
        "limits.beyond": "Texts have no limit but the shell's.",
        "limits.types": "All it is given is text.",
    }
    child = True
    most = 4096
    error = CommandError
    codes: ClassVar[Mapping[str, object]] = {
        "value": "invalid_argument",
        "choice": "usage",
        "halves": "invalid_argument",
        "missing": "not_found",
    }

    def remember(self, text: str, **details: Any) -> str:
        said = self._store("observe", [text], details)
        return str(said["id"])

    def find(self, query: str, k: int = 5, **filters: Any) -> list[Memory]:
        said = self._store("recall", [query], {"k": str(k), **filters})
        return [_memory(row["episode"]) for row in said["results"]]

    def erase(self, uid: str) -> None:
        self._store("forget", [], {"episode": uid})

    def erase_named(self, name: str) -> None:
        self._store("forget", [], {"entity": name, "sweep": True})

    def hide(self, uid: str) -> None:
        self._run("--config", self.place.config, "forget", "--json", uid)

    def restore(self, uid: str) -> None:
        self._run("--config", self.place.config, "restore", "--json", uid)

    def _store(self, command: str, words: list[str], options: dict[str, Any]) -> Any:
        given = [part for name, value in options.items() for part in _option(name, value)]
        if self.agent is not None:
            given += ["--agent-id", self.agent]
        return self._run(command, *given, "--json", "--", self.place.store, *words)

    def _run(self, *arguments: object) -> Any:
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
        try:
            with redirect_stdout(out), redirect_stderr(err):
                main([str(argument) for argument in arguments])
        except SystemExit as ended:
            if ended.code:
                raise CommandError(_document(err)["error"]["code"]) from None
        return _document(out)


def _document(stream: io.TextIOWrapper) -> Any:
    stream.seek(0)
    return json.loads(stream.read())


def _option(name: str, value: Any) -> list[str]:
    option = _OPTIONS.get(name, "--" + name.replace("_", "-"))
    if value is True:
        return [option]
    if isinstance(value, datetime):
        return [option, value.isoformat()]
    return [option, *([value] if isinstance(value, str) else value)]


def _memory(row: dict[str, Any]) -> Memory:
    at = datetime.fromisoformat(row["timestamp"])
    told = {name: row[name] for name in ("tags", "actors", "provenance", "quarantined")}
    return Memory(row["id"], row["content"], at=at, **told)
