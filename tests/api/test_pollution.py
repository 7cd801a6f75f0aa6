"""Only answers are on standard output, whatever libraries print."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap

from workers import PATIENCE, SHOUTING, environment, planted, program

# Stands in for libraries: prints when it is imported, when the store is read and when that ends,
# by every way there is.
NOISY = (
    SHOUTING
    + """
    import atexit

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name in ("msgspec", "yaml", "engram.ledger", "numpy", "onnxruntime"):
                shout("import " + name)
                if name == "engram.ledger":
                    atexit.register(shout, "exit")

    sys.meta_path.insert(0, Finder())
"""
)

FRAMES = b"".join(
    json.dumps({"id": number, "operation": operation, "params": params}).encode() + b"\n"
    for number, (operation, params) in enumerate(
        [("operations", {}), ("status", {}), ("search", {"query": "x"}), ("status", {})]
    )
)


def test_only_answers_are_on_stdout(store, config, tmp_path):
    done = subprocess.run(
        program("--config", str(config), "api"),
        input=FRAMES,
        capture_output=True,
        env=environment(tmp_path, **planted(tmp_path, NOISY)),
        timeout=PATIENCE,
        check=True,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 1, 2, 3]
    noise = done.stderr.decode()
    for when in ("import engram.ledger", "import numpy", "exit"):
        for way in ("print", "flushed", "dunder", "puts", "write", "os.write", "system", "child"):
            assert f"{way} {when}\n" in noise
        assert f"UserWarning: warning {when}" in noise


def test_who_reads_stdin_takes_no_request(store, config, tmp_path):
    code = """
        import os, subprocess, sys

        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == "engram.ledger":
                    assert sys.stdin.read() == ""
                    assert os.read(0, 100) == b""
                    subprocess.run(["cat"], check=True)

        sys.meta_path.insert(0, Finder())
    """
    done = subprocess.run(
        program("--config", str(config), "api"),
        input=FRAMES,
        capture_output=True,
        env=environment(tmp_path, **planted(tmp_path, textwrap.dedent(code))),
        timeout=PATIENCE,
        check=True,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 1, 2, 3]


def test_it_works_without_stderr(store, config, tmp_path):
    closing = ["sh", "-c", 'exec "$@" 2>&-', "sh"]
    done = subprocess.run(
        [*closing, *program("--config", str(config), "api")],
        input=FRAMES,
        stdout=subprocess.PIPE,
        env=environment(tmp_path, **planted(tmp_path, NOISY.replace("subprocess.run", "list"))),
        timeout=PATIENCE,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 1, 2, 3]


def test_nobody_has_to_read_its_diagnostics(start):
    worker = start()
    for _ in range(5000):
        assert worker.code("dormant_review") == "operation_failed"
    lines, code, err = worker.finish()
    assert (lines, code) == ([], 0)
    assert set(err.splitlines()) == {"engram api: CannotOpen"}


def test_a_pipe_that_does_not_block_is_made_to(store, config, tmp_path):
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    with subprocess.Popen(
        program("--config", str(config), "api"),
        stdin=subprocess.PIPE,
        stdout=theirs,
        env=environment(tmp_path),
    ) as process:
        os.close(theirs)
        process.stdin.write(b'{"id":1,"operation":"operations"}\n' * 100)
        process.stdin.close()
        with os.fdopen(ours, "rb") as answers:
            lines = answers.readlines()
    assert [json.loads(line)["id"] for line in lines] == [1] * 100
    assert process.returncode == 0
