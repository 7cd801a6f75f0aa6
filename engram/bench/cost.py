"""`engram-bench cost`: what reflection over a thousand episodes costs in tokens and in money."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from engram.bench.report import banner, print_table
from engram.bench.sentences import simple_sentence
from engram.cli.options import json_option
from engram.cli.output import line, print_document
from engram.errors import InvalidArgument
from engram.llm.prompts import FACT_SYSTEM, fact_prompt

if TYPE_CHECKING:
    from engram.models import Episode

__all__ = ["cost", "count_tokens"]

EPISODES = 200

# US dollars for a million tokens, read and written; providers change them.
_PRICES = {
    "claude-haiku-4.5": (0.25, 1.25),
    "claude-sonnet-4.6": (3.0, 15.0),
    "gpt-4o-mini": (0.15, 0.60),
    "gpt-4o": (2.50, 10.0),
}
_FACTS = 3
_TOKENS_PER_FACT = 60
_LETTERS_PER_TOKEN = 4
_BATCH = 64


class _Counting:
    """A language model that says little and counts what it is told."""

    model_name = "counting"

    def __init__(self) -> None:
        self.read = 0
        self.written = 0
        self.runs = 0

    def extract_facts(self, episodes: list[Episode]) -> tuple[list[dict[str, Any]], int]:
        """Return three facts, and the tokens of the request and of them."""
        read = len(FACT_SYSTEM + fact_prompt(episodes)) // _LETTERS_PER_TOKEN
        written = _FACTS * _TOKENS_PER_FACT
        self.runs += 1
        self.read += read
        self.written += written
        facts = [
            {"subject": f"person {self.runs}", "predicate": f"did {n}", "object": f"thing {n}"}
            for n in range(_FACTS)
        ]
        return facts, read + written

    def summarise(self, episodes: list[Episode]) -> tuple[str, int]:
        """Return no summary; nothing here asks for one."""
        raise NotImplementedError


@click.command()
@click.option(
    "--n",
    "count",
    type=click.IntRange(min=1),
    default=EPISODES,
    show_default=True,
    help="Episodes to reflect on.",
)
@click.option("--model", metavar="NAME", help="Print the price of this model only.")
@json_option
def cost(*, count: int, model: str | None, as_json: bool) -> None:
    """Count the tokens that reflection would send to a language model, asking none.

    A token is taken as four letters, an answer as three facts of 60 tokens. Prices are in US
    dollars for a million tokens, as of the documents engram was built to; check your provider's.
    """
    document = count_tokens(count, model, show=not as_json)
    if as_json:
        print_document(document)


def count_tokens(count: int = EPISODES, model: str | None = None, *, show: bool) -> dict[str, Any]:
    """Return what the command counts as a JSON document.

    Args:
        count: Episodes to reflect on.
        model: Whose price to tell; None is that of all.
        show: Print a banner and tables.

    Raises:
        InvalidArgument: The price of the model is not known.
    """
    if model is not None and model not in _PRICES:
        message = f"the price of {model!r} is not known"
        raise InvalidArgument(message, f"give one of {', '.join(_PRICES)}")
    if show:
        banner(f"Cost of reflection: {count} episodes")
    document = _document(count, _reflected(count), [model] if model else list(_PRICES))
    if show:
        _print(document)
    return document


def _reflected(count: int) -> _Counting:
    from engram import Engram, ObserveInput  # noqa: PLC0415 - heavy, see `engram.cli.files`

    adapter = _Counting()
    with Engram(llm=adapter) as memory:
        for at in range(0, count, _BATCH):
            stop = min(at + _BATCH, count)
            memory.observe_many([ObserveInput(simple_sentence(i)) for i in range(at, stop)])
        while memory.reflect().episodes_processed:
            pass
    return adapter


def _document(count: int, adapter: _Counting, models: list[str]) -> dict[str, Any]:
    tokens = adapter.read + adapter.written
    return {
        "n": count,
        "tokens_read": adapter.read,
        "tokens_written": adapter.written,
        "tokens": tokens,
        "runs": adapter.runs,
        "facts": _FACTS * adapter.runs,
        "tokens_per_1k_episodes": round(1000 * tokens / count),
        "usd_per_1k_episodes": {
            model: round(
                (adapter.read * _PRICES[model][0] + adapter.written * _PRICES[model][1])
                / (1000 * count),
                6,
            )
            for model in models
        },
    }


def _print(document: dict[str, Any]) -> None:
    read, written = document["tokens_read"], document["tokens_written"]
    line(f"Tokens: {document['tokens']:,} ({read:,} read, {written:,} written)")
    line(f"Runs: {document['runs']:,}")
    line(f"Tokens for 1,000 episodes: {document['tokens_per_1k_episodes']:,}")
    line()
    print_table(
        ("model", "$/1M in", "$/1M out", "$ for 1,000 episodes"),
        [
            (model, f"{_PRICES[model][0]:.2f}", f"{_PRICES[model][1]:.2f}", f"{price:.4f}")
            for model, price in document["usd_per_1k_episodes"].items()
        ],
    )
