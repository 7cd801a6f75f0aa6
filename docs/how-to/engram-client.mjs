// A client for Node, without dependencies: one engram process, one request at a time.
//
//   node engram-client.mjs CONFIG PROJECT [PROGRAM ARGUMENT...]
//
// saves a checkpoint for PROJECT, takes it up again and prints it. PROGRAM is what starts engram;
// by default the `engram` on the path.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

export class RequestFailed extends Error {
  constructor({ code, message }) {
    super(message);
    this.code = code;
  }
}

// Milliseconds that a process may take to end by itself.
const LEAVING = 5_000;

// Nothing, where a line is no JSON.
function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

const isResult = (answer, id) =>
  answer?.id === id && "result" in answer && !("error" in answer);

// The answer to a line that is too long has no id.
const isFailure = (answer, id) =>
  typeof answer?.error?.code === "string" &&
  typeof answer.error.message === "string" &&
  (answer.id === id || answer.id === null) &&
  !("result" in answer);

export class Client {
  #command;
  #timeout;
  #process = null;
  #last = Promise.resolve();
  #id = 0;

  constructor(config, { program = ["engram"], timeout = 60_000 } = {}) {
    this.#command = [...program, "--config", resolve(config), "api"];
    this.#timeout = timeout;
  }

  // Requests wait for each other. One that fails holds up none of the others. `timeout`, in
  // milliseconds, is this request's own limit.
  request(operation, params = {}, { timeout = this.#timeout } = {}) {
    const answer = this.#last.then(() => this.#exchange(operation, params, timeout));
    this.#last = answer.catch(() => {});
    return answer;
  }

  async close() {
    await this.#last;
    const child = this.#process;
    if (child === null) return;
    const ended = new Promise((done) => child.once("exit", done));
    child.stdin.end();
    const late = setTimeout(() => child.kill("SIGKILL"), LEAVING);
    await ended;
    clearTimeout(late);
  }

  #exchange(operation, params, timeout) {
    const id = ++this.#id;
    const request = JSON.stringify({ id, operation, params }) + "\n";
    const child = this.#running();
    return new Promise((succeed, fail) => {
      const settle = (outcome, value) => {
        clearTimeout(timer);
        child.lines.removeListener("line", read);
        child.removeListener("close", lost);
        outcome(value);
      };
      // What this process says later must not pass for the answer to another request, so it goes.
      const abandon = (message) => {
        child.kill("SIGKILL");
        child.stdout.destroy(); // Somebody else may hold its other end.
        if (this.#process === child) this.#process = null;
        settle(fail, new Error(message));
      };
      const lost = () => abandon("the process ended without an answer");
      const read = (line) => {
        const answer = parsed(line);
        if (isResult(answer, id)) return settle(succeed, answer.result);
        if (isFailure(answer, id)) return settle(fail, new RequestFailed(answer.error));
        abandon("the answer is none, or to something else");
      };
      const timer = setTimeout(() => abandon("the process took too long"), timeout);
      child.lines.on("line", read);
      child.once("close", lost);
      child.stdin.write(request);
    });
  }

  #running() {
    if (this.#process !== null) return this.#process;
    const [program, ...rest] = this.#command;
    const child = spawn(program, rest, { stdio: ["pipe", "pipe", "inherit"] });
    child.lines = createInterface({ input: child.stdout });
    const gone = () => {
      if (this.#process === child) this.#process = null;
    };
    child.once("exit", gone);
    child.once("error", gone); // It could not be started; "close" follows.
    child.stdin.on("error", () => {}); // It ended while a request was written; "close" follows.
    this.#process = child;
    return child;
  }
}

async function main(config, project, ...program) {
  const client = new Client(config, program.length ? { program } : {});
  await client.request("session_checkpoint", {
    project_id: project,
    task: "release",
    summary: "Built; not yet verified.",
    next_steps: ["Compare the hashes"],
  });
  const { checkpoints } = await client.request("session_resume", {
    project_id: project,
    task: "release",
  });
  console.log(`${checkpoints[0].task}: ${checkpoints[0].summary}`);
  try {
    await client.request("recall", { project_id: "relative" });
  } catch (error) {
    console.log(`refused: ${error.code}`);
  }
  await client.close();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await main(...process.argv.slice(2));
