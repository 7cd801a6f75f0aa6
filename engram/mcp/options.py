"""What the MCP server is started with: the command line first, then the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from engram import reporting
from engram._version import __version__
from engram.errors import InvalidArgument, MissingExtra
from engram.key_files import others_may_open, passphrase_in
from engram.paths import at_home
from engram.provenance import DEFAULT_PROVENANCE, PROVENANCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.server.settings import ServerSettings

__all__ = ["IN_MEMORY", "PROFILES", "PROGRAM", "PROJECT", "Options", "command", "say"]

PROGRAM: Final = "engram-mcp"

IN_MEMORY: Final = ":memory:"

PROJECT: Final = "memory"
"""The profile of a project's memories; the other one is of an agent's."""

PROFILES: Final = {"engram": "engram.mcp.agent", PROJECT: "engram.mcp.project"}
"""Where each set of tools is: a module with a function `profile(options)`."""

_DEFAULT_PROFILE = "engram"

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off", "")
_UNTRUSTED = "ENGRAM_MCP_SESSION_UNTRUSTED"


@dataclass(frozen=True)
class Options:
    """How the server was started.

    Attributes:
        db: The store's path, or ":memory:".
        agent_id: The server's identity; None serves the whole file as one tenant.
        provenance: The most trusted source that a write may carry.
        session_untrusted: Whether the session starts untrusted.
        events: The file of the event log; None leaves it to the library.
        key: Passphrase of an encrypted store.
        profile: Which tools it has.
        project: The settings of a project's memories; None for the other profile.
    """

    db: str = IN_MEMORY
    agent_id: str | None = None
    provenance: str = DEFAULT_PROVENANCE
    session_untrusted: bool = False
    events: str | None = None
    key: str | None = field(default=None, repr=False)
    profile: str = _DEFAULT_PROFILE
    project: ServerSettings | None = None


def say(text: str) -> None:
    """Print a line about the server on stderr, where diagnostics go."""
    reporting.say(text, PROGRAM)


def _switch(context: click.Context, parameter: click.Parameter, given: bool) -> bool:
    """Return whether the flag is given, or else its variable says so.

    click's own rule for variables takes more words than are documented.
    """
    value = os.environ.get(_UNTRUSTED, "").strip().lower()
    if given or value in _FALSE:
        return given
    if value not in _TRUE:
        words = ", ".join((*_TRUE, *_FALSE[:-1]))
        message = f"{_UNTRUSTED} must be one of {words}, or empty"
        raise click.UsageError(message, context)
    return True


def _name(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    """Return a name that says something: an empty one is nobody's wish, whatever it came from.

    click takes an empty variable for none.
    """
    if name == "" or (not _is_given(context, parameter.name or "") and _is_empty(parameter)):
        message = "it must not be empty"
        raise click.BadParameter(message, context, parameter)
    return name


def _is_empty(parameter: click.Parameter) -> bool:
    return os.environ.get(str(parameter.envvar)) == ""


def _file(context: click.Context, parameter: click.Parameter, file: str | None) -> str | None:
    """Return a path with the home that "~" stands for: hosts start the server without a shell."""
    named = _name(context, parameter, file)
    return None if named is None else at_home(named)


def _key(context: click.Context, parameter: click.Parameter, file: str | None) -> str | None:
    """Return the passphrase in a file; warn about a file that others may open."""
    if file is None:
        return None
    path = Path(at_home(file))
    try:
        key = passphrase_in(path)
        if others_may_open(path):
            say(f"warning: others may open {file} (run: chmod 600 {file})")
    except (OSError, InvalidArgument) as error:
        reason = error.strerror if isinstance(error, OSError) else "no passphrase in UTF-8 in it"
        message = f"{file}: {reason}"
        raise click.BadParameter(message, context, parameter) from None
    return key


def _of_project(context: click.Context, options: Options) -> Options:
    """Return the options with the project's settings.

    What says nothing to a project's memories is refused: nobody may rely on it.

    Raises:
        UsageError: It was given, on the command line or by its variable.
        ClickException: There is no project, or a setting is refused.
    """
    defaults = Options()
    for name in ("provenance", "session_untrusted", "events"):
        if _is_given(context, name) or getattr(options, name) != getattr(defaults, name):
            flag = f"--{name.replace('_', '-')}"
            message = f"{flag} (ENGRAM_MCP_{name.upper()}) has no meaning with --profile {PROJECT}"
            raise click.UsageError(message, context)
    if _is_given(context, "db") and options.db == IN_MEMORY:
        message = f"--profile {PROJECT} has no store in memory: --db names a file"
        raise click.UsageError(message, context)
    # Here, so that a client which is gone early hears of it too.
    from engram.mcp.project_settings import settings_of  # noqa: PLC0415 - of this profile alone

    return replace(options, project=settings_of(options))


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is not ParameterSource.DEFAULT


def command(serve: Callable[[Options], None]) -> click.Command:
    """Return the command that reads the options and hands them on.

    Args:
        serve: What runs the server until its client is gone.
    """

    @click.command(
        PROGRAM,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        epilog="A flag beats its variable.",
    )
    @click.option(
        "--db",
        metavar="PATH",
        envvar="ENGRAM_MCP_DB",
        show_envvar=True,
        default=IN_MEMORY,
        callback=_file,
        help="The store, made when missing. Without it, memory is lost at the end.",
    )
    @click.option(
        "--agent-id",
        metavar="ID",
        envvar="ENGRAM_MCP_AGENT_ID",
        show_envvar=True,
        callback=_name,
        help="The server's identity. Without it, the whole file is one tenant's.",
    )
    @click.option(
        "--provenance",
        type=click.Choice(PROVENANCES),
        envvar="ENGRAM_MCP_PROVENANCE",
        show_envvar=True,
        default=DEFAULT_PROVENANCE,
        show_default=True,
        help="The most trusted source that a write may carry.",
    )
    @click.option(
        "--session-untrusted",
        is_flag=True,
        callback=_switch,
        help=f"Start with a session that is untrusted.  [env var: {_UNTRUSTED}]",
    )
    @click.option(
        "--events",
        metavar="PATH",
        envvar="ENGRAM_MCP_EVENTS",
        show_envvar=True,
        callback=_file,
        help="The file of the event log.",
    )
    @click.option(
        "--key-file",
        "key",
        metavar="FILE",
        callback=_key,
        help="A file with the passphrase of an encrypted store.",
    )
    @click.option(
        "--profile",
        type=click.Choice(list(PROFILES)),
        envvar="ENGRAM_MCP_PROFILE",
        show_envvar=True,
        default=_DEFAULT_PROFILE,
        show_default=True,
        help="Which tools there are.",
    )
    @click.version_option(__version__, message="%(prog)s %(version)s")
    @click.pass_context
    def engram_mcp(context: click.Context, /, **values: object) -> None:
        """Serve a store as tools to an MCP client, over stdin and stdout."""
        options = Options(**values)  # type: ignore[arg-type] # click has checked each
        if options.profile == PROJECT:
            options = _of_project(context, options)
        try:
            serve(options)
        except MissingExtra as error:
            raise click.ClickException(str(error)) from None

    return engram_mcp
