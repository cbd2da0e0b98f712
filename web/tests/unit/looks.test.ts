import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Look, looksAt, THEMES, WIDTHS_PX } from "../e2e/looks";

const THREE = [...WIDTHS_PX, 1280];
const told = ({ theme, width }: Look) => `${width} ${theme}`;

beforeEach(() => {
  vi.stubEnv("MESHWRIGHT_TEST_ALL", "");
  vi.stubEnv("MESHWRIGHT_TEST_SEED", "seed");
});
afterEach(() => vi.unstubAllEnvs());

test("each width has one theme, and each theme a width", () => {
  for (const widths of [WIDTHS_PX, THREE]) {
    const looks = looksAt("plan", widths);
    expect(looks.map((each) => each.width)).toEqual(widths);
    expect(new Set(looks.map((each) => each.theme))).toEqual(new Set(THEMES));
  }
});

test("a run is repeated by its seed, and over the seeds every look has its turn", () => {
  expect(looksAt("plan", THREE)).toEqual(looksAt("plan", THREE));
  const seen = new Set<string>();
  for (let seed = 0; seed < 20; seed++) {
    vi.stubEnv("MESHWRIGHT_TEST_SEED", String(seed));
    for (const look of looksAt("plan", THREE)) seen.add(told(look));
  }
  expect(seen.size).toBe(THREE.length * THEMES.length);
});

test("the whole run takes every width in every theme", () => {
  vi.stubEnv("MESHWRIGHT_TEST_ALL", "1");
  expect(new Set(looksAt("plan", THREE).map(told)).size).toBe(THREE.length * THEMES.length);
});
