"""The process of the server: how it starts, what it leaves alone, and how it ends."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import pytest
from engram_server import COMMAND, Server, ended, texts
from socket_server import PATIENCE, Peer, request, until

from engram.server.place import _draft, bound, claimed

RUNNING = "[6006] socket error: a server is already running"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_what_it_makes_is_for_its_user_only(start, tmp_path):
    place = tmp_path / "run/user"
    old = os.umask(0)
    try:
        server = start(ENGRAM_SOCKET_PATH=str(place / "e.sock"))
    finally:
        os.umask(old)
    server.ask("memory_store", **texts(1))
    assert [mode(folder) for folder in (place, place.parent)] == [0o700, 0o700]
    assert {file.name: mode(file) for file in place.iterdir()} == {
        "e.sock": 0o600,
        "e.sock.lock": 0o600,
    }
    assert {mode(file) for file in server.store.parent.glob("engram.db*")} == {0o600}


def test_a_second_server_is_refused_and_the_first_goes_on(server):
    before = server.socket.lstat().st_ino
    with Peer(server.socket) as peer:
        done = subprocess.run(
            COMMAND, cwd=server.root, env=server.environment(), capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"engram: {RUNNING}\n"
        assert peer.ask("memory_status")["ok"]
    assert server.socket.lstat().st_ino == before
    assert server.ask("memory_status")["memory_count"] == 0


def test_of_servers_that_start_together_one_runs(idle):
    processes = [
        subprocess.Popen(
            COMMAND,
            cwd=idle.root,
            env=idle.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    with ThreadPoolExecutor(len(processes)) as pool:
        try:
            ends = {pool.submit(process.wait): process for process in processes}
            losers = [ends[end] for end in islice(as_completed(ends, PATIENCE), 3)]
            [winner] = set(processes) - set(losers)
            assert winner.stderr.readline() == "engram: ready\n"
            with Peer(idle.socket) as peer:
                assert peer.ask("memory_status")["ok"]
            assert ended(winner) == ("", "")
        finally:
            for process in processes:
                process.kill()
    said = [(process.returncode, process.communicate()[1]) for process in losers]
    assert said == [(1, f"engram: {RUNNING}\n")] * 3


def test_the_socket_of_a_dead_server_is_replaced(idle):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(idle.socket))
        dead.listen()
    with idle:
        assert idle.ask("memory_status")["memory_count"] == 0


def test_the_socket_of_another_program_is_left_alone(idle):
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(str(idle.socket))
        alive.listen()
        before = idle.socket.lstat()
        process = subprocess.run(
            COMMAND, cwd=idle.root, env=idle.environment(), capture_output=True, text=True
        )
        assert process.stderr == f"engram: {RUNNING}\n"
        assert os.path.samestat(idle.socket.lstat(), before)
        assert not idle.store.exists()


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_is_no_socket_is_left_alone(idle, kind):
    if kind == "file":
        idle.socket.write_text("precious")
    elif kind == "folder":
        idle.socket.mkdir()
    else:
        idle.socket.symlink_to("nowhere")
    before = idle.socket.lstat()
    process = subprocess.run(
        COMMAND, cwd=idle.root, env=idle.environment(), capture_output=True, text=True
    )
    line = "engram: [6006] socket error: something that is no socket lies in its place\n"
    assert (process.returncode, process.stdout, process.stderr) == (1, "", line)
    assert os.path.samestat(idle.socket.lstat(), before)


def test_a_place_that_cannot_be_one(idle, tmp_path):
    (tmp_path / "file").write_text("")
    for place, kind in ((tmp_path / "file/e.sock", "ENOTDIR"), (Path("/proc/e/e.sock"), "ENOENT")):
        process = subprocess.run(
            COMMAND,
            cwd=idle.root,
            env=idle.environment() | {"ENGRAM_SOCKET_PATH": str(place)},
            capture_output=True,
            text=True,
        )
        line = f"engram: [6006] socket error: the socket's folder cannot be used: {kind}\n"
        assert (process.returncode, process.stderr) == (1, line)


def test_what_somebody_else_put_in_its_place_stays(idle):
    process = idle.run()
    idle.socket.unlink()
    idle.socket.write_text("precious")
    ended(process)
    assert idle.socket.read_text() == "precious"


def test_a_start_that_fails_leaves_no_socket_and_no_lock_held(idle):
    idle.store.mkdir()
    assert idle.refusal()
    idle.store.rmdir()
    with idle:
        assert idle.ask("memory_status")["memory_count"] == 0


@pytest.mark.parametrize("closed", ["1>&- 2>&-", "0>&- 1>&- 2>&-", "2>&-"])
def test_it_needs_no_standard_streams(idle, closed):
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND]
    process = subprocess.Popen(shell, cwd=idle.root, env=idle.environment())
    try:
        idle.wait(process)
        with Peer(idle.socket) as peer:
            assert peer.ask("memory_store", texts(1))["ok"]
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0


def test_a_reader_of_its_messages_may_vanish(idle):
    process = idle.run()
    process.stdout.close()
    process.stderr.close()
    with Peer(idle.socket) as peer:
        assert peer.ask("memory_status")["ok"]
    process.terminate()
    assert process.wait(PATIENCE) == 0


def test_sockets_of_one_folder_are_made_apart(tmp_path):
    # The last one is as long as it may be.
    folder = tmp_path / "f"
    folder.mkdir()
    names = ["s1", "s2", "s", "s~", "t", "x" * (103 - len(os.fsencode(folder)) - 1)]
    with ExitStack() as stack:
        drafts = [_draft(folder / name) for name in names]
        assert len({*drafts, *(folder / name for name in names)}) == 2 * len(names)
        for draft in drafts:  # all are being made at the same time
            making = stack.enter_context(socket.socket(socket.AF_UNIX))
            making.bind(str(draft))
            making.listen()
            assert len(os.fsencode(draft)) <= 103
        for name in names:
            other = drafts[names.index(name)]
            other.unlink()
            stack.enter_context(claimed(folder / name))
            stack.enter_context(bound(folder / name))
            Peer(folder / name).close()


FAMILIES = {
    "tls": ("The website's certificate had expired", "renewed it", "browsers trust us again"),
    "soup": ("Guests with a cold came for dinner", "cooked chicken broth", "they felt better"),
    "moon": ("Photographs of the lunar surface were blurred", "used a tripod", "craters in focus"),
    "tax": ("The yearly declaration was due", "asked an accountant", "saved some money"),
}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_restart_keeps_what_was_acknowledged_and_finds_it_by_meaning(tmp_path, number):
    """With the packaged model: the questions share no word with what answers them."""
    local = Server(tmp_path, '[embedding]\nmodel = "all-MiniLM-L6-v2-int8"\n')
    process = local.run()
    with Peer(local.socket) as peer:
        ids = {}
        for name, (context, action, result) in FAMILIES.items():
            memory = {"context": context, "action": action, "result": result}
            ids[name] = peer.ask("memory_store", memory)["data"]["id"]
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    with local:
        for name, question in (
            ("tls", "HTTPS security warning"),
            ("soup", "recipe against influenza"),
            ("moon", "astronomy pictures"),
            ("tax", "finance office"),
        ):
            found = local.ask("memory_search", query=question)
            assert not found["degraded"]
            assert found["results"][0]["id"] == ids[name]
        assert local.ask("memory_status")["index_size"] == 4


def open_files(process: subprocess.Popen[str]) -> int:
    return sum(1 for _ in Path(f"/proc/{process.pid}/fd").iterdir())


def resident(process: subprocess.Popen[str]) -> int:
    """Bytes of memory that the process takes."""
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096


def test_clients_leave_nothing_behind(server):
    server.ask("memory_store", **texts(1))
    server.ask("memory_search", query="x")
    before, memory = open_files(server.process), resident(server.process)
    large = request("memory_search", {"query": "x" * 2**20})
    with ExitStack() as stack:
        peers = [stack.enter_context(Peer(server.socket)) for _ in range(200)]
        for peer in peers:
            peer.send(large)
            assert peer.reply()["error"]["code"] == 6007
        assert server.ask("memory_status")["memory_count"] == 1
        assert resident(server.process) - memory < 100 << 20
    until(lambda: server.ask("memory_status") and open_files(server.process) <= before)
