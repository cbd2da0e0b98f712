/** Where does a value stand on an axis, which values are round, and what do the marks of a series look like? */

export interface Scale {
  (value: number): number;
  readonly domain: () => readonly [low: number, high: number];
}

export interface LinearScale extends Scale {
  /** About `wanted` round values (1, 2 or 5 times a power of ten) within the domain. */
  readonly ticks: (wanted: number) => readonly number[];
  /** The same scale whose domain ends at round values. */
  readonly nice: (wanted: number) => LinearScale;
}

type Ends = readonly [from: number, to: number];

function between([low, high]: Ends, [from, to]: Ends): (value: number) => number {
  const width = high - low;
  // A domain without width is one place: the middle.
  return (value) => from + (width === 0 ? 0.5 : (value - low) / width) * (to - from);
}

export function scaleLinear(domain: Ends, range: Ends): LinearScale {
  return Object.assign(between(domain, range), {
    domain: () => domain,
    ticks: (wanted: number) => ticks(domain[0], domain[1], wanted),
    nice: (wanted: number) => scaleLinear(rounded(domain, wanted), range),
  });
}

export function scaleLog(domain: Ends, range: Ends): Scale {
  const place = between([Math.log(domain[0]), Math.log(domain[1])], range);
  return Object.assign((value: number) => place(Math.log(value)), { domain: () => domain });
}

/** The round step that gives about `wanted` of them, and how many of them make one. */
function stepOf(low: number, high: number, wanted: number): { size: number; perUnit: number } {
  const raw = (high - low) / Math.max(1, wanted);
  const power = Math.floor(Math.log10(raw));
  const error = raw / 10 ** power;
  // Between two round steps, the one that is nearer by its ratio.
  const factor = error >= Math.sqrt(50) ? 10 : error >= Math.sqrt(10) ? 5 : error >= Math.SQRT2 ? 2 : 1;
  return { size: factor * 10 ** power, perUnit: 10 ** -power / factor };
}

export function ticks(low: number, high: number, wanted: number): readonly number[] {
  if (low === high) return [low];
  const { size, perUnit } = stepOf(low, high, wanted);
  const [first, last] = [Math.ceil(low / size - 1e-9), Math.floor(high / size + 1e-9)];
  // Divided, not multiplied, where steps are small: 3 / 10 is 0.3, 3 * 0.1 is not.
  return Array.from({ length: last - first + 1 }, (_, index) =>
    size < 1 ? (first + index) / perUnit : (first + index) * size,
  );
}

function rounded([low, high]: Ends, wanted: number): Ends {
  let ends: Ends = [low, high];
  // Wider ends may ask for wider steps; they settle at once or after one more round.
  for (let round = 0; round < 3 && ends[1] > ends[0]; round++) {
    const { size } = stepOf(ends[0], ends[1], wanted);
    ends = [Math.floor(ends[0] / size) * size, Math.ceil(ends[1] / size) * size];
  }
  return ends;
}

/** A line through the places; nothing for none. */
export function linePath(places: readonly (readonly [x: number, y: number])[]): string {
  return places.length > 0 ? `M${places.map(([x, y]) => `${round(x)},${round(y)}`).join("L")}` : "";
}

const round = (value: number): number => Math.round(value * 1000) / 1000;

/** The outline of a mark around 0, 0 that covers `area` px2: each command absolute, so that it can be moved. */
export type Shape = (area: number) => string;

const polygon =
  (corners: (area: number) => readonly (readonly [number, number])[]): Shape =>
  (area) =>
    `${linePath(corners(area))}Z`;

/** Corners at `radius`, the first at the top. */
const around = (radius: readonly number[]): readonly (readonly [number, number])[] =>
  radius.map((size, index) => {
    const angle = (2 * Math.PI * index) / radius.length;
    return [size * Math.sin(angle), -size * Math.cos(angle)] as const;
  });

/** A regular polygon of n corners covers n/2 r^2 sin(2 pi / n). */
const regular = (n: number): Shape =>
  polygon((area) => {
    const radius = Math.sqrt((2 * area) / (n * Math.sin((2 * Math.PI) / n)));
    return around(Array.from({ length: n }, () => radius));
  });

/** A star of n points covers n r R sin(pi / n). */
const star = (n: number, inner: number): Shape =>
  polygon((area) => {
    const outer = Math.sqrt(area / (n * inner * Math.sin(Math.PI / n)));
    return around(Array.from({ length: 2 * n }, (_, index) => (index % 2 === 0 ? outer : outer * inner)));
  });

const circle: Shape = (area) => {
  const radius = round(Math.sqrt(area / Math.PI));
  return `M${radius},0A${radius},${radius},0,1,1,${-radius},0A${radius},${radius},0,1,1,${radius},0Z`;
};

const square = polygon((area) => {
  const half = Math.sqrt(area) / 2;
  return [
    [-half, -half],
    [half, -half],
    [half, half],
    [-half, half],
  ];
});

const cross = polygon((area) => {
  const [near, far] = [Math.sqrt(area / 5) / 2, (3 * Math.sqrt(area / 5)) / 2];
  return [
    [-far, -near],
    [-near, -near],
    [-near, -far],
    [near, -far],
    [near, -near],
    [far, -near],
    [far, near],
    [near, near],
    [near, far],
    [-near, far],
    [-near, near],
    [-far, near],
  ];
});

/** Told apart by their outline alone. */
export const SHAPES: readonly Shape[] = [
  circle,
  regular(3),
  square,
  regular(4),
  cross,
  star(5, 0.38),
  star(3, 0.3),
];
