"""How many numbers the vectors of known embedding models have."""

from __future__ import annotations

from typing import Final

__all__ = ["DIMENSIONS"]

DIMENSIONS: Final = {
    "BAAI/bge-small-en-v1.5": 384,
    "BAAI/bge-base-en-v1.5": 768,
    "BAAI/bge-large-en-v1.5": 1024,
    "BAAI/bge-m3": 1024,
    "nomic-ai/nomic-embed-text-v1.5": 768,
    "qdrant/bge-small-en-v1.5-onnx-q": 384,
    "sentence-transformers/all-MiniLM-L6-v2": 384,
    "qdrant/all-MiniLM-L6-v2-onnx": 384,
    "all-MiniLM-L6-v2-int8": 384,
    "voyage-3.5": 1024,
    "voyage-3.5-lite": 1024,
    "voyage-3-large": 1024,
    "voyage-3-lite": 512,
    "voyage-code-3": 1024,
    "voyage-finance-2": 1024,
    "voyage-law-2": 1024,
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "gemini-embedding-001": 768,
    "text-embedding-004": 768,
}
