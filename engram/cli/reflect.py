"""`engram reflect`: extract facts from new episodes, let old ones fade."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from engram.cli.files import open_existing
from engram.cli.keys import key_option
from engram.cli.language_model import asked, language_model, llm_options
from engram.cli.options import agent_option, json_option, path_argument
from engram.cli.output import line, print_document

if TYPE_CHECKING:
    from engram.models import ReflectionRun


@click.command()
@path_argument
@llm_options
@click.option("--shared", is_flag=True, help="Let every agent of the file see the facts.")
@click.option("--dry-run", is_flag=True, help="Only say what waits and what would be pruned.")
@agent_option
@key_option
@json_option
def reflect(
    path: str,
    *,
    llm: str | None,
    model: str | None,
    base_url: str | None,
    shared: bool,
    dry_run: bool,
    agent_id: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Have a language model extract facts from the new episodes of the store PATH.

    Then importance is computed anew, and what faded is erased. Without --llm only that is done,
    and the new episodes wait for a run that has one. Its key is read from its maker's usual
    variable, such as ANTHROPIC_API_KEY.
    """
    started = time.monotonic()
    adapter = language_model(llm, model, base_url)
    with open_existing(path, agent_id=agent_id, key=key, llm=adapter) as memory:
        if not as_json:
            line(f"Running reflection on {path}…")
        with asked(adapter):
            run = memory.reflect(dry_run=dry_run, shared=shared)
    seconds = time.monotonic() - started
    if as_json:
        print_document({"path": path, "agent_id": agent_id, **_document(run), "dry_run": dry_run})
    else:
        _print(run, seconds, dry_run=dry_run)


def _document(run: ReflectionRun) -> dict[str, object]:
    return {
        "id": run.id,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "episodes_processed": run.episodes_processed,
        "episodes_waiting": run.episodes_waiting,
        "facts_extracted": run.facts_extracted,
        "contradictions_resolved": run.contradictions_resolved,
        "pruned": run.pruned,
        "model_used": run.model_used,
        "cost_tokens": run.cost_tokens,
    }


def _print(run: ReflectionRun, seconds: float, *, dry_run: bool) -> None:
    if dry_run:
        line(f"Episodes waiting: {run.episodes_waiting}")
        line(f"Episodes to prune: {len(run.pruned)}")
        line("Nothing was changed")
        return
    line(f"Episodes processed: {run.episodes_processed}")
    line(f"Facts extracted: {run.facts_extracted}")
    line(f"Contradictions: {run.contradictions_resolved}")
    if run.pruned:
        line(f"Episodes pruned: {len(run.pruned)}")
    if run.cost_tokens > 0:
        line(f"Tokens used: {run.cost_tokens:,}")
    line(f"Done in {seconds:.1f}s")
