"""`engram compress`: put summaries in the place of episodes that faded."""

from __future__ import annotations

import time

import click

from engram.cli.files import open_existing
from engram.cli.keys import key_option
from engram.cli.language_model import asked, language_model, llm_options
from engram.cli.options import agent_option, json_option, path_argument
from engram.cli.output import line, print_document
from engram.errors import InvalidArgument


@click.command()
@path_argument
@llm_options
@click.option(
    "--max-episodes",
    type=int,
    default=1000,
    show_default=True,
    help="Do nothing up to so many episodes.",
)
@click.option(
    "--importance-threshold",
    type=float,
    default=0.3,
    show_default=True,
    help="Summarise what is less important.",
)
@click.option("--batch-size", type=int, default=20, show_default=True, help="Episodes per summary.")
@agent_option
@key_option
@json_option
def compress(
    path: str,
    *,
    llm: str | None,
    model: str | None,
    base_url: str | None,
    max_episodes: int,
    importance_threshold: float,
    batch_size: int,
    agent_id: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Put summaries in the place of the least important episodes of the store PATH.

    The summarised episodes are erased, batch by batch.
    """
    if llm is None:
        message = "there is nothing to summarise with"
        raise InvalidArgument(message, "give --llm")
    started = time.monotonic()
    adapter = language_model(llm, model, base_url)
    with open_existing(path, agent_id=agent_id, key=key, llm=adapter) as memory, asked(adapter):
        run = memory.compress(
            max_episodes=max_episodes,
            importance_threshold=importance_threshold,
            batch_size=batch_size,
        )
    if as_json:
        print_document(
            {
                "path": path,
                "agent_id": agent_id,
                "episodes_removed": run.episodes_removed,
                "summaries_created": run.summaries_created,
                "model_used": run.model_used,
                "cost_tokens": run.cost_tokens,
            }
        )
        return
    line(f"Episodes removed: {run.episodes_removed}")
    line(f"Summaries created: {run.summaries_created}")
    if run.cost_tokens > 0:
        line(f"Tokens used: {run.cost_tokens:,}")
    line(f"Done in {time.monotonic() - started:.1f}s")
