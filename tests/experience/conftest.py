"""A store of experiences, with a stand-in for the embedder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fake_trainer import FakeTrainer
from stand_ins import WordEmbedder

from engram.experience import ExperienceMemory, Generated


@pytest.fixture
def opened(path, clock) -> Iterator[Callable[..., ExperienceMemory]]:
    """Open the test's store; every instance is closed at the end."""
    with ExitStack() as stack:

        def memory(agent_id: str | None = None, **options: object) -> ExperienceMemory:
            if "embedder_model" not in options:
                options.setdefault("embedder", WordEmbedder())
            options = {"clock": clock, "path": path, **options}
            where = options.pop("path")
            return stack.enter_context(ExperienceMemory(where, agent_id=agent_id, **options))

        yield memory


@pytest.fixture
def experiences(opened) -> ExperienceMemory:
    return opened()


@pytest.fixture
def fake(tmp_path: Path) -> FakeTrainer:
    (tmp_path / "bin").mkdir()
    return FakeTrainer(tmp_path / "bin")


@pytest.fixture
def run(experiences: ExperienceMemory, tmp_path: Path) -> Callable[..., Generated]:
    """Train the test's store."""

    def generate(trainer: str, **options: object) -> Generated:
        return experiences.generate(tmp_path / "models", trainer=trainer, **options)

    return generate
