"""Encryption: the key opens the store, and nothing readable is ever in its files."""

from __future__ import annotations

import apsw
import numpy as np
import pytest
from files import every_byte
from stand_ins import WordEmbedder

from engram.errors import NotAStore

CANARY = "the canary Xylophone-Quetzalcoatl sings"


def test_no_file_of_an_encrypted_store_holds_text_or_vectors(open_memory, path):
    embedder = WordEmbedder()
    memory = open_memory("agent-with-a-name", key="pass", embedder=embedder)
    for number in range(300):
        memory.observe(f"{CANARY} {number}", actors=["Hieronymus"], tags=["Ornithology"])
        if number % 50 == 0:
            memory.recall("Quetzalcoatl-questioned", 20)
            seen_while_open(path, embedder)
    memory.close()
    seen_while_open(path, embedder)
    with open_memory("agent-with-a-name", key="pass") as again:
        assert again.count() == 300
        assert again.recall("Xylophone")[0].episode.actors == ["Hieronymus"]


def seen_while_open(path, embedder):
    left = every_byte(path)
    for text in (
        "Xylophone",
        "xylophone",
        "Quetzalcoatl",
        "questioned",
        "Hieronymus",
        "Ornithology",
        "agent-with-a-name",
        "SQLite format 3",
        "CREATE TABLE",
    ):
        assert text.encode() not in left, text
    vector = embedder.vector(f"{CANARY} 0").astype(np.float32)
    for form in (vector, vector.astype(np.float16)):
        # Any four neighbouring components would give the vector away.
        for start in range(0, len(form) - 4, 4):
            assert form[start : start + 4].tobytes() not in left


def test_a_plain_store_would_fail_that_test(open_memory, path):
    open_memory().observe(f"{CANARY} 0")
    with pytest.raises(AssertionError):
        seen_while_open(path, WordEmbedder())


@pytest.mark.parametrize("key", ["wrong", None, "PASS", "pass ", "x'" + "00" * 32 + "'"])
def test_another_key_does_not_open_it(open_memory, key):
    with open_memory(key="pass") as memory:
        memory.observe("x")
    with pytest.raises(NotAStore, match="key"):
        open_memory(key=key)
    assert open_memory(key="pass").count() == 1


def test_a_key_does_not_open_a_plain_store(open_memory):
    with open_memory() as memory:
        memory.observe("x")
    with pytest.raises(NotAStore):
        open_memory(key="pass")


@pytest.mark.parametrize("key", ["a" * 32, "quote ' \" ; --", "日本語の鍵", "\0nul", "k" * 5000])
def test_any_passphrase_works_and_is_never_in_an_error(open_memory, key):
    with open_memory(key=key) as memory:
        memory.observe("x")
    assert open_memory(key=key).count() == 1
    with pytest.raises(NotAStore) as refused:
        open_memory(key=key + "!")
    assert key not in str(refused.value)


def test_it_is_a_sqlcipher_4_database(open_memory, path):
    with open_memory(key="it's a secret") as memory:
        memory.observe("readable by other tools")
    raw = apsw.Connection(str(path))
    raw.execute("PRAGMA cipher = 'sqlcipher'")
    raw.execute("PRAGMA legacy = 4")
    raw.execute("PRAGMA key = 'it''s a secret'")
    assert raw.execute("SELECT content FROM episode").get == "readable by other tools"
    # SQLCipher 4: 256,000 rounds of PBKDF2-HMAC-SHA512, 4,096-byte pages.
    assert int(raw.execute("PRAGMA kdf_iter").get) == 256000
    assert raw.execute("PRAGMA page_size").get == 4096
    raw.close()


def test_in_memory_stores_take_a_key(open_memory):
    memory = open_memory(path=":memory:", key="pass")
    memory.observe("x")
    assert memory.count() == 1
