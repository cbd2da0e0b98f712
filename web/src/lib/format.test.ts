import { describe, expect, test } from "vitest";
import * as format from "./format";

/** NBSP shown as "_", so that a test reads like the page. */
const shown = (text: string) => text.replaceAll("\u00a0", "_");

describe("seconds", () => {
  test.each([
    [58.419164837193804, "58.42_s"],
    [1, "1.000_s"],
    [0.0123, "12.30_ms"],
    [0.9996, "999.6_ms"],
    [0.0000041, "4.100_\u00b5s"],
    [0, "0_s"],
    [125, "2_min 05_s"],
    [3 * 3600 + 4 * 60, "3_h 04_min"],
    [-0.0005, "\u2212500.0_\u00b5s"],
    [null, format.NONE],
    [Number.NaN, format.NONE],
  ])("%s", (value, expected) => expect(shown(format.seconds(value))).toBe(expected));

  test("a range has one unit", () => {
    expect(shown(format.secondsRange(44.65069, 72.1876))).toBe("44.65\u201372.19_s");
    expect(shown(format.secondsRange(0.0009, 0.0021))).toBe("0.9000\u20132.100_ms");
  });
});

describe("marks of a ruler", () => {
  test.each([
    [30, 10, "30_s"],
    [1.5, 0.5, "1.5_s"],
    [30.001, 0.001, "30,001_ms"],
    [0.0125, 0.0005, "12.5_ms"],
    [0.00002, 0.00001, "20_\u00b5s"],
    [0, 10, "0_s"],
  ])("%s, %s apart", (value, between, expected) =>
    expect(shown(format.secondsMark(value, between))).toBe(expected),
  );
});

describe("sizes and rates", () => {
  test.each([
    [format.bytes(78937556608), "73.52_GiB"],
    [format.bytes(0), "0_B"],
    [format.bytes(1536), "1.500_KiB"],
    [format.gibibytes(78937556608), "73.5_GiB"],
    [format.gibibytes(-(2 ** 30)), "\u22121.0_GiB"],
    [format.gibibytes(1027.7 * 2 ** 30), "1,027.7_GiB"],
    [format.bytes(12345 * 2 ** 40), "12,345_TiB"],
    [format.bandwidth(450e9), "450_GB/s"],
    [format.flopsPerSecond(989e12), "989_TFLOP/s"],
    [format.tokensPerSecond(71796.7), "71.80_k_tokens/s"],
    [format.compact(70553706496), "70.55_B"],
    [format.compact(512), "512.0"],
    [format.count(5233650), "5,233,650"],
    [format.plain(0.125), "0.125"],
    [format.plain(4 / 3), "1.33"],
    [format.secondsOnly(0.02), "0.02_s"],
    [format.secondsOnly(0.0001), "0.0001_s"],
    [format.secondsOnly(2000), "2,000_s"],
    [format.secondsOnly(undefined), format.NONE],
    [format.bandwidth(1.5e9, 2), "1.5_GB/s"],
    [format.times(1.5), "\u00d7_1.50"],
  ])("%s", (text, expected) => expect(shown(text)).toBe(expected));
});

describe("shares, changes, money", () => {
  test.each([
    [format.percent(0.50956), "51.0_%"],
    [format.percent(13.808), "1,380.8_%"],
    [format.change(0.0371), "+3.7_%"],
    [format.change(-0.0042), "\u22120.4_%"],
    [format.change(0), "0.0_%"],
    [format.change(-0.00001), "0.0_%"],
    [format.dollars(1234.5), "$1,234.50"],
    [format.dollars(-0.0123), "\u2212$0.0123"],
    [format.compact(50_000, 1), "50_k"],
    [format.secondsChange(1.2), "+1.20_s"],
    [format.secondsChange(-0.34), "\u2212340_ms"],
    [format.secondsChange(0), "0_s"],
    [format.bytesChange(2 ** 30), "+1.00_GiB"],
    [format.bytesChange(undefined), format.NONE],
    [format.plural(1, "stage"), "1 stage"],
    [format.plural(4, "stage"), "4 stages"],
  ])("%s", (text, expected) => expect(shown(text)).toBe(expected));
});

test("an id is cut, a label is not", () => {
  expect(format.shortId("a".repeat(64))).toBe("a".repeat(12));
  expect(format.shortId("nightly-70b")).toBe("nightly-70b");
});

test("milliseconds stay milliseconds", () => {
  expect(shown(format.milliseconds(12.3456789))).toBe("12,345.679_ms");
  expect(shown(format.milliseconds(0.0000004))).toBe("0.000_ms");
  expect(format.milliseconds(null)).toBe(format.NONE);
});
