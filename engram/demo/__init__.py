"""The conversation that `engram demo` remembers, written for it, and what it is asked.

`conversation.jsonl` is a file `engram ingest` reads too: 30 turns of two people and their
assistant, in three sessions from March to April 2026.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["CONVERSATION", "QUESTIONS"]

CONVERSATION = Path(__file__).with_name("conversation.jsonl")

QUESTIONS = (
    "Any food allergies?",
    "What colour should the entrance be?",
    "How do I get in if I lost my key?",
)
"""Each is answered by one turn: the first shares no word with its own, the second by a mind that
was changed."""
