import { expect, test } from "vitest";
import { flag, integer, numeric, oneOf, searchReader, text, texts } from "./search";

const read = searchReader({
  axis: oneOf(["tp", "dp"], "tp"),
  lane: integer(0, 0, 100),
  zoom: numeric(1, 0.1),
  table: flag(),
  pinned: texts(2),
  find: text(),
});

test("what is default or wrong is left out", () => {
  expect(
    read({ axis: "tp", lane: "seven", zoom: 0, table: "perhaps", pinned: 3, find: "", other: 1 }),
  ).toEqual({});
});

test("what is meant is kept, whether typed by hand or by the router", () => {
  expect(
    read({ axis: "dp", lane: "7", zoom: 2.5, table: true, pinned: ["a", "a", "b", "c"], find: 70 }),
  ).toEqual({
    axis: "dp",
    lane: 7,
    zoom: 2.5,
    table: true,
    pinned: ["a", "b"],
    find: "70",
  });
});

test("full() gives every parameter", () => {
  expect(read.full({ axis: "dp" })).toEqual({
    axis: "dp",
    lane: 0,
    zoom: 1,
    table: false,
    pinned: [],
    find: "",
  });
});
