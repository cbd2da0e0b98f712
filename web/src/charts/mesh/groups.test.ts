import { expect, test } from "vitest";
import { groupOf, memberIndex, memberIndices } from "./groups";

test("a group of neighbours", () => {
  const tp = [{ size: 4, stride: 1 }];
  expect(groupOf(6, tp)).toEqual([4, 5, 6, 7]);
  expect(memberIndex(6, tp)).toBe(2);
});

test("a group of one is the rank itself", () => {
  expect(groupOf(9, [])).toEqual([9]);
  expect(memberIndex(9, [])).toBe(0);
});

test("two factors: innermost first", () => {
  const axis = [
    { size: 2, stride: 4 },
    { size: 2, stride: 16 },
  ];
  expect(groupOf(23, axis)).toEqual([3, 7, 19, 23]);
  expect(groupOf(23, axis).map((rank) => memberIndex(rank, axis))).toEqual([0, 1, 2, 3]);
});

test("groups are a partition", () => {
  const axis = [
    { size: 2, stride: 2 },
    { size: 3, stride: 8 },
  ];
  const seen = new Map<number, readonly number[]>();
  for (let rank = 0; rank < 48; rank++) {
    const group = groupOf(rank, axis);
    expect(group).toContain(rank);
    for (const member of group) expect(seen.get(member) ?? group).toEqual(group);
    for (const member of group) seen.set(member, group);
  }
  expect(Math.max(...memberIndices(48, axis))).toBe(5);
});
