"""`engram rekey`: encrypt a store, change its passphrase, or decrypt it."""

from __future__ import annotations

import sys

import click

from engram.cli.files import open_existing
from engram.cli.keys import key_file_option, key_option
from engram.cli.options import json_option, path_argument
from engram.cli.output import line, print_document
from engram.errors import InvalidArgument


@click.command()
@path_argument
@key_option
@key_file_option("--new-key-file", "new_key", "A file with the passphrase it shall have.")
@click.option("--remove", is_flag=True, help="Decrypt the store.")
@json_option
def rekey(path: str, *, key: str | None, new_key: str | None, remove: bool, as_json: bool) -> None:
    """Give the store PATH another passphrase, a first one, or with --remove none.

    The passphrase is asked for on the terminal unless --new-key-file is given. Nothing else may
    have the store open.
    """
    if remove and new_key is not None:
        message = "give either --new-key-file or --remove"
        raise InvalidArgument(message)
    with open_existing(path, key=key) as memory:
        memory.rekey(None if remove else new_key or _ask())
    if as_json:
        print_document({"path": path, "encrypted": not remove})
    else:
        line(f"{path} is {'not encrypted any more' if remove else 'encrypted with the new key'}")


def _ask() -> str:
    if not sys.stdin.isatty():
        message = "there is no new passphrase and nobody to ask"
        raise InvalidArgument(message, "give --new-key-file or --remove")
    answer: str = click.prompt(
        "New passphrase", hide_input=True, confirmation_prompt=True, err=True
    )
    return answer
