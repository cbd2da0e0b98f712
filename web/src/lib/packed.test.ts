import { gunzipSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { packed } from "./packed";

test("a log is compressed, and what is compressed goes as it is", async () => {
  const text = "iteration 1/ 10 | elapsed time per iteration (ms): 812.0 |\n".repeat(500);
  const log = await packed(new File([text], "train.log"));
  expect(log.name).toBe("train.log");
  expect(log.base64.length).toBeLessThan(text.length / 10);
  expect(gunzipSync(Buffer.from(log.base64, "base64")).toString()).toBe(text);
  const trace = gzipSync("{}");
  expect((await packed(new File([new Uint8Array(trace)], "rank0.json.gz"))).base64).toBe(
    trace.toString("base64"),
  );
});
