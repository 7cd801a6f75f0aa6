"""`engram consolidation`: tidying experiences away, and taking that back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engram.cli.files import open_experiences
from engram.cli.keys import key_option
from engram.cli.language_model import language_model, llm_options
from engram.cli.options import agent_option, json_option, path_argument
from engram.cli.output import counted, line, note, print_document
from engram.config.experience import LOG_LIMIT, MIN_SCORE, SIMILARITY, STALE_DAYS
from engram.server import replies

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., object])


@click.group()
def consolidation() -> None:
    """Merge, archive and delete superfluous experiences; all of it can be taken back.

    Duplicates are merged, what is stale is archived, what names a parent that is not there is
    deleted. Nothing leaves the file.
    """


def _limits(command: _Function) -> _Function:
    for option in (
        click.option(
            "--similarity",
            default=SIMILARITY,
            show_default=True,
            help="Cosine that all three texts of duplicates reach.",
        ),
        click.option(
            "--min-score", default=MIN_SCORE, show_default=True, help="Stale scores less."
        ),
        click.option("--stale-days", default=STALE_DAYS, show_default=True, help="Stale is older."),
    ):
        command = option(command)
    return command


@consolidation.command("preview")
@path_argument
@_limits
@agent_option
@key_option
@json_option
def preview_command(
    path: str,
    *,
    stale_days: int,
    min_score: float,
    similarity: float,
    agent_id: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """List what there is to consolidate in the store PATH."""
    with open_experiences(path, agent_id=agent_id, key=key) as memory:
        found = memory.preview(stale_days=stale_days, min_score=min_score, similarity=similarity)
    if as_json:
        print_document({"path": path, "agent_id": agent_id, **replies.preview(found)})
        return
    for group in found.duplicate_groups:
        line(f"  {group.match_type} [{group.similarity:.3f}]  {group.primary_id}")
        for uid in group.duplicate_ids:
            line(f"       {uid}")
    for kind, ids in (("stale", found.stale_ids), ("garbage", found.garbage_ids)):
        for uid in ids:
            line(f"  {kind}  {uid}")
    groups = counted(found.duplicates, "group")
    line(f"{groups} of duplicates, {found.stale} stale, {found.garbage} garbage")


@consolidation.command("analyze")
@path_argument
@_limits
@llm_options
@agent_option
@key_option
@json_option
def analyze_command(
    path: str,
    *,
    stale_days: int,
    min_score: float,
    similarity: float,
    llm: str | None,
    model: str | None,
    base_url: str | None,
    agent_id: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Say what should be done about it; with --llm a language model is asked about duplicates."""
    adapter = language_model(llm, model, base_url)
    with open_experiences(path, agent_id=agent_id, key=key, llm=adapter) as memory:
        found = memory.analyse(stale_days=stale_days, min_score=min_score, similarity=similarity)
    if as_json:
        print_document(
            {
                "path": path,
                "agent_id": agent_id,
                **replies.plain(found),
            }
        )
        return
    for one in found.recommendations:
        named = one.action.get("memory_id") or f"{one.action['target_id']} into"
        into = one.action.get("source_id", "")
        line(f"  [{one.confidence:.2f}] {' '.join((one.action['type'], named, into)).rstrip()}")
        line(f"       {one.reasoning}")
    line(f"Analyzed {counted(found.analyzed_count, 'experience')}")
    _report(found.errors)


@consolidation.command("apply")
@path_argument
@_limits
@click.option(
    "--min-confidence", default=0.0, show_default=True, help="Leave out what is less sure."
)
@click.option("--dry-run", is_flag=True, help="Only say how much would be done.")
@llm_options
@agent_option
@key_option
@json_option
def apply_command(
    path: str,
    *,
    stale_days: int,
    min_score: float,
    similarity: float,
    min_confidence: float,
    dry_run: bool,
    llm: str | None,
    model: str | None,
    base_url: str | None,
    agent_id: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Do what analyze says, in one transaction, and print the run's id for undo."""
    adapter = language_model(llm, model, base_url)
    with open_experiences(path, agent_id=agent_id, key=key, llm=adapter) as memory:
        done = memory.consolidate(
            stale_days=stale_days,
            min_score=min_score,
            similarity=similarity,
            min_confidence=min_confidence,
            dry_run=dry_run,
            performed_by="cli",
        )
    counts = {name: getattr(done, name) for name in ("merged", "deleted", "archived", "kept")}
    if as_json:
        scope = {"path": path, "agent_id": agent_id, "dry_run": dry_run}
        print_document({**scope, **counts, "errors": list(done.errors), "run_id": done.run_id})
        return
    line(", ".join(f"{name} {number}" for name, number in counts.items()).capitalize())
    if done.run_id is not None:
        line(f"Run {done.run_id}; undo takes it back")
    elif dry_run:
        line("Nothing was changed")
    _report(done.errors)


@consolidation.command("log")
@path_argument
@click.option("--limit", default=LOG_LIMIT, show_default=True, help="How many steps at most.")
@agent_option
@key_option
@json_option
def log_command(
    path: str, *, limit: int, agent_id: str | None, key: str | None, as_json: bool
) -> None:
    """List what was done to the experiences of the store PATH, newest first."""
    with open_experiences(path, agent_id=agent_id, key=key) as memory:
        steps = memory.consolidation_log(limit)
    if as_json:
        print_document({"path": path, "agent_id": agent_id, "steps": replies.plain(steps)})
        return
    for step in steps:
        undone = " (undone)" if step.undone else ""
        line(f"  {step.performed_at}  {step.action}{undone}  {' < '.join(step.memory_ids)}")
        line(f"       {step.reason}  |  by {step.performed_by}  |  run: {step.run_id}")
    if not steps:
        line("  (nothing was done)")


@consolidation.command("undo")
@path_argument
@click.argument("run")
@agent_option
@key_option
@json_option
def undo_command(
    path: str, *, run: str, agent_id: str | None, key: str | None, as_json: bool
) -> None:
    """Take back what the run RUN did, where nobody changed its memories since."""
    with open_experiences(path, agent_id=agent_id, key=key) as memory:
        undone = memory.undo(run)
    if as_json:
        print_document({"path": path, "agent_id": agent_id, "run_id": run, "undone": undone})
    else:
        line(f"Took back {counted(undone, 'step')}")


def _report(errors: Sequence[str]) -> None:
    for error in errors:
        note(error)
