"""The JSONL face: one JSON object per line, for programs that keep engram as a subprocess."""
