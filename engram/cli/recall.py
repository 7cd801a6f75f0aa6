"""`engram recall`: the memories that answer a query best."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from engram.cli.files import open_existing
from engram.cli.keys import key_option
from engram.cli.options import (
    Command,
    ManyValues,
    agent_option,
    json_option,
    model_option,
    moment_option,
    parse_moment,
    path_argument,
)
from engram.cli.output import line, print_document, print_results, result_documents
from engram.provenance import PROVENANCES, UNKNOWN_PROVENANCE

if TYPE_CHECKING:
    from typing import Unpack

    from engram.models import Filters

_MODES = ("hybrid", "cosine", "spreading")
_ACCURACIES = ("exact", "high", "fast")
_KINDS = ("any", "episodic", "semantic")
_METHODS = ("complete", "min_max", "reciprocal_rank")


@click.command(cls=Command)
@path_argument
@click.argument("query")
@click.option("--k", "count", type=int, default=5, show_default=True, help="How many, 1 to 4096.")
@click.option(
    "--kind",
    type=click.Choice(_KINDS),
    default="episodic",
    show_default=True,
    help="Episodes and facts, episodes, or facts.",
)
@click.option(
    "--mode",
    type=click.Choice(_MODES),
    default="hybrid",
    show_default=True,
    help="Meaning and words, meaning alone, or meaning and what is linked to it.",
)
@click.option(
    "--accuracy",
    type=click.Choice(_ACCURACIES),
    default="high",
    show_default=True,
    help="How sure to be that nothing nearer in meaning was missed.",
)
@click.option(
    "--blending",
    type=click.Choice(_METHODS),
    default="complete",
    show_default=True,
    help="How hybrid makes one ranking of meaning and words.",
)
@click.option("--depth", type=int, default=2, show_default=True, help="Hops of spreading.")
@click.option(
    "--decay",
    type=float,
    default=0.5,
    show_default=True,
    help="Share of activation that survives a hop of spreading, 0 to 1.",
)
@click.option("--as-of", metavar="DATE", help="Only what had happened by then, inclusive.")
@click.option("--tags", cls=ManyValues, metavar="TAG...", help="Only with all of these tags.")
@click.option("--actors", cls=ManyValues, metavar="NAME...", help="Only with all of these actors.")
@moment_option("--since", "Only what happened then or later.")
@moment_option("--until", "Only what happened then or earlier.")
@click.option(
    "--provenance",
    cls=ManyValues,
    type=click.Choice((*PROVENANCES, UNKNOWN_PROVENANCE)),
    metavar="SOURCE...",
    help=f"Only from these: {', '.join(PROVENANCES)}, {UNKNOWN_PROVENANCE}.",
)
@click.option(
    "--min-score",
    type=float,
    help="Leave out results that are less sure; by other modes and blendings, that score less.",
)
@click.option("--exclude-quarantined", is_flag=True, help="Leave out quarantined episodes.")
@agent_option
@click.option("--cross-agent", is_flag=True, help="Look at every agent's episodes.")
@model_option
@key_option
@json_option
def recall(
    path: str,
    query: str,
    *,
    count: int,
    kind: str,
    mode: str,
    accuracy: str,
    blending: str,
    depth: int,
    decay: float,
    as_of: str | None,
    min_score: float | None,
    agent_id: str | None,
    cross_agent: bool,
    model: str | None,
    key: str | None,
    as_json: bool,
    **filters: Unpack[Filters],
) -> None:
    """Print the memories of the store PATH that answer QUERY best.

    Dates are ISO 8601; without an offset they are UTC, a date alone is its midnight.
    """
    latest = None if as_of is None else parse_moment(as_of, "--as-of")
    with open_existing(path, agent_id=agent_id, model=model, key=key) as memory:
        results = memory.recall_memories(
            query,
            count,
            kind=kind,
            mode=mode,
            accuracy=accuracy,
            depth=depth,
            decay=decay,
            as_of=latest,
            cross_agent=cross_agent,
            min_score=min_score,
            blending=blending,
            **filters,
        )
    if as_json:
        asked = {"query": query, "k": count, "kind": kind, "mode": mode, "as_of": latest}
        scope = {"agent_id": agent_id, "cross_agent": cross_agent}
        certificate = results[0].certificate if results else None
        how = {"certificate": certificate and asdict(certificate)}
        print_document({**asked, **scope, **how, "results": result_documents(results)})
        return
    limit = "" if as_of is None else f", as-of={as_of}"
    line(f'Recalling "{query}"  (k={count}, mode={mode}{limit})')
    print_results(results)
