"""Items: values that a program keeps under a namespace and a key, found by filter and meaning."""

from __future__ import annotations

from engram.items.memory import ItemMemory
from engram.items.models import Item, ItemPut

__all__ = ["Item", "ItemMemory", "ItemPut"]
