"""The program's command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engram.channel import claim
from engram.key_files import others_may_open
from engram.paths import expanded
from engram.training.messages import encode
from engram.training.run import FAILED, Task, carry_out

if TYPE_CHECKING:
    from engram.training.messages import Message


def _text(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return a value that must be text: it is printed, or looked for in a store."""
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        message = "it is not Unicode text"
        raise click.BadParameter(message, context, parameter) from None
    return value


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--database", "--db", metavar="PATH", required=True, help="What to learn from.")
@click.option(
    "--models-path",
    metavar="DIR",
    default="~/.engram/models",
    show_default=True,
    callback=_text,
    help="Where trained models go; made when missing.",
)
@click.option("--deep", is_flag=True, help="Go through the stages of the text model too.")
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="What chance begins with.",
)
@click.option(
    "--key-file",
    metavar="FILE",
    envvar="ENGRAM_KEY_FILE",
    show_envvar=True,
    help="A file with the passphrase of an encrypted store.",
)
@click.option(
    "--agent",
    metavar="NAME",
    callback=_text,
    help="Learn from the memories of this agent of a store alone.",
)
@click.pass_context
def train(
    context: click.Context,
    *,
    database: str,
    models_path: str,
    deep: bool,
    seed: int,
    key_file: str | None,
    agent: str | None,
) -> None:
    """Learn from the memories in a store or a database of the reference server.

    Prints what it finds, one JSON object per line, and writes models. The database is only read,
    while others may write it.
    """
    task = Task(
        database=Path(database),
        models_path=expanded(models_path),
        deep=deep,
        seed=seed,
        key_file=None if key_file is None else Path(key_file),
        agent=agent,
    )
    # A library that prints would spoil the lines.
    channel = claim()
    channel.requests.close()
    if task.key_file is not None and task.key_file.exists() and others_may_open(task.key_file):
        print(f"engram-trainer: others may open {task.key_file}", file=sys.stderr)  # noqa: T201

    def say(message: Message) -> None:
        channel.send(encode(message))

    try:
        code = carry_out(task, say)
    except OSError as error:
        print(f"engram-trainer: stdout: {error.strerror}", file=sys.stderr)  # noqa: T201
        code = FAILED
    context.exit(code)
