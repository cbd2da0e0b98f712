/** How much of a plan's step time is nobody's measurement?  In one sentence. */

import type { LeaningView } from "../../api/queries/hardware";
import { count, percent } from "../../lib/format";

/** Between measured points is as good as measured, for this purpose. */
const TRUSTED: ReadonlySet<string> = new Set(["measured", "interpolated"]);

export function leaningSentence(
  leaning: Pick<LeaningView, "lookups" | "num_lookups" | "time_by_input">,
): string {
  const numbers = new Map<string, number>();
  for (const { input } of leaning.lookups)
    if (!TRUSTED.has(input)) numbers.set(input, (numbers.get(input) ?? 0) + 1);
  const unmeasured = [...numbers.values()].reduce((sum, each) => sum + each, 0);
  if (unmeasured === 0)
    return `All ${count(leaning.num_lookups)} numbers behind this plan are measured or lie between measured ones.`;
  const share = Object.entries(leaning.time_by_input)
    .filter(([input]) => !TRUSTED.has(input))
    .reduce((sum, [, part]) => sum + part, 0);
  const kinds = [...numbers].map(([input, number]) => `${count(number)} ${input}`).join(", ");
  return `This plan leans on ${count(unmeasured)} of ${count(leaning.num_lookups)} lookups that nothing measured (${kinds}): ${percent(share, 0)} of the looked-up time.`;
}

/** "m 512 · n 28,672 · k 4,096". */
export function shapeWords(shape: Readonly<Record<string, number>>): string {
  return Object.entries(shape)
    .map(([name, size]) => `${name.replaceAll("_", " ")} ${count(size)}`)
    .join(" · ");
}
