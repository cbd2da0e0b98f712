/**
 * In which windows and themes a screen is looked at: each width in one theme, each theme at some width.
 *
 * Which theme comes first follows from the seed of the run, as for the matrices of the Python tests (tests/sampling.py):
 * MESHWRIGHT_TEST_SEED, else the commit.  MESHWRIGHT_TEST_ALL (`make test-all`) takes every width in every theme.
 */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";

export type Theme = "light" | "dark";
export const THEMES: readonly Theme[] = ["light", "dark"];
/** The narrowest and the widest window that must work. */
export const WIDTHS_PX: readonly number[] = [390, 2560];

export interface Look {
  readonly theme: Theme;
  readonly width: number;
}

/** The looks of a screen in this run. */
export function looksAt(screen: string, widths: readonly number[] = WIDTHS_PX): Look[] {
  if (!["", "0"].includes(process.env.MESHWRIGHT_TEST_ALL ?? ""))
    return THEMES.flatMap((theme) => widths.map((width) => ({ theme, width })));
  const first = createHash("sha256").update(`${seed()} ${screen}`).digest()[0] ?? 0;
  return widths.map((width, place) => ({
    theme: THEMES[(first + place) % THEMES.length] as Theme,
    width,
  }));
}

/** What decides the themes; asked of Git once a process. */
function seed(): string {
  process.env.MESHWRIGHT_TEST_SEED ||= commit();
  return process.env.MESHWRIGHT_TEST_SEED;
}

function commit(): string {
  try {
    return execFileSync("git", ["rev-parse", "--short=12", "HEAD"], { encoding: "utf-8" }).trim();
  } catch {
    return "no commit";
  }
}
