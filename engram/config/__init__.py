"""Settings: one typed model, read from a YAML file and the environment.

    loaded = load(Path("config.yaml"), os.environ)
    loaded.settings.retrieval.top_k
    loaded.report()

Programs without a file make `Settings` and its sections themselves: `constructed(Settings(...))`.
"""

from __future__ import annotations

from engram.config.loading import Loaded, constructed, load
from engram.config.model import (
    LLM,
    Ann,
    DormantRecall,
    Lifecycle,
    Retrieval,
    Settings,
    Web,
)

__all__ = [
    "LLM",
    "Ann",
    "DormantRecall",
    "Lifecycle",
    "Loaded",
    "Retrieval",
    "Settings",
    "Web",
    "constructed",
    "load",
]
