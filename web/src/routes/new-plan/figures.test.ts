import { expect, test } from "vitest";
import { figuresOf, pointerOf, typedValue, valueAt, withValue } from "./figures";

const cluster = {
  name: "mine",
  pools: [{ num_nodes: 2, device: { memory_bytes: 80 * 2 ** 30 }, nic_bandwidth_bytes_per_s: 50e9 }],
  fabric: [{ name: "leaf", oversubscription: 2 }],
};

test("figures are written with their units, and what is missing is empty", () => {
  const written = Object.fromEntries(figuresOf(cluster).map((each) => [each.label, each.text]));
  expect(written).toMatchObject({
    Nodes: "2",
    "Memory a device": "80.00 GiB",
    "NIC bandwidth, one way": "50.0 GB/s",
    "Oversubscription, leaf": "2",
    "Scale-up bandwidth, one way": "",
  });
});

test("one value changes, and nothing else", () => {
  const path = ["pools", 0, "device", "memory_bytes"] as const;
  const changed = withValue(cluster, path, "96 GiB");
  expect(valueAt(changed, path)).toBe("96 GiB");
  expect(withValue(changed, path, 80 * 2 ** 30)).toEqual(cluster);
  expect(valueAt(cluster, path)).toBe(80 * 2 ** 30);
});

test("a missing object is made on the way", () => {
  expect(withValue({}, ["host", "memory_bytes"], 1)).toEqual({ host: { memory_bytes: 1 } });
});

test("what is typed half stays as it is typed", () => {
  expect([typedValue("8"), typedValue("400 Gbit"), typedValue(" ")]).toEqual([8, "400 Gbit", null]);
  expect(pointerOf(["pools", 0, "a/b"])).toBe("/cluster/pools/0/a~1b");
});
