/** A service of one test's own: to demand keys, to be ended, to come back. */

import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";

const REPOSITORY = fileURLToPath(new URL("../../..", import.meta.url));
const PYTHON = process.env.MESHWRIGHT_PYTHON ?? ".venv/bin/python";

export interface OwnServer {
  readonly address: string;
  /** An API key, where keys are demanded. */
  readonly key: string;
  stop(): Promise<void>;
}

/** `python -m tests.web.serve_seeded <flags>`, once it serves. */
export async function startServer(...flags: string[]): Promise<OwnServer> {
  const process_ = spawn(PYTHON, ["-m", "tests.web.serve_seeded", ...flags], {
    cwd: REPOSITORY,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const said = await output(process_, /seeded: port (\d+)/);
  return {
    address: `http://127.0.0.1:${/seeded: port (\d+)/.exec(said)?.[1]}`,
    key: /key: (\S+)/.exec(said)?.[1] ?? "",
    stop: () =>
      new Promise((resolve) => {
        process_.once("exit", () => resolve());
        process_.kill("SIGTERM");
      }),
  };
}

function output(process_: ChildProcess, until: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    process_.stdout?.on("data", (part: Buffer) => {
      said += part.toString();
      if (until.test(said)) resolve(said);
    });
    process_.once("error", reject);
    process_.once("exit", (code) => reject(new Error(`the service ended with code ${code}: ${said}`)));
  });
}

/** A port that nobody has now. */
export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const door = createServer().listen(0, "127.0.0.1", () => {
      const address = door.address();
      door.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}
