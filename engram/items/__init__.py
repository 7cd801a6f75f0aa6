"""Items: values that a program keeps under a namespace and a key, found by filter and meaning."""

from __future__ import annotations

from engram.items.documents import DocumentMemory, Nearby
from engram.items.memory import ItemMemory
from engram.items.models import Item, ItemPut

__all__ = ["DocumentMemory", "Item", "ItemMemory", "ItemPut", "Nearby"]
