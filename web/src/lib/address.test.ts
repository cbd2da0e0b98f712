import { createMemoryHistory, createRootRoute, createRoute, createRouter } from "@tanstack/react-router";
import { describe, expect, test } from "vitest";
import { parseAddress, writeAddress } from "./address";
import { flag, integer, oneOf, searchReader, text, texts } from "./search";

const read = searchReader({
  find: text(),
  devices: text("64"),
  by: oneOf(["10,20", "10", "true"], "10,20"),
  lane: integer(0),
  table: flag(),
  pinned: texts(),
});
type Search = ReturnType<typeof read.full>;

const NASTY = [
  ..."0 10 007 1.0 1e3 -0 .5 0x10 NaN Infinity 12345678901234567890 true false null undefined".split(" "),
  ...'[ [] [1] [1,2 {} {"a":1} "quoted" \'\' \\ & a&b=c a=b = ? # a#b + a+b % %41 %zz / .. ;'.split(" "),
  ..."__proto__ constructor toString é 日本 😀 \u202e <script> $x".split(" "),
  " ",
  " both ends ",
  "two\nlines",
  "tab\there",
  "\u00a0",
  "\u0000",
  "",
];

/** Texts of pieces that parsers treat specially; the same ones in every run. */
function* jumbled(count: number): Generator<string> {
  let state = 20_261;
  const below = (limit: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * limit);
  };
  for (let made = 0; made < count; made++)
    yield Array.from({ length: 1 + below(5) }, () => NASTY[below(NASTY.length)]).join("");
}

const ALL = [...NASTY, ...jumbled(500)];

/** Through the router itself, as a link is built and then opened elsewhere. */
function opened(search: Partial<Search>): Search {
  const routerAt = (address: string) => {
    const root = createRootRoute();
    const page = createRoute({ getParentRoute: () => root, path: "/page", validateSearch: read });
    return createRouter({
      routeTree: root.addChildren([page]),
      history: createMemoryHistory({ initialEntries: [address] }),
      parseSearch: parseAddress,
      stringifySearch: writeAddress,
    });
  };
  const link = routerAt("/page").buildLocation({ to: "/page" as never, search: search as never }).href;
  const there = routerAt(link);
  return read.full(read(there.latestLocation.search));
}

describe("a link opens what it was made from", () => {
  test("for every text", () => {
    for (const each of ALL)
      expect(opened({ find: each, devices: each })).toMatchObject({ find: each, devices: each });
  });

  test("for every list of texts", () => {
    for (const each of ALL) {
      expect(opened({ pinned: [each] }).pinned).toEqual([each]);
      expect(opened({ pinned: ["x", each] }).pinned).toEqual(["x", ...(each === "x" ? [] : [each])]);
    }
  });

  test("for choices, numbers and flags, also those that look like another", () => {
    for (const by of ["10,20", "10", "true"] as const) expect(opened({ by }).by).toBe(by);
    expect(opened({ lane: 12, table: true })).toMatchObject({ lane: 12, table: true });
  });
});

test("an address is short: no quotes around texts and numbers, nothing for what is not there", () => {
  expect(writeAddress({ devices: "64", lane: 3, table: true, find: undefined })).toBe(
    "?devices=64&lane=3&table=true",
  );
  expect(writeAddress({ find: undefined })).toBe("");
  expect(writeAddress({ pinned: ["a", "b"] })).toBe("?pinned=%5B%22a%22%2C%22b%22%5D");
});

test("a list may be typed by hand", () => {
  expect(read(parseAddress("?pinned=a&pinned=10")).pinned).toEqual(["a", "10"]);
  expect(read(parseAddress("pinned=10")).pinned).toEqual(["10"]);
});

test("writing what was read changes nothing", () => {
  for (const each of ALL) {
    const address = writeAddress({ find: each, pinned: [each, "b"] });
    expect(writeAddress(parseAddress(address))).toBe(address);
  }
});
