/**
 * Ticks of a logarithmic axis: 1, 2, 5 of each power of ten, 1 and 3, or 1 alone, until there are at most `most`.
 *
 * `unit`: what one is in the reader's unit, for example 2^30 bytes, so that ticks are round where they are read.
 */
export function logTicks(domain: readonly [number, number], most: number, unit = 1): readonly number[] {
  const [low, high] = [domain[0] / unit, domain[1] / unit];
  for (const steps of [[1, 2, 5], [1, 3], [1]]) {
    const ticks: number[] = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const step of steps) {
        const value = Number(`${step}e${power}`);
        if (value >= low && value <= high) ticks.push(value * unit);
      }
    if (ticks.length <= most || steps.length === 1) return ticks;
  }
  return [];
}
