"""Trainers that say what a test wants them to say."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path


def insight(uid: str, text: str = "an insight", **more: object) -> dict[str, object]:
    return {
        "type": "insight",
        "id": uid,
        "context": text,
        "action": "do",
        "result": "done",
        "insight_type": "cluster",
        **more,
    }


COMPLETE = {"type": "complete", "insights_generated": 1, "duration_secs": 0.5}
PROGRESS = {"type": "progress", "stage": "loading", "percent": 0.0}


class FakeTrainer:
    """A program that does what its text says, whatever it is told."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "trainer"

    def does(self, body: str) -> str:
        self.file.write_text(f"#!{sys.executable}\nimport os, sys, time\n{textwrap.dedent(body)}\n")
        self.file.chmod(0o700)
        return str(self.file)

    def says(self, *lines: object, after: str = "") -> str:
        said = "".join(
            f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines
        ).encode()
        return self.does(f"sys.stdout.buffer.write({said!r})\nsys.stdout.flush()\n{after}")
