"""Retrieval measured against judgements: conversations with marked evidence, judged documents."""
