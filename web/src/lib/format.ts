/**
 * How is a number written for people?  The only place that knows units: seconds, bytes, rates, shares, money.
 *
 * Inside and on the wire everything is seconds and bytes.  A number and its unit never break apart: the space between
 * them is U+00A0.
 */

const NBSP = "\u00a0";
const MINUS = "\u2212";
/** What stands where a number does not exist. */
export const NONE = "\u2013";

const GROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const MOMENT = new Intl.DateTimeFormat("en-GB", {
  year: "numeric",
  month: "short",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
});

export type Maybe = number | null | undefined;

const known = (value: Maybe): value is number =>
  value !== null && value !== undefined && Number.isFinite(value);

const signed = (text: string): string => text.replace(/^-/, MINUS);

const FIXED = new Map<number, Intl.NumberFormat>();

/** So many digits after the point, thousands apart: 1,027.7. */
function fixed(value: number, fraction: number): string {
  const known = FIXED.get(fraction);
  const format =
    known ??
    new Intl.NumberFormat("en-US", { minimumFractionDigits: fraction, maximumFractionDigits: fraction });
  if (!known) FIXED.set(fraction, format);
  return signed(format.format(value));
}

/** So many digits that matter, without exponents: 58.42, 1.234, 0.0123. */
function digits(value: number, significant = 4): string {
  if (value === 0) return "0";
  const before = Math.floor(Math.log10(Math.abs(value))) + 1;
  return fixed(value, Math.min(6, Math.max(0, significant - before)));
}

const withUnit = (text: string, unit: string): string => `${text}${NBSP}${unit}`;

/** The first step whose size the value reaches; the last one if none. */
function scaled(value: number, steps: readonly (readonly [number, string])[], significant: number): string {
  const size = Math.abs(value);
  const [factor, unit] = steps.find(([each]) => size >= each) ?? steps[steps.length - 1] ?? [1, ""];
  return withUnit(digits(value / factor, significant), unit);
}

const TIME_STEPS = [
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "\u00b5s"],
] as const;

/** 58.42 s, 12.30 ms, 4.100 µs; two minutes and more as 2 min 05 s, 3 h 04 min. */
export function seconds(value: Maybe, significant = 4): string {
  if (!known(value)) return NONE;
  if (value === 0) return withUnit("0", "s");
  const size = Math.abs(value);
  if (size < 120) return scaled(value, TIME_STEPS, significant);
  const sign = value < 0 ? MINUS : "";
  const whole = Math.round(size);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  const pair = (a: number, unit: string, b: number, small: string) =>
    `${withUnit(String(a), unit)} ${withUnit(String(b).padStart(2, "0"), small)}`;
  return sign + (hours > 0 ? pair(hours, "h", minutes, "min") : pair(minutes, "min", rest, "s"));
}

/** Always seconds: 0.02 s, 500 s, 2,000 s; for axes that span decades. */
export function secondsOnly(value: Maybe): string {
  if (!known(value)) return NONE;
  return withUnit(Math.abs(value) >= 1 ? count(value) : String(Number(value.toPrecision(3))), "s");
}

/** Always ms, to the microsecond: for times that are read against each other. */
export function milliseconds(value_s: Maybe): string {
  return known(value_s) ? withUnit(fixed(value_s * 1e3, 3), "ms") : NONE;
}

/** A mark of a ruler whose marks stand `between_s` apart, in the unit that keeps them short: 10 s, 250 ms, 1.5 ms. */
export function secondsMark(value_s: number, between_s: number): string {
  const [seconds_, milli, micro] = TIME_STEPS;
  const [factor, unit] = between_s >= 0.1 ? seconds_ : between_s >= 1e-4 ? milli : micro;
  return withUnit(
    fixed(value_s / factor, Math.max(0, -Math.floor(Math.log10(between_s / factor) + 1e-9))),
    unit,
  );
}

/** The two ends in the unit of the upper one: 44.65–72.19 s. */
export function secondsRange(low: Maybe, high: Maybe): string {
  if (!known(low) || !known(high)) return NONE;
  const [factor, unit] = TIME_STEPS.find(([each]) => Math.abs(high) >= each) ?? TIME_STEPS[2];
  return withUnit(`${digits(low / factor)}\u2013${digits(high / factor)}`, unit);
}

const BYTE_STEPS = [
  [2 ** 40, "TiB"],
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
  [2 ** 10, "KiB"],
  [1, "B"],
] as const;

/** Powers of two: 73.52 GiB. */
export function bytes(value: Maybe, significant = 4): string {
  if (!known(value)) return NONE;
  return value === 0 ? withUnit("0", "B") : scaled(value, BYTE_STEPS, significant);
}

/** Always GiB, one digit: for figures that stand beside each other. */
export function gibibytes(value: Maybe): string {
  return known(value) ? withUnit(fixed(value / 2 ** 30, 1), "GiB") : NONE;
}

const BANDWIDTH_STEPS = [
  [1e12, "TB/s"],
  [1e9, "GB/s"],
  [1e6, "MB/s"],
  [1, "B/s"],
] as const;

/** Powers of ten, one way, a device: 450 GB/s. */
export function bandwidth(value: Maybe, significant = 3): string {
  return known(value) ? scaled(value, BANDWIDTH_STEPS, significant) : NONE;
}

const FLOPS_STEPS = [
  [1e15, "PFLOP/s"],
  [1e12, "TFLOP/s"],
  [1e9, "GFLOP/s"],
  [1, "FLOP/s"],
] as const;

export function flopsPerSecond(value: Maybe): string {
  return known(value) ? scaled(value, FLOPS_STEPS, 3) : NONE;
}

const THOUSANDS = [
  [1e12, "T"],
  [1e9, "B"],
  [1e6, "M"],
  [1e3, "k"],
] as const;

/** 70.55 B, 71.80 k, 512. */
export function compact(value: Maybe, significant = 4): string {
  if (!known(value)) return NONE;
  return Math.abs(value) < 1000 ? digits(value, significant) : scaled(value, THOUSANDS, significant);
}

/** 71.80 k tokens/s. */
export function tokensPerSecond(value: Maybe): string {
  return known(value) ? withUnit(compact(value), "tokens/s") : NONE;
}

/** 5,233,650. */
export function count(value: Maybe): string {
  return known(value) ? signed(GROUPED.format(value)) : NONE;
}

/** Up to three digits that matter, none that only fill: 0.125, 8, 1.33. */
export function plain(value: Maybe): string {
  return known(value) ? signed(String(Number(value.toPrecision(3)))) : NONE;
}

/** A factor on an input: × 1.25. */
export function times(value: Maybe): string {
  return known(value) ? `\u00d7${NBSP}${value.toFixed(2)}` : NONE;
}

/** A share of one: 0.5096 -> 51.0 %. */
export function percent(value: Maybe, fraction = 1): string {
  return known(value) ? withUnit(fixed(value * 100, fraction), "%") : NONE;
}

/** A probability, never rounded up to certainty: 0.973 -> 97.3 %, 0.9999 -> over 99.9 %. */
export function chance(value: Maybe): string {
  return known(value) && value > 0.999 ? `over ${percent(0.999)}` : percent(value);
}

/** A change: +3.7 %, −0.4 %, 0.0 %. */
export function change(value: Maybe, fraction = 1): string {
  const text = percent(value, fraction);
  return known(value) && value > 0 && !/^0(\.0+)?\u00a0/.test(text)
    ? `+${text}`
    : text.replace(/^\u2212(0\.?0*\u00a0)/, "$1");
}

/** A difference of two shares: +3.7 points. */
export function points(value: Maybe): string {
  return withPlus(value, known(value) ? withUnit(fixed(value * 100, 1), "points") : NONE);
}

/** What is more or less, with its sign: +1.20 s, −340 ms, 0 s. */
export function secondsChange(value: Maybe): string {
  return withPlus(value, seconds(value, 3));
}

/** +1.2 GiB, −12.0 MiB, 0 B. */
export function bytesChange(value: Maybe): string {
  return withPlus(value, bytes(value, 3));
}

const withPlus = (value: Maybe, text: string): string => (known(value) && value > 0 ? `+${text}` : text);

/** $1,234.50. */
export function dollars(value: Maybe): string {
  if (!known(value)) return NONE;
  const text = Math.abs(value).toLocaleString("en-US", {
    minimumFractionDigits: 2,
    maximumFractionDigits: Math.abs(value) < 1 ? 4 : 2,
  });
  return `${value < 0 ? MINUS : ""}$${text}`;
}

/** A moment in the reader's own time zone: 23 Nov 2026, 07:02. */
export function moment(iso: string | null | undefined): string {
  return iso ? MOMENT.format(new Date(iso)) : NONE;
}

/** The digits that people compare: 12 of 64. */
export function shortId(id: string): string {
  return /^[0-9a-f]{64}$/.test(id) ? id.slice(0, 12) : id;
}

/** "1 stage", "4 stages". */
export function plural(value: number, noun: string, many = `${noun}s`): string {
  return `${count(value)} ${value === 1 ? noun : many}`;
}
