"""One long conversation: a thousand memories, a restart, and an encrypted store."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_a_thousand_memories_and_a_restart(serve, tmp_path, encrypted):
    key = tmp_path / "key"
    key.write_text("a passphrase", encoding="utf-8")
    key.chmod(0o600)
    flags = ["--provenance", "user", *(["--key-file", str(key)] if encrypted else [])]
    count = 1000 if not encrypted else 100
    client = serve(*flags)
    told = client.at_once(
        [("remember", {"content": f"Parcel {n} is in locker {n * 7}."}) for n in range(count)]
    )
    uids = [one.structured_content["id"] for one in told]
    assert client.result("recall", query="Where is parcel 77?")[0]["id"] == uids[77]
    assert client.result("why", memory_id=uids[77])["access_count"] == 1
    client.result("forget", memory_id=uids[78])
    client.close()
    again = serve(*flags)
    stats = again.result("stats")
    assert stats["counts"]["episodic"] == count - 1
    assert stats["session"]["untrusted"] is False
    assert again.result("recall", query="Where is parcel 77?")[0]["id"] == uids[77]
    # What was noted of the first session's recalls is in the file, too.
    assert again.result("why", memory_id=uids[77])["access_count"] == 2
    assert again.refusal("why", memory_id=uids[78]).startswith("memory not found")
