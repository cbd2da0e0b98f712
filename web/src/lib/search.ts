/**
 * How does a view's state get into the URL?  Each screen names its parameters once; what is wrong or default is left out.
 *
 *     export const readTimelineSearch = searchReader({ lane: integer(0), colour: oneOf(["kind", "stage"], "kind") });
 *
 * A reader never fails: a link that somebody typed wrong opens the screen with the default.
 */

export interface Parameter<T> {
  readonly initial: T;
  /** The value, or undefined if it is none. */
  read(raw: unknown): T | undefined;
}

export function oneOf<const T extends string>(values: readonly T[], initial: NoInfer<T>): Parameter<T> {
  return { initial, read: (raw) => values.find((each) => each === raw) };
}

export function text(initial = "", longest = 500): Parameter<string> {
  return {
    initial,
    read: (raw) =>
      typeof raw === "string" || typeof raw === "number" || typeof raw === "boolean"
        ? String(raw).slice(0, longest)
        : undefined,
  };
}

export function numeric(initial: number, low = -Infinity, high = Infinity): Parameter<number> {
  return {
    initial,
    read: (raw) => {
      const value =
        typeof raw === "number" || (typeof raw === "string" && raw !== "") ? Number(raw) : Number.NaN;
      return Number.isFinite(value) && value >= low && value <= high ? value : undefined;
    },
  };
}

export function integer(initial: number, low = 0, high = Number.MAX_SAFE_INTEGER): Parameter<number> {
  const any = numeric(initial, low, high);
  return {
    initial,
    read: (raw) => {
      const value = any.read(raw);
      return Number.isInteger(value) ? value : undefined;
    },
  };
}

export function flag(initial = false): Parameter<boolean> {
  return {
    initial,
    read: (raw) =>
      raw === true || raw === "true" ? true : raw === false || raw === "false" ? false : undefined,
  };
}

/** A list of distinct texts: `?pinned=["a","b"]`, or typed by hand `?pinned=a&pinned=b`. */
export function texts(most = 20): Parameter<readonly string[]> {
  return {
    initial: [],
    read: (raw) => {
      const list = Array.isArray(raw) ? raw : typeof raw === "string" ? listIn(raw) : undefined;
      return list && [...new Set(list.map(String))].slice(0, most);
    },
  };
}

/** The JSON list that a text is, else the text alone. */
function listIn(text: string): readonly unknown[] {
  try {
    const found: unknown = JSON.parse(text);
    return Array.isArray(found) ? found : [text];
  } catch {
    return [text];
  }
}

type Parameters = Readonly<Record<string, Parameter<unknown>>>;
type Values<P extends Parameters> = { -readonly [K in keyof P]: P[K] extends Parameter<infer T> ? T : never };

/** What the URL says: only what differs from the defaults. */
export type SearchOf<R> = R extends (raw: Record<string, unknown>) => infer S ? S : never;

export interface SearchReader<P extends Parameters> {
  (raw: Record<string, unknown>): Partial<Values<P>>;
  /** Every parameter, with defaults where the URL is silent. */
  full(search: Partial<Values<P>>): Values<P>;
}

/** Names that addresses of earlier releases have: what they say now, by today's names. */
export interface OlderNames {
  readonly names: readonly string[];
  read(raw: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
}

export function searchReader<P extends Parameters>(parameters: P, older?: OlderNames): SearchReader<P> {
  const names = Object.keys(parameters) as (keyof P & string)[];
  const read = (said: Record<string, unknown>) => {
    const raw = older ? { ...older.read(said), ...said } : said;
    // The router keeps what the address said unless it is overwritten, so what is left out is named as undefined.
    const found: Record<string, unknown> = {};
    for (const name of older?.names ?? []) if (name in said) found[name] = undefined;
    for (const name of names) {
      const value = parameters[name]?.read(raw[name]);
      found[name] = JSON.stringify(value) === JSON.stringify(parameters[name]?.initial) ? undefined : value;
    }
    return found as Partial<Values<P>>;
  };
  const full = (search: Partial<Values<P>>) =>
    Object.fromEntries(names.map((name) => [name, search[name] ?? parameters[name]?.initial])) as Values<P>;
  return Object.assign(read, { full });
}
