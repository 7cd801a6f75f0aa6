"""Which commands there are, known without importing them: a start pays for the one it runs."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

from engram.cli.failures import Interrupted

__all__ = ["COMMANDS", "Commands", "Elsewhere"]

COMMANDS: Final = {
    "api": (
        "api:api",
        "Answer requests, one JSON object per line, until stdin ends.",
    ),
    "assert": (
        "assert_fact:assert_fact",
        "Store the fact SUBJECT PREDICATE OBJECT in the store PATH, which is made when missing.",
    ),
    "backup": (
        "backup:backup",
        "Copy the whole store PATH to the file DEST, which is replaced, while others use it.",
    ),
    "call": (
        "call:call",
        "Ask the running server for METHOD, with PARAMS as JSON, and print what it returns.",
    ),
    "compact": (
        "compact:compact",
        "Rebuild the store PATH so that it takes no more room than it needs.",
    ),
    "compress": (
        "compress:compress",
        "Put summaries in the place of the least important episodes of the store PATH.",
    ),
    "config": (
        "config:config",
        "Check, show and describe the settings.",
    ),
    "consolidation": (
        "consolidation:consolidation",
        "Merge, archive and delete superfluous experiences; all of it can be taken back.",
    ),
    "contradictions": (
        "contradictions:contradictions",
        "Print the pairs of active facts in the store PATH that cannot both hold.",
    ),
    "decay": (
        "decay:decay",
        "Compute the importance of the episodes in the store PATH anew; nothing is erased.",
    ),
    "demo": (
        "demo:demo",
        "Remember a conversation of 30 turns and answer three questions from it.",
    ),
    "dormant": (
        "dormant:dormant",
        "Review, inspect and judge what searches might have shown of dormant memories.",
    ),
    "events": (
        "events:events",
        "Check logs of events.",
    ),
    "export": (
        "export_file:export_file",
        "Write what the store PATH holds to the file DEST, which is replaced.",
    ),
    "facts": (
        "facts:facts",
        "List the active facts in the store PATH, in the order they were recorded.",
    ),
    "forget": (
        "forget:forget",
        "Erase from the file PATH, or hide memories of the configured store.",
    ),
    "import": (
        "import_file:import_file",
        "Bring the file SRC into the store PATH or the configured one, made when missing.",
    ),
    "import-store": (
        "import_file:import_store",
        "Bring the reference library's store OLD into the store PATH, which is made when missing.",
    ),
    "ingest": (
        "ingest:ingest",
        "Remember every episode of FILE in the store PATH, which is made when missing.",
    ),
    "init": (
        "init:init",
        "Write a new file of settings, and make the store it names.",
    ),
    "inspect": (
        "inspect:inspect",
        "Print how many episodes, facts, entities and reflections the store PATH holds.",
    ),
    "invalidate": (
        "lifecycle:invalidate",
        "Say of memories of the configured store that they are not true, which hides them.",
    ),
    "list-agents": (
        "list_agents:list_agents",
        "List the agents that have episodes in the store PATH.",
    ),
    "maintain": (
        "maintain:maintain",
        "Bring the index of the store PATH up to date, as after a large import.",
    ),
    "models": (
        "models:models",
        "List, fetch and check models for embedding and reranking.",
    ),
    "observe": (
        "observe:observe",
        "Remember CONTENT in the store PATH, which is made when missing.",
    ),
    "prune": (
        "prune:prune",
        "Show the episodes of the store PATH that faded, and with --yes erase them.",
    ),
    "recall": (
        "recall:recall",
        "Print the memories of the store PATH that answer QUERY best.",
    ),
    "reembed": (
        "reembed:reembed",
        "Embed every episode of the store PATH anew, with another model.",
    ),
    "reflect": (
        "reflect:reflect",
        "Have a language model extract facts from the new episodes of the store PATH.",
    ),
    "rekey": (
        "rekey:rekey",
        "Give the store PATH another passphrase, a first one, or with --remove none.",
    ),
    "remember": (
        "remember:remember",
        "Remember WORDS in the configured store, which is made when missing.",
    ),
    "restore": (
        "lifecycle:restore",
        "Take back what forget, set-status and invalidate did to memories of the configured store.",
    ),
    "server": (
        "server:server",
        "Serve the project's store on a Unix socket, until SIGTERM or Ctrl-C.",
    ),
    "set-status": (
        "lifecycle:set_status",
        'Give the memory ID of the configured store a STATUS; any but "active" hides it.',
    ),
    "stats": (
        "stats:stats",
        "Print figures of the store PATH, with --prometheus for a collector.",
    ),
    "timeline": (
        "timeline:timeline",
        "Print the facts about ENTITY in the store PATH, in the order they begin to hold.",
    ),
    "train": (
        "train:train",
        "Learn from the memories in a store or a database of the reference server.",
    ),
    "verify": (
        "verify:verify",
        "Read all of the store PATH and compare its parts with each other.",
    ),
    "why": (
        "why:why",
        "Print what the fact ID of the store PATH rests on.",
    ),
}
"""Where each command of `engram` is, below `engram.cli`, and the first paragraph of its help."""


class Elsewhere(click.Command):
    """A command that is listed by name and help, and imported when it is to run.

    Args:
        name: What it is called on the command line.
        place: The module below `engram.cli` and the command's name there, as in "recall:recall".
        summary: The first paragraph of its help.
    """

    def __init__(self, name: str, place: str, summary: str) -> None:
        super().__init__(name, help=summary)
        self._place = place

    def load(self) -> click.Command:
        """Return the command itself."""
        module, _, attribute = self._place.partition(":")
        command: click.Command = getattr(import_module(f"engram.cli.{module}"), attribute)
        return command


class Commands(click.Group):
    """A group of commands; a Ctrl-C leaves it without click's empty line on stderr."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments begin with, and the arguments after it."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, Elsewhere) else command, rest

    def invoke(self, ctx: click.Context) -> object:
        """Run the command, or several."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None
