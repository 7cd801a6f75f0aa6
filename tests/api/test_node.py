"""The example for Node runs as it is printed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from workers import PATIENCE, environment, program

EXAMPLE = Path(__file__).parents[2] / "docs/how-to/engram-client.mjs"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="needs node")


def ran(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [NODE, *arguments],
        capture_output=True,
        text=True,
        env=environment(home),
        timeout=PATIENCE,
        cwd=home,
    )


def test_the_example_saves_and_takes_up(store, config, project, tmp_path):
    done = ran(str(EXAMPLE), str(config), project, *program(), home=tmp_path)
    assert done.stderr == ""
    assert done.stdout == "release: Built; not yet verified.\nrefused: invalid_params\n"
    assert done.returncode == 0


SUPERVISED = """
import { writeFileSync, unlinkSync } from "node:fs";
import { Client } from "EXAMPLE";
const [config, ...program] = process.argv.slice(2);
const told = async (promise) => promise.then((r) => r.pid ? "ok" : r, (e) => e.code ?? e.message);

const client = new Client(config, { program });
const first = await client.request("status");
process.kill(first.pid, "SIGKILL");
console.log(await told(client.request("status")));
const second = await client.request("status");
console.log(second.pid !== first.pid);
const large = client.request("recall", { project_id: "x".repeat(70000) });
console.log(await told(large), await told(client.request("status")));
console.log((await Promise.all([1, 2, 3].map(() => told(client.request("status"))))).join());
await client.close();
console.log(await told(client.request("status")));
await client.close();

const waiting = [process.execPath, "-e", "setTimeout(() => {}, 600000)", "--"];
const mute = new Client(config, { program: waiting, timeout: 200 });
const none = new Client(config, { program: ["/nowhere/engram"] });
const patient = new Client(config, { program: waiting });
console.log(await told(patient.request("status", {}, { timeout: 200 })));
for (const broken of [mute, none]) console.log(await told(broken.request("status")));
"""


def test_it_supervises_the_process(store, config, tmp_path):
    script = tmp_path / "supervised.mjs"
    script.write_text(SUPERVISED.replace("EXAMPLE", EXAMPLE.as_uri()), encoding="utf-8")
    done = ran(str(script), str(config), *program(), home=tmp_path)
    lines = done.stdout.splitlines()
    # The first request after the kill may be sent before Node knows of it.
    assert lines.pop(0) in ("ok", "the process ended without an answer"), done.stderr
    assert lines == [
        "true",
        "request_too_large ok",
        "ok,ok,ok",
        "ok",
        "the process took too long",
        "the process took too long",
        "the process ended without an answer",
    ]


STRANGE = """
import { Client } from "EXAMPLE";
const [config, said] = process.argv.slice(2);
const program = ["-e", `
  process.stdin.once("data", () => {
    console.log(process.argv[1]);
    process.stdin.on("data", (line) => {
      console.log(String(line).replace('"operation"', '"result"'));
    });
  });
`, "--", said];
const client = new Client(config, { program: [process.execPath, ...program] });
for (const turn of [1, 2]) {
  const tried = client.request("status").then(() => "taken", (error) => error.message);
  console.log(await tried);
}
await client.close();
"""


@pytest.mark.parametrize(
    "said",
    ["no json", "null", "[1]", '{"id": 1}', '{"id": 9, "result": 1}', '{"id": 1, "error": "x"}'],
)
def test_what_is_no_answer_costs_the_process_and_not_the_program(config, tmp_path, said):
    script = tmp_path / "strange.mjs"
    script.write_text(STRANGE.replace("EXAMPLE", EXAMPLE.as_uri()), encoding="utf-8")
    done = ran(str(script), str(config), said, home=tmp_path)
    assert done.stderr == ""
    assert done.stdout == "the answer is none, or to something else\n" * 2
