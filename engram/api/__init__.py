"""The JSONL face."""
