"""`engram config`: the settings that commands would use, and all there are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from engram.cli.options import json_option
from engram.cli.output import line, print_document
from engram.cli.settings import loaded

if TYPE_CHECKING:
    from engram.config import Loaded

_defaults_option = click.option(
    "--defaults", is_flag=True, help="As without any file and environment."
)


@click.group()
def config() -> None:
    """Check, show and describe the settings."""


@config.command()
@_defaults_option
@json_option
@click.pass_context
def check(context: click.Context, *, defaults: bool, as_json: bool) -> None:
    """Say whether the settings are valid; exits with 2 when they are not."""
    try:
        settings = _settings(context, defaults=defaults)
    except click.UsageError as refusal:
        if not as_json:
            raise
        print_document({"valid": False, "error": refusal.message})
        context.exit(refusal.exit_code)
    report = settings.report()
    file = report["config_file"]
    if as_json:
        print_document({"valid": True, "config_file": file, "warnings": report["warnings"]})
        return
    line(f"The settings are valid: {file or 'no file'}")
    for warning in settings.warnings:
        line(f"warning: {warning}")


@config.command()
@_defaults_option
@json_option
@click.pass_context
def show(context: click.Context, *, defaults: bool, as_json: bool) -> None:
    """Print every setting and where it comes from; secrets are left out."""
    settings = _settings(context, defaults=defaults)
    if as_json:
        print_document(settings.report())
        return
    for name, value in settings.values().items():
        line(f"{name} = {json.dumps(value)}  [{settings.sources[name]}]")


@config.command()
@_defaults_option
@json_option
@click.pass_context
def schema(context: click.Context, *, defaults: bool, as_json: bool) -> None:
    """Print what each setting is, as JSON with or without --json."""
    from engram.config.schema import schema as described  # noqa: PLC0415 - as in `loaded`

    del as_json
    if defaults:
        _settings(context, defaults=True)
    print_document(dict(described()))


def _settings(context: click.Context, *, defaults: bool) -> Loaded:
    """Return the settings of the invocation, or those of none.

    Raises:
        click.UsageError: They are invalid, or a file was named beside --defaults.
    """
    if not defaults:
        return loaded(context)
    if context.find_root().obj is not None:
        message = "--defaults reads no file: leave out --config"
        raise click.UsageError(message, context)
    from engram.config import load  # noqa: PLC0415 - as in `loaded`

    return load(None, {})
