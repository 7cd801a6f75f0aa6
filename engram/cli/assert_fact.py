"""`engram assert`: state a fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engram.cli.files import open_or_make
from engram.cli.keys import key_option
from engram.cli.options import agent_option, json_option, moment_option, path_argument
from engram.cli.output import fact_document, line, print_document, statement

if TYPE_CHECKING:
    from datetime import datetime


@click.command("assert")
@path_argument
@click.argument("subject")
@click.argument("predicate")
@click.argument("object_", metavar="OBJECT")
@click.option("--confidence", type=float, default=1.0, show_default=True, help="From 0 to 1.")
@click.option("--source", metavar="ID", help="The episode it comes from, or any other name.")
@click.option("--private", is_flag=True, help="Only the agent of --agent-id sees it.")
@moment_option("--valid-from", "When it begins to hold; by default now.")
@moment_option("--valid-to", "When it stops to hold; by default it holds on.")
@agent_option
@key_option
@json_option
def assert_fact(
    path: str,
    subject: str,
    predicate: str,
    object_: str,
    *,
    confidence: float,
    source: str | None,
    private: bool,
    valid_from: datetime | None,
    valid_to: datetime | None,
    agent_id: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Store the fact SUBJECT PREDICATE OBJECT in the store PATH, which is made when missing.

    Other facts stay as they are; "engram contradictions" shows those that cannot both hold.
    """
    with open_or_make(path, agent_id=agent_id, key=key) as memory:
        made = memory.assert_fact(
            subject,
            predicate,
            object_,
            confidence=confidence,
            source=source,
            shared=not private,
            valid_from=valid_from,
            valid_to=valid_to,
        )
        fact = next(fact for fact in memory.timeline(subject) if fact.id == made)
    if as_json:
        print_document(fact_document(fact))
        return
    line(f"Asserted: {fact.id}")
    line(f"  {statement(fact)}")
