"""What the process needs to start, and what it says on stderr."""

from __future__ import annotations

import json
import subprocess
import sys

from workers import environment


def test_help_and_version_need_no_sdk(tmp_path):
    code = "import sys, engram.mcp_server as s\ntry: s.main(['{}'])\nfinally: print(*sys.modules)"
    for flag in ("--help", "--version"):
        done = subprocess.run(
            [sys.executable, "-c", code.format(flag)],
            capture_output=True,
            text=True,
            env=environment(tmp_path),
        )
        loaded = set(done.stdout.splitlines()[-1].split())
        assert done.returncode == 0
        assert not loaded & {"mcp", "pydantic", "numpy", "engram.engine"}


def test_without_the_sdk_it_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['mcp'] = None\nfrom engram.mcp_server import main; main([])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment(tmp_path),
        input="",
    )
    assert (done.returncode, done.stdout) == (1, "")
    why = "the MCP server needs the MCP SDK (pip install 'engram-embedded[mcp]')"
    assert done.stderr == f"Error: {why}\n"


def test_a_store_that_could_not_be_opened_is_tried_again(serve, tmp_path):
    place = tmp_path / "later" / "memory.engram"
    client = serve(db=place)
    why = "the folder of --db does not exist (make it, or name a file in another)"
    assert client.refusal("stats") == why
    assert f"the store cannot be opened: {why}" in client.err
    place.parent.mkdir()
    assert client.result("stats")["counts"]["episodic"] == 0


def test_events_are_logged_where_it_is_told(inside, tmp_path):
    log = tmp_path / "events.ndjson"
    client = inside(events=str(log))
    uid = client.result("remember", content="x")["id"]
    client.result("forget", memory_id=uid)
    types = [json.loads(line)["type"] for line in log.read_text(encoding="utf-8").splitlines()]
    assert len(types) == 2


def test_nothing_that_is_stored_reaches_stderr(serve, tmp_path):
    client = serve()
    client.result("remember", content="canary-47", tags=["canary-48"])
    client.result("recall", query="canary-49")
    client.refusal("recall", query="canary-50", limit="canary-51")
    client.refusal("why", memory_id="canary-52")
    assert client.err == ""
