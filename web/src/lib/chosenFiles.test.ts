import { Buffer } from "node:buffer";
import { expect, test } from "vitest";
import { contentOf, tooLarge, withFiles } from "./chosenFiles";

const file = (name: string, content: BlobPart = "x", lastModified = 1) =>
  new File([content], name, { lastModified });

test("a file that is chosen again is there once, and order stays", () => {
  const [first, second] = [file("topology.conf"), file("topo.txt")];
  expect(withFiles([first], [second, file("topology.conf")])).toEqual([first, second]);
  expect(withFiles([first], [file("topology.conf", "xy"), file("topology.conf", "x", 2)])).toHaveLength(3);
});

test("every byte arrives", async () => {
  const content = Uint8Array.from({ length: 100_000 }, (_, index) => index % 256);
  const sent = await contentOf(file("trace.sqlite", content));
  expect(sent.name).toBe("trace.sqlite");
  expect(Buffer.from(sent.content_base64, "base64").equals(Buffer.from(content))).toBe(true);
});

test("what no request carries is said before it is sent", () => {
  expect(tooLarge([file("a")])).toEqual([]);
  expect(tooLarge(Array.from({ length: 65 }, (_, index) => file(`${index}`)))[0]?.detail).toMatch(/64 files/);
  const large = file("a", new Uint8Array(12 * 2 ** 20));
  expect(tooLarge([large])[0]).toMatchObject({ pointer: "/files", detail: expect.stringMatching(/11\.5/) });
});
